"""A few looks choose a weighting: figures by hand, and what the choice costs and gains on average."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.statistics.choice import choose


def test_choose__weighted_area_under_the_curve_by_hand() -> None:
    is_wrong = np.array([True] * 4 + [False] * 4)
    safe = np.array([0.1, 0.2, 0.3, 0.9, 0.4, 0.5, 0.6, 0.9])
    weights = np.array([1.0, 1, 1, 3, 1, 1, 1, 1])
    found = choose(safe[:, None], is_wrong, weights)
    # Three wrong rows of weight 1 lie below all right ones; that of weight 3 ties with one of four.
    assert found.aurocs[0] == pytest.approx((3 + 3 * 0.125) / 6)
    assert (found.chosen, found.num_wrong, found.num_right) == (0, 4, 4)


def test_choose__rows_that_stand_for_many_labels_decide() -> None:
    """One candidate is right about the rows of the head, the other about those of the rest."""
    is_wrong = np.tile([True, False], 20)
    in_head = np.arange(40) < 20
    right, opposite = np.where(is_wrong, 0.2, 0.8), np.where(is_wrong, 0.8, 0.2)
    of_head, of_rest = np.where(in_head, right, opposite), np.where(in_head, opposite, right)
    trust = np.stack([of_head, of_rest], axis=1)
    assert choose(trust, is_wrong, np.where(in_head, 1.0, 50.0)).chosen == 1
    assert choose(trust, is_wrong, np.where(in_head, 50.0, 1.0)).chosen == 0


@pytest.mark.parametrize("num_wrong", [0, 3])
def test_choose__too_few_of_a_kind_leave_the_safe_one(num_wrong: int) -> None:
    is_wrong = np.arange(40) < num_wrong
    trust = np.stack([np.zeros(40), np.where(is_wrong, 0.0, 1.0)], axis=1)
    found = choose(trust, is_wrong)
    assert found.chosen == 0
    assert np.isnan(found.aurocs).all()


def _draw(rng: np.random.Generator, skills: list[float], num: int) -> tuple[np.ndarray, np.ndarray]:
    is_wrong = rng.random(num) < 0.4
    noise = rng.normal(size=(num, len(skills)))
    return np.where(is_wrong, -1.0, 1.0)[:, None] * np.array(skills) / 2 + noise, is_wrong


def test_choose__clearly_better_candidate_is_found_by_forty_looks() -> None:
    chosen = [choose(*_draw(np.random.default_rng(seed), [0.8, 3.0, 0.8], 40)).chosen for seed in range(200)]
    assert np.mean(np.array(chosen) == 1) > 0.95


def test_choose__among_equals_the_safe_one_stays_more_often_than_by_the_highest_figure_alone() -> None:
    stays, highest = 0, 0
    for seed in range(200):
        found = choose(*_draw(np.random.default_rng(seed), [1.5, 1.5], 40))
        stays += found.chosen == 0
        highest += int(found.aurocs.argmax()) == 0
    assert highest < 120 < 125 < stays
