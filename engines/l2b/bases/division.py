"""Which given labels the semi-supervised bases believe in an epoch: the others lose theirs and are guessed anew.

Two published rules. DivideMix and C2D believe what the small-loss component of a mixture over the losses explains;
UniCon believes the same share of every class, those nearest to what both networks say. A label that a person
confirmed is always believed. Pure functions of (N,) arrays; N samples, K classes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.shared.selection import BELIEVED

INSIDE = 1e-5
"""A threshold beyond all posteriors is moved this far inside them (C2D), so that neither part is empty."""

NEAR = 0.5
"""UniCon takes a given label as it is below this divergence; above it, 1 minus the divergence of it."""


class Division(NamedTuple):
    """The two parts of an epoch."""

    labeled: Tensor
    """int64 rows whose given label is believed, rising."""
    unlabeled: Tensor
    """int64 rows whose label is guessed, rising; those without a given label among them."""
    weight: Tensor
    """(N,) share of the given label in a refined one, in [0, 1]."""
    clean: NDArray[np.float64]
    """(N,) in [0, 1], how clean the rule holds each given label; NaN where there is none."""

    def on(self, device: torch.device) -> Division:
        """The same with its tensors on ``device``."""
        return self._replace(
            labeled=self.labeled.to(device),
            unlabeled=self.unlabeled.to(device),
            weight=self.weight.to(device),
        )


def divide_by_mixture(
    clean: NDArray[np.float64], trusted: NDArray[np.bool_], trains: NDArray[np.bool_]
) -> Division:
    """DivideMix's co-divide: labeled is what is clean with a posterior above ``BELIEVED``.

    Args:
        clean: (N,) posterior of the small-loss component, NaN where unlabeled.
        trusted: (N,) bool, believed whatever their loss.
        trains: (N,) bool, samples that take part.
    """
    clean = np.where(trusted, 1.0, clean)
    known = clean[~np.isnan(clean)]
    inside = min(max(BELIEVED, known.min() + INSIDE), known.max() - INSIDE)
    believed = np.nan_to_num(clean) > inside
    return _division(believed, np.nan_to_num(clean), clean, trains)


def divide_uniformly(
    divergence: NDArray[np.float64],
    given: NDArray[np.int64],
    trusted: NDArray[np.bool_],
    trains: NDArray[np.bool_],
) -> Division:
    """UniCon's selection: of each class the R N / K samples of smallest divergence, R the share below the mean.

    Args:
        divergence: (N,) Jensen-Shannon divergence, NaN where unlabeled; that of trusted samples counts as 0.
        given: (N,) labels, -1 unlabeled.
        trusted: (N,) bool, believed whatever their divergence.
        trains: (N,) bool, samples that take part.
    """
    divergence = np.where(trusted, 0.0, divergence)
    labeled = (given >= 0) & trains
    known = divergence[labeled]
    share = float((known < known.mean()).mean())
    classes = np.unique(given[labeled])
    count = max(1, int(share * len(known) / len(classes) + 1e-9))
    believed = trusted.copy()
    for label in classes:
        members = np.flatnonzero((given == label) & labeled)
        believed[members[np.argsort(divergence[members], kind="stable")[:count]]] = True
    weight = np.where(divergence < NEAR, 1.0, 1.0 - divergence)
    return _division(believed, np.nan_to_num(weight), 1.0 - divergence / math.log(2), trains)


def jensen_shannon(probs: NDArray[np.floating], given: NDArray[np.int64]) -> NDArray[np.float64]:
    """Divergence of each row of ``probs`` (N, K) from its given label (N,): (N,) in [0, ln 2]; NaN where unlabeled.

    JSD(p, e_y) = KL(p || m) / 2 + KL(e_y || m) / 2 with m = (p + e_y) / 2, natural logarithms.
    """
    own = np.take_along_axis(probs.astype(np.float64), np.maximum(given, 0)[:, None], axis=1)[:, 0]
    # All other classes have m = p / 2, so that together they give (1 - p_y) log 2.
    middle = (own + 1) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        own_part = np.where(own > 0, own * np.log(own / middle), 0.0)
    found = ((1 - own) * math.log(2) + own_part - np.log(middle)) / 2
    return np.where(given >= 0, np.clip(found, 0.0, math.log(2)), np.nan)


def _division(
    believed: NDArray[np.bool_],
    weight: NDArray[np.float64],
    clean: NDArray[np.float64],
    trains: NDArray[np.bool_],
) -> Division:
    return Division(
        torch.from_numpy(np.flatnonzero(believed & trains)),
        torch.from_numpy(np.flatnonzero(~believed & trains)),
        torch.from_numpy(weight),
        clean,
    )
