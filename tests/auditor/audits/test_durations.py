"""How long an audit will take: by what was planned, and from the audit's own engines."""

from __future__ import annotations

import dataclasses
import itertools
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from auditor.audits import durations, plan
from auditor.backbones import features
from auditor.backbones.features import FeatureSource
from auditor.bridges import engine_bridge
from auditor.bridges.engine_bridge import configs
from auditor.catalog import audits, datasets
from auditor.catalog.db import ask, session
from auditor.catalog.records import Audit, AuditPlan, Dataset, EngineRun, NewEngineRun, now, values_of
from auditor.ground.vocabulary import SEGMENTATION
from tests.auditor.catalogs import add_dataset, queued_audit

HALF = {"status": "running", "progress": 0.5, "seconds": 30.0}
DONE = {"status": "finished", "progress": 1.0}
ESTIMATE = {"umn": 50.0, "l2b": 20.0, "choicenet": 10.0}


def planned_audit(estimate: dict[str, float]) -> Audit:
    """One that is in no catalog."""
    return Audit(id=1, **values_of(queued_audit(options=AuditPlan(estimate=estimate))))


def add_audit(estimate: dict[str, float], **runs: dict[str, object]) -> int:
    audit = dataclasses.replace(queued_audit(add_dataset()), options=AuditPlan(estimate=estimate))
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
    assert plan.audit_overview(add_audit({}, **runs)).seconds_left == left


@pytest.mark.parametrize(
    ("runs", "left"),
    [
        ({"umn": {}, "l2b": {}}, 70),
        # Ten times as slow in its first hundredth, which tells little.
        (
            {"umn": {"status": "running", "progress": 0.01, "seconds": 5.0}, "l2b": {}},
            pytest.approx(71, rel=0.05),
        ),
        ({"umn": {**DONE, "seconds": 50.0}, "l2b": HALF | {"seconds": 10.0}}, 10),
        ({"umn": {**DONE, "seconds": 500.0}, "l2b": {}, "choicenet": {}}, pytest.approx(30 * 4.5, rel=0.03)),
        ({"umn": {**DONE, "seconds": 5.0}, "l2b": {}}, pytest.approx(20 / 3.3, rel=0.03)),
        ({"umn": {**DONE, "seconds": 50.0}}, 0),
    ],
)
def test_left__the_estimate_is_corrected_by_what_was_measured(
    home: Path, runs: dict[str, dict[str, object]], left: float
) -> None:
    assert plan.audit_overview(add_audit(ESTIMATE, **runs)).seconds_left == left


def _seen(slower: float) -> list[float]:
    """What is left at each hundredth, with a slow start, as every first epoch has."""
    return [
        _left(
            step / 100,
            {name: slower * (step / 100 * whole + 2.0 * (step > 0)) for name, whole in ESTIMATE.items()},
        )
        for step in range(101)
    ]


@pytest.mark.parametrize("slower", [0.01, 0.5, 0.8, 1.0, 1.3, 2.0, 100.0])
def test_left__does_not_jump(slower: float) -> None:
    seen = _seen(slower)
    assert (seen[0], seen[-1]) == (80.0, 0)
    assert max(after - now for now, after in itertools.pairwise(seen)) < 0.06 * 80.0


@pytest.mark.parametrize(("slower", "times"), [(0.1, 0.25), (2.0, 2.1), (10.0, 6.0), (100.0, 6.0)])
def test_left__believes_a_machine_that_is_far_from_what_the_probe_said(slower: float, times: float) -> None:
    seen = _seen(slower)
    assert seen[1] == pytest.approx(79.2, rel=0.1)  # the first epochs tell little
    assert abs(seen[75] - 20.0) >= abs(times * 20.0 - 20.0)


def _left(progress: float, seconds: dict[str, float]) -> float:
    runs = [
        EngineRun(
            audit_id=1, position=0, engine=name, status="running", progress=progress, seconds=seconds[name]
        )
        for name in ESTIMATE
    ]
    left = durations.left(planned_audit(ESTIMATE), runs)
    assert left is not None
    return left


