"""The equations of the semi-supervised bases on written-out numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from engines.l2b.bases import division
from engines.l2b.bases.division import divide_by_mixture, divide_uniformly, jensen_shannon
from engines.l2b.bases.semi_supervised import (
    balance_penalty,
    mix,
    mixmatch_loss,
    mixup_pairs,
    refine_labels,
    sharpen,
    unlabeled_weight_at,
)

EVERY = np.ones(6, dtype=bool)
NOBODY = np.zeros(6, dtype=bool)


def test_sharpen__squares_at_one_half_and_keeps_at_one() -> None:
    probs = torch.tensor([[0.6, 0.3, 0.1]])
    torch.testing.assert_close(sharpen(probs, 1.0), probs)
    torch.testing.assert_close(sharpen(probs, 0.5), torch.tensor([[36.0, 9.0, 1.0]]) / 46)


def test_refine_labels__blends_by_weight() -> None:
    given, own = torch.tensor([[1.0, 0.0]] * 3), torch.tensor([[0.2, 0.8]] * 3)
    found = refine_labels(given, own, torch.tensor([1.0, 0.0, 0.5]), 1.0)
    torch.testing.assert_close(found, torch.tensor([[1.0, 0.0], [0.2, 0.8], [0.6, 0.4]]))


def test_mix__takes_the_share_of_each_row() -> None:
    found = mix(torch.tensor([[0.0], [10.0]]), 0.75, torch.tensor([1, 0]))
    torch.testing.assert_close(found, torch.tensor([[2.5], [7.5]]))


def test_unlabeled_weight_at__rises_in_a_line() -> None:
    found = [unlabeled_weight_at(t, start=2, ramp=4, largest=25) for t in (0, 2, 3, 6, 9)]
    assert found == [0, 0, 6.25, 25, 25]


def test_mixmatch_loss__of_fitted_balanced_rows_is_their_error_alone() -> None:
    logits = torch.tensor([[50.0, 0.0], [0.0, 50.0], [0.0, 0.0]], dtype=torch.float64)
    targets = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    assert float(mixmatch_loss(logits, targets, 2, 3.0)) == pytest.approx(3 * 0.25, abs=1e-6)
    assert float(mixmatch_loss(logits[:2], targets[:2], 2, 3.0)) == pytest.approx(0, abs=1e-6)


def test_balance_penalty__is_zero_for_equal_use_of_classes_only() -> None:
    assert float(balance_penalty(torch.tensor([[2.0, 0.0], [0.0, 2.0]]))) == pytest.approx(0, abs=1e-6)
    assert float(balance_penalty(torch.tensor([[2.0, 0.0], [2.0, 0.0]]))) > 0.2


def test_jensen_shannon__is_the_definition() -> None:
    probs = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4]])
    found = jensen_shannon(probs, np.array([0, 1, 0, -1]))
    middle = np.array([0.85, 0.1, 0.05])
    wanted = (0.7 * np.log(0.7 / 0.85) + 0.3 * np.log(2) + np.log(1 / middle[0])) / 2
    np.testing.assert_allclose(found, [wanted, 0.0, math.log(2), np.nan], atol=1e-12)


def test_divide_by_mixture__believes_above_the_threshold_and_what_is_confirmed() -> None:
    clean = np.array([0.9, 0.2, 0.6, 0.1, np.nan, 0.4])
    trusted = np.array([False, False, False, True, False, False])
    trains = np.array([True, True, True, True, True, False])
    found = divide_by_mixture(clean, trusted, trains)
    assert found.labeled.tolist() == [0, 2, 3]
    assert found.unlabeled.tolist() == [1, 4]
    assert found.weight.tolist() == [0.9, 0.2, 0.6, 1.0, 0.0, 0.4]


@pytest.mark.parametrize(("threshold", "labeled"), [(0.999, [5]), (0.0, [1, 2, 3, 4, 5])])
def test_divide_by_mixture__leaves_no_part_empty(
    threshold: float, labeled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(division, "BELIEVED", threshold)
    clean = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert divide_by_mixture(clean, NOBODY, EVERY).labeled.tolist() == labeled


def test_divide_uniformly__takes_as_many_of_every_class() -> None:
    # Four of the six lie below the mean: two of each class, though class 1 is worse throughout.
    divergence = np.array([0.01, 0.02, 0.03, 0.1, 0.6, 0.69])
    found = divide_uniformly(divergence, np.array([0, 0, 0, 1, 1, 1]), NOBODY, EVERY)
    assert found.labeled.tolist() == [0, 1, 3, 4]
    assert found.unlabeled.tolist() == [2, 5]
    np.testing.assert_allclose(found.weight, [1, 1, 1, 1, 0.4, 0.31])


def test_divide_uniformly__takes_the_best_of_each_of_three_classes() -> None:
    # Four of the six lie below the mean: one of each class.
    divergence = np.array([0.1, 0.2, 0.3, 0.05, 0.6, 0.69])
    found = divide_uniformly(divergence, np.array([0, 0, 1, 1, 2, 2]), NOBODY, EVERY)
    assert found.labeled.tolist() == [0, 3, 4]


def test_mixup_pairs__draws_from_its_generator() -> None:
    def draw() -> tuple[float, Tensor]:
        return mixup_pairs(6, 32.0, torch.Generator().manual_seed(3))

    share, partner = draw()
    assert 0.2 < share < 0.8  # Beta(32, 32) is 0.5 +- 0.06
    assert sorted(partner.tolist()) == list(range(6))
    assert draw()[0] == share
    # Drawn in float64: not one of the coarser numbers of float32.
    assert float(np.float32(share)) != share
