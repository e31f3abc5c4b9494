"""From an empty machine to a cleaned CSV, as a person does it: real server, real browser, real audit of digits."""

from __future__ import annotations

import csv
import io
import math
import re
import zipfile
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from auditor.catalog import audits, datasets, db, reviews
from auditor.catalog.db import session
from tests.browser.conftest import (
    WAIT_MS,
    Server,
    click_until,
    downloaded,
    open_page,
    settled,
    steady_box,
    wait_until,
)

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "<i>eight</i>", "nine"]
NUM_SAMPLES, NUM_WRONG = 400, 40
NAME = "journey"
AUDIT_S = 400.0
"""Seconds that the audit may take; half a minute where nothing else runs."""


def digits_zip() -> bytes:
    """A zip of a CSV and images with planted errors."""
    pixels, truth = load_digits(return_X_y=True)
    given = truth.copy()
    wrong = np.random.default_rng(1).choice(NUM_SAMPLES, NUM_WRONG, replace=False)
    given[wrong] = (given[wrong] + 1 + np.arange(NUM_WRONG) % 9) % 10
    table, packed = io.StringIO(), io.BytesIO()
    rows = csv.writer(table)
    rows.writerow(["filepath", "label", "true_label"])
    with zipfile.ZipFile(packed, "w") as archive:
        for i in range(NUM_SAMPLES):
            image = io.BytesIO()
            grey = np.clip(pixels[i].reshape(8, 8) * 16, 0, 255).astype(np.uint8)
            Image.fromarray(grey).save(image, "PNG")
            archive.writestr(f"images/{i:04d}.png", image.getvalue())
            rows.writerow([f"images/{i:04d}.png", NAMES[given[i]], NAMES[truth[i]]])
        archive.writestr("labels.csv", table.getvalue())
    return packed.getvalue()


ALL_PICTURES = """(number) => {
  const all = [...document.querySelectorAll(".by-class img")];
  const isWhole = all.every((one) => one.complete && one.naturalWidth > 0);
  return document.querySelectorAll(".by-class b").length === number && isWhole;
}"""
"""Each class that was imported has its row, and each picture of it is there."""
WATCH_THE_BUTTON = """() => {
  window.places = [];
  const look = () => {
    const button = document.querySelector("[class*=st-key-import_audit] button");
    const top = button && Math.round(button.getBoundingClientRect().top);
    if (button && !window.places.includes(top)) window.places.push(top);
    requestAnimationFrame(look);
  };
  look();
}"""
"""Every height at which the button to start an audit stood."""


def button(page: Any, text: str) -> Any:
    return page.get_by_role("button", name=re.compile(re.escape(text)))


def import_the_zip(page: Any, server: Server) -> None:
    open_page(page, server, "import")
    upload = {"name": "digits.zip", "mimeType": "application/zip", "buffer": digits_zip()}
    page.locator(".st-key-import_file input[type=file]").set_input_files(upload)
    page.get_by_text("from digits.zip").wait_for(timeout=WAIT_MS)
    page.get_by_text("Name of the dataset").wait_for(timeout=WAIT_MS)
    page.get_by_text("400 pictures, 10 classes").wait_for(timeout=WAIT_MS)
    name = page.locator(".st-key-import_name input")
    name.fill(NAME)
    name.press("Enter")
    settled(page)
    page.evaluate(WATCH_THE_BUTTON)
    page.locator(".st-key-import_start button:enabled").click(timeout=WAIT_MS)
    page.get_by_text("400 pictures imported").wait_for(timeout=WAIT_MS)
    page.wait_for_function(ALL_PICTURES, arg=10, timeout=WAIT_MS)
    assert len(page.evaluate("window.places")) == 1, "the button to press next never moves once it is there"


def start_the_audit(page: Any) -> None:
    """Only the plain engine, on the quick preset."""
    page.get_by_role("button", name="Start an audit").click(timeout=WAIT_MS)
    page.get_by_text("Settings", exact=True).wait_for(timeout=WAIT_MS)
    settled(page)
    page.get_by_text("Settings", exact=True).click()
    page.get_by_text("Which engines", exact=True).click(timeout=WAIT_MS)
    page.get_by_text("Each engine learns").wait_for(timeout=WAIT_MS)
    boxes = page.locator("[class*=st-key-audit_engine_]:not(.st-key-audit_engine_cross_entropy) label")
    for i in range(boxes.count()):
        box = boxes.nth(i).locator("input")
        click_until(boxes.nth(i), lambda box=box: not box.is_checked(), "an engine left out")
        settled(page)
    page.locator(".st-key-audit_start button:enabled").click(timeout=WAIT_MS)
    page.get_by_text(re.compile("Audit 1|How the engines ran")).first.wait_for(timeout=WAIT_MS)


def num_epochs() -> int:
    with session() as open_session:
        return len(audits.epochs(open_session, 1))


def watch_it_grow_kill_the_server_and_come_back(page: Any, server: Server) -> None:
    chart = page.locator("[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg").first
    # Once the audit has ended, the curves lie in another part, which is closed.
    curves = page.locator(
        "details:not([open]) > summary", has_text=re.compile("Engines and curves|How the engines ran")
    )

    def is_drawn() -> bool:
        if not chart.is_visible() and curves.count():
            curves.first.click(timeout=WAIT_MS)
        return chart.is_visible()

    wait_until(is_drawn, "the curves")
    seen = num_epochs()
    server.kill()
    wait_until(lambda: num_epochs() > seen or audit_status() == "finished", "an epoch while the app is away")
    server.start()
    open_page(page, server, "audit")
    # An audit steps back behind all else on its machine, and here that is the other tests.
    wait_until(lambda: audit_status() == "finished", "the end of the audit", page, seconds=AUDIT_S)
    page.get_by_text("How the engines ran").first.wait_for(timeout=WAIT_MS)


