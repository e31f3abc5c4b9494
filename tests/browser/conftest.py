"""A running app and a real browser; skipped, with the reason, where there is no Chromium."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from auditor.audits import plan, worker
from auditor.catalog import datasets, db
from auditor.catalog.db import session
from auditor.importing import imports
from tests.app.conftest import DATASET, NAMES
from tests.conftest import made_once
from tests.forker import APP, Forker
from tests.helpers import chromium, free_port

ROOT = Path(__file__).resolve().parents[2]
WAIT_MS = 120_000
"""Generous, as every wait here: the machine that tests may be busy. A state is waited for, never a time."""
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
        self.port = free_port()
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
        deadline = time.monotonic() + WAIT_MS / 1000
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=5) as answer:
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
def server(tmp_path: Path, forker: Forker) -> Iterator[Server]:
    """The app on an empty home, begun as a user begins it; later starts import nothing anew."""
    (tmp_path / "home").mkdir()
    running = Server(tmp_path / "home")
    running.start()
    running.forker = forker
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
        KEPT.clear()
        opened.close()


KEPT: list[Any] = []
"""Contexts of the open browser for whoever visits: a new one reads and compiles the app's scripts anew, which is
more work than most tests have."""


ASKED: dict[Any, set[Any]] = {}
"""By page of a visitor: what it asked of our routes and has no answer to."""


def visitor(browser: Any, server: Server, reviewer: str) -> Any:
    """A page of somebody who was never here, beside those that are open."""
    context = next((one for one in KEPT if not one.pages), None)
    if context is None:
        context = browser.new_context()
        KEPT.append(context)
    page = context.new_page()
    asked = ASKED[page] = set()
    page.on("request", lambda one: one.method == "POST" and "/bench/" in one.url and asked.add(one))
    page.on("requestfinished", lambda one: asked.discard(one))  # Playwright takes no built-in function
    page.on("requestfailed", lambda one: asked.discard(one))
    page.goto(f"{server.url}/_stcore/health")
    # One by one: the cards come first, and have tests of their own.
    page.evaluate("localStorage.clear(); sessionStorage.setItem('auditor-mode', 'card')")
    context.add_cookies([{"name": "auditor_reviewer", "value": reviewer, "url": server.url}])
    return page


@pytest.fixture(autouse=True)
def _no_page_stays_open(request: pytest.FixtureRequest) -> Iterator[None]:
    """A page that is left open asks the app for news in every later test."""
    names = [name for name in ("browser", "rebound") if name in request.fixturenames]
    opened = [request.getfixturevalue(name) for name in names]
    yield
    for one in opened:
        for context in one.contexts:
            if context in KEPT:
                for page in context.pages:
                    # A lease or a verdict that is on its way would come into the next test.
                    with suppress(AssertionError):
                        answered(page, seconds=10)
                    ASKED.pop(page, None)
                    page.close()
                context.clear_cookies()
            else:
                context.close()


@pytest.fixture(scope="session")
def _shared(audited_home: Path, tmp_path_factory: pytest.TempPathFactory, forker: Forker) -> Iterator[Server]:
    """One app on a home with two audited datasets; the one that the tests are about is the older."""

    def make(folder: Path) -> None:
        shutil.copytree(audited_home, folder / "home")
        with session() as open_session:
            root = datasets.get(open_session, DATASET).root
        imports.import_dataset(Path(root) / "labels.csv", name="other", workers=1)
        quick = {"cross_entropy": {"epochs": 6, "views": 1}}  # with fewer it contradicts most labels
        worker.run_audit(plan.plan_audit("other", list(quick), device="cpu", options=quick, map_method="pca"))

    home = tmp_path_factory.mktemp("shared") / "home"
    shutil.copytree(made_once(tmp_path_factory, "of-two-datasets", make)[0], home)
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


def wait_until(
    condition: Callable[[], object], what: str, page: Any = None, *, seconds: float = WAIT_MS / 1000
) -> None:
    """Wait until ``condition()`` holds; what is open in the browser goes on meanwhile.

    Routes of a test run, and what Playwright knows of a page is told anew, only while Playwright is called: through
    ``page``, else through any page of a visitor.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still waiting for: {what}"
        pump = page or next((one for context in KEPT for one in context.pages), None)
        time.sleep(0.1) if pump is None else pump.wait_for_timeout(100)


