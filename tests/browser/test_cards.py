"""Confusion cards in a real browser: what comes first on Suspects, one key, what was left out, undo."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from app.server import bench
from auditor.catalog import reviews
from auditor.catalog.db import session
from tests.browser.conftest import WAIT_MS, Server, open_page, settled, visitor, wait_until
from tests.browser.test_review import DESKTOP, OLDER, decisions

IS_BELOW = "one => one.getBoundingClientRect().top > one.parentElement.getBoundingClientRect().bottom"
WIDTH = "one => Math.round(one.getBoundingClientRect().width)"
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_cards__come_first_and_one_key_changes_all_but_what_stays_and_undo_takes_it_back(
    browser: Any, running: Server, artifacts: Path
) -> None:
    page = visitor(browser, running, "Ada")
    page.evaluate("sessionStorage.clear()")  # as somebody who was never here
    page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
    open_page(page, running, f"suspects?{OLDER}")
    tiles = page.get_by_test_id("card-tile")
    tiles.first.wait_for(timeout=WAIT_MS)
    settled(page)
    card = bench.cards({"audit": 1, "reviewer": "Ada", "where": {"undecided": True}})
    samples = [one["sample"] for one in card["items"]]
    assert [int(tile.get_attribute("data-sample")) for tile in tiles.all()] == samples
    heading = page.locator(".about-pair h3")
    wait_until(lambda: "look like" in heading.inner_text(), "the pair's sentence", page)
    page.screenshot(path=str(artifacts / "confusion-card.png"))
    first = heading.inner_text()
    page.keyboard.press("?")
    listed = page.get_by_test_id("help").inner_text()
    assert listed.count("change the labels that are ticked") == 1
    assert "leave it for later" in listed
    assert ("tick none, or all" in listed, "several classes apply" in listed) == (True, False), listed
    page.keyboard.press("Escape")
    odds = tiles.first.locator(".odds")
    assert re.fullmatch(r"\d of \d engines|the engine says otherwise", odds.inner_text())
    seen = set()
    for said in ("stays", "later", "✓"):
        tiles.first.click()
        tick = tiles.first.locator(".tick")
        assert tick.inner_text() == said
        seen.add(tick.evaluate("one => getComputedStyle(one).backgroundColor"))
    assert len(seen) == 3, "each has a colour of its own"
    page.wait_for_timeout(700)  # a key that comes with the card does nothing
    page.keyboard.press("ArrowRight")
    page.keyboard.press(" ")
    buttons_at = page.locator(".actions").bounding_box()["y"]
    page.keyboard.press("Enter")
    wait_until(lambda: len(decisions()) == len(samples), "a verdict on all", page)
    assert decisions().pop(samples[1]) == "keep"
    with session() as open_session:
        told = reviews.decisions(open_session, 1)
    assert {row.label for one, row in told.items() if one != samples[1]} == {card["pair"]["suggested"]}
    assert {row.decision for one, row in told.items() if one != samples[1]} == {"relabel"}
    assert len({row.batch for row in told.values()}) == 1
    wait_until(lambda: heading.count() == 0 or heading.inner_text() != first, "the next card", page)
    assert heading.count() == 0 or page.locator(".actions").bounding_box()["y"] == buttons_at
    told = page.get_by_role("status").filter(has_text="takes them back").first
    assert told.inner_text().startswith(f"{len(samples) - 1} changed to "), told.inner_text()
    page.reload(timeout=WAIT_MS)
    page.get_by_role("button", name="Undo", exact=True).wait_for(timeout=WAIT_MS)
    settled(page)
    page.keyboard.press("z")
    wait_until(lambda: decisions() == {}, "the card is taken back, also after the page came anew", page)
    wait_until(lambda: heading.count() and heading.inner_text() == first, "its card, and no grid", page)
    shown = {int(one.get_attribute("data-sample")) for one in tiles.all()}
    assert set(samples) <= shown
    page.wait_for_timeout(700)
    left = page.locator(f"[data-testid=card-tile][data-sample='{samples[1]}']")
    left.click()
    wait_until(lambda: left.get_attribute("aria-pressed") == "false", "it stays", page)
    page.keyboard.press("Enter")
    wait_until(lambda: len(decisions()) == len(samples), "the card is settled again", page)
    wait_until(lambda: heading.count() == 0 or heading.inner_text() != first, "the next card", page)
    page.keyboard.press("z")
    wait_until(lambda: decisions() == {}, "the card is taken back", page)
    wait_until(lambda: heading.count() and heading.inner_text() == first, "the same card", page)
    left = page.locator(f"[data-testid=card-tile][data-sample='{samples[1]}']")
    wait_until(lambda: left.get_attribute("aria-pressed") == "false", "what stays does so again", page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("b")  # the lens from a card says its two keys, and they are of this sample alone
    looked_at = page.locator(".lens [data-kind=suspect]")
    looked_at.wait_for(timeout=WAIT_MS)
    assert page.locator(".lens kbd").all_inner_texts() == ["Q", "W"]
    looked_at = looked_at.get_attribute("data-sample")
    seen = page.locator(f"[data-testid=card-tile][data-sample='{looked_at}']")
    for key, is_ticked in (("q", "false"), ("b", "false"), ("w", "true")):
        page.keyboard.press(key)
        wait_until(lambda want=is_ticked: seen.get_attribute("aria-pressed") == want, key, page)
        if key == "b":
            page.locator(".lens[open]").wait_for(timeout=WAIT_MS)
    page.locator(".lens[open]").wait_for(state="detached", timeout=WAIT_MS)
    assert decisions() == {}, "the lens settles no card"
    page.set_viewport_size({"width": 390, "height": 560})
    last = tiles.last
    wait_until(lambda: last.evaluate(IS_BELOW), "more pictures than are in view", page)
    resized = tiles.first.evaluate(WIDTH)
    page.reload(timeout=WAIT_MS)
    tiles.first.wait_for(timeout=WAIT_MS)
    settled(page)
    assert tiles.first.evaluate(WIDTH) == resized, "tiles follow the window"
    page.wait_for_timeout(700)
    page.keyboard.press("Enter")
    wait_until(lambda: not tiles.nth(2).evaluate(IS_BELOW), "what was not in view is shown", page)
    page.wait_for_timeout(300)
    assert decisions() == {}, "nothing that was never in view is settled"
    page.keyboard.press("ArrowRight")
    ringed = page.locator("[data-testid=card-tile].cursor").get_attribute("data-sample")
    page.keyboard.press("t")
    page.locator(f"[data-testid=card][data-sample='{ringed}']").wait_for(timeout=WAIT_MS)
