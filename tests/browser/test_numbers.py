"""Numbers from the list of suspects to the cleaned table, in a real browser."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.api import open_dataset
from auditor.catalog import reading
from auditor.review import blind, decisions, drawing
from tests.browser.conftest import WAIT_MS, Server, downloaded, open_page, settled, wait_until
from tests.browser.test_axe import findings_at_every_size
from tests.forker import Forker
from tests.numbered import make_home, num_suspects

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture
def server(home: Path, tmp_path: Path, forker: Forker) -> Iterator[Server]:
    """The app on the home with audited numbers."""
    make_home(tmp_path)
    running = Server(home, forker)
    running.start()
    yield running
    running.kill()


def test_numbers__from_the_suspects_to_the_cleaned_table(
    server: Server, browser: Any, artifacts: Path
) -> None:
    dataset, _ = reading.audited("ages")
    first, second = open_dataset("ages").suspects(2).sample_id.tolist()
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    open_page(page, server, "numbers?dataset=ages")
    page.get_by_role("img", name=f"Sample {first}", exact=True).wait_for(timeout=WAIT_MS)
    settled(page)
    assert findings_at_every_size(page, "numbers-of-ages", artifacts) == []
    # The person's own keys, as the bench keeps them: another one for the suggestion. A choice keeps no key.
    page.get_by_text("Suspects", exact=True).last.click()
    page.keyboard.press("?")
    page.locator("[data-testid=help] [data-action=relabel]").click()
    page.keyboard.press("j")
    page.get_by_role("button", name=re.compile("J Change to ")).wait_for(timeout=WAIT_MS)
    page.keyboard.press("Escape")
    page.keyboard.press("w")  # means nothing now
    ring = page.locator("[data-ring]")
    page.keyboard.press("ArrowRight")
    page.get_by_role("img", name=f"Sample {second}", exact=True).wait_for(timeout=WAIT_MS)
    assert ring.get_attribute("data-ring") == str(second), "the one in view is ringed"
    assert page.get_by_test_id("place").inner_text() == f"2 of {num_suspects('ages')}"
    page.keyboard.press("ArrowLeft")
    page.get_by_role("img", name=f"Sample {first}", exact=True).wait_for(timeout=WAIT_MS)
    dot = page.locator(f"circle[data-dot='{first}']")
    before = (dot.get_attribute("class"), dot.get_attribute("cy"))
    page.keyboard.press("j")
    page.get_by_role("img", name=f"Sample {second}", exact=True).wait_for(timeout=WAIT_MS)
    after = (dot.get_attribute("class"), dot.get_attribute("cy"))
    assert (before[0], after[0], before[1] != after[1]) == ("suspect", "checked", True), "drawn anew at once"
    wait_until(lambda: set(decisions.outcomes(dataset.id)) == {first}, "the suggestion")
    # Taken back at once all is as it was, so that the page has nothing new to send.
    page.keyboard.press("z")
    page.get_by_role("img", name=f"Sample {first}", exact=True).wait_for(timeout=WAIT_MS)
    page.get_by_text(f"Undone: sample {first} is open again.").wait_for(timeout=WAIT_MS)
    assert decisions.outcomes(dataset.id) == {}
    assert (dot.get_attribute("class"), dot.get_attribute("cy")) == before
    assert page.get_by_test_id("place").inner_text().startswith("1 of ")
    settled(page)
    page.keyboard.press("j")
    page.get_by_role("img", name=f"Sample {second}", exact=True).wait_for(timeout=WAIT_MS)
    wait_until(lambda: set(decisions.outcomes(dataset.id)) == {first}, "the suggestion again")
    settled(page)
    page.keyboard.press("l")
    assert page.get_by_label("Another number").input_value() == ""
    page.get_by_label("Another number").fill("33.5")
    page.get_by_label("Another number").press("Enter")
    wait_until(lambda: second in decisions.outcomes(dataset.id), "the typed number")
    assert decisions.outcomes(dataset.id)[second].number == 33.5
    most_trusted = page.locator("circle.other").last  # is none of those that travelled here
    asked_for = most_trusted.get_attribute("data-dot")
    most_trusted.dispatch_event("click")
    page.get_by_role("img", name=f"Sample {asked_for}", exact=True).wait_for(timeout=WAIT_MS)
    settled(page)

    next_step = page.get_by_role("button", name="Check a random sample")

    def are_answered() -> bool:
        page.keyboard.press("n")
        return bool(next_step.is_visible())

    wait_until(are_answered, "the button after the last suspect", page)
    settled(page)
    next_step.click()
    page.get_by_role("spinbutton", name="Pictures to check").wait_for(timeout=WAIT_MS)
    settled(page)
    page.get_by_role("spinbutton", name="Pictures to check").fill("2")
    page.get_by_role("spinbutton", name="Tolerance").fill("0.5")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_text("2 samples to check").wait_for(timeout=WAIT_MS)
    settled(page)
    page.keyboard.press("?")
    page.get_by_test_id("keys-off").click()
    page.keyboard.press("Escape")
    page.keyboard.press("n")  # switched off
    page.get_by_role("button", name="Not sure", exact=True).click()
    page.get_by_text("1 sample to check").wait_for(timeout=WAIT_MS)
    wait_until(lambda: blind.num_judged(dataset.id) == 1, "the blind answer")
    assert drawing.tolerance_of(dataset.id) == 0.5

    settled(page)
    page.get_by_role("button", name="Export the cleaned numbers").click(timeout=WAIT_MS)
    made = page.get_by_role("link", name="Download ages-cleaned.csv")
    made.wait_for(timeout=WAIT_MS)
    cleaned = downloaded(page, made)
    with cleaned.open(newline="") as stream:
        rows = {int(row["sample_id"]): row for row in csv.DictReader(stream)}
    assert (rows[second]["cleaned_label"], rows[second]["action"]) == ("33.5", "relabel")
    assert rows[first]["cleaned_label"] != rows[first]["given_label"]
