from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from engines.contract import EngineError
from engines.shared import large
from engines.shared.large import large_array, side_by_side


def test_large_array__lies_in_a_file_without_a_name_above_the_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(large, "IN_MEMORY", 100)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    small, big = large_array((5, 5), np.float32), large_array((13, 2), np.float32)
    assert not isinstance(small, np.memmap)
    assert isinstance(big, np.memmap)
    big[:] = 3
    assert (big == 3).all()
    assert big.shape == (13, 2)
    assert list(tmp_path.iterdir()) == []


def test_large_array__a_full_disk_is_an_error_that_names_the_folder_and_the_size(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(descriptor: int, offset: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(EngineError, match=rf"{tmp_path} has no room for 2\.0 GB .* TMPDIR"):
        large_array((1_000_000, 500), np.float32)


def test_side_by_side__is_a_concatenation_also_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [np.random.default_rng(seed).normal(size=(11, 2 + seed)).astype(np.float32) for seed in range(3)]
    monkeypatch.setattr(large, "ROWS_AT_ONCE", 4)
    monkeypatch.setattr(large, "IN_MEMORY", 0)
    found = side_by_side(parts)
    assert isinstance(found, np.memmap)
    assert np.array_equal(found, np.concatenate(parts, axis=1))
    assert found.dtype == np.float32
