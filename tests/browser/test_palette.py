"""Ctrl + K: sections, pictures of samples, and where one goes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import WAIT_MS, Server, open_page, wait_until
from tests.browser.test_review import OLDER, bench_of, decisions, shown_sample

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_palette__finds_screens_classes_and_samples_with_their_pictures(
    browser: Any, running: Server
) -> None:
    page = browser.new_context().new_page()
    open_page(page, running, f"engines?{OLDER}")
    page.locator(".st-key-screens a").last.wait_for(timeout=WAIT_MS)
    page.locator("#palette").wait_for(timeout=WAIT_MS)
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to")
    palette.wait_for(timeout=WAIT_MS)
    titles = palette.get_by_role("heading").all_inner_texts()
    classes = "Suspects of a class · 4 more, type a part of the name"
    assert titles == ["Screens", "Datasets", classes, "Do"]
    page.keyboard.type("12")
    page.wait_for_function(
        "() => [...document.querySelectorAll('dialog.palette img')].length > 1"
        " && [...document.querySelectorAll('dialog.palette img')].every((one) => one.naturalWidth > 0)",
        timeout=WAIT_MS,
    )
    names = palette.get_by_role("button").all_inner_texts()
    assert names == ["#12", "#120", "#121", "#122", "#123", "#124"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/suspects*", timeout=WAIT_MS)
    page.locator('[data-testid=card][data-sample="120"]').wait_for(timeout=WAIT_MS)


def test_palette__downloads_the_table_and_turns_the_colours(browser: Any, running: Server) -> None:
    page = browser.new_context(color_scheme="light").new_page()
    open_page(page, running, f"engines?{OLDER}")
    page.locator(".st-key-screens a").last.wait_for(timeout=WAIT_MS)
    page.locator("#palette").wait_for(timeout=WAIT_MS)
    with page.expect_download(timeout=WAIT_MS) as taken:
        do(page, "cleaned csv")
    assert taken.value.suggested_filename.endswith("-cleaned.csv")
    do(page, "dark")
    page.wait_for_function(
        "() => getComputedStyle(document.querySelector('[data-testid=stApp]')).colorScheme === 'dark'",
        timeout=WAIT_MS,
    )


def test_palette__says_what_undo_takes_back(browser: Any, running: Server) -> None:
    page = bench_of(browser, running)
    sample = shown_sample(page)
    page.keyboard.press("q")
    wait_until(lambda: decisions() == {sample: "keep"}, "the verdict", page)
    page.keyboard.press("Control+k")
    undo = page.get_by_role("dialog", name="Go to").get_by_role("button", name="Undo")
    assert undo.inner_text().endswith(f" on sample {sample}")
    undo.click()
    wait_until(lambda: decisions() == {}, "it is taken back", page)


def do(page: Any, words: str) -> None:
    """The first entry that the palette finds for those words."""
    page.keyboard.press("Control+k")
    page.get_by_role("dialog", name="Go to").wait_for(timeout=WAIT_MS)
    page.keyboard.type(words)
    page.keyboard.press("Enter")
