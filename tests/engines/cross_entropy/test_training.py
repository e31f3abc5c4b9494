"""The plain baseline: its options, its folds, and that it finds errors on real images."""

from __future__ import annotations

import dataclasses
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from benchmarks.metrics import auroc
from engines.contract import EngineError, EngineInputError, EngineResult, EpochRecord, TrainingData
from engines.cross_entropy.training import CrossEntropyConfig, train
from engines.shared.scoring import rank_percentile, test_time_margin
from engines.shared.selection import deal_by_class
from tests.engines.helpers import MemoryCheckpoint, digits, digits_data

TINY = CrossEntropyConfig(epochs=3, batch_size=64, views=2, network="mlp", learning_rate=2e-3)
QUICK = dataclasses.replace(CrossEntropyConfig.preset("quick"), network="mlp", batch_size=64, epochs=15)


def _train(data: TrainingData, config: CrossEntropyConfig = TINY, **options: object) -> EngineResult:
    return train(data, config, device="cpu", **options)  # type: ignore[arg-type]


def test_config__collects_its_own_problems() -> None:
    with pytest.raises(EngineInputError, match=r"epochs is 0.*folds is 0, it must be at least 1"):
        CrossEntropyConfig(epochs=0, folds=0)


def test_deal_by_class__equal_shares_of_every_class() -> None:
    labels = np.repeat(np.array([0, 1, 2, -1]), [50, 25, 5, 20])
    fold_of = deal_by_class(labels, 5, seed=0, name="folds")
    assert (fold_of[labels == -1] == -1).all()
    for each, share in ((0, 10), (1, 5), (2, 1)):
        assert np.bincount(fold_of[labels == each], minlength=5).tolist() == [share] * 5
    np.testing.assert_array_equal(fold_of, deal_by_class(labels, 5, seed=0, name="folds"))
    assert not np.array_equal(fold_of, deal_by_class(labels, 5, seed=1, name="folds"))


def test_deal_by_class__more_folds_than_samples() -> None:
    with pytest.raises(EngineInputError, match="folds is 4 but only 3 samples are labeled"):
        deal_by_class(np.array([0, 1, 0, -1]), 4, seed=0, name="folds")


@pytest.mark.parametrize(
    ("options", "stages"),
    [
        ({}, ["train"]),
        ({"folds": 2}, ["fold 1", "fold 2"]),
    ],
)
def test_train__options_become_stages(options: dict[str, int], stages: list[str]) -> None:
    data, _ = digits_data(120, num_unlabeled=10)
    result = _train(data, dataclasses.replace(TINY, **options))
    assert list(dict.fromkeys(record.stage for record in result.history)) == stages
    total = TINY.epochs * len(stages)
    np.testing.assert_allclose([r.progress for r in result.history], np.arange(1, total + 1) / total)
    assert result.is_out_of_sample == ("folds" in options)
    assert np.isnan(result.trust_score).sum() == 10
    np.testing.assert_allclose(result.pred_probs.sum(axis=1), 1, atol=1e-5)


def _swap_within_fold(labels: NDArray[np.int64], folds: int, fold: int) -> NDArray[np.int64]:
    """``labels`` with two different labels of the fold's samples swapped, such that no fold changes."""
    fold_of = deal_by_class(labels, folds, seed=0, name="folds")
    for one, other in combinations(np.flatnonzero(fold_of == fold), 2):
        swapped = labels.copy()
        swapped[[one, other]] = labels[[other, one]]
        same_folds = np.array_equal(deal_by_class(swapped, folds, seed=0, name="folds"), fold_of)
        if same_folds and labels[one] != labels[other]:
            return swapped
    raise AssertionError("no two samples can be swapped")


def test_train__folds_never_judge_what_they_saw() -> None:
    """Swap two given labels of one fold: that fold's own predictions do not move by a bit, others do."""
    data, _ = digits_data(150)
    config = dataclasses.replace(TINY, folds=3)
    own = deal_by_class(data.given_labels, 3, seed=0, name="folds") == 1
    swapped = dataclasses.replace(data, given_labels=_swap_within_fold(data.given_labels, 3, 1))
    one, other = _train(data, config), _train(swapped, config)
    np.testing.assert_array_equal(one.pred_probs[own], other.pred_probs[own])
    assert not np.array_equal(one.pred_probs[~own], other.pred_probs[~own])


def test_train__trust_is_the_rank_of_both_margins() -> None:
    data, _ = digits_data(150, num_unlabeled=5)
    result = _train(data, dataclasses.replace(TINY, views=1))
    margin = test_time_margin(np.log(result.pred_probs), data.given_labels)
    expected = (rank_percentile(margin) + rank_percentile(result.signals["margin"])) / 2
    # float32 probabilities lose a few ranks against the log-probabilities that the engine ranks.
    np.testing.assert_allclose(result.trust_score, expected, atol=0.02)


def test_train__signals_are_the_final_loss_and_the_mean_margin() -> None:
    data, _ = digits_data(100, num_unlabeled=5)
    result = _train(data)
    labeled = data.labeled
    given = result.pred_probs[np.flatnonzero(labeled), data.given_labels[labeled]]
    np.testing.assert_allclose(result.signals["loss"][labeled], -np.log(given), rtol=1e-4)
    history = result.signal_history["margin"].astype(np.float64)
    np.testing.assert_allclose(result.signals["margin"][labeled], history.mean(axis=0)[labeled], atol=0.02)
    assert np.isnan(result.signals["loss"][~labeled]).all()
    assert np.isnan(result.signals["margin"][~labeled]).all()


