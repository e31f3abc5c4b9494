"""What settling an audit writes, and whom it lets write meanwhile."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlalchemy import text

from auditor.catalog import audits, datasets, leases, scores
from auditor.catalog.db import session
from auditor.results import settle
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
    settle.settle(audit_id)
    assert free == [True] * 6
    with session() as open_session:
        pd.testing.assert_frame_equal(scores.table(open_session, audit_id), before)


SETTLER = """
import sys
from auditor.results import settle
from auditor.catalog import scores
scores.ROWS_A_STATEMENT = 100
number, real, calls = int(sys.argv[1]), getattr(scores, sys.argv[2]), []

def stop_at_the_second(*arguments):
    calls.append(arguments)
    if len(calls) == 2:
        print("here", flush=True)
        sys.stdin.readline()
    return real(*arguments)

setattr(scores, sys.argv[2], stop_at_the_second)
settle.settle(number)
"""


def num_rows(home: Path) -> int:
    """Scores in the catalog, of whichever side."""
    with closing(sqlite3.connect(home / "catalog.db")) as other:
        return int(other.execute("SELECT count(*) FROM score").fetchone()[0])


@pytest.mark.parametrize("ends", ["goes on", "settled again", "removed"])
@pytest.mark.parametrize("stopped_in", ["_rows", "clear_part"])
def test_settle__stopped_in_the_middle(
    ends: str, stopped_in: str, audited: tuple[Digits, int], home: Path
) -> None:
    _, audit_id = audited
    with session() as open_session:
        later = scores.table(open_session, audit_id)
        assert len(later)
        settled_at = audits.get(open_session, audit_id).summary.settled_at
        open_session.execute(text("UPDATE score SET disagreement = 7"))
        earlier = scores.table(open_session, audit_id)
    settler = subprocess.Popen(
        [sys.executable, "-c", SETTLER, str(audit_id), stopped_in],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert settler.stdout is not None
    assert settler.stdout.readline() == "here\n"
    assert num_rows(home) > len(later)  # of both
    assert may_write(home)
    is_later = stopped_in == "clear_part"
    with session() as open_session:
        seen = scores.table(open_session, audit_id)
        pd.testing.assert_frame_equal(seen, later if is_later else earlier)
        assert (audits.get(open_session, audit_id).summary.settled_at != settled_at) == is_later
    if ends == "goes on":
        settler.communicate("\n")
        assert settler.returncode == 0
    else:
        settler.kill()
        settler.communicate()
    if ends == "settled again":
        settle.settle(audit_id)
    if ends == "removed":
        with session() as open_session:
            datasets.remove(open_session, audits.get(open_session, audit_id).dataset_id)
        assert num_rows(home) == 0
        with session() as open_session:
            assert not leases.names(open_session)
        return
    with session() as open_session:
        pd.testing.assert_frame_equal(scores.table(open_session, audit_id), later)
        assert not leases.names(open_session)
    assert num_rows(home) == len(later)