def answered(page: Any, *, seconds: float = WAIT_MS / 1000) -> None:
    """Wait until our routes have answered all that a visitor's page asked."""
    wait_until(lambda: not ASKED.get(page), "answers to the page", page, seconds=seconds)


def settled(page: Any) -> None:
    """The rerun is finished and no exception stands on the page.

    A rerun that was asked for a moment ago may not have begun: after a click wait for what it brings.
    """
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=WAIT_MS)
    assert page.locator("[data-testid=stException]").count() == 0


def still(page: Any) -> None:
    """Nothing on the page is old, on its way, half faded or growing."""
    settled(page)
    page.wait_for_function(
        """() => !document.querySelector('[data-testid=stSkeleton], [data-testid=stSpinner], [data-stale=true]')
            && document.getAnimations().every((one) => one.playState !== "running"
                || one.effect.getTiming().iterations === Infinity)""",
        timeout=WAIT_MS,
    )


HAS_COLOURS = """(scheme) => {
  const [red] = getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor.match(/\\d+/g);
  return (red < 128) === (scheme === "dark");
}"""


def in_colours(page: Any, scheme: str) -> None:
    """The page in ``light`` or ``dark``, once all of it is so."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(HAS_COLOURS, arg=scheme, timeout=WAIT_MS)
    still(page)


def open_page(page: Any, server: Server, path: str) -> None:
    """Go to a screen by its address, until it has run."""
    page.goto(f"{server.url}/{path}", timeout=WAIT_MS)
    page.locator("[data-testid=stHeading]").first.wait_for(timeout=WAIT_MS)
    settled(page)


def choose(page: Any, key: str, text: str) -> None:
    """Choose in a select box, until it shows the choice; what the choice brings is to be waited for."""
    settled(page)
    page.locator(f".st-key-{key} [data-testid=stSelectbox]").click(timeout=WAIT_MS)
    page.get_by_role("option", name=text, exact=True).click(timeout=WAIT_MS)
    wait_until(lambda: page.locator(f".st-key-{key} input").input_value() == text, f"{text} in {key}")


def filtered(page: Any, key: str, text: str) -> None:
    """Choose in a filter of Suspects, until the bench shows that queue."""
    with page.expect_response("**/bench/queue", timeout=WAIT_MS):
        choose(page, key, text)
    settled(page)
    page.locator("[data-testid=bench][data-state=ready]").wait_for(timeout=WAIT_MS)


def click_until(found: Any, is_answered: Callable[[], object], what: str) -> None:
    """Click until it shows, as a person does: a click on a part that is opening may do nothing."""
    for _ in range(10):
        found.click(timeout=WAIT_MS)
        with suppress(AssertionError):
            return wait_until(is_answered, what, found.page, seconds=12)
    raise AssertionError(f"no click brought {what}")


def steady_box(found: Any) -> dict[str, float]:
    """Where an element is, once it has stayed there: late parts of a page move what stands below them."""
    settled(found.page)
    boxes = [None, found.bounding_box(timeout=WAIT_MS)]
    while boxes[-1] is None or boxes[-1] != boxes[-2]:
        found.page.wait_for_timeout(300)
        boxes.append(found.bounding_box(timeout=WAIT_MS))
    return boxes[-1]


def downloaded(page: Any, found: Any) -> Path:
    """Click until a file comes: a click is lost when the page draws the link or button anew that moment."""
    from playwright.sync_api import TimeoutError as NoDownload

    for wait_ms in (20_000, 40_000, WAIT_MS):
        settled(page)
        with suppress(NoDownload):
            with page.expect_download(timeout=wait_ms) as download:
                found.click(timeout=WAIT_MS)
            return Path(download.value.path())
    raise AssertionError("no click brought the file")
