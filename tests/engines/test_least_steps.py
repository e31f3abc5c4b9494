"""``least_steps``: smaller batches on few samples, in every engine that trains in passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engines.contract import TrainingData
from engines.registry import ENGINES

NUM_ROWS, STEPS = 200, 4


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("cross_entropy", {"folds": 1}),
        ("coteaching", {"noise_rate": 0.2, "folds": 1}),
        ("l2b", {"warmup_epochs": 1, "folds": 1}),
        ("choicenet", {"folds": 1}),
    ],
)
def test_train__least_steps_are_those_of_the_smaller_batch(name: str, settings: dict[str, Any]) -> None:
    draws = np.random.default_rng(0)
    labels = np.arange(NUM_ROWS) % 4
    features = draws.normal(size=(NUM_ROWS, 1, 12)).astype(np.float32) + 2 * np.eye(12)[labels][:, None]
    data = TrainingData(None, labels, 4, features=features.astype(np.float32))
    spec = ENGINES[name]
    config = spec.config_type.preset("quick").for_features()
    config = replace(config, epochs=2, fewest_steps=1, batch_size=128, **settings)
    found, expected, whole = (
        spec.train(data, replace(config, **change), seed=0, device="cpu").pred_probs
        for change in (
            {"least_steps": STEPS},
            {"least_steps": 1, "batch_size": NUM_ROWS // STEPS},
            {"least_steps": 1},
        )
    )
    np.testing.assert_array_equal(found, expected)
    assert not np.array_equal(found, whole)


def test_for_features__l2b_and_umn_take_smaller_batches_on_few_samples() -> None:
    configs = {name: spec.config_type.preset("quick").for_features() for name, spec in ENGINES.items()}
    sizes = {
        name: config.batch_size_for(341) for name, config in configs.items() if hasattr(config, "batch_size")
    }
    assert sizes == {"umn": 32, "l2b": 32, "coteaching": 128, "choicenet": 64, "cross_entropy": 128}
