"""Several trainings of an engine: their mean, their record, and when there are several."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.contract import EngineInputError
from engines.registry import ENGINES
from engines.shared.averaged import AveragedConfig, seed_of
from tests.engines.helpers import digits_data, on_features

SEED = 3
TINY = {"epochs": 2, "batch_size": 64, "views": 2, "network": "mlp"}


@pytest.mark.parametrize("engine", ["choicenet", "coteaching"])
def test_train__two_trainings_are_the_mean_of_two_seeds(engine: str) -> None:
    data = on_features(digits_data(90, num_unlabeled=5)[0])
    spec = ENGINES[engine]
    config = replace(spec.config_type.preset("quick").for_features(), **TINY, trainings=1)
    one, other = (spec.train(data, config, seed=seed_of(SEED, number), device="cpu") for number in range(2))
    both = spec.train(data, replace(config, trainings=2), seed=SEED, device="cpu")

    def mean(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.mean([a, b], axis=0, dtype=np.float64).astype(a.dtype)

    assert seed_of(SEED, 0) == SEED
    assert not np.array_equal(one.trust_score, other.trust_score)
    for name in ("trust_score", "pred_probs"):
        expected = mean(getattr(one, name), getattr(other, name))
        np.testing.assert_array_equal(getattr(both, name), expected, err_msg=name)
    for name, values in one.signals.items():
        known = np.isfinite(values) & np.isfinite(other.signals[name])
        expected = mean(values, other.signals[name])[known]
        np.testing.assert_array_equal(both.signals[name][known], expected, err_msg=name)
    for name, history in one.signal_history.items():
        known = np.isfinite(history) & np.isfinite(other.signal_history[name])
        expected = mean(history, other.signal_history[name])[known]
        np.testing.assert_array_equal(both.signal_history[name][known], expected, err_msg=name)
    np.testing.assert_array_equal(both.embeddings, one.embeddings)
    stages = [record.stage for record in one.history]
    named = ["" if stage == "train" else f", {stage}" for stage in stages]
    assert [record.stage for record in both.history] == [
        f"training {number}{rest}" for number in (1, 2) for rest in named
    ]
    assert (both.provenance.seed, both.provenance.notes["trainings"]) == (SEED, 2)
    assert both.provenance.seconds == pytest.approx(sum(record.seconds for record in both.history))


def test_trainings_for__five_on_features_of_few_rows_and_else_one() -> None:
    config = AveragedConfig()
    assert [config.trainings_for(num, on_features=True) for num in (300, 2_000, 2_001)] == [5, 5, 1]
    assert config.trainings_for(300, on_features=False) == 1
    assert AveragedConfig(trainings=3).trainings_for(9_000, on_features=False) == 3
    with pytest.raises(EngineInputError, match="trainings is 0, it must be at least 1"):
        AveragedConfig(trainings=0)


@pytest.mark.parametrize("engine", ["umn", "l2b", "coteaching", "choicenet"])
def test_work__is_that_of_all_trainings(engine: str) -> None:
    config = ENGINES[engine].config_type.preset("quick").for_features()
    one = replace(config, trainings=1).work(500, 10, on_features=True)
    assert config.work(500, 10, on_features=True) == pytest.approx((5 * one.trained, 5 * one.scored))
    assert ENGINES[engine].config_type.preset("paper").for_features().trainings == 1


def test_parts__of_several_trainings_there_are_none() -> None:
    data, spec = digits_data(200)[0], ENGINES["coteaching"]
    config = spec.config_type.preset("quick")
    assert spec.parts is not None
    assert len(spec.parts(data, config)) > 3
    assert spec.parts(on_features(data), config.for_features()) == ()
