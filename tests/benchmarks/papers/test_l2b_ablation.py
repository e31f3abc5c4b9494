"""The ablation's weights by hand."""

from __future__ import annotations

import torch

from benchmarks.papers.l2b_ablation import convex, given_alone, pseudo_alone

ALL = torch.tensor([True, True, True])
ALPHA, BETA = torch.tensor([0.3, -0.2, 0.1]), torch.tensor([0.3, 0.4, -0.5])


def test_given_alone__normalises_the_given_labels() -> None:
    weights = given_alone(ALPHA, BETA, ALL)
    torch.testing.assert_close(weights.alpha, torch.tensor([0.75, 0.0, 0.25]))
    assert (weights.beta == 0).all()


def test_pseudo_alone__normalises_the_pseudo_labels() -> None:
    weights = pseudo_alone(ALPHA, BETA, ALL)
    torch.testing.assert_close(weights.beta, torch.tensor([3 / 7, 4 / 7, 0.0]))
    assert (weights.alpha == 0).all()


def test_convex__is_convex_in_each_sample() -> None:
    alpha, beta = torch.tensor([0.3, -1.0, -1.0]), torch.tensor([0.1, 0.4, -0.5])
    weights = convex(alpha, beta, ALL)
    torch.testing.assert_close(weights.alpha, torch.tensor([0.75, 0.0, 1.0]) / 3)
    torch.testing.assert_close(weights.alpha + weights.beta, torch.full((3,), 1 / 3))
