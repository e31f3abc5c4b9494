"""How long an audit will take: from earlier runs on this machine, and from the audit's own engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.audits import plan
from auditor.catalog import audits
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
