"""What a reload keeps, and what several people leave to each other."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.catalog import reviews
from auditor.catalog.db import session
from auditor.review import drawing
from tests.app.conftest import DATASET
from tests.browser.conftest import WAIT_MS, Server, answered, filtered, settled, wait_until
from tests.browser.test_fast_keys import blind, press
from tests.browser.test_review import bench_of, open_as_ada

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_suspects__the_mode_outlives_a_reload_and_another_filter(browser: Any, running: Server) -> None:
    page = bench_of(browser, running)
    page.keyboard.press("g")
    page.get_by_test_id("tile").first.wait_for(timeout=WAIT_MS)
    filtered(page, "suspects_show", "Everything")
    page.get_by_test_id("stats").filter(has_text="240not checked").wait_for(timeout=WAIT_MS)
    page.reload()
    page.locator("[data-testid=tile], [data-testid=card]").first.wait_for(timeout=WAIT_MS)
    assert page.get_by_test_id("tile").count() == 60
    page.keyboard.press("g")
    page.get_by_test_id("card").wait_for(timeout=WAIT_MS)
    page.reload()
    page.locator("[data-testid=tile], [data-testid=card]").first.wait_for(timeout=WAIT_MS)
    assert page.get_by_test_id("card").count() == 1


def test_verify__undo_after_a_reload_goes_back_over_every_verdict(browser: Any, running: Server) -> None:
    draw = drawing.draw(DATASET, 6)
    page = open_as_ada(browser, running, "verify")
    page.get_by_test_id("judge").wait_for(timeout=WAIT_MS)
    press(page, "1en")
    wait_until(lambda: len(blind()) == 3, "three verdicts")
    page.reload()
    page.get_by_test_id("judge").wait_for(timeout=WAIT_MS)
    settled(page)
    for number in (2, 1, 0):
        page.keyboard.press("z")
        page.locator(
            f"[data-testid=judge][data-sample='{draw.sample_ids[number]}'] >> visible=true"
        ).wait_for(timeout=WAIT_MS)
        wait_until(lambda number=number: list(blind()) == draw.sample_ids[:number], "one verdict less")
    settled(page)  # what the last undo draws anew would take the notice away
    page.keyboard.press("z")
    page.get_by_text("You have no verdict to undo here").wait_for(timeout=WAIT_MS)
    press(page, "e")
    wait_until(lambda: blind() == {draw.sample_ids[0]: ("exclude", None)}, "the first sample judged again")


def test_verify__two_people_share_a_draw(browser: Any, running: Server) -> None:
    drawn = drawing.draw(DATASET, 60).sample_ids
    ada = open_as_ada(browser, running, "verify")
    ada.get_by_test_id("judge").wait_for(timeout=WAIT_MS)
    bob = open_as_ada(browser, running, "verify", reviewer="Bob")
    bob.get_by_test_id("judge").wait_for(timeout=WAIT_MS)
    in_view(ada, drawn[0])
    in_view(bob, drawn[8])  # the first eight are Ada's for as long as she looks
    for _ in range(8):
        press(ada, "q")
        answered(ada)  # faster than the answers about leases, she would come upon what is Bob's
    press(bob, "n" * 6)
    wait_until(lambda: len(blind()) == 14, "fourteen verdicts on fourteen samples")
    assert {judges(one) for one in drawn[:8]} == {"Ada"}
    assert {judges(one) for one in drawn[8:14]} == {"Bob"}
    press(ada, "q" * 4)
    wait_until(lambda: len(blind()) == 18, "four more")
    assert [judges(one) for one in drawn[8:14]] == ["Bob"] * 6, "nobody's verdict was replaced"


def in_view(page: Any, sample: int) -> None:
    page.locator(f"[data-testid=judge][data-sample='{sample}'] >> visible=true").wait_for(timeout=WAIT_MS)


def judges(sample: int) -> str:
    """Whose verdict on the sample stands."""
    with session() as open_session:
        standing = reviews.verdicts(open_session, 1)
    return next((row.reviewer for (_, one), row in standing.items() if one == sample), "")
