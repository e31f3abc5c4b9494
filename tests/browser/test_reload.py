"""What a reload keeps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.conftest import audited_home
from tests.browser.conftest import Server
from tests.browser.test_journey import WAIT_MS
from tests.browser.test_review import choose, open_as_ada, running

__all__ = ["audited_home", "running"]  # the fixtures, for pytest to find
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_suspects__the_mode_outlives_a_reload_and_another_filter(browser: Any, running: Server) -> None:
    page = open_as_ada(browser, running, "suspects")
    page.get_by_test_id("card").wait_for(timeout=WAIT_MS)
    page.keyboard.press("g")
    page.get_by_test_id("tile").first.wait_for(timeout=WAIT_MS)
    choose(page, "suspects_show", "Everything")
    page.locator(".turn", has_text="240 in this queue").wait_for(timeout=WAIT_MS)
    page.reload()
    page.locator("[data-testid=tile], [data-testid=card]").first.wait_for(timeout=WAIT_MS)
    assert page.get_by_test_id("tile").count() == 60
    page.keyboard.press("g")
    page.get_by_test_id("card").wait_for(timeout=WAIT_MS)
    page.reload()
    page.locator("[data-testid=tile], [data-testid=card]").first.wait_for(timeout=WAIT_MS)
    assert page.get_by_test_id("card").count() == 1
