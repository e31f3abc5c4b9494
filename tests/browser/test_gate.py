"""A page of another website in a real Chromium: a foreign name for this machine, another port, a frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import FLAGS, WAIT_MS, Server, wait_until
from tests.helpers import chromium, empty_site

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
SOCKET = """async (url) => await new Promise((resolve) => {
  const socket = new WebSocket(url);
  socket.onopen = () => { socket.close(); resolve("open"); };
  socket.onerror = () => resolve("refused");
})"""

FRAME = """(url) => {
  const frame = document.createElement("iframe");
  frame.src = url;
  document.body.append(frame);
}"""


@pytest.fixture(scope="module")
def rebound() -> Iterator[Any]:
    """A Chromium for which evil.test is this machine."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        rules = "--host-resolver-rules=MAP evil.test 127.0.0.1"
        opened = driver.chromium.launch(executable_path=chromium(), args=[*FLAGS, rules])
        yield opened
        opened.close()


@pytest.fixture
def other_site() -> Iterator[str]:
    """An empty page on another port of this machine."""
    server = empty_site()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_gate__a_foreign_name_for_this_machine_gets_nothing(rebound: Any, running: Server) -> None:
    page = rebound.new_page()
    answer = page.goto(f"http://evil.test:{running.port}/")
    assert answer.status == 403
    assert "AUDITOR_ALLOWED_HOSTS" in page.content()
    # From the page of that name: neither the script's stream nor a route of ours.
    assert page.evaluate(SOCKET, f"ws://evil.test:{running.port}/_stcore/stream") == "refused"
    fetched = page.evaluate(
        "async () => (await fetch('/bench/progress', {method: 'POST', body: '{}'})).status"
    )
    assert fetched == 403
    page.close()


def test_gate__a_page_on_another_port_gets_nothing(rebound: Any, running: Server, other_site: str) -> None:
    page = rebound.new_page()
    page.goto(other_site)
    assert page.evaluate(SOCKET, f"ws://127.0.0.1:{running.port}/_stcore/stream") == "refused"
    assert page.evaluate(SOCKET, f"ws://localhost:{running.port}/_stcore/stream") == "refused"
    page.evaluate(FRAME, running.url)
    (framed,) = [frame for frame in page.frames if frame != page.main_frame]
    wait_until(lambda: framed.url.startswith("chrome-error"), "the refusal in the frame", page)
    assert "Label auditor" not in framed.content()
    page.close()


def test_gate__the_app_itself_works(rebound: Any, running: Server) -> None:
    page = rebound.new_page()
    assert page.goto(running.url).status == 200
    page.get_by_text("Home").first.wait_for(timeout=WAIT_MS)
    assert page.evaluate(SOCKET, f"ws://127.0.0.1:{running.port}/_stcore/stream") == "open"
    page.close()
