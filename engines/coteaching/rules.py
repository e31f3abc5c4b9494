"""Who learns from what: in a batch each network learns from what its partner finds small (Han et al. 2018).

Pure functions of tensors; no network, no optimizer, no schedule. B samples.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from engines.shared.selection import keep_count, small_loss_mask


class Choice(NamedTuple):
    """What one step minimises: network g has the loss sum_b weights[g, b] losses[g, b] / divisor[g]."""

    weights: Tensor
    """(2, B) float, 0 for samples that this network does not learn from."""
    divisor: Tensor
    """(2,) float, at least 1."""
    selected: Tensor
    """(2, B) float 0 or 1: what this network itself picked (its partner learns from it)."""


def mean_loss(losses: Tensor, choice: Choice) -> Tensor:
    """The mean loss of what each network learns from, (2, B) -> (2,): Eq. (3).

    The released code divides by the number of samples once more.
    """
    return (losses * choice.weights).sum(dim=1) / choice.divisor


def choose_exchanged(losses: Tensor, keep_rate: float) -> Choice:
    """Eqs. (2), (3): each of two networks learns from what its partner finds small. (2, B)."""
    own = small_loss_mask(losses.detach(), keep_count(keep_rate, losses.shape[1])).to(losses.dtype)
    taught = own.flip(0)
    return Choice(taught, taught.sum(dim=1).clamp(min=1), own)
