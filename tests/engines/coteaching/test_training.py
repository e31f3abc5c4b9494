"""Co-teaching with its search on real digits: what is shared, what is chosen, what is kept, what is found."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.metrics import auroc, label_precision
from engines.contract import EngineInputError, EngineResult, EpochRecord, TrainingCancelled, TrainingData
from engines.coteaching import trials
from engines.coteaching.config import SCORED, CoteachingConfig
from engines.coteaching.s2e import RULES
from engines.coteaching.signals import EpochOutcome, Tally, epoch_signals
from engines.coteaching.training import train
from engines.coteaching.trials import choose_schedule, concentrated_share, estimate_noise_rate, split_rows
from engines.noise_model.training import guess_noise_rate
from engines.shared.out_of_fold import hidden
from engines.shared.selection import deal_by_class
from tests.engines.helpers import MemoryCheckpoint, digits_data, on_features

TINY = CoteachingConfig(
    network="mlp",
    epochs=4,
    batch_size=32,
    learning_rate=2e-3,
    augment="none",
    views=1,
    search_iterations=2,
    search_samples=2,
    search_epochs=3,
    anchors=(0.3,),
    rank_epochs=2,
)


def tiny(**changes: Any) -> CoteachingConfig:
    return dataclasses.replace(TINY, **changes)


def run(config: CoteachingConfig, data: TrainingData | None = None, **options: Any) -> EngineResult:
    return train(data or digits_data(200)[0], config, seed=options.pop("seed", 1), device="cpu", **options)


# --- signals ---


def outcome_of(selected: list[float], losses: list[float]) -> EpochOutcome:
    array = np.array(losses, dtype=np.float32)
    return EpochOutcome(0.0, 0.0, 0.0, np.array(selected, dtype=np.float32), array, np.isfinite(array))


def test_tally__weights_epochs_by_what_they_drop() -> None:
    tally = Tally(3)
    nan = float("nan")
    tally.count_selection(outcome_of([1, 1, 1], [1, 1, 1]), 1.0)
    tally.count_selection(outcome_of([1, 0.5, 0], [1, 1, 1]), 0.8)
    tally.count_selection(outcome_of([0, 1, 0], [1, 1, nan]), 0.4)
    expected = [0.2 / 0.8, (0.2 * 0.5 + 0.6) / 0.8, 0.0]
    np.testing.assert_allclose(tally.signals()["selected"], expected, rtol=1e-6)


def test_tally__where_no_epoch_drops_anything_all_count_alike() -> None:
    tally = Tally(3)
    tally.count_selection(outcome_of([1, 0.5, 1], [1, 1, 1]), 1.0)
    tally.count_selection(outcome_of([1, 0, 0.5], [1, 1, float("nan")]), 1.0)
    np.testing.assert_allclose(tally.signals()["selected"], [1, 0.25, 1], rtol=1e-6)


def test_tally__ranks_and_rejections() -> None:
    tally = Tally(4)
    tally.count_ranks(np.array([0, 1, 3]), np.array([[0.1, 0.2, 0.9], [0.1, 0.8, 0.5]]), 0.6)
    signals = tally.signals()
    np.testing.assert_allclose(signals["loss_rank"][[0, 1, 3]], [1 / 6, 4 / 6, 4 / 6], rtol=1e-6)
    # Sample 1 ranks 3/6 with the first network, below 0.6: only one of the two rejects it.
    assert signals["rejected"][[0, 1, 3]].tolist() == [0, 0, 0]
    assert np.isnan(signals["loss_rank"][2])


def test_tally__a_rank_at_the_keep_rate_is_kept() -> None:
    tally = Tally(3)
    tally.count_ranks(np.arange(3), np.array([[0.1, 0.2, 0.9], [0.1, 0.2, 0.9]]), 0.5)
    np.testing.assert_allclose(tally.signals()["loss_rank"], [1 / 6, 3 / 6, 5 / 6], rtol=1e-6)
    assert tally.signals()["rejected"].tolist() == [0, 0, 1]


def test_epoch_signals__label_precision_of_a_random_selector_is_one_minus_the_noise_rate() -> None:
    rng = np.random.default_rng(0)
    wrong = rng.random(20_000) < 0.3
    picked = (rng.random(20_000) < 0.5).astype(np.float32)
    signals = epoch_signals(outcome_of(picked.tolist(), [1.0] * 20_000), np.ones(20_000, dtype=bool))
    assert label_precision(wrong, signals["selected"] > 0) == pytest.approx(0.7, abs=0.02)


def test_estimate_noise_rate__two_groups() -> None:
    rng = np.random.default_rng(0)
    losses = np.concatenate([rng.normal(0.2, 0.05, 800), rng.normal(3.0, 0.3, 200)])
    assert estimate_noise_rate(torch.from_numpy(losses)) == pytest.approx(0.2, abs=0.01)


# --- the search ---


def test_split_rows__trusted_samples_judge_and_are_not_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "MIN_TRUSTED", 50)
    data, _ = digits_data(200, num_unlabeled=10, num_trusted=50)
    split = split_rows(data, tiny(), 0)
    assert split is not None
    assert split.source == "trusted samples"
    assert split.validation.tolist() == list(range(10, 60))
    assert split.train.tolist() == list(range(60, 200))


def test_split_rows__few_trusted_samples_leave_it_to_held_out_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "MIN_TRUSTED", 50)
    data, _ = digits_data(200, num_unlabeled=10, num_trusted=49)
    split = split_rows(data, tiny(), 0)
    assert split is not None
    assert split.source == "held-out given labels"
    assert len(split.validation) == 19
    assert sorted([*split.train.tolist(), *split.validation.tolist()]) == list(range(10, 200))


def test_split_rows__what_proxies_leave_over_judges_them() -> None:
    data, _ = digits_data(200)
    split = split_rows(data, tiny(search_rows=80), 0)
    assert split is not None
    assert (len(split.train), len(split.validation)) == (80, 120)
    assert not set(split.train.tolist()) & set(split.validation.tolist())


def test_split_rows__proxies_cost_the_same_whoever_judges_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "MIN_TRUSTED", 20)
    config = tiny(search_rows=1_000)
    by_trusted = split_rows(digits_data(200, num_trusted=20)[0], config, 0)
    by_given_labels = split_rows(digits_data(200)[0], config, 0)
    assert by_trusted is not None
    assert by_given_labels is not None
    assert len(by_trusted.validation) == len(by_given_labels.validation) == 20
    assert len(by_trusted.train) == len(by_given_labels.train) == 180


@pytest.mark.parametrize("preset", ["quick", "standard"])
@pytest.mark.parametrize("num_trusted", [None, 150])
@pytest.mark.parametrize("num_labeled", [400, 1_800, 25_000])
def test_search_size__the_search_is_at_most_a_third_of_the_work(
    preset: str, num_trusted: int | None, num_labeled: int
) -> None:
    config = CoteachingConfig.preset(preset)
    rows, judges = config.search_size(num_labeled, num_trusted)
    searched = config.trial_passes * rows + SCORED * config.judge_passes * judges
    trained = num_labeled * (config.epochs + SCORED * (config.views + config.rank_epochs))
    assert searched <= (searched + trained) / 3
    assert rows >= 0.15 * min(num_labeled, config.search_rows or num_labeled)
    assert rows + judges <= num_labeled


def test_train__too_few_samples_to_search_fall_back_to_equation_4() -> None:
    data, _ = digits_data(30)
    notes = run(tiny(), data).provenance.notes
    assert "too few labeled samples" in notes["warnings"][0]
    assert 0 <= notes["suggested_noise_rate"] < 1


def test_concentrated_share__by_hand() -> None:
    given = np.repeat([0, 1, 2, -1], [40, 40, 10, 30])
    predicted = np.concatenate([[1] * 20 + [0] * 20, [0] * 11 + [2] * 11 + [1] * 18, [0] * 10, [2] * 30])
    # Class 0 has one partner, class 1 has two, class 2 too few differing rows, and unlabeled rows say nothing.
    assert concentrated_share(given, np.eye(3)[predicted]) == 0.5
    assert concentrated_share(given, np.eye(3)[np.maximum(given, 0)]) == 0.0
    # Two classes of 20 and 40 differing labels, each with one partner: each is judged by its own number.
    both = np.repeat([1, 0, 2, 1], [20, 20, 40, 20])
    assert concentrated_share(np.repeat([0, 1], [40, 60]), np.eye(3)[both]) == 1.0
    assert concentrated_share(given[:40], np.eye(2)[predicted[:40]]) == 0.0


def test_train__pair_flips_are_warned_of_where_given_labels_judge_the_schedule() -> None:
    config = tiny(epochs=12, learning_rate=3e-3)
    flipped, _ = digits_data(1_000, noise="pair", noise_rate=0.3)
    anyhow = "judged by held-out given labels"
    assert any(anyhow in text for text in run(config, flipped).provenance.notes["warnings"])
    trusted, _ = digits_data(1_000, noise="pair", noise_rate=0.3, num_trusted=200)
    assert run(config, trusted).provenance.notes["warnings"] == []
    assert run(config, digits_data(1_000)[0]).provenance.notes["warnings"] == []


def test_train__keeps_the_searched_and_the_default_schedule_for_screens() -> None:
    result = run(tiny())
    notes = result.provenance.notes
    assert len(notes["keep_rates"]) == len(notes["keep_rates_coteaching"]) == 4
    assert notes["keep_rates"][0] == 1.0
    trained = [record.metrics["keep_rate"] for record in result.history if record.stage == "train"]
    np.testing.assert_allclose(trained, notes["keep_rates"], atol=1e-6)
    search = notes["search"]
    everything = [*search["trial_accuracies"], *search["anchor_accuracies"]]
    assert search["best_accuracy"] == max(everything)
    assert len(search["trial_accuracies"]) == 4
    assert search["is_proxy"]


def test_train__on_features_the_schedule_follows_the_noise_model_s_guess_once_a_run() -> None:
    data = on_features(digits_data(120)[0])
    config = tiny(search_rule="none", folds=2)
    found = run(config, data).provenance.notes
    first = hidden(data, deal_by_class(data.given_labels, 2, seed=1, name="folds") == 0)
    rate = guess_noise_rate(first, seed=1)
    assert 0 < rate < 0.75
    epochs = np.arange(config.epochs, dtype=np.float64)
    np.testing.assert_allclose(found["keep_rates"][1:], config.coteaching_curve(rate, epochs)[1:], atol=1e-6)
    assert found["suggested_noise_rate"] == rate
    then = config.after_first(found)
    assert (then.is_searched, then.keep_rates) == (False, tuple(found["keep_rates"]))
    kept = run(dataclasses.replace(then, folds=1), data).provenance.notes
    assert (kept["keep_rates"], kept["search"]["schedule_from"]) == (
        found["keep_rates"],
        "the first training",
    )
    with pytest.raises(EngineInputError, match="guessed from features of a backbone"):
        run(config)
    with pytest.raises(EngineInputError, match=r"keep_rates holds 2 values, it must be one an epoch"):
        tiny(keep_rates=(1.0, 0.5))


def test_train__the_warmup_is_trained_once_and_counted() -> None:
    records: list[EpochRecord] = []
    config = tiny(warmup_epochs=2)
    run(config, on_epoch=records.append)
    stages = [record.stage for record in records]
    # One warm-up of two epochs; five trials of one more epoch; four final epochs.
    assert stages == ["warmup"] * 2 + ["search"] * 5 + ["train"] * 4
    np.testing.assert_allclose([record.progress for record in records], np.arange(1, 12) / 11)
    assert [record.epoch for record in records] == [0, 1, *range(5), *range(4)]
    assert [r.metrics["keep_rate"] for r in records if r.stage == "train"][:2] == [1.0, 1.0]


def test_train__evaluation_set_changes_nothing() -> None:
    data, _ = digits_data(200, with_evaluation=True)
    with_curve, without = run(tiny(), data), run(tiny(), dataclasses.replace(data, evaluation=None))
    np.testing.assert_array_equal(with_curve.trust_score, without.trust_score)
    assert 0 <= with_curve.history[-1].metrics["heldout_accuracy"] <= 1


@pytest.mark.parametrize("rule", RULES)
def test_train__killed_anywhere_in_the_search_and_resumed(rule: str) -> None:
    config = tiny(search_rule=rule, epochs=3, rank_epochs=1)
    records: list[EpochRecord] = []
    whole = run(config, on_epoch=records.append)
    num_search = sum(record.stage != "train" for record in records)
    for stop in (0, num_search // 2, num_search - 1, num_search + 1, num_search + 2):
        checkpoint, seen = MemoryCheckpoint(), 0

        def interrupt(_: EpochRecord, stop: int = stop) -> None:
            nonlocal seen
            seen += 1
            if seen > stop:
                raise TrainingCancelled("stopped")

        with pytest.raises(TrainingCancelled, match="stopped"):
            run(config, on_epoch=interrupt, checkpoint=checkpoint)
        again = run(config, checkpoint=checkpoint)
        np.testing.assert_array_equal(again.trust_score, whole.trust_score)
        for name, values in whole.signals.items():
            np.testing.assert_array_equal(again.signals[name], values, err_msg=name)
        assert again.provenance.notes == whole.provenance.notes
        assert len(again.history) == len(whole.history)


def test_choose_schedule__drops_most_among_equals() -> None:
    curves = np.array([[1.0, 0.9], [1.0, 0.6], [1.0, 0.4], [1.0, 0.1]])
    accuracies = np.array([0.80, 0.79, 0.70, 0.80])
    # The standard error at 100 samples is .04: the first two and the last count as equal; the last drops
    # more than was ever measured.
    assert choose_schedule(accuracies, curves, num_validation=100, tie_margin=1.0) == 1
    assert choose_schedule(accuracies, curves, num_validation=100, tie_margin=3.0) == 2
    assert choose_schedule(accuracies, curves, num_validation=100_000, tie_margin=1.0) == 0
    assert choose_schedule(accuracies, curves, num_validation=100, tie_margin=0.0) == 0


def test_choose_schedule__only_extreme_curves_win_by_accuracy() -> None:
    curves = np.array([[1.0, 0.1], [1.0, 0.05]])
    assert choose_schedule(np.array([0.5, 0.6]), curves, num_validation=10, tie_margin=1.0) == 1


# --- the run ---


def test_train__pair_noise_is_found_where_the_rate_fits() -> None:
    data, wrong = digits_data(600, noise="pair", noise_rate=0.4)
    config = tiny(epochs=15, noise_rate=0.45)
    plain = run(tiny(epochs=15, noise_rate=0.0), data)
    assert auroc(wrong, -run(config, data).trust_score) > auroc(wrong, -plain.trust_score) + 0.02


def test_config__lists_every_problem_at_once() -> None:
    with pytest.raises(EngineInputError, match=r"search_rule is 'x'.*search_rows is 0.*anchors holds 1.5"):
        tiny(search_rule="x", search_rows=0, anchors=(1.5,))


def test_config__refuses_a_search_in_which_no_trial_trains() -> None:
    with pytest.raises(EngineInputError, match=r"warmup_epochs is 3 and search_epochs 3, so that no trial"):
        tiny(warmup_epochs=3)
    assert tiny(warmup_epochs=3, noise_rate=0.2).warmup_epochs == 3


def test_config__refuses_to_leave_the_only_epoch_untrained() -> None:
    with pytest.raises(EngineInputError, match="epochs is 1 and as_published leaves it untrained"):
        dataclasses.replace(CoteachingConfig.preset("paper"), epochs=1)


@pytest.mark.parametrize("preset", ["quick", "standard"])
def test_preset__one_epoch_is_ranked_and_warned_of(preset: str) -> None:
    config = dataclasses.replace(
        CoteachingConfig.preset(preset),
        epochs=1,
        network="mlp",
        search_iterations=1,
        search_epochs=2,
        views=1,
    )
    result = run(config)
    assert np.isfinite(result.trust_score).all()
    assert "All 1 epochs were warm-up" in result.provenance.notes["warnings"][-1]


def test_config__comes_back_from_json_lists() -> None:
    config = CoteachingConfig.preset("standard")
    assert CoteachingConfig(**{**config.as_dict(), "anchors": list(config.anchors)}) == config


def test_preset__paper_trains_as_published() -> None:
    config = dataclasses.replace(
        CoteachingConfig.preset("paper"),
        network="mlp",
        epochs=3,
        search_epochs=3,
        search_iterations=1,
        search_samples=2,
    )
    result = run(config)
    train_records = [record for record in result.history if record.stage == "train"]
    assert "train_accuracy" not in train_records[0].metrics  # epoch 0 only evaluates
    assert np.isnan(result.signal_history["selected"][0]).all()
    assert not result.provenance.notes["search"]["is_proxy"]
    assert 0 <= result.provenance.notes["suggested_noise_rate"] < 1


def test_split_rows__judges_by_what_the_trusted_rows_stand_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "MIN_TRUSTED", 20)
    labels = (np.arange(200) % 2).astype(np.int64)
    trusted = np.arange(200) < 40
    weight = np.where(np.arange(200) < 20, 1.0, 9.0).astype(np.float32)
    images = np.zeros((200, 1, 8, 8), dtype=np.uint8)
    data = TrainingData(images, labels, 2, trusted=trusted, trusted_weight=weight)
    split = split_rows(data, TINY, 0)
    assert split is not None
    assert split.weight is not None
    np.testing.assert_array_equal(split.weight.numpy(), weight[split.validation.numpy()])
    assert split.num_equal_rows == round(200**2 / (20 + 20 * 81))
    plain = split_rows(dataclasses.replace(data, trusted_weight=None), TINY, 0)
    assert plain is not None
    assert plain.num_equal_rows == 40
    with pytest.raises(EngineInputError, match=r"trusted_weight must be \(200,\) and positive where trusted"):
        TrainingData(images, labels, 2, trusted=trusted, trusted_weight=np.zeros(200, dtype=np.float32))


def test_train__on_a_device_that_is_not_there_is_refused() -> None:
    data, _ = digits_data(60)
    with pytest.raises(EngineInputError, match="cuda:99"):
        train(data, TINY, device="cuda:99")
