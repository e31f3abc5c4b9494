"""Many rows read at once, on SQLite; ``test_postgres`` asks the same of PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.auditor.catalog import many_rows


def test_read_columns__is_whole_and_in_order(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many_rows.check_columns(monkeypatch)


def test_scores__parts_of_a_ranking_are_those_of_the_table(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_rows.check_ranking(monkeypatch)


def test_duplicates__only_groups_that_differ(home: Path) -> None:
    many_rows.check_copies()
