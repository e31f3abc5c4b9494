"""Who learns from what: the rules of Co-teaching and its family.

Each rule looks at the losses and predictions of one forward pass and says which samples each network learns
from. Pure functions of tensors; no network, no optimizer, no schedule.

Sources: Han et al. 2018, Co-teaching; Yu et al. 2019, "How does Disagreement Help Generalization against
Label Corruption?" (Co-teaching+); Malach & Shalev-Shwartz 2017, Decoupling "when to update" from "how to
update"; Jiang et al. 2018, MentorNet (its self-paced form); Patrini et al. 2017 (forward correction); Ren et
al. 2018, "Learning to Reweight Examples for Robust Deep Learning" (L2RW).

Letters: G networks (2, or 1 of the variants without a partner), B samples, K classes.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engines.meta.directional import directional_derivative, logits_jvp, meta_gradient
from engines.shared.selection import keep_count, small_loss_mask


class Choice(NamedTuple):
    """What one step minimises: network g has the loss sum_b weights[g, b] losses[g, b] / divisor[g]."""

    weights: Tensor
    """(G, B) float, 0 for samples that this network does not learn from."""
    divisor: Tensor
    """(G,) float, at least 1."""
    selected: Tensor
    """(G, B) float 0 or 1: what this network itself picked (its partner learns from it)."""


def mean_loss(losses: Tensor, choice: Choice, *, divide_twice: bool = False) -> Tensor:
    """The mean loss of what each network learns from, (G, B) -> (G,): Eq. (3).

    ``divide_twice`` is the released code, which takes the mean and then divides by the count again.
    """
    total = (losses * choice.weights).sum(dim=1) / choice.divisor
    return total / choice.divisor if divide_twice else total


def choose_all(losses: Tensor) -> Choice:
    """Standard training: every sample, weight 1/B."""
    ones = torch.ones_like(losses)
    return Choice(ones, _sizes(ones), ones)


def choose_small_loss(losses: Tensor, keep_rate: float) -> Choice:
    """MentorNet, self-paced: each network learns from its own smallest losses (G, B)."""
    own = _smallest(losses, keep_count(keep_rate, losses.shape[1]))
    return Choice(own, _sizes(own), own)


def choose_exchanged(losses: Tensor, keep_rate: float) -> Choice:
    """Co-teaching, Eqs. (2), (3): each of two networks learns from what its partner finds small. (2, B)."""
    own = _smallest(losses, keep_count(keep_rate, losses.shape[1]))
    taught = own.flip(0)
    return Choice(taught, _sizes(taught), own)


def choose_disagreement(losses: Tensor, predictions: Tensor) -> Choice:
    """Decoupling: both networks learn from all samples that their predictions (2, B) differ on."""
    differ = (predictions[0] != predictions[1]).to(losses).expand_as(losses)
    return Choice(differ, _sizes(differ), differ)


def choose_exchanged_disagreement(
    losses: Tensor, predictions: Tensor, keep_rate: float, *, learn_from_all_if_none: bool
) -> Choice:
    """Co-teaching+ after its first epochs: small losses inside the disagreement D, exchanged. (2, B) both.

    Each network picks its floor(R |D|) smallest losses in D, all of D where that is none. An empty D: the
    whole batch where ``learn_from_all_if_none`` (the paper's first steps), else nothing.
    """
    differ = predictions[0] != predictions[1]
    size = differ.sum()
    # |D| stays on the device; in float64, as a rate of 0.7 is no float32.
    count = (keep_rate * size.double() + 1e-9).floor().long()
    count = torch.where(count == 0, size, count)
    own = _smallest(losses.masked_fill(~differ, float("inf")), count) * differ
    if learn_from_all_if_none:
        own = torch.where(size == 0, torch.ones_like(own), own)
    taught = own.flip(0)
    return Choice(taught, _sizes(taught), own)


def choose_reweighted(losses: Tensor, alignment: Tensor) -> Choice:
    """L2RW: weight max(0, <grad l_i, grad meta loss>), normalised to sum 1 (or all 0). (1, B), (B,)."""
    weights = alignment.clamp(min=0).to(losses)
    total = weights.sum()
    weights = (weights / torch.where(total > 0, total, torch.ones_like(total))).expand_as(losses)
    return Choice(weights, torch.ones_like(losses[:, 0]), (weights > 0).to(losses))


def _smallest(losses: Tensor, count: int | Tensor) -> Tensor:
    return small_loss_mask(losses.detach(), count).to(losses.dtype)


def _sizes(mask: Tensor) -> Tensor:
    return mask.sum(dim=1).clamp(min=1)


# --- losses of the variants -------------------------------------------------------------------------------


def forward_corrected_loss(logits: Tensor, labels: Tensor, transition: Tensor) -> Tensor:
    """F-correction: -log (T^T p)[label], (B, K), (B,), (K, K) -> (B,); T[i, j] = p(given j | true i)."""
    given = F.softmax(logits, dim=1) @ transition.to(logits)
    return -given.gather(1, labels[:, None]).squeeze(1).clamp(min=1e-12).log()


def double_softmax_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of softmax outputs, as Co-teaching+'s released code has it: (B, K), (B,) -> (B,)."""
    return F.cross_entropy(F.softmax(logits, dim=1), labels, reduction="none")


def estimate_transition(probs: Tensor) -> Tensor:
    """F-correction's T (K, K) from predictions (N, K): row i is p(. | xbar_i), xbar_i the surest of class i.

    With 100 classes or more the 97th percentile replaces the largest, as published (outliers).
    """
    num_samples, num_classes = probs.shape
    place = round(0.97 * (num_samples - 1)) if num_classes >= 100 else num_samples - 1
    surest = probs.argsort(dim=0, stable=True)[place]  # (K,)
    transition = probs[surest]
    return transition / transition.sum(dim=1, keepdim=True)


def meta_alignment(
    network: nn.Module, images: Tensor, targets: Tensor, meta_images: Tensor, meta_targets: Tensor
) -> Tensor:
    """<grad l_i, grad meta loss> of each sample, exact, in one forward-mode pass: (B,). No buffer changes.

    Targets are one-hot rows, (B, K) and (M, K).
    """
    meta = meta_gradient(network, meta_images, meta_targets)
    logits, tangent = logits_jvp(network, images, meta.direction)
    return directional_derivative(logits, tangent, targets).detach()
