"""The semi-supervised bases as a whole: going on after a kill, and where they do not apply."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from engines.contract import EngineInputError, EpochRecord, TrainingCancelled, TrainingData
from engines.l2b import SPEC, weighing
from engines.l2b import config as l2b_config
from engines.l2b.bases.division import Division
from engines.l2b.bases.pair import PairTraining
from engines.l2b.config import L2BConfig
from engines.l2b.step import MetaForward
from engines.l2b.weighing import Draws, Weigher
from engines.meta.directional import MetaGradient
from engines.shared.run import Run
from tests.engines.helpers import MemoryCheckpoint, digits_data, on_features

TINY = L2BConfig(
    base="divide_mix", network="mlp", epochs=3, warmup_epochs=1, batch_size=32, meta_batch_size=16, views=1,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _few_epochs_without_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(l2b_config, "SELF_SUPERVISED_EPOCHS", 2)


@pytest.mark.parametrize("base", ["divide_mix", "unicon", "c2d"])
def test_train__of_a_base_goes_on_from_any_epoch(base: str) -> None:
    data, _ = digits_data(80, num_unlabeled=6)
    config = replace(TINY, base=base)
    whole = SPEC.train(data, config, seed=1, device="cpu")
    kept = MemoryCheckpoint()

    def stop(_: EpochRecord) -> None:
        raise TrainingCancelled

    for _ in range(config.first_labeled_epoch + config.epochs):
        with pytest.raises(TrainingCancelled):
            SPEC.train(data, config, seed=1, device="cpu", checkpoint=kept, on_epoch=stop)
    result = SPEC.train(data, config, seed=1, device="cpu", checkpoint=kept)
    np.testing.assert_array_equal(result.pred_probs, whole.pred_probs)
    np.testing.assert_array_equal(result.trust_score, whole.trust_score)
    for name, values in whole.signals.items():
        np.testing.assert_array_equal(result.signals[name], values, err_msg=name)
    assert [one.losses for one in result.history] == [one.losses for one in whole.history]
    assert result.history[-1].progress == 1.0
    assert result.signal_history["believed"].shape == (3, 80)


def test_train__of_a_base_trusts_no_unlabeled_sample_and_believes_confirmed_ones() -> None:
    data, _ = digits_data(80, num_unlabeled=6, num_trusted=10)
    result = SPEC.train(data, TINY, device="cpu")
    assert np.isnan(result.trust_score[:6]).all()
    assert np.isnan(result.signals["believed"][:6]).all()
    assert (result.signals["believed"][6:16] == 1).all()
    assert np.isfinite(result.trust_score[6:]).all()


def test_train__of_a_base_reports_the_stage_without_labels() -> None:
    data, _ = digits_data(60)
    seen: list[EpochRecord] = []
    SPEC.train(data, replace(TINY, base="c2d"), device="cpu", on_epoch=seen.append)
    assert [(one.stage, one.epoch, one.num_epochs) for one in seen] == [
        *(("without labels", epoch, 2) for epoch in range(2)),
        *(("train", epoch, 3) for epoch in range(3)),
    ]
    assert [one.progress for one in seen] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


@pytest.mark.parametrize("base", ["divide_mix", "unicon"])
def test_train__of_a_base_draws_a_curve_from_samples_held_out(base: str) -> None:
    data, _ = digits_data(60, with_evaluation=True)
    result = SPEC.train(data, replace(TINY, base=base), device="cpu")
    assert all(0 <= one.metrics["heldout_accuracy"] <= 1 for one in result.history)


def test_train_on__where_nobody_is_believed_the_network_warms_up() -> None:
    data, _ = digits_data(60)

    def pair() -> PairTraining:
        return PairTraining(Run("l2b", data, TINY, seed=1, device="cpu"), TINY)

    nobody = Division(torch.arange(0), torch.arange(60), torch.zeros(60), np.zeros(60))
    for k in range(2):
        training, plain = pair(), pair()
        other = weights_of(training.networks[1 - k])
        assert training._train_on(k, 2, nobody) == plain._warm_up_epoch(k, 2)
        assert torch.equal(weights_of(training.networks[k]), weights_of(plain.networks[k]))
        assert torch.equal(weights_of(training.networks[1 - k]), other)
        assert training.weigher.counts["fallback_steps"] == 1


@pytest.mark.parametrize(("batch_size", "num_labeled", "wanted"), [(2, 40, 2), (12, 40, 9), (12, 10, 36)])
def test_unlabeled_batches__of_unicon_hold_as_many_as_the_part_is_larger(
    batch_size: int, num_labeled: int, wanted: int
) -> None:
    data, _ = digits_data(60)
    config = replace(TINY, base="unicon", batch_size=batch_size)
    training = PairTraining(Run("l2b", data, config, device="cpu"), config)
    rows = torch.arange(60)
    division = Division(rows[:num_labeled], rows[num_labeled:], torch.zeros(60), np.zeros(60))
    assert len(next(training._unlabeled_batches(division, Draws(0, 0, 0)))) == wanted


def weights_of(network: nn.Module) -> torch.Tensor:
    return nn.utils.parameters_to_vector(network.parameters()).detach().clone()


def test_train__of_a_base_refuses_features() -> None:
    data, _ = digits_data(60)
    with pytest.raises(
        EngineInputError, match="base 'divide_mix' learns from moved and mixed images.*'plain'"
    ):
        SPEC.train(on_features(data), TINY.for_features(), device="cpu")


def test_train__of_a_base_takes_equal_images_and_two_labels_a_class() -> None:
    images = np.full((6, 1, 8, 8), 7, dtype=np.uint8)
    data = TrainingData(images, np.array([0, 0, 1, 1, 2, 2]), 3)
    for base in ("divide_mix", "unicon", "c2d"):
        result = SPEC.train(data, replace(TINY, base=base), device="cpu")
        assert np.isfinite(result.trust_score).all(), base


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"base": "dividemix"}, "base is 'dividemix', it must be one of plain, divide_mix, unicon, c2d"),
    ],
)
def test_config__of_a_base_names_what_does_not_fit(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(EngineInputError, match=says):
        replace(TINY, **changes)


def test_work__of_a_base_is_more_than_plain() -> None:
    works = {
        base: replace(TINY, base=base).work(100, 10, on_features=False).trained
        for base in ("plain", "divide_mix", "unicon", "c2d")
    }
    assert works["plain"] < works["divide_mix"] < min(works["c2d"], works["unicon"])


@pytest.mark.parametrize(("norm", "fallbacks"), [(0.5, 0), (0.49, 1)])
def test_weigh__a_direction_as_long_as_the_shortest_counts(
    norm: float, fallbacks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighing, "MIN_DIRECTION_NORM", 0.5)
    data, _ = digits_data(60)
    weigher = Weigher(Run("l2b", data, TINY, device="cpu"), TINY, "none")
    meta = MetaGradient({}, torch.tensor(norm), torch.tensor(1.0), torch.zeros(2, 10))
    found = MetaForward(torch.zeros(2, 10), torch.eye(10)[:2], torch.ones(2), torch.ones(2), meta)
    weigher.weigh(found, torch.ones(2, dtype=torch.bool), 0.1)
    assert weigher.counts["fallback_steps"] == fallbacks
