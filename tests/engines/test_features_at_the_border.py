"""What the contract says of features that cannot be trained on."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from engines.contract import FINITE_CHECK_BYTES, EngineInputError, EvaluationSet, TrainingData
from tests.engines.helpers import digits, features_of

IMAGES, LABELS = digits(12)
FEATURES = features_of(IMAGES)


def data(features: Any = FEATURES, **options: Any) -> TrainingData:
    return TrainingData(options.pop("images", None), LABELS, 10, features=features, **options)


def test_training_data__features_in_place_of_images() -> None:
    for dtype in (np.float16, np.float32):
        found = data(FEATURES.astype(dtype))
        assert found.num_samples == 12
        assert found.inputs is found.features
        assert not found.trusted_mask.any()


@pytest.mark.parametrize(("images", "features"), [(None, None), (IMAGES, FEATURES)])
def test_training_data__exactly_one_form(images: Any, features: Any) -> None:
    found = "neither" if images is None else "both"
    with pytest.raises(EngineInputError, match=f"images or features, exactly one of the two; got {found}"):
        data(features, images=images)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (FEATURES.astype(np.float64), r"must be \(N, V, D\) float16 or float32, got \(12, 3, 64\) float64"),
        (FEATURES[:, 0], r"got \(12, 64\) float16; one view is features\[:, None, :\]"),
        (FEATURES[:, :0], r"features is empty \(12, 0, 64\)"),
        (FEATURES[:5], r"given_labels must be \(5,\) int64"),
    ],
)
def test_training_data__shape_and_dtype(features: Any, message: str) -> None:
    with pytest.raises(EngineInputError, match=message):
        data(features)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_training_data__a_value_that_is_not_finite_names_its_row(value: float) -> None:
    features = FEATURES.copy()
    features[7, 2, 5] = features[9, 0, 0] = value
    with pytest.raises(EngineInputError, match=rf"features\[7\] \(view 2, value 5\) is {value}"):
        data(features)


def test_training_data__a_row_beyond_the_first_piece_is_named_too() -> None:
    row = FINITE_CHECK_BYTES // (4096 * 2) + 3
    features = np.zeros((row + 2, 1, 4096), dtype=np.float16)
    features[row, 0, 11] = np.nan
    with pytest.raises(EngineInputError, match=rf"features\[{row}\] \(view 0, value 11\)"):
        TrainingData(None, np.zeros(row + 2, dtype=np.int64), 2, features=features)


def test_evaluation__in_the_form_of_the_training_data() -> None:
    heldout = EvaluationSet(None, LABELS[:4], FEATURES[:4, :1])
    assert data(evaluation=heldout).evaluation is heldout
    with pytest.raises(
        EngineInputError, match="training is on features; give the evaluation set as features"
    ):
        data(evaluation=EvaluationSet(IMAGES, LABELS))
    with pytest.raises(EngineInputError, match="training is on images; give the evaluation set as images"):
        TrainingData(IMAGES, LABELS, 10, evaluation=heldout)
    with pytest.raises(EngineInputError, match="have 63 values a view but the features have 64"):
        data(evaluation=EvaluationSet(None, LABELS, np.ascontiguousarray(FEATURES[:, :, :63])))
    broken = dataclasses.replace(heldout, features=np.full((4, 1, 64), np.nan, dtype=np.float32))
    with pytest.raises(EngineInputError, match=r"evaluation.features\[0\]"):
        data(evaluation=broken)
