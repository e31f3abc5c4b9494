"""Tables that people hand in: CSV, TSV or Parquet, every cell as text, with errors that name file and row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from auditor.ground import apart, spreadsheets
from auditor.ground.apart import DiedError
from auditor.ground.delimited import Delimited
from auditor.ground.errors import AuditorError
from auditor.ground.names import first_twice

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {".csv": ",", ".tsv": "\t"}
FORMULA_STARTS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
"""A cell that begins with one of these is a formula to a spreadsheet; the last four are full-width."""


MOST_BYTES = 2**32
PLACE = re.compile(r"[0-9]{1,18}")


def read_table(path: Path) -> pd.DataFrame:
    """Read a table with every cell as text and empty cells as ``""``; rows keep their order.

    A CSV may be separated and encoded as spreadsheets in many languages save it (``delimited``). Empty rows at the
    end, which they leave behind too, are none.

    Raises:
        AuditorError: the file is missing, of another kind, not UTF-8 or not a table.
    """
    suffix = path.suffix.lower()
    if path.exists() and not path.is_file():
        raise AuditorError(f"{path} is no regular file; name a .csv, .tsv, .xlsx or .parquet.")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise AuditorError(f"{path} is larger than {MOST_BYTES >> 30} GB; split it.")
        if suffix in SEPARATORS or suffix == spreadsheets.SUFFIX:
            with spreadsheets.open_delimited(path) as stream:
                return _as_text(Delimited(str(path), stream))
        if suffix == ".parquet":
            import pandas as pd  # half of what a process apart takes to start, and few read tables

            table = apart.call(pd.read_parquet, path)
            nested = next((c for c in table.columns if table[c].map(_is_nested).any()), None)
            if nested is not None:
                raise AuditorError(
                    f"{path} has lists or structs in the column {nested!r}; write plain text there."
                )
            return table.map(lambda cell: "" if cell is None or cell != cell else str(cell))
    except FileNotFoundError as error:
        raise AuditorError(f"{path} does not exist.") from error
    except DiedError as error:
        raise AuditorError(f"{path} {error}; write it again.") from error
    except (ValueError, OSError, RecursionError) as error:
        raise AuditorError(f"{path} cannot be read as a table: {str(error).splitlines()[0]}") from error
    raise AuditorError(f"{path} is not a table; use .csv, .tsv, .xlsx or .parquet.")


def _as_text(table: Delimited) -> pd.DataFrame:
    import pandas as pd

    columns = table.columns
    twice = first_twice(columns)
    if twice is not None:
        raise AuditorError(
            f"{table.name}, row 1: has the column {twice!r} twice; give every column its own name."
        )
    rows = []
    for record in table.records():
        if len(record.cells) > len(columns):
            raise AuditorError(
                f"{table.name}, row {record.row}: has {len(record.cells)} cells instead of {len(columns)}; check "
                "the quotes and separators."
            )
        rows.append(record.cells + [""] * (len(columns) - len(record.cells)))
    while rows and not any(rows[-1]):
        rows.pop()
    return pd.DataFrame(rows, columns=columns, dtype=str)


def _is_nested(cell: object) -> bool:
    return isinstance(cell, (list, tuple, dict, np.ndarray))


def is_place(text: str) -> bool:
    """Return whether the cell is a number that a sample or a draw can have: plain digits, and not thousands
    of them.
    """
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
    """Return what a cell may mean: the text without the quote of ``quoted``, or exactly what it says.

    For files in which people type class names of their own accord, with or without the quote.
    """
    return unquoted(cell), cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
