"""Calls in a process of their own: kept for the next call, under the environment of now, ended with the app."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.session import apart
from auditor.ground import apart as ground_apart
from auditor.ground.errors import AuditorError
from auditor.ground.settings import settings
from tests.helpers import wait_for_end

ROOT = Path(__file__).resolve().parents[3]


def process() -> int:
    return os.getpid()


def home() -> Path:
    return settings().home


def fail() -> None:
    raise AuditorError("no such thing")


def test_call__one_process_serves_the_next_call_under_the_environment_of_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = apart.call(process)
    assert number != os.getpid()
    for name in ("one", "other"):
        monkeypatch.setenv("AUDITOR_HOME", str(tmp_path / name))
        assert apart.call(home) == tmp_path / name
    with pytest.raises(AuditorError, match="no such thing"):
        apart.call(fail)
    assert apart.call(process) == number


def test_call__a_process_that_was_killed_is_replaced() -> None:
    number = apart.call(process)
    os.kill(number, signal.SIGKILL)
    assert apart.call(process) != number


def test_call__an_idle_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ground_apart, "IDLE_S", 0.1)
    fresh = ground_apart.Readers(1, most_bytes=None, most_s=None, is_fresh=True)
    monkeypatch.setattr(apart, "_HELPER", fresh)  # the others' is watched for their two minutes already
    number = apart.call(process)
    wait_for_end(number)
    assert apart.call(process) != number


def test_call__the_process_ends_with_a_killed_app(tmp_path: Path) -> None:
    code = (
        "import time; from app.session import apart; from tests.app.session.test_apart import process\n"
        "if __name__ == '__main__': print(apart.call(process), flush=True); time.sleep(300)"
    )
    (tmp_path / "app_like.py").write_text(code)
    command, env = [sys.executable, tmp_path / "app_like.py"], os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as app:
        assert app.stdout is not None
        number = int(app.stdout.readline())
        app.kill()
    wait_for_end(number)
