"""The bench in a real browser: large pictures, keys after a choice, phones, blind keys, a lasso's images."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from app import components
from app.server import bench
from auditor.catalog import audits, datasets, reviews, scores
from auditor.catalog.db import session
from auditor.results import arrays
from auditor.review import blind, drawing, verifying
from auditor.review import decisions as record
from auditor.statistics import NO_CLASS
from tests.app.conftest import DATASET, NAMES
from tests.browser.conftest import (
    WAIT_MS,
    Server,
    filtered,
    open_page,
    settled,
    steady_box,
    visitor,
    wait_until,
)

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
DESKTOP, PHONE = (1280, 800), (390, 844)
OLDER = f"dataset={quote(DATASET)}"


def open_as_ada(
    browser: Any, server: Server, path: str, size: tuple[int, int] = DESKTOP, *, reviewer: str = "Ada"
) -> Any:
    page = visitor(browser, server, reviewer)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    # Chromium hands a page that is busy its interception late: a request that a test routes at that moment would
    # still go to the server. With any route from the start, later ones hold from the first request on.
    page.route("**/asked-by-nobody", lambda asked: asked.continue_())
    open_page(page, server, path if OLDER in path else f"{path}?{OLDER}")
    return page


def decisions(dataset: int = 1) -> dict[int, str]:
    with session() as open_session:
        return {sample: row.decision for sample, row in reviews.decisions(open_session, dataset).items()}


def shown_sample(page: Any) -> int:
    return int(page.get_by_test_id("card").get_attribute("data-sample"))


def bench_of(
    browser: Any, server: Server, reviewer: str = "Ada", *, more: str = "", size: tuple[int, int] = DESKTOP
) -> Any:
    """Suspects as somebody opens it, with the whole first card; ``more`` of the address chooses filters."""
    page = open_as_ada(browser, server, f"suspects?{OLDER}{more}", size, reviewer=reviewer)
    page.get_by_test_id("exemplars").wait_for(timeout=WAIT_MS)
    settled(page)
    return page


def test_card__picture_choices_and_toolbar_fit_and_the_picture_opens_large(
    browser: Any, running: Server, artifacts: Path
) -> None:
    page = bench_of(browser, running)
    picture = page.get_by_test_id("picture")
    wait_until(lambda: picture.bounding_box()["width"] > 400, "a wide picture")
    toolbar = steady_box(page.locator(".actions"))
    lowest = steady_box(page.locator(".choice").last)
    assert lowest["y"] + lowest["height"] < toolbar["y"]
    assert toolbar["height"] < 60, "the toolbar is one line"
    page.screenshot(path=str(artifacts / "card-1280x800.png"))
    page.keyboard.press("v")
    large = page.get_by_test_id("large")
    large.wait_for(timeout=WAIT_MS)
    wait_until(lambda: large.bounding_box()["height"] > 650, "a high picture")
    page.keyboard.press("e")
    page.keyboard.press("Escape")
    page.locator(".viewer[open]").wait_for(state="detached", timeout=WAIT_MS)
    assert decisions() == {}, "no key decides while a picture is large"
    neighbour = page.get_by_test_id("neighbours").locator("button.zoom").first
    sample = re.findall(r"\d+", neighbour.get_attribute("title"))[0]
    neighbour.click()
    page.locator(".about", has_text=f"Sample {sample} ·").wait_for(timeout=WAIT_MS)
    page.screenshot(path=str(artifacts / "viewer-1280x800.png"))


def test_lens__three_at_one_size_blinks_decides_and_leads_to_those_alike(
    browser: Any, running: Server, artifacts: Path
) -> None:
    page = bench_of(browser, running)
    suspect = shown_sample(page)
    page.keyboard.press("b")
    panes = page.locator(".pane-of")
    wait_until(lambda: panes.count() == 3, "three pictures", page)
    sizes = {(box["width"], box["height"]) for box in (steady_box(one) for one in panes.locator("img").all())}
    assert len(sizes) == 1
    page.screenshot(path=str(artifacts / "lens-1280x800.png"))
    first = [one.get_attribute("data-sample") for one in panes.all()]
    page.keyboard.press("ArrowRight")
    second = [one.get_attribute("data-sample") for one in panes.all()]
    assert first[1] == second[1] == str(suspect), "in the middle, beside both classes"
    assert not {first[0], first[2]} & {second[0], second[2]}
    titles = [one.split(":")[0] for one in panes.locator("b").all_inner_texts()]
    assert titles == ["Given", "This picture", "Suggested"]
    seen, places = [], set()
    for _ in range(3):
        page.keyboard.press(" ")
        shown = page.locator(".pane-of:not(.hidden)")
        assert shown.count() == 1
        seen.append(shown.get_attribute("data-kind"))
        places.add(tuple(steady_box(shown.locator("img")).values()))
    assert (seen, len(places)) == (["suspect", "suggested", "suspect"], 1)
    page.keyboard.press("ArrowUp")
    assert page.locator(".pane-of:not(.hidden)").get_attribute("data-kind") == "given"
    page.keyboard.press("e")
    assert decisions() == {}, "only the keys of the two classes decide here"
    page.keyboard.press("q")
    page.locator(".lens[open]").wait_for(state="detached", timeout=WAIT_MS)
    wait_until(lambda: decisions() == {suspect: "keep"}, "the verdict", page)
    wait_until(lambda: shown_sample(page) != suspect, "the next card", page)
    another = shown_sample(page)
    page.keyboard.press("o")
    page.wait_for_url(f"**suspects_search=%7E{another}*", timeout=WAIT_MS)
    page.get_by_test_id("card").wait_for(timeout=WAIT_MS)
    settled(page)
    page.keyboard.press("g")
    tiles = page.get_by_test_id("tile")
    wait_until(lambda: tiles.count() > 10, "a page of those alike", page)
    assert len(set(page.locator(".tile .given").all_inner_texts())) == 1


@pytest.mark.parametrize("size", [DESKTOP, (1024, 768)])
def test_card__examples_are_96_pixels_above_the_toolbar(
    browser: Any, running: Server, size: tuple[int, int]
) -> None:
    page = bench_of(browser, running, size=size)
    toolbar = steady_box(page.locator(".actions"))
    shown = [
        steady_box(page.get_by_test_id(kind).locator("img").first) for kind in ("exemplars", "neighbours")
    ]
    assert [(one["width"], one["height"]) for one in shown] == [(96, 96), (96, 96)]
    assert shown[0]["y"] + 96 < toolbar["y"]
    assert page.get_by_test_id("exemplars").locator("img:visible").count() >= 4
    others = page.locator(".choice.others")
    assert page.locator(".choice:not(.others)").count() == 5
    others.click()
    assert page.locator(".choice:not(.others)").count() > 5
    page.keyboard.press("d")
    page.locator(".engine .who span", has_text="says ").first.wait_for(timeout=WAIT_MS)
    assert "%" not in page.get_by_test_id("card").inner_text(), "nothing is verified"
    page.keyboard.press("d")


def test_viewer__magnifies_around_the_pointer_shifts_and_fits_again(browser: Any, running: Server) -> None:
    page = bench_of(browser, running)
    picture = page.get_by_test_id("picture")
    picture.hover()
    page.keyboard.down("Control")  # without it the wheel is the page's
    page.mouse.wheel(0, -150)
    page.keyboard.up("Control")
    wait_until(
        lambda: "scale(1.6" in picture.evaluate("one => one.style.transform"), "a larger picture in its pane"
    )
    page.keyboard.press("v")
    large = page.get_by_test_id("large")
    zoomed = page.get_by_test_id("zoomed")
    wait_until(lambda: large.bounding_box()["height"] > 650, "a high picture")
    fitted = steady_box(large)
    middle = fitted["x"] + fitted["width"] / 2, fitted["y"] + fitted["height"] / 2
    page.mouse.move(*middle)
    for _ in range(2):
        page.mouse.wheel(0, -150)
    wait_until(lambda: zoomed.inner_text() == "2.7 ×", "the wheel's zoom")
    wheeled = large.bounding_box()
    assert wheeled["width"] > 2.6 * fitted["width"]
    page.mouse.down()
    page.mouse.move(middle[0] + 30, middle[1] + 20, steps=3)
    page.mouse.up()
    dragged = large.bounding_box()
    assert (dragged["x"] - wheeled["x"], dragged["y"] - wheeled["y"]) == pytest.approx((30, 20), abs=1)
    page.keyboard.press("ArrowUp")
    assert large.bounding_box()["y"] > dragged["y"]
    page.keyboard.press("s")
    assert large.evaluate("one => one.style.imageRendering") == "pixelated"
    page.keyboard.press("+")
    assert zoomed.inner_text() == "3.8 ×"
    page.keyboard.press("0")
    assert large.bounding_box() == fitted
    page.mouse.dblclick(*middle)
    assert zoomed.inner_text() != "fits"
    page.keyboard.press("f")
    assert zoomed.inner_text() == "fits"
    page.keyboard.press("Escape")
    page.locator(".viewer[open]").wait_for(state="detached", timeout=WAIT_MS)
    assert decisions() == {}


FOCUSED = """() => {
    let one = document.activeElement;
    while (one && one.shadowRoot && one.shadowRoot.activeElement) one = one.shadowRoot.activeElement;
    return one ? one.innerText || one.getAttribute("aria-label") || "" : "";
}"""
"""Text of the element that has the focus."""


def test_tab__keep_is_within_ten_and_a_verdict_leaves_the_focus_in_the_card(
    browser: Any, running: Server
) -> None:
    page = open_as_ada(browser, running, "suspects")
    page.get_by_test_id("exemplars").wait_for(timeout=WAIT_MS)
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) in ("Skip to main content", "To the verdicts"):
            page.keyboard.press("Enter")
        if "Keep" in page.evaluate(FOCUSED):
            break
    assert "Keep" in page.evaluate(FOCUSED)
    sample = shown_sample(page)
    page.get_by_test_id("card").locator("button.zoom").first.focus()
    page.keyboard.press("q")
    page.locator(f"[data-testid=bench]:not([data-sample='{sample}'])").wait_for(timeout=WAIT_MS)
    assert "Enlarge" in page.evaluate(FOCUSED)


def test_filters__a_key_after_a_choice_reaches_the_card(browser: Any, running: Server) -> None:
    page = bench_of(browser, running)
    filtered(page, "suspects_show", "Everything")
    page.wait_for_url(re.compile("suspects_show=everything"), timeout=WAIT_MS)
    page.get_by_test_id("exemplars").wait_for(timeout=WAIT_MS)
    sample = shown_sample(page)
    page.keyboard.press("w")
    wait_until(lambda: decisions().get(sample) == "relabel", "the verdict of the key")
    page.reload()
    page.get_by_test_id("card").wait_for(timeout=WAIT_MS)
    settled(page)
    assert page.locator(".st-key-suspects_show input").input_value() == "Everything"


def test_figures__follow_a_batch_without_a_reload(browser: Any, running: Server) -> None:
    page = bench_of(browser, running)
    finish = page.get_by_test_id("stats").filter(has_text="left")
    finish.wait_for(timeout=WAIT_MS)
    before = finish.inner_text()
    page.keyboard.press("g")
    page.get_by_test_id("tile").first.wait_for(timeout=WAIT_MS)
    page.keyboard.press("Shift+P")
    # A grid has no room for it, so it is there and not seen.
    wait_until(lambda: "were wrong" in finish.text_content(), "how many of the last ones were wrong")
    assert finish.inner_text().split()[0] != before.split()[0], "as many left as before"


def test_phone__the_card_is_the_first_thing_and_nothing_scrolls_sideways(
    browser: Any, running: Server, artifacts: Path
) -> None:
    page = bench_of(browser, running, size=PHONE)
    page.screenshot(path=str(artifacts / "card-390x844.png"))
    assert steady_box(page.get_by_test_id("card"))["y"] < 300
    assert page.locator(".st-key-top_bar").bounding_box()["height"] < 60, "a long name does not break the bar"
    assert page.locator(".card kbd:visible").count() == 0, "no keys where there is no keyboard"
    main = page.get_by_test_id("stMain")
    assert main.evaluate("one => one.scrollWidth <= one.clientWidth")
    buttons = page.get_by_role("toolbar", name="Verdict").locator("button:visible, summary:visible")
    says = [one.split()[0] for one in buttons.all_inner_texts()]
    assert says == ["Keep", "Change", "↶", "More"], "two verdicts, undo, and one menu of the rest"
    assert min(one["height"] for one in map(steady_box, buttons.all())) >= 44, "large enough for a thumb"
    buttons.last.click()
    assert {"Other class", "Exclude", "Grid"} <= set(buttons.all_inner_texts())
    buttons.filter(has_text="More").click()
    row = page.locator(".st-key-suspects_filters")
    assert not row.is_visible()
    page.get_by_test_id("filters").click()
    row.wait_for(state="visible", timeout=WAIT_MS)
    assert main.evaluate("one => one.scrollWidth <= one.clientWidth")
    title = page.get_by_role("heading", name="Suspects").bounding_box()
    choices = page.locator(".st-key-suspects_show, .st-key-suspects_sort, [class*=st-key-suspects_search]")
    for box in map(steady_box, choices.all()):
        assert box["y"] >= title["y"] + title["height"], "below the title, which stays in view"
        assert 0 <= box["x"] <= box["x"] + box["width"] <= PHONE[0]


CUT_ROWS = """tiles => {
  const edge = tiles[0].getRootNode().querySelector(".dock").getBoundingClientRect().top;
  const isCut = ({ top, bottom }) => top < edge - 1 && bottom > edge + 1;
  return tiles.filter((one) => isCut(one.getBoundingClientRect())).length;
}"""
"""How many tiles the buttons at the lower edge cut."""


def test_grid__shows_whole_rows_and_its_buttons_say_what_they_change(browser: Any, running: Server) -> None:
    page = bench_of(browser, running)
    page.keyboard.press("g")
    tiles = page.get_by_test_id("tile")
    tiles.first.wait_for(timeout=WAIT_MS)
    for height in (700, 760, 820):
        page.set_viewport_size({"width": 1280, "height": height})
        wait_until(lambda: tiles.evaluate_all(CUT_ROWS) == 0, f"whole rows at a height of {height}", page)
    toolbar = page.get_by_role("toolbar", name="Verdict")
    first = tiles.first.locator(".suggested").inner_text()
    assert toolbar.locator(".relabel").inner_text() == f"W\nChange to {first}"
    tiles.nth(2).click(modifiers=["Shift"])
    wait_until(lambda: "Change 3 " in toolbar.locator(".relabel").inner_text(), "three labels", page)
    assert toolbar.locator(".keep").inner_text() == "Q\nKeep 3"
    modes = page.get_by_role("group", name="Show as").locator("button")
    pressed = [one.inner_text() for one in modes.all() if one.get_attribute("aria-pressed") == "true"]
    assert pressed == ["Grid"]


def test_end__after_a_reload_shows_what_was_changed_and_no_button_that_does_nothing(
    browser: Any, running: Server
) -> None:
    found = bench.queue({"audit": 1, "where": {"issues": True, "undecided": True}, "limit": 500})["items"]
    taken = [(one["sample"], "relabel", one["suggested"]) for one in found]
    record.decide_many(1, taken, reviewer="Ada", audit_id=1)
    page = open_as_ada(browser, running, f"suspects?{OLDER}")
    page.get_by_test_id("changed").locator("img").first.wait_for(timeout=WAIT_MS)
    page.reload(timeout=WAIT_MS)
    page.get_by_test_id("changed").locator("img").first.wait_for(timeout=WAIT_MS)
    changed = page.get_by_test_id("changed")
    wrong = [sample for sample, decision in decisions().items() if decision == "relabel"]
    assert changed.locator("h3").inner_text().startswith(f"{len(wrong)} labels found wrong")
    shown = sum(int(one.split()[0]) for one in changed.locator("h4").all_inner_texts())
    more = re.search(r"(\d+) of them not shown", changed.locator("h3").inner_text())
    assert shown + (int(more[1]) if more else 0) == len(wrong)
    page.get_by_role("link", name="Check the next labels").wait_for(timeout=WAIT_MS)
    toolbar = page.get_by_role("toolbar", name="Verdict")
    assert toolbar.locator("button").all_inner_texts() == ["Z\nUndo"]
    toolbar.get_by_role("button", name="Undo").click()
    wait_until(lambda: decisions() == {}, "the batch is taken back", page)


def test_verify__every_one_of_ten_classes_has_a_digit_and_e_means_no_class_fits(
    browser: Any, running: Server, artifacts: Path
) -> None:
    draw = drawing.draw(DATASET, 4)
    page = open_as_ada(browser, running, "verify")
    judged = page.get_by_test_id("verify")
    page.get_by_test_id("judge").wait_for(timeout=WAIT_MS)
    page.screenshot(path=str(artifacts / "verify-1280x800.png"))
    for number, key in enumerate(["0", "e", "2"], start=1):
        page.keyboard.press(key)
        page.locator(f"[data-testid=verify][data-judged='{number}']").wait_for(timeout=WAIT_MS)
    wait_until(lambda: blind.num_judged(1) == 3, "three verdicts in the database")
    assert verifying.rows(1).true_labels.tolist() == [9, NO_CLASS, 1]
    keys = judged.locator(".row.classes .action").all_inner_texts()
    assert all(text.startswith("0") for text in keys if sorted(NAMES)[9] in text)
    assert "E\nNo class fits" in judged.inner_text()
    assert len(draw.sample_ids) == 4


def test_verify__classes_that_end_in_a_digit_have_it_as_their_key_and_help_lists_the_keys(
    browser: Any, running: Server
) -> None:
    with session() as open_session:
        datasets.change(open_session, 1, class_names=[f"digit {i}" for i in range(10)])
    drawing.draw(DATASET, 4)
    page = open_as_ada(browser, running, "verify")
    page.get_by_test_id("judge").wait_for(timeout=WAIT_MS)
    page.keyboard.press("?")
    assert "the given label is right" in page.get_by_test_id("help").inner_text()
    page.keyboard.press("4")
    page.get_by_test_id("help").wait_for(state="detached", timeout=WAIT_MS)
    assert page.get_by_test_id("verify").get_attribute("data-judged") == "0", "a key only closes the list"
    texts = page.locator(".row.classes .action").all_inner_texts()
    assert all(text == f"{text[-1]}\ndigit {text[-1]}" for text in texts)
    page.keyboard.press("4")
    page.locator("[data-testid=verify][data-judged='1']").wait_for(timeout=WAIT_MS)
    wait_until(lambda: blind.num_judged(1) == 1, "the verdict in the database")
    assert verifying.rows(1).true_labels.tolist() == [4]


def test_map__crowded_parts_are_drawn_wider_and_every_place_comes_back(browser: Any) -> None:
    source = (Path(components.__file__).parent / "points.js").read_text(encoding="utf-8")
    page = browser.new_page()
    drawn, back = page.evaluate(
        f"""() => {{ {source}
        const places = spreadOf([500, 30000, 30010, 30020, 30030, 65000]);
        const drawn = [-3, 0, 499.5, 29952, 30208, 65535, 66000].map((place) => spread(places, place));
        return [drawn, drawn.map((one) => gather(places, one))]; }}"""
    )
    assert back == pytest.approx([-3, 0, 499.5, 29952, 30208, 65535, 66000])
    assert drawn == sorted(drawn)
    assert drawn[4] - drawn[3] > 100 * 256, "four of six points lie there"


def test_map__a_class_is_named_where_it_lies_thickest_and_a_stray_point_names_nothing(browser: Any) -> None:
    source = (Path(components.__file__).parent / "points.js").read_text(encoding="utf-8")
    page = browser.new_page()
    # Class 0 has two clusters and a stray point, class 1 one cluster, class 2 no more than two points.
    points = [[1000 + 9 * i, 2000, 0] for i in range(8)] + [[60000, 61000 + 9 * i, 0] for i in range(5)]
    points += [[1000, 60000, 0]] + [[30000 + i, 30000, 1] for i in range(20)] + [[60000, 500, 2]] * 2
    points += [[60000, 500, 65535]] * 30
    places = page.evaluate(
        f"""(points) => {{ {source}
        return placesOf(points.length, (i) => points[i], (i) => points[i][2]); }}""",
        points,
    )
    assert [[round(x, -3), round(y, -3), *rest] for x, y, *rest in places] == [
        [30000, 30000, 1, 20],
        [1000, 2000, 0, 8],
        [60000, 61000, 0, 5],
    ]


def test_map__names_its_classes_and_leads_with_suspects_that_nobody_decided_on(
    browser: Any, running: Server
) -> None:
    where = {"issues": True, "undecided": True}
    found = bench.queue({"audit": 1, "where": where, "limit": 500})["items"]
    record.decide_many(1, [(found[0]["sample"], "keep", None)], reviewer="Bo", audit_id=1)
    page = open_as_ada(browser, running, "map")
    page.locator("canvas[aria-label*=':']").wait_for(timeout=WAIT_MS)
    named = set(page.get_by_test_id("map").get_attribute("aria-label").split(": ", 1)[1].split(", "))
    assert named
    assert named <= set(NAMES)
    tiles = page.get_by_test_id("tile")
    tiles.first.wait_for(timeout=WAIT_MS)
    listed = [int(one.get_attribute("data-sample")) for one in tiles.all()]
    assert listed == [one["sample"] for one in found[1 : 1 + len(listed)]]
    assert page.get_by_test_id("cards").count() == 0, "a map shows a grid"
    held = bench.queue({"audit": 1, "where": where, "limit": 500, "reviewer": "Bo", "ahead": 8})
    assert held["elsewhere"] == [], "who looks at a map keeps nothing from others"
    assert [one["sample"] for one in held["items"]] == [one["sample"] for one in found[1:]]


def test_map__a_decision_beside_it_colours_it_at_once_and_undo_too(browser: Any, running: Server) -> None:
    page = open_as_ada(browser, running, "map")
    page.locator(".map[data-state=ready]").wait_for(timeout=WAIT_MS)
    tile = page.get_by_test_id("tile").first
    tile.wait_for(timeout=WAIT_MS)
    loads: list[str] = []
    page.on("request", lambda request: loads.append(request.url) if "/bench/map/" in request.url else None)
    (item,) = bench.queue({"audit": 1, "where": {"issues": True, "undecided": True}, "limit": 1})["items"]
    with session() as open_session:
        names = datasets.by_id(open_session, 1).class_names

    def counts() -> tuple[int, int]:
        legend = page.get_by_test_id("legend")
        rows = dict(one.get_attribute("title").rsplit(": ", 1) for one in legend.locator("button").all())
        return tuple(int(rows.get(names[item[key]], 0)) for key in ("given", "suggested"))

    given, suggested = counts()
    assert "labels today:" in page.get_by_test_id("legend").inner_text()
    page.mouse.move(0, 0)
    page.keyboard.press("b")  # the lens of the picture beside the map, and no tool of the map
    page.keyboard.press("Escape")  # also before the lens is there: it is meant for the lens
    assert page.locator(".tools [aria-pressed=true]").inner_text() == "Lasso"
    page.keyboard.press("w")
    wait_until(lambda: counts() == (given - 1, suggested + 1), "its label of now", page)
    page.keyboard.press("z")
    wait_until(lambda: counts() == (given, suggested), "its label as it was given", page)
    assert loads == [], "the map was loaded again"


def test_map__a_lasso_leads_to_its_images(browser: Any, running: Server, artifacts: Path) -> None:
    page = open_as_ada(browser, running, "map")
    page.locator(".map[data-state=ready]").wait_for(timeout=WAIT_MS)
    box = steady_box(page.get_by_test_id("map"))
    x, y, radius = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box["height"] * 0.4
    page.mouse.move(x + radius, y)
    page.mouse.down()
    for step in range(1, 25):
        angle = step / 24 * 2 * math.pi
        page.mouse.move(x + radius * math.cos(angle), y + radius * math.sin(angle))
    page.mouse.up()
    tile = page.get_by_test_id("tile").first
    tile.wait_for(timeout=WAIT_MS)

    def is_in_view() -> bool:
        place = tile.bounding_box()
        return place is not None and 0 < place["y"] + place["height"] < DESKTOP[1] - 60

    wait_until(is_in_view, "a picture of the region in the window")
    page.screenshot(path=str(artifacts / "lasso-1280x800.png"))


def test_card__says_why_a_class_that_no_engine_sees_is_suggested(browser: Any, running: Server) -> None:
    with session() as open_session:
        audit = audits.latest_finished(open_session, 1)
        assert audit is not None
        table = scores.table(open_session, audit.id).sort_values("sample_id", ignore_index=True)
        names = datasets.by_id(open_session, 1).class_names
    seen = np.stack(
        [arrays.pred_probs(audit.id, name).argmax(axis=1) for name in arrays.engines_of(audit.id)]
    )
    given, suggested = table.given_label.to_numpy(), table.suggested_label.to_numpy()
    unseen = (
        (seen != suggested).all(axis=0) & (seen != given).any(axis=0) & (suggested != given) & (given >= 0)
    )
    agreed = (seen == suggested).all(axis=0) & (suggested != given) & (given >= 0)
    for rows, said in ((unseen, True), (agreed, False)):
        sample = int(table.sample_id[rows].iloc[0])
        page = bench_of(browser, running, more=f"&suspects_search=%23{sample}")
        wait_until(
            lambda page=page, sample=sample: shown_sample(page) == sample, "the sample that was asked for"
        )
        words = page.get_by_test_id("engines").inner_text()
        names_of = [names[int(of[sample])] for of in (given, suggested)]
        why = "“{}” and “{}” are often given for each other".format(*names_of)
        assert (why in words) == said
        votes = page.get_by_test_id("odds-suggested").inner_text()
        assert ("no engine names it" in votes or "does not name it" in votes) == said, votes
        page.close()


def test_queue__what_is_in_view_stays_when_the_rest_is_ranked_anew(browser: Any, running: Server) -> None:
    page = bench_of(browser, running, more="&suspects_show=undecided")
    says = "Your 12 corrections moved 9 new ones up."
    first, orders = shown_sample(page), []

    def moved(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"moved": None if orders else says})

    def anew(route: Any) -> None:
        answer = route.fetch()
        items = [one for one in answer.json()["items"] if one["sample"] != shown_sample(page)]
        orders.append([one["sample"] for one in items[::-1]])
        route.fulfill(response=answer, json=answer.json() | {"items": items[::-1]})

    page.route("**/bench/progress", moved)
    page.route("**/bench/queue", anew)
    page.keyboard.press("q")
    page.locator(f"[data-testid=card]:not([data-sample='{first}'])").wait_for(timeout=WAIT_MS)
    in_view = shown_sample(page)
    wait_until(lambda: says in page.get_by_test_id("notice").inner_text(), "what moved")
    page.locator("[data-testid=bench][data-state=ready]").wait_for(timeout=WAIT_MS)
    assert shown_sample(page) == in_view
    page.keyboard.press("q")
    page.locator(f"[data-testid=card][data-sample='{orders[0][0]}']").wait_for(timeout=WAIT_MS)
