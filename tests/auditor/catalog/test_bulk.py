"""Many rows read at once, on SQLite; ``test_postgres`` asks the same of PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import event

from auditor.catalog import scores
from auditor.catalog.db import session
from auditor.catalog.scores import SuspectFilter
from tests.auditor.catalog import many_rows


def test_read_columns__is_whole_and_in_order(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many_rows.check_columns(monkeypatch)


def test_scores__parts_of_a_ranking_are_those_of_the_table(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_rows.check_ranking(monkeypatch)


def test_duplicates__only_groups_that_differ(home: Path) -> None:
    many_rows.check_copies()


@pytest.mark.parametrize("where", [SuspectFilter(only_decided=True), SuspectFilter(decided_by="ada")])
def test_scores__what_is_decided_is_found_without_reading_every_score(
    home: Path, where: SuspectFilter
) -> None:
    audit = many_rows.rank_them(many_rows.fill())
    asked: list[tuple[str, tuple[object, ...]]] = []
    with session() as open_session:
        event.listen(open_session.get_bind(), "before_cursor_execute", lambda *told: asked.append(told[2:4]))
        scores.count(open_session, audit, where)
        scores.page(open_session, audit, where)
        plans = [
            open_session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
            for statement, values in list(asked)
            if "FROM score" in statement
        ]
    of_scores = [
        row[3] for plan in plans for row in plan if row[3].startswith(("SEARCH score", "SCAN score"))
    ]
    assert len(of_scores) == 2
    assert all("sample_id=?" in line for line in of_scores), of_scores
