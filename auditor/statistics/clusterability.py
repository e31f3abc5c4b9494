"""How many labels are wrong, read from samples that look alike; no network's opinion of the labels is needed.

*Clusterability* (Zhu, Song and Liu 2021, "Clusterability as an Alternative to Anchor Points"): a sample and its two
nearest others in features of a backbone mostly show the same class, so their three given labels are three draws
from one row of T. From how often labels (a, b, c) meet, the shares p of the classes and T follow:

    P(a, b, c) = sum_i p_i T_ia T_ib T_ic

Both are fitted by EM, as three annotators with one confusion matrix would be (Dawid and Skene 1979). Where
neighbours show another class the estimate takes that for noise too. So it reads high, and the higher the weaker
the features: it is the one estimator that is never far too low. Where networks predict, only samples are asked
whose two neighbours get the sample's own prediction, which takes most of that away.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.statistics.witnesses import UNLABELED

MOST_ROWS = 20_000
"""Samples that are asked at most, evenly spaced; their neighbours may be any."""
FEWEST_ROWS = 100
"""Samples below which nothing is estimated."""
MOST_CELLS = 4_000_000
"""Samples times classes that are fitted at most; fewer samples are asked where there are many classes."""
ROUNDS = 200
TOLERANCE = 1e-6
FIRST_TRUST = 0.7
"""Share of right labels that the fit starts from; it settles which class is which."""
PRIOR = 0.5
"""Right labels that every class counts in advance: a class of a few samples keeps its name."""


def noise_share(
    given_labels: NDArray[np.integer],
    neighbours: NDArray[np.integer],
    num_classes: int,
    *,
    predicted: NDArray[np.integer] | None = None,
) -> float | None:
    """Estimate the share of wrong labels; None where too few samples have two labeled neighbours.

    Args:
        given_labels: (N,) int in {-1, 0..K-1}.
        neighbours: (N, k) int, each sample's nearest others in features of a backbone, the nearest first; -1 =
            none.
        num_classes: K.
        predicted: (N,) int, the class that networks predict, -1 without; only samples are asked whose two nearest
            get the same.
    """
    if num_classes < 2 or neighbours.shape[1] < 2:
        return None
    labels = np.asarray(given_labels)
    rows = np.flatnonzero((labels != UNLABELED) & (np.asarray(neighbours[:, :2]) >= 0).all(axis=1))
    near = np.asarray(neighbours[rows, :2])
    usable = (labels[near] != UNLABELED).all(axis=1)
    if predicted is not None:
        usable &= (predicted[near] == predicted[rows][:, None]).all(axis=1)
    rows, near = rows[usable], near[usable]
    most = min(MOST_ROWS, MOST_CELLS // num_classes)
    kept = np.arange(0, len(rows), max(1, -(-len(rows) // most)))
    if len(kept) < FEWEST_ROWS:
        return None
    triples = np.column_stack([labels[rows[kept]], labels[near[kept]]])
    seen, counts = np.unique(np.sort(triples, axis=1), axis=0, return_counts=True)  # the order says nothing
    shares, transition = _fit(seen, counts.astype(np.float64), num_classes)
    return float(np.clip(shares @ (1.0 - np.diag(transition)), 0.0, 1.0))


def _fit(
    triples: NDArray[np.integer], counts: NDArray[np.float64], num_classes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(K,) shares of the classes and (K, K) T[true, given] of the likeliest latent classes."""
    seen = np.bincount(triples.ravel(), weights=np.repeat(counts, 3), minlength=num_classes) + PRIOR
    shares: NDArray[np.float64] = seen / seen.sum()
    transition: NDArray[np.float64] = np.full(
        (num_classes, num_classes), (1.0 - FIRST_TRUST) / (num_classes - 1)
    )
    np.fill_diagonal(transition, FIRST_TRUST)
    before = -np.inf
    for _ in range(ROUNDS):
        joint = (
            shares * transition.T[triples[:, 0]] * transition.T[triples[:, 1]] * transition.T[triples[:, 2]]
        )
        chance = np.maximum(joint.sum(axis=1), 1e-300)
        likelihood = float(counts @ np.log(chance) / counts.sum())
        posterior = joint / chance[:, None] * counts[:, None]
        heard = np.zeros((num_classes, num_classes))
        for column in range(3):
            np.add.at(heard, triples[:, column], posterior)
        transition = heard.T + PRIOR * np.eye(num_classes) + 1e-9
        transition /= transition.sum(axis=1, keepdims=True)
        shares = (posterior.sum(axis=0) + 1e-9) / (counts.sum() + 1e-9 * num_classes)
        if likelihood - before < TOLERANCE:
            break
        before = likelihood
    return shares, transition
