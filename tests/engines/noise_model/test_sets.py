"""The noise model on sets of classes, each class a question of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engines.contract import EngineInputError, EpochRecord, SetData, TrainingCancelled, TrainingData
from engines.noise_model.sets import NoiseModelConfig, train
from engines.noise_model.training import train as train_classes


def sets_and_features(num: int = 80) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    sets = (rng.random((num, 3)) < 0.5).astype(np.int8)
    return sets, (sets + rng.normal(0, 0.3, sets.shape)).astype(np.float32)[:, None]


def test_train__asks_about_each_class_as_of_two_classes() -> None:
    sets, features = sets_and_features()
    sets[5] = -1
    found = train(SetData(features, sets), NoiseModelConfig(), device="cpu")
    assert found.is_out_of_sample
    alone = train_classes(
        TrainingData(None, sets[:, 1].astype(np.int64), 2, features=features),
        NoiseModelConfig(),
        device="cpu",
    )
    assert np.allclose(found.probs[:, 1], alone.pred_probs[:, 1], atol=1e-3)
    assert ((found.probs > 0.5) == (features[:, 0] > 0.5))[sets[:, 0] >= 0].mean() > 0.95
    assert [round(one.progress, 6) for one in found.history][-1] == 1.0


def test_train__a_class_that_nobody_lacks_is_not_asked_about() -> None:
    sets, features = sets_and_features(40)
    sets[:, 2] = 1
    found = train(SetData(features, sets), NoiseModelConfig(), device="cpu")
    assert (found.probs[:, 2] == np.float32(40.5 / 41)).all()
    assert found.provenance.notes["classes_asked"] == 2


class Kept:
    """A checkpoint in memory."""

    state: dict[str, Any] | None = None

    def load(self) -> dict[str, Any] | None:
        return self.state

    def save(self, state: dict[str, Any]) -> None:
        self.state = {key: list(value) if isinstance(value, list) else value for key, value in state.items()}


def test_train__goes_on_where_it_was_stopped() -> None:
    sets, features = sets_and_features(40)
    data, kept = SetData(features, sets), Kept()
    whole = train(data, NoiseModelConfig(), device="cpu")

    def stop(record: EpochRecord) -> None:
        if record.stage == "class 2":
            raise TrainingCancelled

    with pytest.raises(TrainingCancelled):
        train(data, NoiseModelConfig(), device="cpu", on_epoch=stop, checkpoint=kept)
    heard: list[str] = []
    again = train(
        data, NoiseModelConfig(), device="cpu", on_epoch=lambda one: heard.append(one.stage), checkpoint=kept
    )
    assert heard[0] == "class 2"
    assert (again.probs == whole.probs).all()


def test_set_data__refuses_what_is_no_set() -> None:
    sets, features = sets_and_features(10)
    with pytest.raises(EngineInputError, match=r"sets must be \(10, K\) int8"):
        SetData(features, sets.astype(np.int64))
    sets[4, 1] = -1
    with pytest.raises(EngineInputError, match=r"sets\[4\] holds more than 0 and 1"):
        SetData(features, sets)
    with pytest.raises(EngineInputError, match="no class is given to some samples and not to others"):
        SetData(features, np.ones((10, 2), np.int8)).require_labels()
