"""A running app and a real browser; skipped, with the reason, where there is no Chromium."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from auditor.audits import plan, worker
from auditor.catalog import datasets, db
from auditor.catalog.db import session
from auditor.importing import imports
from tests.app.conftest import DATASET, NAMES
from tests.forker import APP, Forker
from tests.helpers import chromium

ROOT = Path(__file__).resolve().parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]


class Server:
    """The app on a home and a port of its own; can be killed and started again.

    Without a ``forker`` it starts as a user starts it.
    """

    def __init__(self, home: Path, forker: Forker | None = None) -> None:
        self.home, self.forker = home, forker
        self.forked: int | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        if self.forker is None:
            self._start_as_a_user()
        else:
            env = os.environ | {"AUDITOR_HOME": str(self.home), "OMP_NUM_THREADS": "1"}
            argv = ["streamlit", "run", str(ROOT / "app" / "main.py"), "--server.port", str(self.port)]
            self.forked = self.forker.start(APP, argv, env, str(self.home.parent / "server.log"))
        self._wait_until_it_answers()

    def _start_as_a_user(self) -> None:
        command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app" / "main.py")]
        environment = os.environ | {"AUDITOR_HOME": str(self.home), "OMP_NUM_THREADS": "1"}
        with (self.home.parent / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--server.port", str(self.port)],
                stdout=log, stderr=log, env=environment, cwd=self.home.parent, start_new_session=True,
            )  # fmt: skip

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=1) as answer:
                    if answer.read() == b"ok":
                        return
            except OSError:
                time.sleep(0.2)
        raise RuntimeError(f"the app did not start; see {self.home.parent / 'server.log'}")

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if self.forked is not None:
            os.kill(self.forked, signal.SIGKILL)
            self.forked = None


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """Where screenshots go: ``AUDITOR_TEST_ARTIFACTS``, or a folder below the system's temporary one."""
    default = Path(tempfile.gettempdir()) / "auditor-tests-artifacts"
    folder = Path(os.environ.get("AUDITOR_TEST_ARTIFACTS") or default)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """The app on an empty home."""
    (tmp_path / "home").mkdir()
    running = Server(tmp_path / "home")
    running.start()
    yield running
    running.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """One Chromium for a file; Playwright allows one at a time, and other files of a worker start theirs."""
    executable = chromium()
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=executable, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(autouse=True)
def _no_page_stays_open(request: pytest.FixtureRequest) -> Iterator[None]:
    """A page that is left open asks the app for news in every later test."""
    names = [name for name in ("browser", "rebound") if name in request.fixturenames]
    opened = [request.getfixturevalue(name) for name in names]
    yield
    for one in opened:
        for context in one.contexts:
            context.close()


@pytest.fixture(scope="session")
def _shared(audited_home: Path, tmp_path_factory: pytest.TempPathFactory, forker: Forker) -> Iterator[Server]:
    """One app on a home with two audited datasets; the one that the tests are about is the older."""
    home = tmp_path_factory.mktemp("shared") / "home"
    shutil.copytree(audited_home, home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUDITOR_HOME", str(home))
        db.close_all()
        with session() as open_session:
            root = datasets.get(open_session, DATASET).root
        imports.import_dataset(Path(root) / "labels.csv", name="other", workers=1)
        quick = {"cross_entropy": {"epochs": 1, "views": 1}}
        worker.run(plan.plan("other", list(quick), device="cpu", options=quick, map_method="pca"))
        db.close_all()
    server = Server(home, forker)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def running(_shared: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The app, on which nobody has decided or renamed anything, and its home, which the test reads as well."""
    monkeypatch.setenv("AUDITOR_HOME", str(_shared.home))
    db.close_all()
    with session() as open_session:
        for table in ("decision", "review", "draw", "claim"):
            open_session.execute(text(f"DELETE FROM {table}"))
        datasets.change(open_session, 1, class_names=sorted(NAMES))
    yield _shared
    db.close_all()
