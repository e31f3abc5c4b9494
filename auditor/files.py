"""Files that are whole or absent: a full disk or a kill leaves the earlier one, or none, but never a half."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BLOCK_BYTES = 2**20


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


def reserve(path: Path, num_bytes: int) -> None:
    """Take the room for the first ``num_bytes`` of a file in one step; what follows its content is zero.

    Writing through a memory map into a file with holes kills the process when the disk fills up (SIGBUS).

    Raises:
        OSError: there is not so much room.
    """
    with path.open("r+b") as stream:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(stream.fileno(), 0, num_bytes)
            return
        # macOS and Windows: only what was written has its room for sure.
        missing = num_bytes - stream.seek(0, os.SEEK_END)
        for start in range(0, missing, BLOCK_BYTES):
            stream.write(bytes(min(BLOCK_BYTES, missing - start)))
