"""Processes apart: limits, deaths, and who outlives whom."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from auditor.ground import apart
from auditor.ground.apart import Apart, DiedError, Readers
from tests.helpers import wait_for_end

ROOT = Path(__file__).resolve().parents[3]


def number() -> int:
    return os.getpid()


def breaks_down() -> None:
    ctypes.string_at(0)


def takes(gigabytes: float) -> int:
    return len(np.ones(int(gigabytes * 2**30), np.uint8))


def turns() -> None:
    while True:
        pass


def raises() -> None:
    raise ZeroDivisionError("no")


@pytest.fixture(params=["fork", "fresh"])
def process(request: pytest.FixtureRequest) -> Iterator[Apart]:
    # Under xdist there is a thread, and every one is fresh.
    found = Apart(most_bytes=2**29, most_s=1, is_fresh=request.param == "fresh")
    yield found
    found.kill()


def test_call__is_made_elsewhere_and_its_errors_arrive(process: Apart) -> None:
    assert process.call(number) not in (os.getpid(), 0)
    with pytest.raises(ZeroDivisionError, match="no"):
        process.call(raises)
    assert process.call(takes, 0.1) == int(0.1 * 2**30)


def test_call__what_ends_the_process_is_one_line(process: Apart) -> None:
    with pytest.raises(DiedError, match=r"breaks down \(SIGSEGV\)$"):
        process.call(breaks_down)
    assert process.is_over


@pytest.mark.skipif(sys.platform != "linux", reason="macOS keeps no limit of memory")
def test_call__more_memory_than_allowed_is_refused_and_ends_the_process(process: Apart) -> None:
    with pytest.raises(DiedError, match=r"needs more than 0\.5 GB of memory"):
        process.call(takes, 1.0)
    assert process.is_over  # what is left of that memory would be missing in the next call


def test_call__more_computing_time_than_allowed_ends_it(process: Apart) -> None:
    with pytest.raises(DiedError, match="takes more than 1 s of computing time"):
        process.call(turns)


def test_readers__a_fresh_one_follows_one_that_died_and_many_threads_share_them() -> None:
    readers = Readers(2)
    first = readers.call(number)
    with pytest.raises(DiedError):
        readers.call(breaks_down)
    second = readers.call(number)
    assert second != first
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(readers.call(number))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert second in found
    assert len(set(found)) <= 2
    readers.close()
    wait_for_end(second)


def test_readers__another_environment_has_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    before = apart.call(number)
    assert apart.call(number) == before
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert apart.call(number) != before


def test_readers__idle_ones_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "IDLE_S", 0.1)
    wait_for_end(Readers(1).call(number))


@pytest.mark.parametrize("fresh", [False, True])
def test_apart__ends_with_a_killed_parent(fresh: bool) -> None:
    code = (
        "import time; from auditor.ground.apart import Apart\n"
        "from tests.auditor.ground.test_apart import number\n"
        f"print(Apart(is_fresh={fresh}).call(number), flush=True); time.sleep(300)"
    )
    command, env = [sys.executable, "-c", code], os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    wait_for_end(pid)


def test_close__lets_it_tidy_up() -> None:
    process = Apart()
    pid = process.call(number)
    process.close()
    wait_for_end(pid)
    assert process.is_over
