"""The equations of the semi-supervised bases: refined and guessed labels, mixing, and their losses.

DivideMix (Li et al. 2020, https://arxiv.org/abs/2002.07394), UniCon (Karim et al. 2022,
https://arxiv.org/abs/2203.14542) and C2D (Zheltonozhskii et al. 2021, https://arxiv.org/abs/2103.13646).
Pure functions; B samples, K classes, targets (B, K) with rows that sum to 1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from engines.shared.losses import soft_cross_entropy


def sharpen(probs: Tensor, temperature: float) -> Tensor:
    """p^(1/T), each row brought back to sum 1: (B, K) -> (B, K). T below 1 makes them surer."""
    powered = probs ** (1 / temperature)
    return powered / powered.sum(dim=1, keepdim=True)


def refine_labels(given: Tensor, own: Tensor, weight: Tensor, temperature: float) -> Tensor:
    """DivideMix's co-refinement: sharpen(w y + (1 - w) p), of labeled samples: (B, K).

    Args:
        given: (B, K) one-hot given labels y.
        own: (B, K) what the network itself says, mean over its views.
        weight: (B,) w in [0, 1], how clean the division holds the label.
        temperature: T of :func:`sharpen`.
    """
    share = weight[:, None].to(own)
    return sharpen(share * given + (1 - share) * own, temperature)


def mix(values: Tensor, share: Tensor, partner: Tensor) -> Tensor:
    """MixUp: ``share`` (0-d) of each row and the rest of its partner's: (B, ...) -> (B, ...)."""
    return share * values + (1 - share) * values[partner]


def unlabeled_weight_at(epoch: float, *, start: int, ramp: float, largest: float) -> float:
    """lambda_u(t): from 0 at epoch ``start`` in a line to ``largest`` after ``ramp`` epochs."""
    return largest * min(max((epoch - start) / ramp, 0.0), 1.0)


def mixmatch_loss(logits: Tensor, targets: Tensor, num_labeled: int, unlabeled_weight: float) -> Tensor:
    """Mean cross-entropy of the labeled rows, lambda_u times the squared error of the others, and the penalty.

    Args:
        logits: (B, K) of mixed inputs, the labeled rows first.
        targets: (B, K) mixed likewise.
        num_labeled: rows that count as labeled.
        unlabeled_weight: lambda_u.
    """
    loss = soft_cross_entropy(logits[:num_labeled], targets[:num_labeled]).mean()
    if num_labeled < len(logits):
        probs = F.softmax(logits[num_labeled:].float(), dim=1)
        loss = loss + unlabeled_weight * ((probs - targets[num_labeled:]) ** 2).mean()
    return loss + balance_penalty(logits)


def balance_penalty(logits: Tensor) -> Tensor:
    """sum_c (1/K) log((1/K) / mean_i p_ic), 0 where all classes are predicted equally often: (B, K) -> 0-d."""
    mean_log = torch.logsumexp(F.log_softmax(logits.float(), dim=1), dim=0) - math.log(len(logits))
    return -math.log(logits.shape[1]) - mean_log.mean()


def mixup_pairs(num: int, strength: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """lambda ~ Beta(strength, strength), 0-d float64, and a permutation of the batch, where the generator lives."""
    place = generator.device
    shape = torch.full((2,), strength, dtype=torch.float64, device=place)
    gamma = torch._standard_gamma(shape, generator=generator)
    return gamma[0] / gamma.sum(), torch.randperm(num, generator=generator, device=place)
