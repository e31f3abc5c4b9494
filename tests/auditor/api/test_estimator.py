"""The face in scikit-learn's style."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from auditor.api.estimator import LabelAuditor
from tests.auditor.audits.test_features_audit import make_weights

TINY = {"cross_entropy": {"epochs": 2, "views": 1}}


@pytest.mark.parametrize("kind", ["features", "images"])
def test_label_auditor__finds_planted_errors(kind: str) -> None:
    pixels, truth = load_digits(return_X_y=True)
    pixels, truth = pixels[:400], truth[:400]
    wrong = np.random.default_rng(0).choice(400, 40, replace=False)
    given = truth.copy()
    given[wrong] = (truth[wrong] + 3) % 10
    images = (pixels.reshape(-1, 8, 8) * 15).astype(np.uint8)
    options = {
        "cross_entropy": {"epochs": 12, "views": 1} | ({} if kind == "features" else {"network": "mlp"})
    }
    found = LabelAuditor(options=options, device="cpu").fit(pixels if kind == "features" else images, given)
    assert roc_auc_score(~np.isin(np.arange(400), wrong), found.label_quality_) > 0.85
    assert found.label_quality_[found.suspects_].tolist() == sorted(found.label_quality_[found.suspects_])
    assert np.isin(found.suspects_, wrong).mean() > 0.5
    assert 0 <= found.noise_rate_.low <= found.noise_rate_.high <= 1
    assert set(found.suggested_) <= set(found.classes_)


def test_label_auditor__looks_through_a_backbone(tmp_path: Path) -> None:
    """Which backbone it is shows in nothing but the features; random weights tell black from white."""
    weights = make_weights(tmp_path, "timm:test_resnet")
    images = np.zeros((24, 16, 16), np.uint8)
    images[::2] = 255
    given = np.arange(24) % 2
    given[3] = 0
    options = {"cross_entropy": {"epochs": 6, "views": 1}}
    found = LabelAuditor(
        backbone="timm:test_resnet", weights=weights, views=1, options=options, device="cpu"
    ).fit(images, given)
    assert found.label_quality_.argmin() == 3
    with pytest.raises(ValueError, match="X has features, so the backbone sees nothing"):
        LabelAuditor(backbone="timm:test_resnet", weights=weights).fit(np.zeros((4, 3)), [0, 1, 0, 1])


def test_label_auditor__class_names_and_one_class() -> None:
    features = np.random.default_rng(0).normal(size=(30, 4))
    found = LabelAuditor(options=TINY, device="cpu").fit(features, np.array(["cat", "dog"] * 15))
    assert set(found.suggested_) <= {"cat", "dog"}
    with pytest.raises(ValueError, match="needs two classes or more; y has one class"):
        LabelAuditor(options=TINY).fit(features, ["cat"] * 30)
