"""The product without the calls that macOS and Windows do not have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from auditor.ground.files import BLOCK_BYTES, reserve
from auditor.ground.processes import usable_cores

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("system", ["macos", "windows"])
def test_import_and_audit__without_the_calls_of_linux(system: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.other_systems", system, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["samples"], found["labeled"]) == (1_200, 1_200)
    assert found["cores"] >= 1
    assert (found["peak"] == 0) == (system == "windows")
    # Without fcntl the lock is a file that is there or not; either way the second one waits.
    assert found["second push refused"]


@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("size", [10, BLOCK_BYTES + 7, 3 * BLOCK_BYTES])
def test_reserve__takes_the_room_and_keeps_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool, size: int
) -> None:
    if taken:
        monkeypatch.delattr(os, "posix_fallocate")
    path = tmp_path / "images.npy"
    path.write_bytes(b"head")
    with path.open("r+b") as stream:
        reserve(stream, size)
    assert path.read_bytes() == b"head" + bytes(size - 4)
    assert path.stat().st_blocks * 512 >= size


def test_usable_cores__are_those_of_this_process_where_the_system_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if hasattr(os, "sched_getaffinity"):
        assert usable_cores() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(psutil.Process, "cpu_affinity")
    assert usable_cores() == os.cpu_count()
