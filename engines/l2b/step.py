"""One forward pass of L2B: logits to train on, pseudo-labels, and the raw meta derivative of every sample.

Equations (1) to (6) of the method, by the identity of ``directional.py``; eq. numbers are L2B's. Its price is in
benchmarks/results/meta_step.json.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engines.meta import MetaGradient, directional_derivative, forward_with_tangent, meta_gradient, one_hot


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
    network: nn.Module, images: Tensor, targets: Tensor, meta_images: Tensor, meta_targets: Tensor
) -> MetaForward:
    """Forward the training batch in train mode and find how each sample's losses move along v = grad G.

    Args:
        network: in training mode; returns (features, logits). Buffers change once, by the training batch.
        images: (B, C, H, W).
        targets: (B, K), rows sum to 1, or all 0 where unlabeled.
        meta_images: (M, C, H, W).
        meta_targets: (M, K), rows sum to 1.
    """
    meta = meta_gradient(network, meta_images, meta_targets)
    _, logits, tangent = forward_with_tangent(network, images, meta.direction)
    with torch.no_grad():
        pseudo = one_hot(logits.argmax(dim=1), logits.shape[1])
        alpha = directional_derivative(logits, tangent, targets)
        beta = directional_derivative(logits, tangent, pseudo)
    return MetaForward(logits, pseudo, alpha, beta, meta)
