"""Progress for whoever calls from Python: in a real terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from auditor.api.watching import watching
from auditor.ground.progress import Progress

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
from auditor.api.watching import watching
from auditor.ground.progress import Progress
with watching({progress}) as heard:
    if heard is not None:
        heard(Progress("decoding", 3, 6, 90.0))
"""


def shown(progress: bool) -> str:
    """What a process shows in a terminal of its own."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 100))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(progress=progress)], stderr=slave, stdout=slave, env=environment
    ) as process:
        os.close(slave)
        text = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            text += part
    os.close(master)
    assert process.returncode == 0
    return text.decode()


def test_watching__shows_stage_share_and_time_left_in_a_terminal() -> None:
    text = shown(True)
    assert " 50 %" in text
    assert "decoding, about 1 min 30 s left" in text


def test_watching__is_silent_on_request() -> None:
    assert shown(False) == ""


def test_watching__writes_nothing_into_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with watching(True) as heard:
        assert heard is None
    assert capsys.readouterr().err == ""


def test_watching__tells_a_function() -> None:
    told: list[Progress] = []
    with watching(told.append) as heard:
        assert heard is not None
        heard(Progress("decoding", 1, 2, None))
    assert [one.stage for one in told] == ["decoding"]
