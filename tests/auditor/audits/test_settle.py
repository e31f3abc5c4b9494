"""What settling an audit writes, and whom it lets write meanwhile."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from auditor.audits import settle
from auditor.catalog import audits, scores
from auditor.catalog.db import session
from tests.helpers import Digits


def may_write(home: Path) -> bool:
    """Whether another process may write into the catalog at this moment."""
    with closing(sqlite3.connect(home / "catalog.db", timeout=0)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        return True


@pytest.mark.parametrize("status", ["running", "finished"])
def test_settle__others_write_while_rows_are_made(
    status: str, audited: tuple[Digits, int], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, audit_id = audited
    with session() as open_session:
        before = scores.table(open_session, audit_id)
        audits.set_status(open_session, audit_id, status)
    monkeypatch.setattr(scores, "ROWS_A_STATEMENT", 100)
    real, free = scores._rows, []

    def heard(*arguments: Any) -> list[dict[str, Any]]:
        free.append(may_write(home))
        with session() as open_session:
            assert len(scores.table(open_session, audit_id)) == len(before)  # nobody sees a part of them
        return real(*arguments)

    monkeypatch.setattr(scores, "_rows", heard)
    settle.settle(audit_id)
    settle.settle(audit_id)  # the connection that has it is used again
    assert free == [True] * 6
    with session() as open_session:
        pd.testing.assert_frame_equal(scores.table(open_session, audit_id), before)
