"""Arrays too large for memory: in a file without a name, which the system writes out and reads back as it needs."""

from __future__ import annotations

import errno
import math
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from engines.contract import EngineError

IN_MEMORY = 1 << 29
"""Bytes up to which an array stays in memory."""
ROWS_AT_ONCE = 65_536
"""Rows that are computed with at a time, wherever all samples are: it bounds memory and changes no result."""


def large_array(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array to fill, of any contents: in memory up to ``IN_MEMORY`` bytes, above in a temporary file.

    The file lies in the system's temporary folder (``TMPDIR``), has its whole size from the start, and is gone with
    the array.

    Raises:
        EngineError: the folder has no room for it; the text names folder and size.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size <= IN_MEMORY:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(prefix="auditor-") as file:
        try:
            file.truncate(size)
            # A hole that the disk cannot fill ends the process when it is written to, not with an error.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise EngineError(
                f"{tempfile.gettempdir()} has no room for {size / 1e9:.1f} GB of this training; set TMPDIR to a "
                "folder that has."
            ) from error
        return np.memmap(file, dtype, "r+", shape=shape)


def side_by_side(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Arrays of the same N rows and dtype next to each other: (N, D1), (N, D2), ... -> (N, D1 + D2 + ...)."""
    found = large_array((len(parts[0]), sum(part.shape[1] for part in parts)), parts[0].dtype)
    for start in range(0, len(found), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        np.concatenate([part[rows] for part in parts], axis=1, out=found[rows])
    return found
