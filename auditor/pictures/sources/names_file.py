"""Files that name classes by their numbers: one name a line, or JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from auditor.ground.errors import ImportRefusedError
from auditor.ground.files import text_of
from auditor.pictures.sources.rows import printable

MOST_BYTES = 2**24
NO_LISTS = (".csv", ".tsv", ".xlsx", ".yaml", ".yml", ".xml", ".parquet")
_NUMBERED = re.compile(r"(\d{1,9})\s*[\s,:;=]\s*(\S.*)")
REMEDY = "write one class name a line, class 0 first"


def lines_in(file: Path) -> list[str]:
    """The lines of a text without spaces around them.

    Raises:
        ImportRefusedError: it cannot be read.
    """
    try:
        return [line.strip() for line in text_of(file, most_bytes=MOST_BYTES).splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(f"{file} cannot be read ({error}); name a text file") from error


def names_in(file: Path) -> list[str]:
    """Class names by number; each is there once.

    A number before each name is no part of it where these are 0, 1, 2 and so on.

    Raises:
        ImportRefusedError: it cannot be read, is empty, has a name twice, or does not say which class is which.
    """
    lines = lines_in(file)
    if file.suffix.lower() in NO_LISTS:
        raise _refused(f"{file.name} is no list of class names; {REMEDY}")
    if lines and lines[0][:1] in ("[", "{"):
        names = _of_json(file, "\n".join(lines))
    else:
        while lines and not lines[-1]:
            lines.pop()
        numbered = [_NUMBERED.fullmatch(line) for line in lines]
        by_number = {int(one[1]): one[2] for one in numbered if one is not None}
        ordered = _ordered(file, by_number) if len(by_number) == len(lines) else None
        names = ordered or lines
    for row, name in enumerate(names, start=1):
        if not name or names.index(name) < row - 1:
            what = f"{printable(name, 60)!r} is there before" if name else "no class is named"
            raise _refused(f"{file.name}, row {row}: {what}; write one class name a line")
    if not names:
        raise _refused(f"{file} is empty; {REMEDY}")
    return names


def _of_json(file: Path, text: str) -> list[str]:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refused(f"{file.name} is no JSON ({error}); {REMEDY}") from error
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return [one.strip() for one in value]
    if isinstance(value, dict) and value and all(isinstance(one, int) for one in value.values()):
        value = {str(number): name for name, number in value.items()}  # as Keras' class_indices
    if isinstance(value, dict) and all(str(key).isdecimal() for key in value):
        names = _ordered(file, {int(key): str(name).strip() for key, name in value.items()})
        if names is not None:
            return names
    raise _refused(f"{file.name} names no classes by their numbers from 0; {REMEDY}")


def _ordered(file: Path, by_number: dict[int, str]) -> list[str] | None:
    """The names by their numbers from 0; None where the numbers are something else.

    Raises:
        ImportRefusedError: the numbers begin with 1.
    """
    numbers, count = set(by_number), len(by_number)
    if numbers == set(range(count)):
        return [by_number[number] for number in range(count)]
    if count and numbers == set(range(1, count + 1)):
        raise _refused(
            f"{file.name} numbers its classes from 1, and the first class is 0; write names alone, with a first "
            "line for class 0"
        )
    return None


def _refused(text: str) -> ImportRefusedError:
    return ImportRefusedError(f"{text}.", field="class_names")
