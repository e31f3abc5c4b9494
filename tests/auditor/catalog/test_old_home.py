"""A home of the version before blind verdicts joined the log: the same words, counts and promises come out.

``old_home`` was written by that version: 200 digits, two audits, reviews of two people with conflicts and undos,
suggestions accepted unseen, two random draws with verdicts, a file of decisions and a comparison. ``expected.json``
is what that version said about it, by the same functions.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from auditor.audits import experiment_results, progress, statements
from auditor.catalog import reviews
from auditor.catalog.db import close_all, session
from auditor.outputs import export
from auditor.review import decisions, log, random_sample
from tests.helpers import WAIT_S

OLD = Path(__file__).parent / "old_home"
DATASET = 1


@pytest.fixture
def old_home(home: Path) -> Path:
    shutil.copytree(OLD, home)
    with closing(sqlite3.connect(home / "catalog.db")) as connection:
        connection.executescript((OLD / "catalog.sql").read_text(encoding="utf-8"))
    close_all()
    return home


def expected() -> dict[str, Any]:
    return json.loads((OLD / "expected.json").read_text(encoding="utf-8"))


def rows_of(table: Any) -> Any:
    return json.loads(table.to_json(orient="records", date_format="iso", date_unit="us"))


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def test_old_home__what_counts_for_every_sample_is_the_same(old_home: Path) -> None:
    found = {
        i: [one.decision, one.label, one.labels, one.reviewer, one.created_at.isoformat(), one.kind]
        for i, one in sorted(decisions.outcomes(DATASET).items())
    }
    assert plain(found) == expected()["outcomes"]


def test_old_home__the_log_is_the_same(old_home: Path) -> None:
    entries = log.entries(DATASET)
    is_blind = entries.review_kind == "blind"
    entries["took_back"] = entries.reverts.notna()
    # Blind verdicts had numbers of their own; those of all other rows stay.
    entries["id"], entries["reverts"] = entries.id.where(~is_blind), entries.reverts.where(~is_blind)
    assert sorted(map(str, rows_of(entries))) == sorted(
        str({name: row[name] for name in entries.columns}) for row in expected()["log"]
    )
    assert rows_of(log.conflicts(DATASET)) == expected()["conflicts"]
    assert rows_of(decisions.batches(DATASET)) == expected()["batches"]


def test_old_home__the_random_sample_is_the_same(old_home: Path) -> None:
    before = expected()
    verified = random_sample.standing(DATASET)
    assert plain(random_sample.pending(DATASET)) == before["pending"]
    assert (random_sample.num_judged(DATASET), random_sample.num_drawn(DATASET)) == (
        before["judged"],
        before["drawn"],
    )
    found = [
        verified.sample_ids.tolist(),
        verified.true_labels.tolist(),
        verified.is_watched,
        verified.num_waiting,
    ]
    assert found == before["verified"]


def test_old_home__the_next_audit_trains_on_the_same(old_home: Path) -> None:
    labels, trusted = decisions.labels_to_train_on(DATASET)
    assert labels.tolist() == expected()["labels"]
    assert np.flatnonzero(trusted).tolist() == expected()["trusted"]


@pytest.mark.parametrize("audit_id", [1, 2])
def test_old_home__promises_and_statements_are_the_same(old_home: Path, audit_id: int) -> None:
    before = expected()[f"audit {audit_id}"]
    standing = statements.load(audit_id)
    found = statements.promises(standing)
    now = {str(q): [figures(p.sentence), np.flatnonzero(p.flags).tolist()] for q, p in found.items()}
    assert now == {q: [figures(text), flags] for q, (text, flags) in before["promises"].items()}
    assert figures(statements.statements(standing).noise_rate.sentence) == figures(before["noise"])
    seen = progress.progress(DATASET, audit_id)
    *numbers, advice = before["progress"]
    assert [seen.decided, seen.found, seen.hit_rate, seen.left.point] == numbers
    # What is left is said as before; the share of the next ones only where verified rows calibrate it.
    is_guess = standing.audit.summary["error_probability_is_guess"]
    assert figures(seen.advice) == (figures(advice)[:3] if is_guess else figures(advice))


def figures(sentence: str) -> list[str]:
    """The numbers that a sentence says: its words may change."""
    return re.findall(r"\d[\d.,]*\d|\d", sentence)


def test_old_home__the_export_and_the_comparison_are_the_same(old_home: Path, tmp_path: Path) -> None:
    export.export("digits", tmp_path / "out.csv")
    then = pd.read_csv(io.StringIO(expected()["export"]), dtype=str, keep_default_na=False)
    now = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    assert set(now.columns) - set(then.columns) == {"neighbours_agreement", "neighbours_trust"}
    pd.testing.assert_frame_equal(now[list(then.columns)], then)
    kept = json.loads((OLD / "datasets" / "1" / "compare.json").read_text(encoding="utf-8"))
    assert [one.sentences for one in experiment_results.kept(DATASET)] == [kept["sentences"]]


def test_old_home__what_counts_can_be_made_again_from_the_log(old_home: Path) -> None:
    with session() as open_session:
        by_sample: dict[int, list[reviews.Review]] = {}
        for row in reviews.log(open_session, DATASET):
            by_sample.setdefault(row.sample_id, []).append(row)
        counting = {i: reviews.counting(rows) for i, rows in by_sample.items()}
        kept = reviews.outcomes(open_session, DATASET)
    assert {i: one.id for i, one in counting.items() if one is not None} == {
        i: one.id for i, one in kept.items()
    }


def test_old_home__an_undone_verdict_waits_again_and_its_review_counts(old_home: Path) -> None:
    draw, sample = next(
        (row.draw_id, i) for i, row in decisions.outcomes(DATASET).items() if row.kind == "blind"
    )
    judged = random_sample.num_judged(DATASET)
    with session() as open_session:
        reviewer = reviews.verdicts(open_session, DATASET)[draw, sample].reviewer
        look = reviews.standing(open_session, DATASET, sample)
    random_sample.undo(draw, sample, reviewer=reviewer)
    assert random_sample.num_judged(DATASET) == judged - 1
    assert decisions.outcomes(DATASET).get(sample) == look


def test_old_home__several_processes_may_open_it_at_once(old_home: Path) -> None:
    code = "from auditor.review import log; print(len(log.entries(1)))"
    begun = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(4)]
    said = {process.communicate(timeout=WAIT_S)[0].strip() for process in begun}
    assert said == {str(len(expected()["log"])).encode()}
