"""Two datasets, two reviewers: links that stay, keys of one meaning, samples dealt out, whole actions undone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from app.server import bench
from auditor.catalog import reviews
from auditor.catalog.db import session
from auditor.review import blind, drawing, log, verifying
from tests.app.conftest import DATASET
from tests.browser.conftest import WAIT_MS, Server, answered, settled, wait_until
from tests.browser.test_fast_keys import press, queue
from tests.browser.test_review import OLDER, bench_of, decisions, open_as_ada, shown_sample

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def dataset_of(address: str) -> str:
    return parse_qs(urlsplit(address).query).get("dataset", [""])[0]


def total(page: Any) -> int:
    """Samples that are left of the queue, by its finish line."""
    said = re.compile(r"([\d,]+)\s*left")
    found: list[str] = []

    def told() -> bool:  # while the queue changes, the line says neither number for a moment
        found[:] = said.findall(page.get_by_test_id("stats").inner_text())
        return bool(found)

    wait_until(told, "the finish line", page)
    return int(found[0].replace(",", ""))


DOORS: dict[str, Callable[[Any], None]] = {
    "engines": lambda page: page.get_by_role("button", name="Review where the engines disagree").click(),
    "classes": lambda page: page.locator("[class*=st-key-classes_pair_] button").first.click(),
}
"""What leads from a screen to Suspects."""
FILTERS = {
    "engines": ("suspects_agreement", r"^Engines disagree strongly$"),
    "verify": ("suspects_agreement", r"^Engines against it: any$"),
    "classes": ("suspects_given", r"^Given: (?!any)"),
}
"""Which filter it leaves there, and what the filter shows."""


@pytest.mark.parametrize("door", DOORS)
def test_links__stay_with_the_older_dataset_its_audit_and_the_filters(
    browser: Any, running: Server, door: str
) -> None:
    page = open_as_ada(browser, running, f"{door}?{OLDER}")
    DOORS[door](page)
    page.wait_for_url(re.compile("/suspects"), timeout=WAIT_MS)
    wait_until(lambda: dataset_of(page.url) == DATASET, "the dataset in the address")
    page.locator(".st-key-top_bar", has_text=DATASET).wait_for(timeout=WAIT_MS)
    key, shows = FILTERS[door]
    box = page.locator(f".st-key-{key} input")
    box.wait_for(state="attached", timeout=WAIT_MS)  # without a filter they are folded away
    settled(page)
    assert re.search(shows, box.input_value())
    address = page.get_by_role("link", name="Classes").get_attribute("href")
    assert dataset_of(address) == DATASET, "a link that is opened in another tab stays with the dataset"
    page.go_back(wait_until="commit", timeout=WAIT_MS)
    page.wait_for_url(re.compile(f"/{door}"), timeout=WAIT_MS)
    wait_until(lambda: dataset_of(page.url) == DATASET, "Back is one step, to the screen before")


def test_digits__mean_the_same_class_on_suspects_as_on_verify(browser: Any, running: Server) -> None:
    first, second = queue(2)
    shown = bench.card({"audit": 1, "sample": first["sample"]})["classes"]
    # The card lists the likeliest first: a class whose place in that list is another one than its own.
    expected = next(label for place, label in enumerate(shown) if place != label < 9)
    drawing.draw(DATASET, 1)
    page = bench_of(browser, running)
    press(page, str(expected + 1))
    wait_until(lambda: first["sample"] in decisions(), "the verdict of the digit")
    with session() as open_session:
        word = reviews.decisions(open_session, 1)[first["sample"]]
    assert (word.label if word.decision == "relabel" else first["given"]) == expected
    page.goto(f"{running.url}/verify?{OLDER}")
    page.get_by_test_id("judge").wait_for(timeout=WAIT_MS)
    settled(page)
    press(page, str(expected + 1))
    wait_until(lambda: blind.num_judged(1) == 1, "the blind verdict")
    assert verifying.rows(1).true_labels.tolist() == [expected]
    assert second["sample"] not in decisions()


def test_keys__can_be_changed_and_switched_off(browser: Any, running: Server) -> None:
    one, two = (item["sample"] for item in queue(2))
    page = bench_of(browser, running)
    page.keyboard.press("?")
    page.locator("[data-action=exclude]").click()
    page.keyboard.press("q")
    page.get_by_text("Q is taken").wait_for(timeout=WAIT_MS)
    page.locator("[data-action=exclude]").click()
    page.keyboard.press("y")
    page.keyboard.press("Escape")
    assert page.locator(".actions .exclude kbd").text_content() == "Y"
    press(page, "ey")
    wait_until(lambda: decisions() == {one: "exclude"}, "the verdict of the new key")
    page.keyboard.press("?")
    page.get_by_test_id("keys-off").click()
    page.keyboard.press("Escape")
    press(page, "qy4")
    page.get_by_test_id("menu").locator("summary").click()
    page.locator(".actions .exclude").click()
    wait_until(lambda: len(decisions()) == 2, "the verdict of the button")
    assert decisions() == {one: "exclude", two: "exclude"}, "no key decided"


def test_queue__two_reviewers_meet_on_no_sample(browser: Any, running: Server) -> None:
    ada = bench_of(browser, running, more="&suspects_show=undecided")
    bob = bench_of(browser, running, "Bob", more="&suspects_show=undecided")
    assert shown_sample(ada) != shown_sample(bob)
    for _ in range(6):
        press(ada, "q")
        answered(ada)  # so long as a lease is asked for, both could come upon the same sample
        press(bob, "e")
        answered(bob)
    wait_until(lambda: len(decisions()) == 12, "twelve verdicts on twelve samples")
    assert len(log.conflicts(1)) == 0


def test_queue__who_is_overruled_is_told_and_the_dispute_waits_for_a_ruling(
    browser: Any, running: Server
) -> None:
    sample = queue(1)[0]["sample"]
    ada = bench_of(browser, running)
    press(ada, "q")
    wait_until(lambda: decisions() == {sample: "keep"}, "Ada's verdict")
    bob = bench_of(browser, running, "Bob", more=f"&suspects_search=%23{sample}")
    assert shown_sample(bob) == sample
    press(bob, "e")
    wait_until(lambda: decisions() == {sample: "exclude"}, "Bob's verdict")
    # Ada's window hears of it although she does nothing.
    ada.get_by_text(f"Bob decided otherwise than you on sample {sample}").wait_for(timeout=WAIT_MS)
    carol = bench_of(browser, running, "Carol", more="&suspects_show=disputed")
    assert shown_sample(carol) == sample
    assert carol.get_by_test_id("standing").inner_text() == "Ada: kept · Bob: excluded"
    press(carol, "q")
    wait_until(lambda: log.disputed(1) == [], "the ruling")
    assert decisions()[sample] == "keep"


def test_undo__takes_back_the_tiles_of_one_key_together(browser: Any, running: Server) -> None:
    page = bench_of(browser, running)
    page.keyboard.press("g")
    page.get_by_test_id("tile").nth(2).wait_for(timeout=WAIT_MS)
    for place in range(3):
        page.get_by_test_id("tile").nth(place).click(modifiers=["Control"])
    press(page, "e")
    wait_until(lambda: len(decisions()) == 3, "three verdicts")
    press(page, "z")
    wait_until(lambda: decisions() == {}, "all three taken back")
    page.get_by_text("3 decisions of one step are taken back").wait_for(timeout=WAIT_MS)


def test_accept_page__leaves_the_selected_tiles_out(browser: Any, running: Server) -> None:
    page = bench_of(browser, running)
    page.keyboard.press("g")
    tiles = page.get_by_test_id("tile")
    tiles.nth(2).wait_for(timeout=WAIT_MS)
    samples = {int(one.get_attribute("data-sample")) for one in tiles.all()}
    left_out = int(tiles.nth(1).get_attribute("data-sample"))
    tiles.nth(1).click(modifiers=["Control"])
    page.get_by_text("Change all but 1").wait_for(timeout=WAIT_MS)
    page.keyboard.press("p")  # on cards it is "later": here it does nothing
    page.wait_for_timeout(500)
    assert decisions() == {}
    page.keyboard.press("Shift+P")
    wait_until(lambda: set(decisions()) == samples - {left_out}, "every other tile of the page is decided")
    assert set(decisions().values()) == {"relabel"}


def test_undo__works_after_the_last_sample(browser: Any, running: Server) -> None:
    sample = queue(1)[0]["sample"]
    page = bench_of(browser, running, more=f"&suspects_search=%23{sample}")
    press(page, "e")
    page.get_by_test_id("empty").wait_for(timeout=WAIT_MS)
    page.get_by_role("button", name="Undo").click()
    page.locator(f"[data-testid=card][data-sample='{sample}']").wait_for(timeout=WAIT_MS)
    wait_until(lambda: decisions() == {}, "the verdict taken back")
    last = drawing.draw(DATASET, 2).sample_ids[1]
    page.goto(f"{running.url}/verify?{OLDER}")
    page.get_by_test_id("judge").wait_for(timeout=WAIT_MS)
    settled(page)
    press(page, "ee")
    page.get_by_test_id("verified").wait_for(timeout=WAIT_MS)
    wait_until(lambda: blind.num_judged(1) == 2, "both judged")
    page.get_by_role("button", name=re.compile("Check .* more")).wait_for(timeout=WAIT_MS)
    settled(page)
    press(page, "z")
    page.locator(f"[data-testid=judge][data-sample='{last}'] >> visible=true").wait_for(timeout=WAIT_MS)
    wait_until(lambda: blind.num_judged(1) == 1, "the last one taken back")


def test_pair__opens_as_many_as_it_says(browser: Any, running: Server) -> None:
    page = bench_of(browser, running)
    before = total(page)
    page.get_by_test_id("filters").click()
    page.locator(".st-key-suspects_pair [data-testid=stSelectbox]").click()
    option = page.get_by_role("option").nth(1)
    said = int(re.findall(r"\((\d+)\)$", option.inner_text())[0])
    option.click(timeout=WAIT_MS)
    assert said != before
    wait_until(lambda: total(page) == said, f"a queue of {said}")