@pytest.mark.parametrize("options", [{"folds": 2}, {"folds": 3, "keeps_features": True}])
def test_train__killed_in_a_later_stage_and_resumed(options: dict[str, int]) -> None:
    data, _ = digits_data(100, num_unlabeled=5)
    config = dataclasses.replace(TINY, **options)
    whole = _train(data, config)

    class Killed(BaseException):
        pass

    for victim in (TINY.epochs - 1, TINY.epochs, len(whole.history) - 2):
        checkpoint, heard = MemoryCheckpoint(), []

        def kill(record: EpochRecord, heard: list[str] = heard, victim: int = victim) -> None:
            heard.append(record.stage)
            if len(heard) == victim + 1:
                raise Killed

        with pytest.raises(Killed):
            _train(data, config, checkpoint=checkpoint, on_epoch=kill)
        resumed = _train(data, config, checkpoint=checkpoint)
        for name in ("pred_probs", "trust_score", "embeddings", "features"):
            np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))


def test_train__keeps_early_features_of_two_views() -> None:
    data, _ = digits_data(60)
    assert _train(data).features is None
    config = dataclasses.replace(TINY, keeps_features=True, schedule="constant")
    kept = _train(data, config).features
    assert kept is not None
    assert (kept.shape, kept.dtype) == ((60, 2, 256), np.float16)
    after_one = _train(data, dataclasses.replace(config, epochs=1))
    np.testing.assert_allclose(kept[:, 0], after_one.embeddings, atol=2e-2)
    assert (kept[:, 0] != kept[:, 1]).any()


def test_train__resuming_with_another_config_is_refused() -> None:
    data, _ = digits_data(60)
    checkpoint = MemoryCheckpoint()
    _train(data, checkpoint=checkpoint)
    with pytest.raises(EngineInputError, match="checkpoint was written by a run with another engine, config"):
        _train(data, dataclasses.replace(TINY, epochs=4), checkpoint=checkpoint)


def test_train__dropout_is_reproducible_and_global_state_untouched() -> None:
    data = TrainingData(*digits(40, side=32), 10)
    config = dataclasses.replace(TINY, network="torchvision:mobilenet_v3_small", epochs=1, views=1)
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    one = _train(data, config)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(99)
    np.testing.assert_array_equal(one.pred_probs, _train(data, config).pred_probs)


def test_train__memory_map_is_enough(tmp_path: Path) -> None:
    data, _ = digits_data(80)
    np.save(tmp_path / "images.npy", data.images)
    mapped = dataclasses.replace(data, images=np.load(tmp_path / "images.npy", mmap_mode="r"))
    np.testing.assert_array_equal(_train(mapped).trust_score, _train(data).trust_score)


@pytest.mark.parametrize("noise", ["sym_excl_exact", "umn_within_class"])
def test_train__finds_planted_errors_on_digits(noise: str) -> None:
    data, wrong = digits_data(600, noise=noise, noise_rate=0.3)
    result = _train(data, QUICK)
    assert auroc(wrong, 1 - result.trust_score) > 0.97


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize(
    "options",
    [{}, {"precision": "bfloat16"}, {"resident": "no"}, {"folds": 2}],
)
def test_train__cuda_finds_planted_errors(options: dict[str, object]) -> None:
    data, wrong = digits_data(600, noise_rate=0.3)
    config = dataclasses.replace(CrossEntropyConfig.preset("quick"), **options)  # type: ignore[arg-type]
    result = train(data, config, device="cuda")
    assert auroc(wrong, 1 - result.trust_score) > 0.97
    assert "cuda" in result.provenance.device


@pytest.mark.parametrize("epochs", [1, 2])
def test_train__that_diverges_says_so(epochs: int) -> None:
    """In one epoch of one step the loss is still a number, what the network says afterwards is not."""
    data, _ = digits_data(60)
    config = CrossEntropyConfig(network="mlp", epochs=epochs, batch_size=60, learning_rate=1e30)
    with pytest.raises(EngineError, match="lower learning_rate"):
        train(data, config, device="cpu")


def test_for_finetuning__takes_a_third_of_the_epochs_and_judges_out_of_fold() -> None:
    config = CrossEntropyConfig.preset("quick")
    tuned = config.for_finetuning("timm:resnet10t", "w.pt", 64)
    changed = {"network": "timm:resnet10t", "weights": "w.pt", "image_side": 64}
    assert tuned == dataclasses.replace(config, epochs=10, folds=2, precision="float32", **changed)
    more = dataclasses.replace(config, folds=5).for_finetuning("timm:resnet10t", "w.pt")
    assert more.folds == 5


def test_train__an_epoch_that_diverged_is_not_reported() -> None:
    data, _ = digits_data(60)
    config = CrossEntropyConfig(network="mlp", epochs=2, batch_size=20, learning_rate=1e30)
    reported: list[object] = []
    with pytest.raises(EngineError, match="lower learning_rate"):
        train(data, config, device="cpu", on_epoch=reported.append)
    assert reported == []


def test_work__counts_every_fit_and_a_step_on_features_for_more() -> None:
    config = CrossEntropyConfig(epochs=4, folds=5, views=2)
    on_images = config.work(100, 10, on_features=False)
    assert (on_images.trained, on_images.scored) == (pytest.approx(5 * 0.8 * 4 * 100), 5 * 2 * 100)
    on_features = config.work(100, 10, on_features=True)
    assert on_features.trained == pytest.approx(1.5 * on_images.trained)
    kept = dataclasses.replace(config, folds=1, keeps_features=True).work(100, 10, on_features=False)
    assert (kept.trained, kept.scored) == (4 * 100, 2 * 100 + 2 * 100)
