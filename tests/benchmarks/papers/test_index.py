"""The list of the papers' tables."""

from __future__ import annotations

import importlib.util
import json

from benchmarks.papers import index


def test_items__every_row_says_what_it_needs_and_names_a_module_where_it_was_run() -> None:
    for item in index.ITEMS:
        assert item.needs
        assert bool(item.command) == bool(item.measured)
        if item.command:
            assert importlib.util.find_spec(f"benchmarks.papers.{item.command}")


def test_main__the_kept_list_is_what_the_results_say() -> None:
    kept = json.loads((index.RESULTS / "papers.json").read_text(encoding="utf-8"))
    page = (index.RESULTS / "papers.md").read_text(encoding="utf-8")

    assert [row["measured"] for row in kept] == [
        item.measured() if item.measured else f"needs {item.needs}" for item in index.ITEMS
    ]
    assert page == index.page(kept)
