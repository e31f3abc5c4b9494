"""Verdicts faster than the server answers: none is lost, and one that the server refuses brings its sample back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.server import bench
from app.session import state
from auditor.catalog import datasets, reviews
from auditor.catalog.db import session
from auditor.review import drawing
from tests.app.conftest import DATASET
from tests.browser.conftest import WAIT_MS, Server, choose, filtered, open_page, wait_until
from tests.browser.test_review import OLDER, bench_of, decisions, open_as_ada, shown_sample

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
APART_MS = 60
STARTLED_MS = 700
"""A sample that came back takes no key for a moment: that key was meant for another one."""


TOLD_NOW = """() => {
  const all = [...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")];
  const views = all.map((one) => one.shadowRoot.auditorView);
  views.find((one) => one && one.notice).notice.toldAt = performance.now();
}"""
"""A warning stays for some seconds; on a slow machine they would be over before the next key."""


def press(page: Any, keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)
        page.wait_for_timeout(APART_MS)


def queue(count: int) -> list[dict[str, Any]]:
    """The undecided suspects in the order in which the page shows them."""
    return bench.queue({"audit": 1, "where": {"undecided": True}, "limit": count})["items"]


def blind() -> dict[int, tuple[str, int | None]]:
    with session() as open_session:
        standing, given = reviews.verdicts(open_session, 1), datasets.given_labels(open_session, 1)
    seen = {"keep": lambda i, _: ("label", int(given[i])), "relabel": lambda _, label: ("label", label)}
    return {
        i: seen.get(row.decision, lambda _, label, said=row.decision: (said, label))(i, row.label)
        for (_, i), row in standing.items()
    }


def press_and_refuse(page: Any, keys: str, route: str, sample: int) -> None:
    """Press the keys before the server answers, and make the verdict on one sample one that it refuses."""

    def spoil(asked: Any) -> None:
        body = asked.request.post_data_json
        for verdict in body["verdicts"]:
            verdict["decision"] = "nonsense" if verdict["sample"] == sample else verdict["decision"]
        asked.continue_(post_data=json.dumps(body))

    held: list[Any] | None = []
    page.route(f"**/bench/{route}", lambda asked: spoil(asked) if held is None else held.append(asked))
    press(page, keys)
    waiting, held = held, None
    for asked in waiting:
        spoil(asked)


def test_suspects__a_key_after_undo_is_a_verdict_on_the_sample_that_came_back(
    browser: Any, running: Server
) -> None:
    one, two, three = (item["sample"] for item in queue(3))
    page = bench_of(browser, running)
    press(page, "qqze")
    wait_until(lambda: decisions() == {one: "keep", two: "exclude"}, "the second verdict given again")
    page.locator(f"[data-testid=card][data-sample='{three}']").wait_for(timeout=WAIT_MS)


def test_suspects__a_refused_verdict_brings_its_sample_back(browser: Any, running: Server) -> None:
    one, two, three, four = (item["sample"] for item in queue(4))
    page = bench_of(browser, running)
    press_and_refuse(page, "qqq", "verdicts", two)
    page.locator(f"[data-testid=card][data-sample='{two}']").wait_for(timeout=WAIT_MS)
    assert f"Sample {two} is not decided: 'nonsense'" in page.get_by_test_id("notice").inner_text()
    assert page.get_by_test_id("standing").inner_text() == ""
    wait_until(lambda: decisions() == {one: "keep", three: "keep"}, "the verdicts before and after it")
    page.unroute("**/bench/verdicts")
    page.wait_for_timeout(STARTLED_MS)
    press(page, "e")
    wait_until(lambda: decisions().get(two) == "exclude", "the verdict given again")
    page.locator(f"[data-testid=card][data-sample='{four}']").wait_for(timeout=WAIT_MS)
    assert decisions()[three] == "keep", "what was decided meanwhile is not asked again"


def test_suspects__answers_to_a_filter_that_was_changed_again_are_dropped(
    browser: Any, running: Server
) -> None:
    """A slow server answers the first filter after the second."""
    page = bench_of(browser, running)
    first = shown_sample(page)
    held: list[Any] = []

    def hold(asked: Any) -> None:
        is_everything = not asked.request.post_data_json["where"].get("undecided")
        held.append(asked) if is_everything else asked.continue_()

    page.keyboard.press("g")
    page.route("**/bench/queue", hold)
    choose(page, "suspects_show", "Everything")
    wait_until(lambda: held, "the first filter's question")
    choose(page, "suspects_show", "Suspects to check")
    wait_until(lambda: 0 < page.get_by_test_id("tile").count() < 60, "the second filter's tiles")
    for asked in held:
        asked.fulfill(json={"items": []})
    page.wait_for_timeout(500)
    assert int(page.get_by_test_id("tile").first.get_attribute("data-sample")) == first
    assert page.get_by_test_id("bench").get_attribute("data-state") == "ready"


def test_suspects__a_verdict_given_while_another_queue_loads_is_not_asked_again(
    browser: Any, running: Server
) -> None:
    one, two, three = (item["sample"] for item in queue(3))
    page = bench_of(browser, running)
    held: list[Any] = []
    page.route("**/bench/queue", lambda asked: held.append(asked))
    choose(page, "suspects_show", "Everything")
    wait_until(lambda: held, "the filter's question")
    (asked,) = held
    answer = asked.fetch()
    press(page, "q")
    wait_until(lambda: decisions() == {one: "keep"}, "the verdict")
    asked.fulfill(response=answer)
    page.locator("[data-testid=bench][data-state=ready]").wait_for(timeout=WAIT_MS)
    page.locator(f"[data-testid=card][data-sample='{two}']").wait_for(timeout=WAIT_MS)
    page.get_by_test_id("stats").filter(has_text="239not checked").wait_for(timeout=WAIT_MS)
    press(page, "q")
    page.locator(f"[data-testid=card][data-sample='{three}']").wait_for(timeout=WAIT_MS)
    wait_until(lambda: decisions() == {one: "keep", two: "keep"}, "the next verdict")


def test_suspects__no_key_decides_while_the_queue_of_another_dataset_loads(
    browser: Any, running: Server
) -> None:
    """Both have a sample of that number: the verdict would be on one that nobody saw."""
    page = bench_of(browser, running)
    held: list[Any] = []
    page.route("**/bench/queue", lambda asked: held.append(asked))
    choose(page, state.DATASET, "other")
    wait_until(lambda: held, "the other dataset's question")
    press(page, "qw1e")
    page.wait_for_timeout(1000)
    assert decisions() == decisions(2) == {}
    page.unroute("**/bench/queue")
    for asked in held:
        asked.continue_()
    page.get_by_test_id("exemplars").wait_for(timeout=WAIT_MS)
    page.locator("summary", has_text="Plain cross-entropy says").wait_for(
        timeout=WAIT_MS
    )  # it alone spoke here
    sample = shown_sample(page)
    press(page, "q")
    wait_until(lambda: decisions(2) == {sample: "keep"}, "a verdict on what is shown")


def test_suspects__a_verdict_waits_for_a_busy_catalog_and_says_why(browser: Any, running: Server) -> None:
    one = queue(1)[0]["sample"]
    page = bench_of(browser, running)
    busy = {"error": "The catalog cannot be used (database is locked)."}
    page.route("**/bench/verdicts", lambda asked: asked.fulfill(status=503, json=busy))
    press(page, "q")
    page.get_by_text("cannot be used (database is locked). 1 verdict is kept in this browser").wait_for(
        timeout=WAIT_MS
    )
    page.unroute("**/bench/verdicts")
    page.get_by_text("every verdict is saved").wait_for(timeout=WAIT_MS)
    assert decisions() == {one: "keep"}


def test_suspects__a_verdict_of_an_earlier_window_that_is_refused_is_told(
    browser: Any, running: Server
) -> None:
    page = bench_of(browser, running)
    verdict = {"token": "t", "dataset": 1, "sample": 5, "decision": "nonsense", "reviewer": "Ada", "audit": 1}
    entry = json.dumps({"route": "verdicts", "verdict": verdict})
    page.evaluate("entry => localStorage.setItem('auditor-verdict:t', entry)", entry)
    page.reload()
    page.get_by_text("Sample 5 is not decided: 'nonsense' is no decision").wait_for(timeout=WAIT_MS)


def test_suspects__a_verdict_over_ones_own_of_another_window_is_told(browser: Any, running: Server) -> None:
    one, two = (item["sample"] for item in queue(2))
    page = bench_of(browser, running)
    # News of the other window come within a second; the key here is faster, whatever else the machine does.
    page.route("**/newest*", lambda route: route.abort())
    page.context.add_init_script("sessionStorage.setItem('auditor-mode', 'card')")
    other = page.context.new_page()
    open_page(other, running, f"suspects?{OLDER}")
    other.get_by_test_id("exemplars").wait_for(timeout=WAIT_MS)
    press(other, "w")
    wait_until(lambda: decisions() == {one: "relabel"}, "the other window's verdict")
    press(page, "q")
    notice = page.get_by_test_id("notice")
    page.locator(".notice.warn", has_text="in another window of yours").wait_for(timeout=WAIT_MS)
    assert f"Sample {one} was decided (→ " in notice.inner_text()
    assert "Your verdict here (kept) counts" in notice.inner_text()
    page.evaluate(TOLD_NOW)
    press(page, "q")
    wait_until(lambda: decisions() == {one: "keep", two: "keep"}, "the verdicts of this window")
    assert "in another window" in notice.inner_text(), "the next key does not take the warning away"
    page.wait_for_timeout(STARTLED_MS)
    page.keyboard.press("ArrowLeft")
    press(page, "en")
    wait_until(lambda: decisions()[two] == "exclude", "a change of mind")
    assert str(two) not in notice.inner_text(), "one's own verdict of this window is no surprise"


def test_verify__quick_keys_to_the_end_of_a_draw_and_a_refused_one_comes_back(
    browser: Any, running: Server
) -> None:
    draw = drawing.draw(DATASET, 8)
    page = open_as_ada(browser, running, "verify")
    page.get_by_test_id("judge").wait_for(timeout=WAIT_MS)
    seventh, last = draw.sample_ids[6:]
    press_and_refuse(page, "1en2e3nn", "blind", seventh)
    page.get_by_text(f"Sample {seventh} is not checked").wait_for(timeout=WAIT_MS)
    page.locator(f"[data-testid=judge][data-sample='{seventh}'] >> visible=true").wait_for(timeout=WAIT_MS)
    wait_until(lambda: len(blind()) >= 7, "all verdicts but the refused one")
    said = [("label", 0), ("exclude", None), ("unsure", None), ("label", 1), ("exclude", None), ("label", 2)]
    said += [("unsure", None)]
    assert blind() == dict(zip([*draw.sample_ids[:6], last], said, strict=True))
    page.unroute("**/bench/blind")
    page.wait_for_timeout(STARTLED_MS)
    press(page, "e")
    wait_until(lambda: blind().get(seventh) == ("exclude", None), "the verdict given again")
    page.get_by_text("Use these verdicts in the ranking").wait_for(timeout=WAIT_MS)


def test_suspects__a_key_counts_once_after_the_page_ran_again(browser: Any, running: Server) -> None:
    page = bench_of(browser, running)
    for show in ("Everything", "All unchecked"):
        filtered(page, "suspects_show", show)
    items = queue(3)
    press(page, "q")
    page.locator(f"[data-testid=card][data-sample='{items[1]['sample']}']").wait_for(timeout=WAIT_MS)
    wait_until(lambda: decisions() == {items[0]["sample"]: "keep"}, "one verdict")
