"""L2B's weights against the paper's equations, written out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from engines.l2b.config import L2BConfig
from engines.l2b.weights import (
    Weights,
    combined_targets,
    fixed_weights,
    meta_weights,
    mixup_pairs,
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


def test_meta_weights__sigmoid_and_softmax_by_hand() -> None:
    raw = torch.cat([ALPHA, BETA])
    sigmoid = meta_weights(ALPHA, BETA, ALL, normalization="sigmoid")
    torch.testing.assert_close(torch.cat([*sigmoid]), torch.sigmoid(raw) / torch.sigmoid(raw).sum())
    softmax = meta_weights(ALPHA, BETA, ALL, normalization="softmax", temperature=0.5)
    torch.testing.assert_close(torch.cat([*softmax]), torch.softmax(raw / 0.5, 0))
    as_configured = L2BConfig().softmax_temperature
    plain = meta_weights(40 * ALPHA, 40 * BETA, ALL, normalization="softmax")
    torch.testing.assert_close(torch.cat([*plain]), torch.softmax(40 * raw / as_configured, 0))


@pytest.mark.parametrize("normalization", ["joint", "sigmoid", "softmax"])
@pytest.mark.parametrize("variant", ["l2b", "l2rw", "alpha0", "alpha_plus_beta_1"])
@given(alpha=floats, beta=floats, labeled=st.lists(st.booleans(), min_size=3, max_size=3))
def test_meta_weights__sum_to_one_or_are_all_zero(
    variant: str, normalization: str, alpha: list[float], beta: list[float], labeled: list[bool]
) -> None:
    mask = torch.tensor(labeled)
    weights = meta_weights(
        torch.tensor(alpha), torch.tensor(beta), mask, variant=variant, normalization=normalization
    )
    both = torch.stack([*weights])
    assert torch.isfinite(both).all()
    assert (both >= 0).all()
    assert (weights.alpha[~mask] == 0).all()
    total = float(both.sum())
    if variant == "alpha_plus_beta_1":
        silent = int((~mask & (torch.tensor(beta) <= 0)).sum())
        assert total == pytest.approx((3 - silent) / 3, abs=1e-6)
    else:
        assert total == pytest.approx(1, abs=1e-6) or (both == 0).all()


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


def test_meta_weights__l2rw_normalises_the_given_labels_alone() -> None:
    weights = meta_weights(ALPHA, BETA, ALL, variant="l2rw")
    torch.testing.assert_close(weights.alpha, torch.tensor([0.75, 0.0, 0.25]))
    assert (weights.beta == 0).all()


def test_meta_weights__alpha0_normalises_the_pseudo_labels_alone() -> None:
    weights = meta_weights(ALPHA, BETA, ALL, variant="alpha0")
    torch.testing.assert_close(weights.beta, torch.tensor([3 / 7, 4 / 7, 0.0]))
    assert (weights.alpha == 0).all()


def test_meta_weights__alpha_plus_beta_1_is_convex_in_each_sample() -> None:
    alpha, beta = torch.tensor([0.3, -1.0, -1.0]), torch.tensor([0.1, 0.4, -0.5])
    weights = meta_weights(alpha, beta, ALL, variant="alpha_plus_beta_1")
    torch.testing.assert_close(weights.alpha, torch.tensor([0.75, 0.0, 1.0]) / 3)
    torch.testing.assert_close(weights.alpha + weights.beta, torch.full((3,), 1 / 3))


def test_combined_targets__convex_weights_are_cross_entropy_of_the_mixed_target() -> None:
    logits = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels, pseudo = torch.tensor([0, 1, 3]), torch.tensor([2, 1, 0])
    b = torch.tensor([0.2, 0.7, 1.0], dtype=torch.float64)
    weights = Weights(1 - b, b)
    found = soft_cross_entropy(logits, combined_targets(weights, one_hot(labels, 4), one_hot(pseudo, 4)))
    two_losses = (1 - b) * F.cross_entropy(logits, labels, reduction="none")
    two_losses += b * F.cross_entropy(logits, pseudo, reduction="none")
    torch.testing.assert_close(found, two_losses)


def test_fixed_weights__plain_and_bootstrap() -> None:
    labeled = torch.tensor([True, False, True])
    plain = fixed_weights(labeled)
    assert plain.alpha.tolist() == [0.5, 0.0, 0.5]
    assert plain.beta.tolist() == [0.0, 0.0, 0.0]
    bootstrap = fixed_weights(labeled, given_share=0.8)
    torch.testing.assert_close(bootstrap.alpha, torch.tensor([0.8, 0.0, 0.8]) / 3)
    torch.testing.assert_close(bootstrap.beta, torch.tensor([0.2, 0.2, 0.2]) / 3)


def test_visit_trust__follows_its_three_cases() -> None:
    weights = Weights(torch.tensor([0.2, 0.0, 0.1, 0.0]), torch.tensor([0.2, 0.0, 0.3, 0.4]))
    same = torch.tensor([True, True, False, False])
    torch.testing.assert_close(visit_trust(weights, same), torch.tensor([1.0, 0.5, 0.25, 0.0]))
    share = weight_share(weights)
    assert share[1].isnan()
    assert share[0] == 0.5


def test_mixup_pairs__draws_from_its_generator() -> None:
    def draw() -> tuple[float, Tensor]:
        return mixup_pairs(6, 32.0, torch.Generator().manual_seed(3))

    share, partner = draw()
    assert 0.2 < share < 0.8  # Beta(32, 32) is 0.5 +- 0.06
    assert sorted(partner.tolist()) == list(range(6))
    assert draw()[0] == share
    # Drawn in float64: not one of the coarser numbers of float32.
    assert float(np.float32(share)) != share
