"""Losses and margins that more than one engine uses: one value per sample, reduced once by the caller.

Letters: B samples, K classes. Labels are (B,) int64 in {-1, 0..K-1}; -1 is unlabeled.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import functional as F

from engines.contract import EngineError


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """-log p(label) of each sample: (B, K), (B,) -> (B,), in float32 or better; 0 where unlabeled."""
    return F.cross_entropy(_at_least_float32(logits), labels, ignore_index=-1, reduction="none")


def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """-sum_c target_c log p_c of each sample: (B, K), (B, K) -> (B,). Targets need not sum to 1."""
    return -(targets * F.log_softmax(_at_least_float32(logits), dim=1)).sum(dim=1)


def log_margin(logits: Tensor, labels: Tensor) -> Tensor:
    """Given class minus the best other class: (B, K), (B,) -> (B,); high = clean.

    On logits and on log-probabilities the value is the same (the normaliser cancels). NaN where unlabeled,
    +inf where K = 1 (there is no other class).
    """
    logits = _at_least_float32(logits)
    column = labels.clamp(min=0)[:, None]
    given = logits.gather(1, column).squeeze(1)
    best_other = logits.scatter(1, column, float("-inf")).amax(dim=1)
    return (given - best_other).masked_fill(labels < 0, float("nan"))


def require_finite(values: ArrayLike, what: str = "the training loss") -> None:
    """Stop a training that has diverged, before its NaN become a trust of NaN.

    Args:
        values: numbers of any shape that a healthy training keeps finite.
        what: how the error calls them.

    Raises:
        EngineError: one of them is NaN or infinite.
    """
    if not np.isfinite(values).all():
        raise EngineError(f"{what} is no longer a number; lower learning_rate.")


def _at_least_float32(values: Tensor) -> Tensor:
    """Half precision is for matrix products; logs and sums over classes need more digits."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def contrastive_loss(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """SimCLR's loss: each view must tell its own other view among all views of the batch: (B, D) twice -> 0-d.

    Chen et al. 2020, https://arxiv.org/abs/2002.05709, NT-Xent on projections of length 1. 0 for one sample.
    """
    views = F.normalize(torch.cat([first, second]).float(), dim=1)
    alike = views @ views.T / temperature
    alike = alike.masked_fill(torch.eye(len(views), dtype=torch.bool, device=views.device), float("-inf"))
    other = torch.arange(len(views), device=views.device).roll(len(first))
    return F.cross_entropy(alike, other)
