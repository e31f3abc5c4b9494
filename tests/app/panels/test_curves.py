"""Curves of training: what runs on through the stages, and which part is pale."""

from __future__ import annotations

from app.panels import curves
from auditor.catalog.records import Epoch


def epoch(engine: str, stage: str, number: int, **metrics: float) -> Epoch:
    return Epoch(
        audit_id=1, engine=engine, stage=stage, epoch=number, num_epochs=2, progress=0.5, seconds=1.0,
        metrics=dict(metrics),
    )  # fmt: skip


EPOCHS = [
    epoch("umn", "warm-up", 0, train_accuracy=0.2),
    epoch("l2b", "train", 0, train_accuracy=0.4),
    epoch("umn", "train", 0, train_accuracy=0.6, heldout_accuracy=0.5),
]


def test_table__epochs_of_an_engine_run_through_its_stages() -> None:
    points = curves.table(EPOCHS, {"umn": "UMN"})
    assert points[["engine", "stage", "epoch", "metric", "value"]].to_numpy().tolist() == [
        ["UMN", "warm-up", 1, "train_accuracy", 0.2],
        ["l2b", "train", 1, "train_accuracy", 0.4],
        ["UMN", "train", 2, "train_accuracy", 0.6],
        ["UMN", "train", 2, "heldout_accuracy", 0.5],
    ]


def test_chart__what_judges_is_each_engines_last_stage() -> None:
    points = curves.table(EPOCHS, {"umn": "UMN"})
    drawn = curves.chart(points, curves.ACCURACY, "accuracy")
    assert drawn is not None
    assert drawn.data.is_last_stage.tolist() == [False, True, True, True]
    assert set(drawn.data.metric) == {"on given labels", "held-out"}


def test_chart__nothing_is_drawn_without_a_point() -> None:
    assert curves.chart(curves.table([], {}), curves.ACCURACY, "accuracy") is None
    assert curves.chart(curves.table(EPOCHS, {}), curves.SELECTION, "selection") is None
