"""The parts of S2E's search around a training that is a few numbers: counts, accuracies, resuming, the choice."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engines.contract import EpochRecord, TrainingData
from engines.coteaching import trials
from engines.coteaching.config import CoteachingConfig
from engines.coteaching.schedules import FloatArray
from engines.coteaching.signals import EpochOutcome
from engines.coteaching.trials import FoundSchedule, ScheduleSearch, Split, search_parts, split_rows
from engines.shared.recording import Recorder

CONFIG = CoteachingConfig(
    epochs=10,
    warmup_epochs=2,
    search_iterations=2,
    search_samples=3,
    search_epochs=6,
    objective_epochs=3,
    anchors=(0.2, 0.45),
)
SPLIT = Split(torch.arange(30), torch.arange(30, 40), "held-out given labels")
NO_ARRAY = np.zeros(0, dtype=np.float32)


class Numbers:
    """Two networks that remember the keep rates of their epochs, and are the better the nearer those come to .7."""

    def __init__(self, curve: FloatArray, rows: Tensor) -> None:
        self.curve, self.rows = curve, rows
        self.seen: list[float] = []

    def run_epoch(self, epoch: int) -> EpochOutcome:
        self.seen.append(float(self.curve[epoch]))
        num = len(self.seen)
        return EpochOutcome(num, 0.0, num / 10, NO_ARRAY, NO_ARRAY, np.zeros(0, dtype=np.bool_))

    def evaluate(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        gap = abs(sum(self.seen) / len(self.seen) - 0.7)
        place = torch.arange(len(rows), dtype=torch.float64) / len(rows)
        losses = torch.stack([place + gap, 2 * place + gap])
        return losses, losses < 1.2

    def state_dict(self) -> dict[str, Any]:
        return {"seen": list(self.seen)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.seen = list(state["seen"])


class Stop(Exception):
    pass


def searched(
    config: CoteachingConfig,
    split: Split | None = SPLIT,
    *,
    stop_after: int | None = None,
    left: tuple[dict[str, Any], dict[str, Any] | None] | None = None,
) -> tuple[FoundSchedule | None, list[EpochRecord], ScheduleSearch]:
    """What a search finds and records; it may be stopped after so many epochs, and go on from what one left."""
    records: list[EpochRecord] = []

    def on_epoch(record: EpochRecord) -> None:
        records.append(record)
        if len(records) == stop_after:
            raise Stop

    search = ScheduleSearch(config, split, torch.arange(50), 3, Numbers)
    if left is not None:
        search.done, search.current = copy.deepcopy(left)
    try:
        return search.run(Recorder(on_epoch, 0, 100), lambda: None), records, search
    except Stop:
        return None, records, search


# --- parts ---


def test_search_parts__a_warm_up_then_anchors_then_trials() -> None:
    parts = search_parts(CONFIG, has_split=True)
    trials = [f"trial-{number}" for number in range(6)]
    assert [part.name for part in parts] == ["warmup", "anchor-0", "anchor-1", *trials]
    assert [part.stage for part in parts] == ["warmup"] + ["search"] * 8
    assert [part.epochs for part in parts] == [2] + [4] * 8


@pytest.mark.parametrize(
    ("changed", "has_split", "epochs"),
    [
        ({}, False, [2]),
        ({"warmup_epochs": 0}, False, [1]),
        ({"noise_rate": 0.3}, False, []),
        ({"noise_rate": 0.3}, True, []),
    ],
)
def test_search_parts__without_a_search_one_warm_up_where_its_losses_are_needed(
    changed: dict[str, Any], has_split: bool, epochs: list[int]
) -> None:
    parts = search_parts(dataclasses.replace(CONFIG, **changed), has_split=has_split)
    assert [part.epochs for part in parts] == epochs


def test_search_parts__without_warm_up_trials_need_none() -> None:
    parts = search_parts(dataclasses.replace(CONFIG, warmup_epochs=0), has_split=True)
    assert [part.epochs for part in parts] == [6] * 8


# --- the search ---


def literal_accuracy(curve: FloatArray, split: Split) -> float:
    """The mean over the last three epochs of what both networks reach on the validation rows."""
    measured = []
    for last in range(4, 7):
        gap = abs(float(np.mean(curve[:last])) - 0.7)
        rows = []
        for i in range(len(split.validation)):
            weight = 1.0 if split.weight is None else float(split.weight[i] / split.weight.mean())
            rows.append(weight * sum(loss < 1.2 for loss in (i / 10 + gap, 2 * i / 10 + gap)) / 2)
        measured.append(sum(rows) / len(rows))
    return sum(measured) / 3


@pytest.mark.parametrize("weighted", [False, True])
def test_schedule_search__a_trial_s_accuracy_is_the_mean_of_its_last_epochs(weighted: bool) -> None:
    weight = torch.linspace(1, 7, 10, dtype=torch.float64) if weighted else None
    split = dataclasses.replace(SPLIT, weight=weight)
    found, _, search = searched(CONFIG, split)
    assert found is not None
    anchors = []
    for rate in CONFIG.anchors:
        # Eq. 4 of the ten epochs gone through in six, whose first two keep everything.
        curve = CONFIG.coteaching_curve(rate, np.linspace(0, 10, 6, endpoint=False))
        curve[:2] = 1.0
        anchors.append(literal_accuracy(curve, split))
    assert [search.done[f"anchor-{i}"]["accuracy"] for i in range(2)] == pytest.approx(anchors)
    assert found.notes["anchor_accuracies"] == pytest.approx(anchors)
    trials = [search.done[f"trial-{i}"]["accuracy"] for i in range(6)]
    assert found.notes["trial_accuracies"] == pytest.approx(trials)
    assert found.notes["best_accuracy"] == pytest.approx(max([*anchors, *trials]))
    assert found.notes["iteration_means"] == pytest.approx([np.mean(trials[:3]), np.mean(trials[3:])])
    assert (found.notes["num_validation"], found.notes["num_search_rows"]) == (10, 30)


def test_schedule_search__records_every_epoch_with_its_number_and_keep_rate() -> None:
    _, records, search = searched(CONFIG)
    assert [(one.stage, one.epoch, one.num_epochs) for one in records] == [
        *(("warmup", epoch, 2) for epoch in range(2)),
        *(("search", epoch, 32) for epoch in range(32)),
    ]
    assert search.total_epochs == 34
    assert [one.metrics["keep_rate"] for one in records[:2]] == [1.0] * 2
    # The first anchor: its networks go on from two epochs of the warm-up.
    curve = CONFIG.coteaching_curve(0.2, np.linspace(0, 10, 6, endpoint=False))
    assert [one.metrics["keep_rate"] for one in records[2:6]] == pytest.approx(curve[2:])
    assert [one.losses["train_loss"] for one in records[:6]] == [1, 2, 3, 4, 5, 6]
    accuracies = [one.metrics["train_accuracy"] for one in records[:6]]
    assert accuracies == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    assert [("validation_accuracy" in one.metrics) for one in records[:6]] == [False] * 3 + [True] * 3


@pytest.mark.parametrize("stop_after", [1, 2, 3, 5, 6, 7, 30, 33, 34])
def test_schedule_search__stopped_after_any_epoch_goes_on_from_there(stop_after: int) -> None:
    whole, all_records, _ = searched(CONFIG)
    nothing, before, stopped = searched(CONFIG, stop_after=stop_after)
    assert nothing is None
    again, after, _ = searched(CONFIG, left=(stopped.done, stopped.current))
    assert again is not None
    assert whole is not None
    assert again.notes == whole.notes
    np.testing.assert_array_equal(again.keep_rates, whole.keep_rates)
    assert [(one.stage, one.epoch, one.losses) for one in [*before, *after]] == [
        (one.stage, one.epoch, one.losses) for one in all_records
    ]


def test_schedule_search__without_rows_to_search_on_eq_4_has_the_rate_of_the_losses() -> None:
    found, records, search = searched(CONFIG, None)
    assert found is not None
    assert [(one.stage, one.epoch, one.num_epochs) for one in records] == [("warmup", 0, 2), ("warmup", 1, 2)]
    assert found.noise_rate == search.done["warmup"]["noise_rate"]
    assert found.noise_rate is not None
    assert 0.2 < found.noise_rate < 0.8  # losses evenly spread
    expected = CONFIG.coteaching_curve(found.noise_rate, np.arange(10.0))
    expected[:2] = 1.0
    np.testing.assert_allclose(found.keep_rates, expected)
    assert found.notes["schedule_from"] == "Eq. 4"
    assert "too few labeled samples" in found.notes["warning"]


def test_schedule_search__says_the_noise_rate_of_the_warm_up() -> None:
    found, _, search = searched(CONFIG)
    assert found is not None
    assert found.noise_rate == search.done["warmup"]["noise_rate"]
    known, _, _ = searched(dataclasses.replace(CONFIG, noise_rate=0.25))
    assert known is not None
    assert known.noise_rate == 0.25


# --- rows ---


@pytest.mark.parametrize(
    ("num", "num_trusted", "is_enough"), [(40, 0, True), (39, 0, False), (60, 40, True), (59, 40, False)]
)
def test_split_rows__needs_forty_labels_and_twenty_beside_trusted_ones(
    num: int, num_trusted: int, is_enough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "MIN_TRUSTED", 40)
    labels = (np.arange(num) % 2).astype(np.int64)
    trusted = np.arange(num) < num_trusted
    data = TrainingData(np.zeros((num, 1, 8, 8), dtype=np.uint8), labels, 2, trusted=trusted)
    split = split_rows(data, CONFIG, 0)
    assert (split is not None) == is_enough


def test_split__rows_of_very_different_weight_are_worth_one() -> None:
    weight = torch.tensor([1e-3, 1e3], dtype=torch.float64)
    assert dataclasses.replace(SPLIT, weight=weight).num_equal_rows == 1
