"""The sums of one epoch by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from engines.coteaching.rules import Choice
from engines.coteaching.signals import EpochLog


def choice_of(weights: list[list[float]]) -> Choice:
    tensor = torch.tensor(weights)
    return Choice(tensor, tensor.sum(dim=1).clamp(min=1), (tensor > 0).float())


def test_outcome__kept_loss_is_the_weighted_mean_of_small_weights_too() -> None:
    sums = EpochLog(4, torch.device("cpu"))
    losses: Tensor = torch.tensor([[2.0, 6.0, 1.0], [4.0, 3.0, 5.0]])
    correct = torch.tensor([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    sums.add(torch.tensor([3, 0, 1]), losses, choice_of([[0.25, 0, 0], [0, 0.125, 0]]), correct)
    outcome = sums.outcome()
    assert outcome.loss == pytest.approx(21 / 6)
    assert outcome.kept_loss == pytest.approx((0.25 * 2 + 0.125 * 3) / 0.375)
    assert outcome.train_accuracy == pytest.approx(3 / 6)
    np.testing.assert_array_equal(outcome.selected, [0.5, 0, 0, 0.5])
    np.testing.assert_array_equal(outcome.losses, [4.5, 3, np.nan, 3])
    assert outcome.visited.tolist() == [True, True, False, True]


def test_outcome__nothing_kept_is_a_kept_loss_of_zero() -> None:
    sums = EpochLog(1, torch.device("cpu"))
    sums.add(torch.tensor([0]), torch.tensor([[2.0]]), choice_of([[0.0]]), torch.tensor([[0.0]]))
    assert (sums.outcome().loss, sums.outcome().kept_loss) == (2.0, 0.0)
