"""What an import makes of a case: labels and splits by picture, or why it is refused or asked about."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor.ground.errors import ImportRefusedError
from auditor.importing.building import Parsed, read_rows
from auditor.importing.imports import refuse_labels
from auditor.pictures.sources import (
    Problem,
    Source,
    SourceOptions,
    SourceRow,
    open_here,
    read_bytes,
    read_mask,
    remarks,
)
from tests.auditor.importing.world.cases import Case, Meant, mask_values, picture

MOST = 60
"""Pictures of a case have lower numbers."""
NUMBERS = {hashlib.sha256(picture(number)).digest(): number for number in range(MOST)}
MASKS = {mask_values(number).tobytes(): number for number in range(MOST)}
PLACES = ("root", "class_names", "masks")
"""Options that name a place in the case."""


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    meant: dict[int, Meant]
    """By the number of the picture that is read; empty where it is refused."""
    said: str
    """Remarks, or the refusal."""


def options_of(case: Case, place: Path) -> dict[str, Any]:
    """The options of its import, with places below ``place``."""
    return {name: str(place / value) if name in PLACES else value for name, value in case.options.items()}


def outcome(case: Case, place: Path) -> Outcome:
    """Write the case into ``place`` and read it as an import does."""
    source = case.write(place / "set")
    options = options_of(case, place / "set")
    try:
        opened = open_here(str(source), SourceOptions(**options))
        rows = [row for row in opened.rows() if not _is_problem(row)]
        parsed = _parsed(opened, place / "rows", options)
        refuse_labels(opened.info, parsed, skip_bad=False)
    except ImportRefusedError as error:
        return Outcome({}, str(error))
    if parsed.problems.count:
        return Outcome({}, "; ".join(map(str, parsed.problems.listed)))
    meant = [(_number(opened, row), _meant(opened, row, parsed)) for row in rows]
    assert len(dict(meant)) == len(meant), "one picture was read twice"
    return Outcome(dict(meant), " ".join(remarks(opened) + parsed.notes))


def read_all(source: Source) -> dict[int, Meant]:
    """Every picture of a source by its number, with what it is; there may be no problem."""
    found = {}
    for row in source.rows():
        assert isinstance(row, SourceRow), row
        found[_number(source, row)] = Meant(row.label, row.split)
    return found


def _is_problem(row: SourceRow | Problem) -> bool:
    return isinstance(row, Problem)


def _parsed(source: Source, rows: Path, options: dict[str, Any]) -> Parsed:
    merge, joined = options.get("merge_classes"), options.get("joined_classes", False)
    return read_rows(source, rows, None, merge=merge, joined=joined)


def _number(source: Source, row: SourceRow) -> int:
    payload = next(iter(source.payloads([row.location])))
    data = read_bytes(source.info.root, payload) if isinstance(payload, str) else payload
    return NUMBERS[hashlib.sha256(data).digest()]


def _meant(source: Source, row: SourceRow, parsed: Parsed) -> Meant:
    mask = None
    if row.mask is not None and source.info.masks is not None:
        mask = MASKS[read_mask(source.info.root, row.mask, source.info.masks).tobytes()]
    return Meant(parsed.called.get(row.label or "", row.label), row.split, mask)
