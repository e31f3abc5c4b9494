"""How long an audit will take: from earlier runs on this machine, and from the audit's own engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.audits import durations, plan
from auditor.catalog import audits, datasets
from auditor.catalog.db import session
from auditor.catalog.records import NewEngineRun
from tests.auditor.catalogs import add_dataset, queued_audit

HALF = {"status": "running", "progress": 0.5, "seconds": 30.0}


def add_audit(dataset_id: int, device: str = "cpu", **runs: dict[str, object]) -> int:
    audit = queued_audit(dataset_id, device=device)
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
        (
            {"umn": {"status": "finished", "progress": 1.0, "seconds": 20.0}, "l2b": HALF, "choicenet": {}},
            30 + 40,
        ),
        ({"umn": HALF, "l2b": HALF}, 60),
    ],
)
def test_left__engines_that_never_ran_here_take_what_the_others_take(
    home: Path, runs: dict[str, dict[str, object]], left: float | None
) -> None:
    assert plan.overview(add_audit(add_dataset(), **runs)).seconds_left == left


def test_left__an_engine_that_ran_here_takes_what_it_took_by_size_on_the_same_device(home: Path) -> None:
    small, large = add_dataset("small", num=40), add_dataset("large", num=80)
    for device, spent in [("cpu", 99.0), ("cpu", 10.0), ("cuda", 1.0)]:
        add_audit(small, device, l2b={"status": "finished", "progress": 1.0, "seconds": spent})
    assert plan.overview(add_audit(large, umn=HALF, l2b={})).seconds_left == 30 + 20
    assert plan.overview(add_audit(large, l2b={})).seconds_left == 20


def test_seconds__runs_on_images_on_features_and_fine_tuned_are_told_apart(home: Path) -> None:
    small, large = add_dataset("small", num=40), add_dataset("large", num=80)
    kinds = {
        10.0: {},
        2.0: {"features": {"name": "timm:a"}},
        50.0: {"features": {"name": "timm:a"}, "finetune": True},
        70.0: {"features": {"name": "timm:b"}, "finetune": True},
    }
    for spent, options in kinds.items():
        audit_id = add_audit(small, l2b={"status": "finished", "progress": 1.0, "seconds": spent})
        with session() as open_session:
            audits.change(open_session, audit_id, options=options)
    with session() as open_session:
        dataset = datasets.by_id(open_session, large)

    def known(**how: object) -> tuple[float, bool]:
        return durations.seconds(dataset, ["l2b"], "quick", **how)  # type: ignore[arg-type]

    assert known() == (20.0, True)
    assert known(on_features=True) == (4.0, True)
    assert known(on_features=True, finetuned="timm:a") == (100.0, True)
    assert known(on_features=True, finetuned="timm:b") == (140.0, True)
    assert known(on_features=True, finetuned="timm:c")[1] is False
