"""How long an audit will take: by what was planned, and from the audit's own engines."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from auditor.audits import durations, plan
from auditor.bridges.engine_bridge import configs
from auditor.catalog import audits, datasets
from auditor.catalog.db import session
from auditor.catalog.records import Dataset, NewEngineRun
from tests.auditor.catalogs import add_dataset, queued_audit

HALF = {"status": "running", "progress": 0.5, "seconds": 30.0}
DONE = {"status": "finished", "progress": 1.0}
ESTIMATE = {"umn": 50.0, "l2b": 20.0, "choicenet": 10.0}


def add_audit(estimate: dict[str, float], **runs: dict[str, object]) -> int:
    audit = dataclasses.replace(queued_audit(add_dataset()), options={"estimate": estimate})
    with session() as open_session:
        rows = [NewEngineRun(engine=name, **values) for name, values in runs.items()]
        return audits.create(open_session, audit, rows)


@pytest.mark.parametrize(
    ("runs", "left"),
    [
        ({"umn": {}}, None),
        ({"umn": {"status": "running"}}, None),
        ({"umn": HALF, "l2b": {}}, 30 + 60),
        ({"umn": HALF, "l2b": {}, "choicenet": {"status": "running"}}, 30 + 60 + 60),
        ({"umn": {**DONE, "seconds": 20.0}, "l2b": HALF, "choicenet": {}}, 30 + 40),
        ({"umn": HALF, "l2b": HALF}, 60),
    ],
)
def test_left__without_an_estimate_engines_take_what_the_others_take(
    home: Path, runs: dict[str, dict[str, object]], left: float | None
) -> None:
    assert plan.overview(add_audit({}, **runs)).seconds_left == left


@pytest.mark.parametrize(
    ("runs", "left"),
    [
        ({"umn": {}, "l2b": {}}, 70),
        ({"umn": {"status": "running", "progress": 0.01, "seconds": 5.0}, "l2b": {}}, 45 + 20),
        ({"umn": HALF, "l2b": {}}, 30 + 20 * 1.2),
        ({"umn": {**DONE, "seconds": 25.0}, "l2b": {}}, 20 / 1.5),
        ({"umn": {**DONE, "seconds": 500.0}, "l2b": {}, "choicenet": {}}, 45),
        ({"umn": {**DONE, "seconds": 50.0}}, 0),
    ],
)
def test_left__the_estimate_is_corrected_by_what_was_measured(
    home: Path, runs: dict[str, dict[str, object]], left: float
) -> None:
    assert plan.overview(add_audit(ESTIMATE, **runs)).seconds_left == pytest.approx(left)


def test_planned__grows_with_rows_and_epochs(home: Path) -> None:
    with session() as open_session:
        few, many = (
            datasets.by_id(open_session, add_dataset(name, num=num))
            for name, num in (("few", 40), ("many", 80))
        )

    def seconds(dataset: Dataset, epochs: int, on_features: bool = False) -> float:
        found = configs(["l2b"], "quick", {"l2b": {"epochs": epochs}}, on_features=on_features)
        heads = ["l2b"] if on_features else []
        return durations.planned(dataset, found, device="cpu", map_method="pca", on_features=heads)["l2b"]

    assert seconds(many, 20) == pytest.approx(2 * seconds(few, 20))
    assert seconds(few, 40) > 1.5 * seconds(few, 20)
    assert seconds(few, 20, on_features=True) > 0