@pytest.mark.parametrize(
    ("at", "left"),
    [
        (("", 0.0, None), 40 + 10 + 5),
        (("embedding", 0.0, None), 40 + 10 + 5),
        (("embedding", 0.5, 20.0), 20 + 10 + 5),
        (("embedding", 0.01, 4_000.0), pytest.approx(40 + 10 + 5, rel=0.05)),
        (("embedding", 0.5, 4_000.0), pytest.approx(20 * 3.4 + 10 + 5, rel=0.02)),
        (("map", 0.0, None), 10 + 5),
        (("start", 0.0, None), 5),
    ],
)
def test_before__stages_that_are_done_count_no_more(at: tuple[str, float, float | None], left: float) -> None:
    estimate = {"embedding": 40.0, "map": 10.0, "start": 5.0, "umn": 7.0}
    assert durations.before(planned_audit(estimate), *at) == left


def test_overview__before_the_engines_start_the_stages_before_them_are_left(home: Path) -> None:
    estimate = {"embedding": 40.0, "map": 10.0, "umn": 7.0}
    audit_id = add_audit(estimate, umn={})
    assert plan.audit_overview(audit_id).seconds_left == 57
    with session() as open_session:
        audits.set_run(open_session, audit_id, "umn", status="running", progress=0.5, seconds=3.5)
    assert plan.audit_overview(audit_id).seconds_left == 3.5


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


def test_planned__features_of_a_backbone_have_stages_of_their_own_and_one_map(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "embedding_seconds", lambda *_: (30.0, 640))
    monkeypatch.setattr(engine_bridge, "estimated_seconds", estimated_by_width)
    source = FeatureSource("key", "timm:some", "some.safetensors", "0" * 64, 64, 4)
    with session() as open_session:
        dataset = datasets.by_id(open_session, add_dataset())
    planned: dict[str, Any] = {"device": "cpu", "map_method": "umap", "on_features": ["umn", "l2b"]}
    of_backbone = durations.planned(dataset, {"umn": {}, "l2b": {}}, source=source, **planned)
    assert of_backbone["umn"] == of_backbone["l2b"] == 64  # of 640, the directions that engines read
    assert of_backbone["embedding"] == 30 + durations.START_S
    assert of_backbone["map"] >= durations.MAP_START_S
    on_images = durations.planned(dataset, {"umn": {}, "l2b": {}}, **planned | {"on_features": []})
    assert set(on_images) == {"umn", "l2b"}
    assert on_images["umn"] > on_images["l2b"] > 256  # each has a map, and the first one waits for UMAP


def estimated_by_width(
    configs: dict[str, Any], *_: object, num_features: int | None, **__: object
) -> dict[str, float]:
    return dict.fromkeys(configs, float(num_features or 256))


def test_planned_whole__stages_come_before_engines_that_train_side_by_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(durations, "training_cores", lambda: 2)
    estimate = {"embedding": 40.0, "start": 5.0, "umn": 7.0, "l2b": 6.0}
    audit = planned_audit(estimate)
    assert durations.planned_seconds(audit) == 58
    audit.options.threads.update(umn=1, l2b=1)
    assert durations.planned_seconds(audit) == 45 + 7
    audit.options.estimate["choicenet"] = 5.0
    audit.options.threads.update(choicenet=1)
    assert durations.planned_seconds(audit) == 45 + 6 + 5  # once the first of the two is done


@pytest.mark.usefixtures("home")
def test_roughly__by_the_audit_before_or_by_what_was_measured_elsewhere() -> None:
    dataset = dataclasses.replace(ask(datasets.by_id, add_dataset()), num_samples=3_410)
    assert durations.EngineChoices.roughly(dataset, "quick", []) == pytest.approx(77, abs=1)
    assert durations.EngineChoices.roughly(dataset, "standard", []) is None
    masks = dataclasses.replace(dataset, task=SEGMENTATION, num_samples=90, height=96, width=96)
    assert durations.EngineChoices.roughly(masks, "quick", []) == pytest.approx(50, abs=1)
    at = now()
    over = dataclasses.replace(
        planned_audit({}), status="finished", started_at=at, finished_at=at + timedelta(seconds=12)
    )
    assert durations.EngineChoices.roughly(masks, over.preset, [over]) == 12
    assert (
        durations.EngineChoices.roughly(masks, over.preset, [dataclasses.replace(over, status="failed")])
        != 12
    )
