"""The App in a real browser: tag, decide with our buttons, pull, compare."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from auditor.fiftyone_bridge import sync
from tests.auditor.fiftyone_bridge.test_pull import at, pull, standing
from tests.helpers import chromium, free_port

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
WAIT_MS = 120_000


@pytest.fixture
def page(pushed: Any) -> Iterator[Any]:
    """The App on the suspects of the pushed dataset, reviewed by ann."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    executable = chromium()
    prepared = sync.prepare_app("digits", port=free_port())
    app = sync.start(prepared, reviewer="ann")
    try:
        with sync_api.sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
            opened = browser.new_page(viewport={"width": 1500, "height": 900})
            opened.set_default_timeout(WAIT_MS)
            # A popover for first-time users covers the buttons.
            opened.add_init_script("localStorage.setItem('fiftyone-enterprise-tooltip-seen','true')")
            opened.asked_for = []
            opened.on("request", lambda request: opened.asked_for.append(request.url))
            opened.goto(app.url, wait_until="domcontentloaded")
            opened.locator("[data-cy=looker]").first.wait_for()
            yield opened
            browser.close()
    finally:
        app.stop()


def select(page: Any, place: int) -> None:
    """Check the box of a tile; the grid may still move under a click, which then opens a sample."""
    tile = page.locator("[data-cy=looker]").nth(place)
    until = time.monotonic() + WAIT_MS / 1000
    while True:
        boxes: list[Any] = [None, None]
        while boxes[-1] is None or boxes[-1] != boxes[-2]:  # pictures that arrive move the others
            tile.hover()
            page.wait_for_timeout(300)
            boxes.append(tile.bounding_box())
        page.mouse.click(boxes[-1]["x"] + 10, boxes[-1]["y"] + 10)
        chosen = tile.locator("input:checked")
        asked = time.monotonic()
        while not chosen.count() and time.monotonic() < asked + 10:
            page.wait_for_timeout(100)
        if chosen.count():
            return
        assert time.monotonic() < until, "the tile cannot be selected"
        page.keyboard.press("Escape")


def await_value(is_there: Callable[[], bool]) -> None:
    """The App writes after the click."""
    until = time.monotonic() + WAIT_MS / 1000
    while not is_there():
        assert time.monotonic() < until, "the App did not write it"
        time.sleep(0.2)


@pytest.mark.browser
def test_app__tag_decide_and_pull(page: Any, pushed: Any) -> None:
    suspects = pushed.load_saved_view("suspected mislabels").values("sample_index")
    select(page, 0)
    page.locator("[data-cy=action-tag-sample-labels]").click()
    page.locator("[data-cy=sample-tag-input]").fill("exclude")
    page.keyboard.press("Enter")
    page.get_by_text("Apply", exact=True).click()
    await_value(lambda: "exclude" in at(pushed, suspects[0], "tags"))
    page.keyboard.press("Escape")
    page.locator("[data-cy=looker] input:checked").first.wait_for(
        state="detached"
    )  # nothing is selected any more
    assert standing() == {}  # a tag waits for the pull
    assert pull("ann").counts == {"exclude": 1}
    select(page, 2)
    trust = (
        page.locator("[data-cy=looker]").nth(2).locator("[data-cy=tag-trust_score]").get_attribute("title")
    )
    page.locator('[data-item-id="@label-auditor/review/take_suggestion"]').click()
    await_value(lambda: len(standing()) == 2)
    chosen = next(i for i in standing() if i != suspects[0])
    assert standing()[chosen] == ("relabel", int(at(pushed, chosen, "suggested.label")), "ann")
    # What was decided is no suspect any more: its picture leaves the grid without a reload of the page.
    page.locator(f'[title="{trust}"]').wait_for(state="detached")
    assert pull("bob").counts == {}
    foreign = [url for url in page.asked_for if "127.0.0.1" not in url and "fonts.g" not in url]
    assert foreign == []  # no telemetry


@pytest.mark.browser
def test_app__correct_a_label_in_the_annotate_tab_and_pull(page: Any, pushed: Any) -> None:
    suspect = pushed.load_saved_view("suspected mislabels").values("sample_index")[0]
    given = at(pushed, suspect, "ground_truth.label")
    other = next(name for name in ("0", "1") if name != given)
    page.locator("[data-cy=looker]").first.click()
    page.get_by_text("Annotate", exact=True).first.click()
    page.locator("[data-cy=modal]").get_by_text(given, exact=True).last.click()
    chosen = page.locator("[data-cy=root_label_container] input[role=combobox]")
    chosen.click()
    page.get_by_role("option", name=other, exact=True).click()
    await_value(lambda: at(pushed, suspect, "cleaned.label") == other)
    assert at(pushed, suspect, "ground_truth.label") == given
    assert pull("ann").counts == {"relabel": 1}
    assert standing()[suspect] == ("relabel", int(other), "ann")
    assert pull("bob").counts == {}
