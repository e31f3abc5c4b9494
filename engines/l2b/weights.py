"""From raw meta derivatives to the weights of a batch: L2B's equations (7) to (9), variants, baselines.

Every function is pure: (B,) raw derivatives in, (B,) weights out. ``alpha`` weighs the given label, ``beta``
the pseudo-label.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

VARIANTS = ("l2b", "alpha_plus_beta_1", "l2rw", "alpha0", "bootstrap", "cross_entropy")
"""L2B; its per-sample convex form; given labels only (Ren et al. 2018); pseudo-labels only; fixed weights
(Reed et al. 2015, hard); plain."""

META_VARIANTS = ("l2b", "alpha_plus_beta_1", "l2rw", "alpha0")
"""Variants that take a meta step."""

PSEUDO_VARIANTS = ("l2b", "alpha_plus_beta_1", "alpha0", "bootstrap")
"""Variants that learn from pseudo-labels and so from unlabeled samples too."""

NORMALIZATIONS = ("joint", "sigmoid", "softmax")


class Weights(NamedTuple):
    """Weights of one batch; at most 1 in sum."""

    alpha: Tensor
    """(B,) of the given labels; 0 where unlabeled."""
    beta: Tensor
    """(B,) of the pseudo-labels."""


def normalize(raw: Tensor, allowed: Tensor, *, kind: str, temperature: float = 10.0) -> Tensor:
    """Weights at least 0 that sum to 1 over all allowed entries, or all 0: any shape -> the same shape.

    ``joint`` is eq. (7), (8): the positive part over its sum; where nothing is positive, all are 0. Any
    common factor of ``raw`` (learning rates, sum or mean over the meta batch) cancels. The two published
    alternatives, ``sigmoid`` and ``softmax`` at ``temperature``, are nearly uniform: raw values are tiny.
    """
    if kind == "softmax":
        scaled = (raw / temperature).masked_fill(~allowed, float("-inf"))
        weights = F.softmax(scaled.flatten(), dim=0).view_as(raw)
        return torch.where(allowed.any(), weights, torch.zeros_like(raw))
    weights = (raw.sigmoid() if kind == "sigmoid" else raw.clamp(min=0)) * allowed
    total = weights.sum()
    # The paper adds 1e-10 to the sum; raw values can be of that size, so 0 is asked for instead.
    return weights / torch.where(total > 0, total, torch.ones_like(total))


def meta_weights(
    alpha: Tensor,
    beta: Tensor,
    labeled: Tensor,
    *,
    variant: str = "l2b",
    normalization: str = "joint",
    temperature: float = 10.0,
) -> Weights:
    """Weights of a variant with a meta step from raw derivatives (B,) each; ``labeled`` (B,) bool.

    ``alpha_plus_beta_1``: a = a~ / (a~ + b~), b = 1 - a for each sample, and 1/B for all; where both are 0
    the given label is taken [assumption].
    """
    has_alpha = labeled & (variant != "alpha0")
    has_beta = torch.full_like(labeled, variant != "l2rw")
    if variant == "alpha_plus_beta_1":
        positive_alpha, positive_beta = alpha.clamp(min=0) * has_alpha, beta.clamp(min=0)
        total = positive_alpha + positive_beta
        safe = torch.where(total > 0, total, torch.ones_like(total))
        first = torch.where(total > 0, positive_alpha / safe, has_alpha.to(alpha))
        return Weights(first / len(alpha), (positive_beta / safe) / len(alpha))
    raw, allowed = torch.stack([alpha, beta]), torch.stack([has_alpha, has_beta])
    first, second = normalize(raw, allowed, kind=normalization, temperature=temperature)
    return Weights(first, second)


def fixed_weights(labeled: Tensor, *, given_share: float = 1.0) -> Weights:
    """Mean loss with ``given_share`` on the given label and the rest on the pseudo-label; (B,) bool -> (B,).

    1 is plain cross-entropy over the labeled samples; 0.8 the usual hard bootstrapping.
    """
    uniform = torch.ones(labeled.shape, device=labeled.device)
    if given_share < 1:
        uniform = uniform / len(labeled)
        return Weights(given_share * uniform * labeled, (1 - given_share) * uniform)
    return Weights(uniform * labeled / labeled.sum().clamp(min=1), torch.zeros_like(uniform))


def combined_targets(weights: Weights, targets: Tensor, pseudo: Tensor) -> Tensor:
    """a_i q_i + b_i e_yhat_i: (B, K). Cross-entropy is linear in its target, so eq. (9) is one soft loss."""
    return weights.alpha[:, None] * targets + weights.beta[:, None] * pseudo


def weight_share(weights: Weights) -> Tensor:
    """a~ / (a~ + b~) in [0, 1], high where the given label helps more; NaN where both are 0: (B,)."""
    return weights.alpha / (weights.alpha + weights.beta)


def visit_trust(weights: Weights, same_label: Tensor) -> Tensor:
    """How a visit speaks for the given label, (B,) in [0, 1] (L2B spec 5).

    1 where the pseudo-label is the given label and its weight positive; 1/2 where both weights are 0;
    else the share of the given label.
    """
    share = weight_share(weights).nan_to_num(0.5)
    return torch.where(same_label & (weights.alpha > 0), torch.ones_like(share), share)


def mixup_pairs(num: int, strength: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """lambda ~ Beta(strength, strength), 0-d float64, and a permutation of the batch, where the generator lives."""
    place = generator.device
    shape = torch.full((2,), strength, dtype=torch.float64, device=place)
    gamma = torch._standard_gamma(shape, generator=generator)
    return gamma[0] / gamma.sum(), torch.randperm(num, generator=generator, device=place)