def audit_status() -> str:
    with session() as open_session:
        return audits.get(open_session, 1).status


def standing() -> dict[int, str]:
    with session() as open_session:
        return {sample: row.decision for sample, row in reviews.decisions(open_session, 1).items()}


def give_a_name(page: Any) -> None:
    """Nobody has to: the sidebar offers it."""
    button(page, "Give your name").click(timeout=WAIT_MS)
    page.locator(".st-key-reviewer_change input").fill("Ada")
    page.locator(".st-key-reviewer_change input").press("Enter")
    button(page, "Reviewer: Ada").wait_for(timeout=WAIT_MS)
    settled(page)
    page.evaluate("sessionStorage.setItem('auditor-mode', 'card')")
    page.reload()
    page.get_by_test_id("card").wait_for(timeout=WAIT_MS)


def review_twelve(page: Any) -> list[int]:
    """Keys only; the next card shows at once and the verdict is in the database soon after."""
    reviewed = []
    for i in range(12):
        card = page.locator("[data-testid=card]")
        sample = int(card.get_attribute("data-sample"))
        page.get_by_test_id("exemplars").wait_for(timeout=WAIT_MS)
        page.keyboard.press("qwenw1"[i % 6])
        page.locator(f"[data-testid=card]:not([data-sample='{sample}'])").wait_for(timeout=WAIT_MS)
        wait_until(lambda sample=sample: sample in standing(), "the verdict in the database")
        reviewed.append(sample)
    return reviewed


def undo_one(page: Any, reviewed: list[int]) -> None:
    page.keyboard.press("z")
    page.get_by_text(f"Undone: sample {reviewed[-1]}").wait_for(timeout=WAIT_MS)
    assert reviewed[-1] not in standing()
    assert page.locator("[data-testid=card]").get_attribute("data-sample") == str(reviewed[-1])


def no_verdict_is_lost_while_the_server_is_away(page: Any, server: Server) -> None:
    sample = int(page.locator("[data-testid=card]").get_attribute("data-sample"))
    server.kill()
    page.keyboard.press("e")
    page.get_by_text("kept in this browser and sent when the server answers again").wait_for(timeout=WAIT_MS)
    assert sample not in standing()
    server.start()
    wait_until(lambda: standing().get(sample) == "exclude", "the verdict that waited in the browser")


def lasso_a_region(page: Any, server: Server) -> None:
    open_page(page, server, "map")
    canvas = page.get_by_test_id("map")
    page.locator(".map[data-state=ready]").wait_for(timeout=WAIT_MS)
    box = steady_box(canvas)
    x, y, radius = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box["height"] * 0.35
    page.mouse.move(x + radius, y)
    page.mouse.down()
    for step in range(1, 25):
        page.mouse.move(
            x + radius * math.cos(step / 24 * 2 * math.pi), y + radius * math.sin(step / 24 * 2 * math.pi)
        )
    page.mouse.up()
    heading = page.get_by_text(re.compile(r"\d+ samples in the region"))
    heading.wait_for(timeout=WAIT_MS)
    counted = int(heading.inner_text().split()[0])
    selected = page.get_by_test_id("map-status").inner_text()
    assert 0 < counted < NUM_SAMPLES
    assert abs(int(selected.split()[0]) - counted) <= 1  # the browser's points are rounded to 16 bits
    page.get_by_test_id("tile").first.wait_for(timeout=WAIT_MS)


def export_and_compare(page: Any, server: Server) -> None:
    open_page(page, server, "export")
    page.get_by_text("The table, the log").wait_for(timeout=WAIT_MS)
    settled(page)
    button(page, "Cleaned CSV").click(timeout=WAIT_MS)
    made = page.get_by_role("link", name="Download journey-cleaned.csv")
    made.wait_for(timeout=WAIT_MS)
    rows = list(csv.DictReader(downloaded(page, made).read_text(encoding="utf-8").splitlines()))
    assert len(rows) == NUM_SAMPLES
    with session() as open_session:
        decided = reviews.decisions(open_session, 1)
        names = datasets.get(open_session, NAME).class_names
    for row in rows:
        decision = decided.get(int(row["sample_id"]))
        assert row["review_decision"] == (decision.decision if decision else "")
        expected = row["given_label"]
        if decision is not None and decision.decision == "relabel":
            expected = names[decision.label or 0]
        if decision is not None and decision.decision == "exclude":
            expected = ""
        assert row["cleaned_label"] == expected


def open_the_other_screens(page: Any, server: Server) -> None:
    for path in ("verify", "classes", "engines"):
        open_page(page, server, path)


def test_journey__from_a_zip_to_a_cleaned_csv(
    browser: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_HOME", str(server.home))
    db.close_all()
    context = browser.new_context(viewport={"width": 1440, "height": 900}, accept_downloads=True)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    open_page(page, server, "")
    button(page, "Try the demo").wait_for(timeout=WAIT_MS)
    import_the_zip(page, server)
    start_the_audit(page)
    watch_it_grow_kill_the_server_and_come_back(page, server)
    open_page(page, server, "suspects")
    give_a_name(page)
    reviewed = review_twelve(page)
    undo_one(page, reviewed)
    no_verdict_is_lost_while_the_server_is_away(page, server)
    lasso_a_region(page, server)
    export_and_compare(page, server)
    open_the_other_screens(page, server)
    outside = [url for url in asked if not url.startswith((server.url, "data:", "blob:"))]
    assert not outside, f"the app asked for {outside[:3]}"
