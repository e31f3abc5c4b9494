"""From raw meta derivatives to the weights of a batch: L2B's equations (7) to (9).

Every function is pure: (B,) raw derivatives in, (B,) weights out. ``alpha`` weighs the given label, ``beta``
the pseudo-label.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Weights(NamedTuple):
    """Weights of one batch; at most 1 in sum."""

    alpha: Tensor
    """(B,) of the given labels; 0 where unlabeled."""
    beta: Tensor
    """(B,) of the pseudo-labels."""


def normalize(raw: Tensor, allowed: Tensor) -> Tensor:
    """Weights at least 0 that sum to 1 over all allowed entries, or all 0: any shape -> the same shape.

    Eq. (7), (8): the positive part over its sum; where nothing is positive, all are 0. Any common factor of ``raw``
    (learning rates, sum or mean over the meta batch) cancels.
    """
    weights = raw.clamp(min=0) * allowed
    total = weights.sum()
    # The paper adds 1e-10 to the sum; raw values can be of that size, so 0 is asked for instead.
    return weights / torch.where(total > 0, total, torch.ones_like(total))


def meta_weights(alpha: Tensor, beta: Tensor, labeled: Tensor) -> Weights:
    """Weights of a batch from raw derivatives (B,) each; ``labeled`` (B,) bool."""
    allowed = torch.stack([labeled, torch.ones_like(labeled)])
    return Weights(*normalize(torch.stack([alpha, beta]), allowed))


def fixed_weights(labeled: Tensor) -> Weights:
    """Plain cross-entropy, the mean over the labeled samples; (B,) bool -> (B,)."""
    uniform = torch.ones(labeled.shape, device=labeled.device)
    return Weights(uniform * labeled / labeled.sum().clamp(min=1), torch.zeros_like(uniform))


def combined_targets(weights: Weights, targets: Tensor, pseudo: Tensor) -> Tensor:
    """a_i q_i + b_i e_yhat_i: (B, K). Cross-entropy is linear in its target, so eq. (9) is one soft loss."""
    return weights.alpha[:, None] * targets + weights.beta[:, None] * pseudo


def weight_share(weights: Weights) -> Tensor:
    """a~ / (a~ + b~) in [0, 1], high where the given label helps more; NaN where both are 0: (B,)."""
    return weights.alpha / (weights.alpha + weights.beta)


def visit_trust(weights: Weights, same_label: Tensor) -> Tensor:
    """Return how a visit speaks for the given label, (B,) in [0, 1] (L2B spec 5).

    1 where the pseudo-label is the given label and its weight positive; 1/2 where both weights are 0;
    else the share of the given label.
    """
    share = weight_share(weights).nan_to_num(0.5)
    return torch.where(same_label & (weights.alpha > 0), torch.ones_like(share), share)
