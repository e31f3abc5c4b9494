"""Sets of classes from the list of suspects to the cleaned table, in a real browser."""

from __future__ import annotations

import csv
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
from tests.tagged import CLASSES, make_home

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture
def server(home: Path, tmp_path: Path, forker: Forker) -> Iterator[Server]:
    """The app on the home with audited sets."""
    make_home(tmp_path)
    running = Server(home, forker)
    running.start()
    yield running
    running.kill()


def test_sets__from_the_suspects_to_the_cleaned_table(server: Server, browser: Any, artifacts: Path) -> None:
    dataset, _ = reading.audited("shapes")
    worst = open_dataset("shapes").suspects(3)
    first, second, third = worst.sample_id.tolist()
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    open_page(page, server, "sets?dataset=shapes")
    page.get_by_role("img", name=f"Sample {first}", exact=True).wait_for(timeout=WAIT_MS)
    settled(page)
    assert findings_at_every_size(page, "sets-of-shapes", artifacts) == []
    page.screenshot(path=artifacts / "sets-suspect.png")
    page.get_by_text("Suspects", exact=True).last.click()
    # The class in doubt is turned round by its key, and what is marked is saved.
    doubted = [CLASSES.index(name) for name in [*worst.missing[0], *worst.extra[0]]]
    wanted = sorted({CLASSES.index(name) for name in worst.given[0]} ^ set(doubted))
    for label in doubted:
        page.keyboard.press(str(label + 1))
    pressed = page.locator(".chip[aria-pressed=true]")
    assert sorted(int(one.get_attribute("data-label")) for one in pressed.all()) == wanted
    page.keyboard.press("s")
    page.get_by_role("img", name=f"Sample {second}", exact=True).wait_for(timeout=WAIT_MS)
    wait_until(lambda: first in decisions.outcomes(dataset.id), "the marked labels")
    assert decisions.outcomes(dataset.id)[first].labels == wanted
    page.keyboard.press("w")
    page.get_by_role("img", name=f"Sample {third}", exact=True).wait_for(timeout=WAIT_MS)
    wait_until(lambda: second in decisions.outcomes(dataset.id), "the suggestion")
    taken = decisions.outcomes(dataset.id)[second]
    assert taken.labels == sorted(
        {CLASSES.index(name) for name in [*worst.given[1], *worst.missing[1]]}
        - {CLASSES.index(name) for name in worst.extra[1]}
    )
    page.keyboard.press("q")
    wait_until(lambda: third in decisions.outcomes(dataset.id), "the kept set")
    page.keyboard.press("z")
    page.get_by_role("img", name=f"Sample {third}", exact=True).wait_for(timeout=WAIT_MS)
    wait_until(lambda: third not in decisions.outcomes(dataset.id), "the kept set taken back")

    drawing.draw("shapes", 2)
    open_page(page, server, "sets?dataset=shapes")
    page.get_by_text("Random sample", exact=True).last.click()
    page.locator(".mask-head").wait_for(timeout=WAIT_MS)
    # The suspects' bench stands there until the other one takes its place.
    wait_until(lambda: page.locator(".chip.missing, .chip.extra").count() == 0, "chips that tell nothing")
    page.screenshot(path=artifacts / "sets-random.png")
    page.keyboard.press("q")
    wait_until(lambda: blind.num_judged(dataset.id) == 1, "a blind verdict")
    page.locator(".mask-head").wait_for(timeout=WAIT_MS)
    page.locator(".chip").first.click()
    page.get_by_role("button", name="Save as marked").click()
    wait_until(lambda: blind.num_judged(dataset.id) == 2, "another set")
    judged = [row for row in decisions.outcomes(dataset.id).values() if row.draw_id]
    assert sorted(row.decision for row in judged) == ["keep", "relabel"]

    settled(page)
    page.get_by_role("button", name="Export the cleaned labels").click(timeout=WAIT_MS)
    made = page.get_by_role("link", name="Download shapes-cleaned.csv")
    made.wait_for(timeout=WAIT_MS)
    cleaned = downloaded(page, made)
    with cleaned.open(newline="") as file:
        rows = {int(row["sample_id"]): row for row in csv.DictReader(file)}
    assert rows[first]["cleaned_label"] == ("|".join(CLASSES[label] for label in wanted) or "[]")
