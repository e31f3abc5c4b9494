"""One forward pass of L2B: logits to train on, pseudo-labels, and the raw meta derivative of every sample.

Equations (1) to (6) of the method, by the identity of ``directional.py``; eq. numbers are L2B's. Which
derivative is a named option with a measured price and error (benchmarks/results/meta_step.json).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engines.meta.directional import (
    MetaGradient,
    Parameters,
    directional_derivative,
    finite_difference_tangent,
    forward_with_tangent,
    last_layer_gradient,
    last_layer_tangent,
    meta_gradient,
    one_hot,
)

DERIVATIVES = ("exact", "finite_difference", "last_layer")


@dataclass(frozen=True, eq=False)
class MetaForward:
    """What one pass over a training batch and a meta batch gives; B samples, K classes."""

    logits: Tensor
    """(B, K) with the graph to train on."""
    pseudo: Tensor
    """(B, K) one-hot pseudo-labels, eq. (1): the first of the largest logits."""
    alpha: Tensor
    """(B,) D_v f_i of the given label, before eta and lambda; 0 where unlabeled."""
    beta: Tensor
    """(B,) D_v g_i of the pseudo-label."""
    meta: MetaGradient


def meta_forward(
    network: nn.Module,
    images: Tensor,
    targets: Tensor,
    meta_images: Tensor,
    meta_targets: Tensor,
    *,
    derivative: str = "exact",
    at: Parameters | None = None,
) -> MetaForward:
    """Forward the training batch in train mode and find how each sample's losses move along v = grad G.

    Args:
        network: in training mode; returns (features, logits). Buffers change once, by the training batch.
        images: (B, C, H, W).
        targets: (B, K), rows sum to 1, or all 0 where unlabeled.
        meta_images: (M, C, H, W).
        meta_targets: (M, K), rows sum to 1.
        derivative: ``exact`` (one more forward's worth of tangents), ``finite_difference`` (one more forward)
            or ``last_layer`` (only the classifier's weights take part).
        at: where to take v, else at the network's own parameters.
    """
    if derivative == "last_layer":
        meta = last_layer_gradient(network, meta_images, meta_targets, at=at)
        features, logits = network(images)
        tangent = last_layer_tangent(features, meta)
    elif derivative == "finite_difference":
        meta = meta_gradient(network, meta_images, meta_targets, at=at)
        _, logits = network(images)
        tangent = finite_difference_tangent(network, images, logits, meta)
    else:
        meta = meta_gradient(network, meta_images, meta_targets, at=at)
        _, logits, tangent = forward_with_tangent(network, images, meta.direction)
    with torch.no_grad():
        pseudo = one_hot(logits.argmax(dim=1), logits.shape[1])
        alpha = directional_derivative(logits, tangent, targets)
        beta = directional_derivative(logits, tangent, pseudo)
    return MetaForward(logits, pseudo, alpha, beta, meta)
