"""Tables that people hand in: CSV, TSV or Parquet, every cell as text, with errors that name file and row."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pandas as pd

from auditor.ground.errors import AuditorError
from auditor.ground.files import lines_of

SEPARATORS = {".csv": ",", ".tsv": "\t"}
FORMULA_STARTS = "=+-@\t\r\n"
"""A cell that begins with one of these is a formula to a spreadsheet."""


MOST_BYTES = 2**32
PLACE = re.compile(r"[0-9]{1,18}")


def read_table(path: Path) -> pd.DataFrame:
    """Read a table with every cell as text and empty cells as ``""``; rows keep their order.

    A CSV may be separated by semicolons, as spreadsheets in many languages save it. Empty rows at the end, which
    they leave behind too, are none.

    Raises:
        AuditorError: the file is missing, of another kind, not UTF-8 or not a table.
    """
    suffix = path.suffix.lower()
    if path.exists() and not path.is_file():
        raise AuditorError(f"{path} is no regular file; name a .csv, .tsv or .parquet.")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise AuditorError(f"{path} is larger than {MOST_BYTES >> 30} GB; split it.")
        if suffix in SEPARATORS:
            table = pd.read_csv(
                path, sep=_separator(path), dtype=str, keep_default_na=False, encoding="utf-8-sig"
            )
            _refuse_doubled(path)
            filled = np.flatnonzero((table != "").any(axis=1).to_numpy())
            return table.iloc[: filled[-1] + 1 if len(filled) else 0]
        if suffix == ".parquet":
            table = pd.read_parquet(path)
            nested = next((c for c in table.columns if table[c].map(_is_nested).any()), None)
            if nested is not None:
                raise AuditorError(
                    f"{path} has lists or structs in the column {nested!r}; write plain text there."
                )
            return table.map(lambda cell: "" if cell is None or cell != cell else str(cell))
    except FileNotFoundError as error:
        raise AuditorError(f"{path} does not exist.") from error
    except UnicodeDecodeError as error:
        raise AuditorError(
            f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8 CSV and try again."
        ) from error
    except (ValueError, OSError, csv.Error, RecursionError) as error:
        raise AuditorError(f"{path} cannot be read as a table: {str(error).splitlines()[0]}") from error
    raise AuditorError(f"{path} is not a table; use .csv, .tsv or .parquet.")


def _refuse_doubled(path: Path) -> None:
    """pandas renames the second column of a name silently."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(lines_of(file, path), delimiter=_separator(path)), [])
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise AuditorError(f"{path}, row 1: has the column {twice!r} twice; give every column its own name.")


def _is_nested(cell: object) -> bool:
    return isinstance(cell, (list, tuple, dict, np.ndarray))


def _separator(path: Path) -> str:
    """That of the file's kind, or the semicolon of a CSV whose header has no comma."""
    separator = SEPARATORS[path.suffix.lower()]
    with path.open(encoding="utf-8-sig") as file:
        header = next(lines_of(file, path), "")
    return ";" if separator == "," and "," not in header and ";" in header else separator


def is_place(text: str) -> bool:
    """Whether the cell is a number that a sample or a draw can have: plain digits, and not thousands of them."""
    return PLACE.fullmatch(text) is not None


def quoted(text: str) -> str:
    """Put a quote before text that a spreadsheet would run as a formula; numbers stay numbers."""
    if not text or text[0] not in FORMULA_STARTS + "'" or _is_number(text):
        return text
    # A text that already looks quoted gets one more, so that reading back gives exactly what was there.
    return "'" + text if text[0] != "'" or text[1:2] in tuple(FORMULA_STARTS + "'") else text


def unquoted(text: str) -> str:
    """Undo ``quoted``."""
    return text[1:] if len(text) > 1 and text[0] == "'" and text[1] in FORMULA_STARTS + "'" else text


def readings(cell: str) -> tuple[str, str]:
    """What a cell may mean: the text without the quote of ``quoted``, or exactly what it says.

    For files in which people type class names of their own accord, with or without the quote.
    """
    return unquoted(cell), cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
