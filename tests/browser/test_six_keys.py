"""Keys that come faster than the server answers are all verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.catalog import reviews
from auditor.catalog.db import session
from tests.browser.conftest import Server, wait_until
from tests.browser.test_fast_keys import press, queue
from tests.browser.test_review import bench_of, decisions, shown_sample

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_suspects__six_quick_keys_are_six_verdicts_on_the_samples_in_their_order(
    browser: Any, running: Server
) -> None:
    items = queue(7)
    page = bench_of(browser, running)
    press(page, "wqwenq")
    wait_until(lambda: len(decisions()) >= 6, "six verdicts")
    said = dict(zip("wqen", ("relabel", "keep", "exclude", "unsure"), strict=True))
    assert decisions() == {item["sample"]: said[key] for item, key in zip(items, "wqwenq", strict=False)}
    with session() as open_session:
        assert reviews.decisions(open_session, 1)[items[0]["sample"]].label == items[0]["suggested"]
    assert shown_sample(page) == items[6]["sample"]
