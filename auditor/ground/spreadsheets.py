"""Sheets of Excel, read as CSV."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import IO

from auditor.ground import apart
from auditor.ground.apart import DiedError
from auditor.ground.errors import ImportRefusedError

SUFFIX = ".xlsx"


def open_delimited(path: Path) -> IO[bytes]:
    """Open a delimited file, or the one sheet with content of an ``.xlsx`` as CSV in UTF-8.

    Raises:
        ImportRefusedError: an ``.xlsx`` that is damaged, or holds several sheets or none, or openpyxl is missing.
        OSError: the file cannot be opened.
    """
    if path.suffix.lower() != SUFFIX:
        return path.open("rb")
    try:
        return io.BytesIO(apart.call(_as_csv, path))
    except DiedError as error:
        raise ImportRefusedError(f"{path} {error}; save its sheet as CSV.") from error


def _as_csv(path: Path) -> bytes:
    import pandas as pd  # half of what a process apart takes to start

    try:
        sheets = pd.read_excel(
            path, sheet_name=None, header=None, dtype=str, keep_default_na=False, engine="openpyxl"
        )
    except ImportError:
        raise ImportRefusedError(
            f"{path} needs openpyxl; run pip install 'label-auditor[excel]', or save its sheet as CSV."
        ) from None
    except OSError:
        raise
    except Exception as error:  # whatever zipfile, openpyxl and its parsers of XML raise on a damaged file
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise ImportRefusedError(f"{path} cannot be read as .xlsx ({reason}); save it again.") from None
    filled = {name: sheet for name, sheet in sheets.items() if (sheet != "").to_numpy().any()}
    if len(filled) != 1:
        names = f"sheets with content ({', '.join(map(str, filled))})" if filled else "nothing in its sheets"
        raise ImportRefusedError(f"{path} has {names}; save the one that is meant as CSV.")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(next(iter(filled.values())).itertuples(index=False))
    return text.getvalue().encode()
