"""What an import has done so far, on disk: begun again after a kill, it does only the rest.

The rows of a pass end in their order, so what is done is its first rows: a record of fixed size for each in one
file, and the problems that were found as lines of another. Pixels are on the disk before the records that speak of
them. An import that ends, well or not, keeps nothing; a kill, or a machine that is switched off, leaves it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor import __version__

FOLDER = "progress"
CHECKED, DECODED = "checked", "decoded"
HEADER = np.dtype(
    [
        ("height", "<i4"),
        ("width", "<i4"),
        ("has_colour", "?"),
        ("is_animated", "?"),
        ("is_deep", "?"),
        ("good", "?"),
    ]
)
"""What is known of a row whose header was read."""
PICTURE = np.dtype([("content", "u1", 32), ("perceptual", "<u8"), ("good", "?")])
"""What is known of a row that was decoded."""
REQUEST, ROWS = "request.json", "rows.digest"
SAVE_EVERY_S = 10.0
KEPT_S = 86_400
"""What a kill left is removed after a day."""

Found = list[tuple[int, int, str]]
"""Problems: (place in the pass, row of the source's row file, what is wrong)."""


class Journal:
    """The first rows of one pass, and what was found wrong with them."""

    def __init__(
        self, folder: Path, name: str, record: np.dtype[Any], *, after: Journal | None = None
    ) -> None:
        """Read what an earlier attempt left in the work folder ``folder``; half a record or line does not count.

        ``after`` is of the pass before, which is saved first.
        """
        self._after = after
        self._records = folder / FOLDER / f"{name}.records"
        self._lines = folder / FOLDER / f"{name}.problems"
        self._type = record
        self._waiting: list[NDArray[Any]] = []
        self._problems: Found = []
        self._saved_at = time.monotonic()
        self._records.parent.mkdir(exist_ok=True)
        self._records.touch()
        self.done = self._records.stat().st_size // record.itemsize
        self.cut(self.done)

    def before(self) -> tuple[NDArray[Any], Found]:
        """The records and problems that an earlier attempt left."""
        if not self.done:
            return np.empty(0, self._type), []
        return np.memmap(self._records, self._type, "r", shape=(self.done,)), self._read_problems()

    def cut(self, num_rows: int) -> None:
        """Forget what is known of rows from that one on."""
        self.done = min(num_rows, self.done)
        kept = self._read_problems()
        os.truncate(self._records, self.done * self._type.itemsize)
        self._lines.write_bytes(_as_lines(kept))

    def add(self, records: NDArray[Any], problems: Found, pixels: Path | None = None) -> None:
        """The next rows are done; ``pixels`` is the file that the records speak of. Saved every ten seconds."""
        self._waiting.append(records)
        self._problems += problems
        if time.monotonic() - self._saved_at >= SAVE_EVERY_S:
            self.save(pixels)

    def save(self, pixels: Path | None = None) -> None:
        """Write what was added."""
        if self._after is not None:
            self._after.save()
        if pixels is not None:
            with pixels.open("r+b") as stream:
                os.fsync(stream.fileno())
        # Problems first: those of rows without a record are dropped by whoever reads them.
        _append(self._lines, _as_lines(self._problems))
        _append(self._records, b"".join(each.tobytes() for each in self._waiting))
        self._waiting, self._problems = [], []
        self._saved_at = time.monotonic()

    def _read_problems(self) -> Found:
        if not self._lines.exists():
            return []
        lines = self._lines.read_bytes().split(b"\n")[:-1]  # the last one is empty, or cut off
        found = [tuple(json.loads(line)) for line in lines]
        return [(place, row, text) for place, row, text in found if place < self.done]


def _as_lines(problems: Found) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in problems)


def _append(file: Path, data: bytes) -> None:
    with file.open("ab") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def fingerprint(*parts: Any) -> str:
    """Return what an import was asked for, as one line; another version of this program asks for something else."""
    return json.dumps([__version__, *parts], default=str)


def begin(folder: Path, request: str) -> None:
    """Note in a new work folder what is asked for."""
    (folder / FOLDER).mkdir()
    (folder / FOLDER / REQUEST).write_text(
        json.dumps({"request": request, "began_ns": time.time_ns()}), encoding="utf-8"
    )


def is_left(folder: Path, request: str | None = None) -> bool:
    """Return whether a kill left something in a work folder that can be gone on with: of that request, or of
    any.
    """
    try:
        about = json.loads((folder / FOLDER / REQUEST).read_text(encoding="utf-8"))
        found = (folder / FOLDER / f"{CHECKED}.records").stat()
    except (OSError, ValueError):
        return False
    is_fresh = time.time() - found.st_mtime < KEPT_S
    return found.st_size > 0 and is_fresh and request in (None, about["request"])


def forget_what_changed(folder: Path, rows: Path, places: Iterable[Any], when: Callable[[Any], int]) -> int:
    """Cut what an earlier attempt did at the first row that is another one today, or whose file was written since.

    Args:
        folder: the work folder.
        rows: the row file as it was read today.
        places: of each row, in order, where its image is.
        when: the time at which the file of such a place was last written, in ns since the epoch.

    Returns:
        How many rows stay known.
    """
    progress = folder / FOLDER
    digest = _digest(rows)
    is_same = (progress / ROWS).exists() and (progress / ROWS).read_text() == digest
    began = json.loads((progress / REQUEST).read_text(encoding="utf-8"))["began_ns"] if is_same else 0
    (progress / ROWS).write_text(digest)
    checked = Journal(folder, CHECKED, HEADER)
    known = checked.done if is_same else 0
    for row, place in zip(range(known), places, strict=False):
        if when(place) > began:
            known = row
            break
    checked.cut(known)
    records, _ = checked.before()
    for file in progress.glob(f"{DECODED}*.records"):
        Journal(folder, file.stem, PICTURE).cut(int(np.count_nonzero(records["good"])))
    return checked.done


def forget_decoded(folder: Path) -> None:
    """No image is decoded."""
    for file in (folder / FOLDER).glob(f"{DECODED}*"):
        file.unlink()


def forget(folder: Path) -> None:
    """The import is done."""
    shutil.rmtree(folder / FOLDER)


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "blake2b").hexdigest()
