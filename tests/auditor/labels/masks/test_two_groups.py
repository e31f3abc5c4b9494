"""How likely regions are wrong, by the group of an engine's own errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from auditor.labels.masks import two_groups


def scores_of(num_errors: int, num_wrong: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores around 9 of an engine's errors, then around 16 of wrong masks; and which are wrong."""
    random = np.random.default_rng(seed)
    scores = np.concatenate([random.normal(9, 1.5, num_errors), random.normal(16, 2, num_wrong)])
    return scores, np.arange(len(scores)) >= num_errors


def test_says__is_the_mean_ratio_and_the_share_of_both() -> None:
    seen, given = np.array([0.8, 0.6], np.float16), np.array([0.1, 0.3], np.float16)
    ratio, own = two_groups.says(seen, given)
    assert ratio == pytest.approx((np.log(8) + np.log(2)) / 2, abs=2e-3)
    assert own == pytest.approx((8 / 9 + 2 / 3) / 2, abs=1e-3)


def test_score__counts_area_and_ratio_and_what_is_often_confused_less() -> None:
    assert two_groups.score(100, 2.0, 0.1) == pytest.approx(np.log(100) + 2 + np.log(10))
    assert two_groups.score(100, 2.0, 0.01) > two_groups.score(100, 2.0, 0.1)
    assert np.isfinite(two_groups.score(1, 0.0, 0.0))


def test_chances_wrong__follow_the_densities_that_the_scores_are_drawn_from() -> None:
    scores, is_wrong = scores_of(4_000, 1_000)
    found = two_groups.chances_wrong(scores, np.ones(len(scores)), 100)
    errors, wrong = 0.8 * norm.pdf(scores, 9, 1.5), 0.2 * norm.pdf(scores, 16, 2)
    assert np.abs(found - wrong / (errors + wrong))[scores > 10].mean() < 0.07
    assert is_wrong[found >= 0.5].mean() > 0.9
    assert (found >= 0.5)[is_wrong].mean() > 0.85
    assert (found[scores < 8.5] == 0).all()


def test_chances_wrong__rise_with_the_score() -> None:
    scores, _ = scores_of(300, 60, seed=1)
    found = two_groups.chances_wrong(scores, np.ones(len(scores)), 30)
    assert (np.diff(found[np.argsort(scores)]) >= 0).all()
    assert ((found >= 0) & (found <= 1)).all()


def test_chances_wrong__of_errors_alone_few_are_likely() -> None:
    shares = []
    for seed in range(10):
        scores, _ = scores_of(500, 0, seed)
        shares.append((two_groups.chances_wrong(scores, np.ones(500), 100) >= 0.5).mean())
    assert np.mean(shares) < 0.05


def test_chances_wrong__few_regions_are_no_group_and_the_engine_s_own_probabilities_stand() -> None:
    scores, _ = scores_of(60, 10)
    own = np.linspace(0.7, 1, 70)
    assert (two_groups.chances_wrong(scores, own, 71) == own).all()
    assert not (two_groups.chances_wrong(scores, own, 70) == own).all()
    assert (two_groups.chances_wrong(np.full(70, 3.0), own, 10) == own).all()
    assert two_groups.chances_wrong(np.array([]), np.array([]), 0).shape == (0,)
