"""Who learns from what: Co-teaching's exchange, and losses that are reduced exactly once."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from engines.coteaching.rules import choose_exchanged, mean_loss

LOSSES = torch.tensor([[0.1, 0.9, 0.5, 0.2], [0.8, 0.1, 0.2, 0.9]], dtype=torch.float64)
"""One pair, four samples: the first network finds 0 and 3 small, the second 1 and 2."""


def test_choose_exchanged__keeps_as_many_as_equation_2_says() -> None:
    losses = torch.rand(2, 20)
    # floor(0.55 * 20) is 10 in floating point without the guard.
    kept = [int(choose_exchanged(losses, rate).selected[0].sum()) for rate in (0.55, 0.01, 1.0, 0.7)]
    assert kept == [11, 1, 20, 14]


def test_choose_exchanged__each_learns_from_what_the_other_finds_small() -> None:
    choice = choose_exchanged(LOSSES, 0.5)
    assert choice.selected.tolist() == [[1, 0, 0, 1], [0, 1, 1, 0]]
    assert choice.weights.tolist() == [[0, 1, 1, 0], [1, 0, 0, 1]]
    assert mean_loss(LOSSES, choice).tolist() == [pytest.approx(0.7), pytest.approx(0.85)]


def test_choose_exchanged__identical_networks_select_identical_sets() -> None:
    losses = torch.rand(1, 32, dtype=torch.float64).repeat(2, 1)
    choice = choose_exchanged(losses, 0.35)
    assert torch.equal(choice.weights[0], choice.weights[1])


def test_mean_loss__gradient_is_the_hand_computed_mean() -> None:
    """The trap of the reference code: mean of the kept losses, divided by their number again."""
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.5, 0.5]], dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 0, 1])
    losses = F.cross_entropy(logits, labels, reduction="none").repeat(2, 1)
    choice = choose_exchanged(losses, 0.67)  # samples 0 and 2
    (gradient,) = torch.autograd.grad(mean_loss(losses, choice)[0], logits)
    p = torch.softmax(logits.detach(), dim=1)
    expected = torch.zeros(3, 2, dtype=torch.float64)
    expected[0] = (p[0] - torch.tensor([1.0, 0.0])) / 2
    expected[2] = (p[2] - torch.tensor([0.0, 1.0])) / 2
    torch.testing.assert_close(gradient, expected)
    assert torch.equal(gradient[1], torch.zeros(2, dtype=torch.float64))


def test_mean_loss__keeping_everything_is_the_mean_bit_for_bit() -> None:
    losses = torch.rand(2, 37)
    assert torch.equal(mean_loss(losses, choose_exchanged(losses, 1.0)), losses.mean(dim=1))
