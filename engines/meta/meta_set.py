"""The meta set of L2B: the few samples whose labels are believed, which decide what all others are worth.

Samples that a person confirmed, where there are enough of them; otherwise the samples of smallest loss that a
two-component mixture takes for clean, chosen anew at every epoch (DivideMix's split, L2B spec 3.4). Two rules
hold for both: a meta batch is *stratified* by class, because a class that is missing from it counts as wrong
everywhere; and it never contains a sample of the batch that it judges, because a sample's own gradient in v
would add ||grad f_i||^2 / m to its weight and make it look clean by construction.

Pure functions; labels are (N,) int64 in {-1, 0..K-1}, rows are indices into them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.shared.selection import BELIEVED, MIXTURE_STEPS, gmm_small_loss_probability

MIN_TRUSTED_PER_CLASS = 5
"""The trusted samples alone are the meta set only where each given class has this many."""

MIN_SMALL_LOSS_PER_CLASS = 2
"""A class without one believed sample still lends its few smallest losses [assumption]: missing is worse."""

SMALL_PER_CLASS = 50
IMPURE = 0.95


@dataclass(frozen=True, eq=False)
class MetaSet:
    """Rows that meta batches are drawn from."""

    rows: Tensor
    """(M,) int64, rising."""
    source: str
    """``"trusted"`` or ``"mixture"``."""
    purity: float
    """Mean posterior of being clean, in [0, 1]: 1 for trusted samples. An estimate by the losses alone."""
    smallest_class: int
    """Samples of the class that has fewest, among the classes that occur."""

    def warnings(self) -> list[str]:
        """Return what makes this meta set a weak judge, one sentence each; empty where nothing does."""
        found = []
        if self.smallest_class < SMALL_PER_CLASS:
            found.append(
                f"The meta set is small ({len(self.rows)} samples, {self.smallest_class} of the rarest "
                "class): on photographs L2B with 200 samples was worse than plain cross-entropy (accuracy "
                ".51 to .58 against .56 to .64); verify more labels, or give the other engines more weight."
            )
        if self.source == "mixture":
            found.append(
                "The meta set was chosen by small losses, not confirmed by a person: errors that the network "
                "finds easy (duplicated or systematic ones) may be in it and then pass as clean."
            )
        if self.purity < IMPURE:
            found.append(
                f"The meta set is impure: the mixture expects {1 - self.purity:.0%} wrong labels in it; "
                "verify labels to replace it."
            )
        return found


def resolve_source(labels: NDArray[np.int64], trusted: NDArray[np.bool_]) -> str:
    """``"trusted"`` where every class has enough trusted samples, else ``"mixture"``."""
    counts = np.bincount(labels[trusted], minlength=int(labels.max()) + 1)
    return "trusted" if counts[np.unique(labels[labels >= 0])].min() >= MIN_TRUSTED_PER_CLASS else "mixture"


def trusted_meta_set(labels: NDArray[np.int64], trusted: NDArray[np.bool_]) -> MetaSet:
    """Every trusted sample."""
    return meta_set_of(np.flatnonzero(trusted), labels, "trusted", 1.0)


def mixture_meta_set(
    losses: NDArray[np.float64],
    labels: NDArray[np.int64],
    trusted: NDArray[np.bool_],
    *,
    per_class: int,
    max_steps: int = MIXTURE_STEPS,
) -> MetaSet:
    """Of each class the ``per_class`` smallest losses that the mixture believes, and all trusted samples.

    Args:
        losses: (N,) loss on the given label; those of unlabeled samples are not read.
        labels: (N,) given labels.
        trusted: (N,) bool, always members.
        per_class: most samples a class besides the trusted ones.
        max_steps: EM steps of the mixture at most.
    """
    losses = np.where(labels >= 0, losses, np.nan)
    clean = gmm_small_loss_probability(losses, max_steps=max_steps)
    chosen = trusted.copy()
    for label in np.unique(labels[labels >= 0]):
        members = np.flatnonzero(labels == label)
        members = members[np.argsort(losses[members], kind="stable")]
        believed = int((clean[members] > BELIEVED).sum())
        count = min(per_class, max(believed, MIN_SMALL_LOSS_PER_CLASS))
        # The posterior falls with the loss except far in the tails, so the smallest losses are believed.
        chosen[members[:count]] = True
    purity = float(np.where(trusted, 1.0, clean)[chosen].mean())
    return meta_set_of(np.flatnonzero(chosen), labels, "mixture", purity)


def meta_set_of(rows: NDArray[np.int64], labels: NDArray[np.int64], source: str, purity: float) -> MetaSet:
    """These rows (rising, all labeled) as a meta set; ``labels`` (N,)."""
    present = np.unique(labels[labels >= 0])
    counts = np.bincount(labels[rows], minlength=int(labels.max()) + 1)[present]
    return MetaSet(torch.from_numpy(rows), source, purity, int(counts.min()))


def draw_meta_batch(
    rows: Tensor,
    labels: Tensor,
    judged: Tensor,
    size: int,
    generator: torch.Generator,
    *,
    weight: Tensor | None = None,
) -> Tensor:
    """At most ``size`` of ``rows``, the classes in equal shares, none in ``judged``: (<= size,) int64.

    All tensors and the generator are on one device; where it is a card, one answer of it is waited for: how many
    rows are free.

    Args:
        rows: (M,) int64, the meta set.
        labels: (N,) given labels of all samples.
        judged: (B,) int64, the training batch that the meta batch will judge.
        size: samples wanted; fewer come back where fewer are left.
        generator: the number of draws is M.
        weight: (N,) positive, how many samples each stands for: within a class rows come in proportion to it
            (Efraimidis and Spirakis 2006); None = all the same.
    """
    keys = torch.rand(len(rows), generator=generator, device=rows.device)
    if weight is not None:
        keys = -torch.expm1(torch.log1p(-keys.double()) / weight[rows].double())
    is_judged = torch.zeros(len(labels), dtype=torch.bool, device=labels.device)
    is_judged[judged] = True
    free = (~is_judged[rows]).nonzero().squeeze(1)
    rows, keys = rows[free], keys[free]
    # Place within the class in random order; the first of every class come before the second of any.
    order = torch.argsort(keys)
    order = order[torch.argsort(labels[rows[order]], stable=True)]
    rows, keys, classes = rows[order], keys[order], labels[rows[order]]
    first = torch.searchsorted(classes, classes)
    place = torch.arange(len(rows), device=rows.device) - first
    return rows[torch.argsort(place + keys.double())][:size]


def split_halves(rows: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Two halves of ``rows`` (M,) with the classes dealt out alternately, to judge each half by the other."""
    by_class = rows[torch.argsort(labels[rows], stable=True)]
    return by_class[0::2], by_class[1::2]
