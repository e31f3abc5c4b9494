"""The demo, end to end with one engine: twice in a row, and never over what a person reviewed."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
from sklearn.datasets import load_digits

from auditor.audits import plan
from auditor.catalog import audits, datasets
from auditor.catalog.db import session
from auditor.cli import demo
from auditor.ground.errors import ExportRefusedError
from auditor.results import statements
from auditor.review import blind, decisions, drawing


def with_few_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo's next dataset has 200 digits: whose place it takes is asked, not what is in it."""
    pixels, truth = load_digits(return_X_y=True)
    monkeypatch.setattr(sklearn.datasets, "load_digits", lambda **_: (pixels[:200], truth[:200]))


def test_run__finds_most_planted_errors_and_keeps_reviews(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = demo.run(out=tmp_path / "cleaned.csv", engines=["cross_entropy"])
    assert (figures.dataset, figures.num_wrong) == ("digits", 180)
    assert figures.recall > 0.7  # of the one engine alone
    assert figures.precision_at_errors > 0.9
    assert figures.noise_after < figures.noise_before
    with (tmp_path / "cleaned.csv").open(encoding="utf-8", newline="") as file:
        assert sum(1 for _ in csv.DictReader(file)) == 1797
    with pytest.raises(ExportRefusedError, match="exists"):
        demo.run(out=tmp_path / "cleaned.csv")
    with session() as open_session:
        first = datasets.get(open_session, "digits")
        given = datasets.given_labels(open_session, first.id)
        last = max(one.id for one in audits.of_dataset(open_session, first.id))
    # The matrix of confusions, in points of each given class, beside the truth.
    told, truth = np.zeros((10, 10)), np.zeros((10, 10))
    np.add.at(truth, (given, load_digits().target), 1)
    np.fill_diagonal(truth, 0)
    for move in statements.statements(statements.load(last)).moves:
        told[move.given, move.right] = move.found + move.suspected
    off = 100 * np.abs(told - truth) / np.bincount(given)[:, None]
    assert truth.sum() == 180
    assert off.max() <= 2.0
    assert demo._free_name() == "digits"  # nobody reviewed it: the next demo takes its place
    with_few_digits(monkeypatch)
    demo.prepare()
    with session() as open_session:
        again = datasets.get(open_session, "digits")
    assert again.id != first.id or again.created_at != first.created_at
    decisions.decide(again.id, 0, "keep", reviewer="ada")
    assert demo._free_name() == "digits-2"


def test_free_name__verdicts_of_a_person_and_waiting_audits_are_kept(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_few_digits(monkeypatch)
    demo.prepare()
    audit_id = plan.plan_audit("digits", ["cross_entropy"])
    assert demo._free_name() == "digits-2"  # its worker may be about to start
    with session() as open_session:
        audits.set_status(open_session, audit_id, "cancelled")
    draw = drawing.draw("digits", 4)
    for sample_id, reviewer in zip(draw.sample_ids, ["demo", "ada"], strict=False):
        blind.record(draw.id, sample_id, "label", label=3, reviewer=reviewer)
    assert demo._free_name() == "digits-2"
    blind.undo(draw.id, draw.sample_ids[1], reviewer="ada")
    assert demo._free_name() == "digits"
