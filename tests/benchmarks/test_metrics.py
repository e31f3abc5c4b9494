"""Metrics by hand, against scikit-learn, and at their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.metrics import (
    auroc,
    average_precision,
    label_precision,
    precision_at_k,
    precision_recall_f1,
)

WRONG = np.array([1, 0, 1, 1, 0, 0, 0, 0], dtype=bool)
FLAGGED = np.array([1, 1, 1, 0, 0, 0, 0, 0], dtype=bool)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100_000))
def test_auroc_and_average_precision__match_scikit_learn_with_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wrong = rng.random(40) < 0.3
    wrong[:2] = True, False
    score = rng.integers(0, 8, 40) + 2.0 * wrong
    assert auroc(wrong, score) == pytest.approx(roc_auc_score(wrong, score))
    assert average_precision(wrong, score) == pytest.approx(average_precision_score(wrong, score))


def test_auroc__constant_perfect_and_inverted() -> None:
    assert auroc(WRONG, np.zeros(8)) == 0.5
    assert auroc(WRONG, WRONG.astype(float)) == 1.0
    assert auroc(WRONG, -WRONG.astype(float)) == 0.0


def test_auroc__unlabeled_rows_do_not_count() -> None:
    score = np.array([0.9, 0.1, np.nan, np.nan])
    assert auroc([True, False, True, False], score) == 1.0


def test_auroc__infinite_suspicion_ties() -> None:
    assert auroc([True, False], [np.inf, np.inf]) == 0.5
    assert average_precision([True, False], [np.inf, np.inf]) == 0.5


def test_detection__one_kind_missing_is_nan() -> None:
    assert math.isnan(auroc(np.zeros(3, dtype=bool), np.arange(3)))
    assert math.isnan(average_precision(np.zeros(3, dtype=bool), np.arange(3)))


def test_auroc__shapes_differ() -> None:
    with pytest.raises(ValueError, match=r"is_wrong is \(2,\) but suspicion is \(3,\)"):
        auroc([True, False], [1.0, 2.0, 3.0])


def test_precision_at_k__by_hand() -> None:
    score = np.array([0.9, 0.8, 0.7, 0.1, 0.2, 0.3, 0.1, 0.1])
    assert precision_at_k(WRONG, score) == pytest.approx(2 / 3)  # k = 3 wrong labels
    assert precision_at_k(WRONG, score, k=1) == 1.0
    assert precision_at_k(WRONG, score, k=100) == pytest.approx(3 / 8)
    assert math.isnan(precision_at_k(WRONG, score, k=0))


def test_precision_at_k__ties_do_not_depend_on_order() -> None:
    score = np.array([1.0, 0.5, 0.5, 0.5])
    for wrong in ([1, 1, 0, 0], [1, 0, 0, 1]):
        assert precision_at_k(np.array(wrong, dtype=bool), score, k=2) == pytest.approx((1 + 1 / 3) / 2)


def test_precision_recall_f1__by_hand() -> None:
    found = precision_recall_f1(WRONG, FLAGGED)
    assert found == pytest.approx((2 / 3, 2 / 3, 2 / 3))


def test_precision_recall_f1__nothing_flagged_warns() -> None:
    with pytest.warns(UserWarning, match="precision is 0/0"):
        assert precision_recall_f1(WRONG, np.zeros(8, dtype=bool)) == (0.0, 0.0, 0.0)
    with pytest.warns(UserWarning, match="recall is 0/0"):
        assert precision_recall_f1(np.zeros(8, dtype=bool), FLAGGED) == (0.0, 0.0, 0.0)


def test_label_precision__oracle_and_by_hand() -> None:
    assert label_precision(WRONG, ~WRONG) == 1.0
    assert label_precision(WRONG, FLAGGED) == pytest.approx(1 / 3)
    assert math.isnan(label_precision(WRONG, np.zeros(8, dtype=bool)))


def test_label_precision__random_selector_is_one_minus_the_noise() -> None:
    rng = np.random.default_rng(0)
    wrong = rng.random(200_000) < 0.3
    assert label_precision(wrong, rng.random(200_000) < 0.5) == pytest.approx(0.7, abs=0.005)
