"""Mixtures of normal densities over one number or a few: a head that predicts them, and what they say.

Letters: B batch, Q features, K components, D numbers (1 in an audit).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

VARIANCE_FLOOR = 1e-8


class DensityHead(nn.Module):
    """Mixture density head: means linear with biases U(-2, 2), deviation = sigmoid(linear)."""

    def __init__(self, feature_size: int, num_outputs: int, *, num_components: int) -> None:
        super().__init__()
        self.shape = (num_components, num_outputs)
        self.pi_head = nn.Linear(feature_size, num_components)
        self.mean_head = nn.Linear(feature_size, num_components * num_outputs)
        self.deviation_head = nn.Linear(feature_size, num_components * num_outputs)
        nn.init.uniform_(self.mean_head.bias, -2.0, 2.0)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Features (B, Q) to log pi (B, K), means and variances (B, K, D)."""
        log_pi = torch.log_softmax(self.pi_head(features), dim=1)
        deviation = torch.sigmoid(self.deviation_head(features)).unflatten(1, self.shape)
        return log_pi, self.mean_head(features).unflatten(1, self.shape), deviation.square()


def component_log_density(targets: Tensor, means: Tensor, variances: Tensor) -> Tensor:
    """(B, K) log N(y; mu_k, diag Sigma_k): targets (B, D), means and variances (B, K, D)."""
    variances = variances + VARIANCE_FLOOR
    square = (targets[:, None, :] - means).square() / variances
    return -0.5 * (square + variances.log() + math.log(2.0 * math.pi)).sum(dim=2)


def mixture_log_density(targets: Tensor, log_pi: Tensor, means: Tensor, variances: Tensor) -> Tensor:
    """(B,) log sum_k pi_k N(y; mu_k, Sigma_k), normalising constant included."""
    return (log_pi + component_log_density(targets, means, variances)).logsumexp(dim=1)


def mixture_tail(targets: Tensor, log_pi: Tensor, means: Tensor, variances: Tensor) -> Tensor:
    """(B,) in [0, 1], how far out one number lies: 2 min(F(y), 1 - F(y)).

    F(y) = sum_k pi_k Phi((y - mu_k) / sigma_k). Targets (B, 1), means and variances (B, K, 1).
    """
    below = torch.special.ndtr((targets[:, None, :] - means) / (variances + VARIANCE_FLOOR).sqrt())[:, :, 0]
    share = (log_pi.exp() * below).sum(dim=1)
    return (2 * torch.minimum(share, 1 - share)).clamp(0, 1)


def mixture_deviation(log_pi: Tensor, means: Tensor, variances: Tensor) -> Tensor:
    """(B,) standard deviation of a mixture over one number: means and variances (B, K, 1)."""
    pi = log_pi.exp()[:, :, None]
    mean = (pi * means).sum(dim=1, keepdim=True)
    return (pi * (variances + (means - mean).square())).sum(dim=(1, 2)).clamp_min(VARIANCE_FLOOR).sqrt()


def likeliest_mean(log_pi: Tensor, means: Tensor) -> Tensor:
    """(B, D) mean of the component with the largest weight."""
    return means[torch.arange(len(means), device=means.device), log_pi.argmax(dim=1)]
