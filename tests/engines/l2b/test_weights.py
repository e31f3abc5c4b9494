"""L2B's weights against the paper's equations, written out by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from engines.l2b.weights import (
    Weights,
    combined_targets,
    fixed_weights,
    meta_weights,
    visit_trust,
    weight_share,
)
from engines.meta.directional import one_hot
from engines.shared.losses import soft_cross_entropy

ALL = torch.tensor([True, True, True])
ALPHA, BETA = torch.tensor([0.3, -0.2, 0.1]), torch.tensor([0.3, 0.4, -0.5])

floats = st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3)


def test_meta_weights__joint_is_the_positive_part_over_its_sum() -> None:
    weights = meta_weights(ALPHA, BETA, ALL)
    torch.testing.assert_close(weights.alpha, torch.tensor([0.3, 0.0, 0.1]) / 1.1)
    torch.testing.assert_close(weights.beta, torch.tensor([0.3, 0.4, 0.0]) / 1.1)


@given(alpha=floats, beta=floats, labeled=st.lists(st.booleans(), min_size=3, max_size=3))
def test_meta_weights__sum_to_one_or_are_all_zero(
    alpha: list[float], beta: list[float], labeled: list[bool]
) -> None:
    mask = torch.tensor(labeled)
    weights = meta_weights(torch.tensor(alpha), torch.tensor(beta), mask)
    both = torch.stack([*weights])
    assert torch.isfinite(both).all()
    assert (both >= 0).all()
    assert (weights.alpha[~mask] == 0).all()
    assert float(both.sum()) == pytest.approx(1, abs=1e-6) or (both == 0).all()


@pytest.mark.parametrize("factor", [1e-6, 7.0, 1e6])
def test_meta_weights__joint_ignores_a_common_factor(factor: float) -> None:
    plain, scaled = meta_weights(ALPHA, BETA, ALL), meta_weights(factor * ALPHA, factor * BETA, ALL)
    torch.testing.assert_close(scaled.alpha, plain.alpha)
    torch.testing.assert_close(scaled.beta, plain.beta)


def test_meta_weights__all_negative_gives_zero_weight_and_zero_gradient() -> None:
    weights = meta_weights(-ALPHA.abs(), -BETA.abs(), ALL)
    logits = torch.randn(3, 4, requires_grad=True)
    targets = one_hot(torch.tensor([0, 1, 2]), 4)
    soft_cross_entropy(logits, combined_targets(weights, targets, targets)).sum().backward()
    assert logits.grad is not None
    assert (logits.grad == 0).all()


def test_meta_weights__unlabeled_keeps_only_beta() -> None:
    weights = meta_weights(ALPHA.abs(), BETA.abs(), torch.tensor([True, False, True]))
    assert weights.alpha[1] == 0
    assert weights.beta[1] > 0


def test_combined_targets__convex_weights_are_cross_entropy_of_the_mixed_target() -> None:
    logits = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels, pseudo = torch.tensor([0, 1, 3]), torch.tensor([2, 1, 0])
    b = torch.tensor([0.2, 0.7, 1.0], dtype=torch.float64)
    weights = Weights(1 - b, b)
    found = soft_cross_entropy(logits, combined_targets(weights, one_hot(labels, 4), one_hot(pseudo, 4)))
    two_losses = (1 - b) * F.cross_entropy(logits, labels, reduction="none")
    two_losses += b * F.cross_entropy(logits, pseudo, reduction="none")
    torch.testing.assert_close(found, two_losses)


def test_fixed_weights__are_the_mean_over_the_labeled() -> None:
    plain = fixed_weights(torch.tensor([True, False, True]))
    assert plain.alpha.tolist() == [0.5, 0.0, 0.5]
    assert plain.beta.tolist() == [0.0, 0.0, 0.0]


def test_visit_trust__follows_its_three_cases() -> None:
    weights = Weights(torch.tensor([0.2, 0.0, 0.1, 0.0]), torch.tensor([0.2, 0.0, 0.3, 0.4]))
    same = torch.tensor([True, True, False, False])
    torch.testing.assert_close(visit_trust(weights, same), torch.tensor([1.0, 0.5, 0.25, 0.0]))
    share = weight_share(weights)
    assert share[1].isnan()
    assert share[0] == 0.5
