"""Trainings of an engine with a part of the labels hidden each: what is judged by which, and their record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.contract import EngineInputError
from engines.registry import ENGINES
from engines.shared.config import LoopConfig
from engines.shared.out_of_fold import FoldedConfig, hidden, seed_of
from engines.shared.scoring import test_time_margin, trust_from_evidence
from engines.shared.selection import deal_by_class
from tests.engines.helpers import digits_data, on_features

SEED = 3
TINY = {"epochs": 2, "batch_size": 64, "views": 2, "network": "mlp", "fewest_steps": 1}


@pytest.mark.parametrize("engine", ["choicenet", "coteaching"])
def test_train__each_label_is_judged_by_the_training_that_did_not_see_it(engine: str) -> None:
    data = on_features(digits_data(90, num_unlabeled=5)[0])
    spec = ENGINES[engine]
    config = replace(spec.config_type.preset("quick").for_features(), **TINY, folds=1)
    fold_of = deal_by_class(data.given_labels, 2, seed=SEED, name="folds")
    first = spec.train(hidden(data, fold_of == 0), config, seed=SEED, device="cpu")
    then = config.after_first(first.provenance.notes)
    each = [first, spec.train(hidden(data, fold_of == 1), then, seed=seed_of(SEED, 1), device="cpu")]
    both = spec.train(data, replace(config, folds=2), seed=SEED, device="cpu")

    assert both.is_out_of_sample
    assert seed_of(SEED, 0) == SEED
    for number in range(2):
        rows = fold_of == number
        np.testing.assert_allclose(both.pred_probs[rows], each[number].pred_probs[rows], rtol=1e-6)
    free = ~data.labeled
    expected = (each[0].pred_probs[free] + each[1].pred_probs[free]) / 2
    np.testing.assert_allclose(both.pred_probs[free], expected, rtol=1e-6)
    margin = test_time_margin(np.log(both.pred_probs), data.given_labels)
    np.testing.assert_array_equal(both.trust_score, trust_from_evidence(margin))
    assert np.isnan(both.trust_score[free]).all()
    for name, values in each[0].signals.items():
        known = np.isfinite(values) & np.isnan(each[1].signals[name])
        np.testing.assert_array_equal(both.signals[name][known], values[known], err_msg=name)
    np.testing.assert_array_equal(both.embeddings, each[0].embeddings)
    named = ["" if record.stage == "train" else f", {record.stage}" for record in each[0].history]
    assert [record.stage for record in both.history] == [
        f"fold {number}{rest}" for number in (1, 2) for rest in named
    ]
    assert (both.provenance.seed, both.provenance.notes["folds"]) == (SEED, 2)
    assert both.provenance.seconds == pytest.approx(sum(record.seconds for record in both.history))


def test_hidden__a_persons_word_goes_with_its_label_and_two_classes_stay() -> None:
    data = on_features(digits_data(60, num_trusted=20)[0])
    rows = np.arange(60) < 30
    left = hidden(data, rows)
    assert (left.given_labels[rows] == -1).all()
    assert not left.trusted_mask[rows].any()
    assert (left.given_labels[~rows] == data.given_labels[~rows]).all()
    assert hidden(data, np.ones(60, dtype=bool)) is data


def test_config__five_folds_and_enough_steps_on_features() -> None:
    config = FoldedConfig()
    assert (config.folds, config.for_features().folds, FoldedConfig(folds=8).for_features().folds) == (
        1,
        5,
        8,
    )
    with pytest.raises(EngineInputError, match="folds is 0, it must be at least 1"):
        FoldedConfig(folds=0)
    few = LoopConfig(epochs=6, batch_size=128, fewest_steps=150)
    assert [few.lengthened(num).epochs for num in (341, 1_280, 12_800)] == [75, 15, 6]
    assert few.lengthened(12_800).lengthened(341).epochs == 6


@pytest.mark.parametrize("engine", ["l2b", "coteaching", "choicenet"])
def test_work__is_that_of_all_trainings(engine: str) -> None:
    config = ENGINES[engine].config_type.preset("quick").for_features()
    one = replace(config, folds=1).work(50_000, 10, on_features=True)
    assert config.work(50_000, 10, on_features=True) == pytest.approx((4 * one.trained, 5 * one.scored))


@pytest.mark.parametrize("name", ["l2b", "coteaching", "choicenet"])
def test_for_finetuning__judges_out_of_fold(name: str) -> None:
    config = ENGINES[name].config_type.preset("quick")
    assert config.for_finetuning("timm:resnet10t", "w.pt").folds == 2
    assert replace(config, folds=5).for_finetuning("timm:resnet10t", "w.pt").folds == 5
