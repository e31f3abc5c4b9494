"""The masks of an import as its cache holds them: every file is read in full before anything is registered."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np

from auditor.ground.apart import DiedError, Readers
from auditor.ground.errors import ImportRefusedError
from auditor.ground.progress import OnProgress, Ticker
from auditor.importing.building import MASK, Built, Parsed
from auditor.pictures import masks
from auditor.pictures.decoding import ImageError
from auditor.pictures.sources import SourceInfo, UnreadableError, printable, read_mask


def write(
    info: SourceInfo,
    parsed: Parsed,
    built: Built,
    folder: Path,
    readers: Readers,
    on_progress: OnProgress | None,
) -> None:
    """(N, S, S) uint8 into ``folder``, each mask placed as its image is.

    Raises:
        ImportRefusedError: a mask cannot be read, or not one pixel of it has a class.
    """
    assert info.masks is not None
    total = int(built.kept.sum())
    path = folder / masks.cache_name(built.size)
    written = np.lib.format.open_memmap(path, "w+", np.uint8, (total, built.size, built.size))
    ticker = Ticker(on_progress, "reading masks", total)
    for number, line in enumerate(itertools.compress(parsed.rows, built.kept)):
        location = line[MASK]
        try:
            mask = readers.call(read_mask, info.root, location, info.masks)
        except (ImageError, UnreadableError, DiedError) as error:
            raise ImportRefusedError(f"{printable(location)}: {error}") from error
        if (mask == masks.IGNORED).all():
            raise ImportRefusedError(
                f"{printable(location)}: no pixel of it has one of the {len(info.masks.values)} classes; correct "
                "the mask or the class names."
            )
        written[number] = masks.fit(mask, built.size)
        ticker.at(number + 1)
    written.flush()
