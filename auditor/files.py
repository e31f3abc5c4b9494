"""Files that are whole or absent: a full disk or a kill leaves the earlier one, or none, but never a half."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A path beside ``path`` to write to. It takes the place of ``path`` at the end of the block.

    The folder is made where it is missing. Where the block fails nothing of it stays.

    Raises:
        OSError: the system does not let us write there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.writing")
    try:
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
