"""Small worlds with a known truth: labels, wrong labels, and witnesses that see them more or less well."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from auditor.statistics.rates.verified import Verified
from auditor.statistics.trust import Witness


@dataclass
class World:
    """N samples whose true labels are known."""

    true_labels: NDArray[np.int64]
    given_labels: NDArray[np.int64]
    num_classes: int

    @property
    def is_wrong(self) -> NDArray[np.bool_]:
        """(N,) bool, False where unlabeled."""
        return (self.true_labels != self.given_labels) & (self.given_labels >= 0)

    @property
    def transition(self) -> NDArray[np.float64]:
        """(C, C) share of each given label (column) among the samples of a true class (row)."""
        counts = np.zeros((self.num_classes, self.num_classes))
        np.add.at(counts, (self.true_labels, self.given_labels), 1)
        return counts / counts.sum(axis=1, keepdims=True)

    def verify(self, size: int, seed: int = 0, **roles: object) -> Verified:
        """Draw at random among the labeled samples and tell the truth."""
        labeled = np.flatnonzero(self.given_labels >= 0)
        ids = np.random.default_rng(seed).permutation(labeled)[:size]
        return Verified(ids, self.true_labels[ids], **roles)  # type: ignore[arg-type]


def make_world(
    num_samples: int = 600, num_classes: int = 4, rate: float = 0.2, seed: int = 0, num_unlabeled: int = 0
) -> World:
    """Uniformly wrong labels at exactly ``rate`` of the samples; the first ``num_unlabeled`` have no label."""
    rng = np.random.default_rng(seed)
    true = rng.integers(num_classes, size=num_samples)
    given = true.copy()
    wrong = rng.permutation(num_samples)[: round(rate * num_samples)]
    given[wrong] = (true[wrong] + 1 + rng.integers(num_classes - 1, size=len(wrong))) % num_classes
    given[:num_unlabeled] = -1
    return World(true, given, num_classes)


def make_witness(world: World, name: str = "a", skill: float = 2.0, seed: int = 0) -> Witness:
    """A model of the true classes: logits normal with ``skill`` added to the true one."""
    rng = np.random.default_rng([seed, len(name), ord(name[0])])
    rows = np.arange(len(world.true_labels))
    logits = rng.normal(size=(len(rows), world.num_classes))
    logits[rows, world.true_labels] += skill
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    trust = probs[rows, np.maximum(world.given_labels, 0)]
    trust[world.given_labels < 0] = np.nan
    return Witness(name, trust, probs.astype(np.float32), is_out_of_sample=True)


def detection(world: World, trust: NDArray[np.floating]) -> float:
    """Area under the curve of wrong labels by falling trust."""
    labeled = world.given_labels >= 0
    return float(roc_auc_score(world.is_wrong[labeled], -trust[labeled]))
