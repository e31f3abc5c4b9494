"""A look at a source before anything is registered: its rows, classes, problems and first pictures."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from auditor.importing import Preview, preview_folder, preview_source
from auditor.pictures.cache import picture_of
from auditor.pictures.decoding import ImageError
from auditor.pictures.sources import (
    Problem,
    SourceOptions,
    SourceRow,
    UnreadableError,
    open_source,
)

NUM_PICTURES = 12
PICTURE_SIZE = 256
ROWS_LOOKED_AT = 5_000


@dataclass(frozen=True)
class Look:
    """What a source holds."""

    preview: Preview
    pictures: list[tuple[str, bytes]]
    """(given label, PNG or JPEG) of the first images that can be read."""


def look(source: str, options: Mapping[str, Any]) -> Look:
    """Read a source's rows and first pictures.

    Raises:
        ImportRefusedError: the source cannot be read at all.
    """
    seen = preview_source(source, **options)
    return Look(seen, _pictures(source, options))


def _pictures(source: str, options: Mapping[str, Any]) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    with preview_folder() as folder:
        opened = open_source(source, SourceOptions(**options), folder / "files")
        rows = _one_a_class(opened.rows())
        for row, payload in zip(rows, opened.payloads(row.location for row in rows), strict=False):
            try:
                picture = picture_of(opened.info.root, payload, PICTURE_SIZE)
            except (ImageError, UnreadableError):
                continue  # the preview lists it among the problems
            found.append((row.label or "unlabeled", picture))
    return found


def _one_a_class(rows: Iterable[SourceRow | Problem]) -> list[SourceRow]:
    """The first row of each of the first classes, filled up with further rows, by row."""
    first: dict[str | None, SourceRow] = {}
    others: list[SourceRow] = []
    for row in itertools.islice(rows, ROWS_LOOKED_AT):
        if isinstance(row, Problem):
            continue
        if row.label not in first:
            first[row.label] = row
        elif len(others) < NUM_PICTURES:
            others.append(row)
        if len(first) == NUM_PICTURES:
            break
    # Parquet streams its bytes in row order, so the pictures are asked for in that order too.
    chosen = [*first.values(), *others][:NUM_PICTURES]
    return sorted(chosen, key=lambda row: (row.row is not None, row.row or 0))
