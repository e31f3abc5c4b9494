"""What the nearest rows say about a label: votes, each weighed by how far its own label is confirmed.

Sources: SimiFeat (Zhu, Dong and Liu, ICML 2022, https://arxiv.org/abs/2110.06283): labels of the nearest in feature
space as votes. WANN (Di Salvo, Doerrich, Rieger and Ledig, TMLR 2025, https://arxiv.org/abs/2408.14358): a row's
reliability is 1 / k, k the smallest neighbourhood that confirms its label, and the same k says how many vote.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FEWEST, MOST = 11, 51
"""Smallest and largest neighbourhood of WANN; odd numbers between them are tried."""
BLOCK = 8_192


def confirming_size(
    neighbours: NDArray[np.integer], labels: NDArray[np.int64], num_classes: int
) -> NDArray[np.int64]:
    """The smallest neighbourhood in which a row's own label has the most votes.

    Args:
        neighbours: (N, M) int64, the nearest first, M <= 51.
        labels: (N,) int64 in {-1, 0..K-1}; unlabeled rows do not vote.
        num_classes: K.

    Returns:
        (N,) int64: an odd number from 11 on; M where no size confirms the label or there is none. A tie confirms.
    """
    num_rows, most = neighbours.shape
    sizes = list(range(min(FEWEST, most), most + 1, 2))
    found = np.full(num_rows, most, dtype=np.int64)
    for start in range(0, num_rows, BLOCK):
        rows = slice(start, start + BLOCK)
        votes = np.zeros((len(found[rows]), num_classes), dtype=np.int32)
        own, counted = labels[rows], 0
        is_open = own >= 0
        for size in sizes:
            for place in range(counted, size):
                _count(votes, labels[neighbours[rows, place]])
            counted = size
            mine = votes[np.arange(len(votes)), np.maximum(own, 0)]
            confirms = is_open & (mine > 0) & (mine >= votes.max(axis=1))
            found[rows][confirms] = size
            is_open &= ~confirms
    return found


def _count(votes: NDArray[np.int32], labels: NDArray[np.int64]) -> None:
    voters = np.flatnonzero(labels >= 0)
    votes[voters, labels[voters]] += 1


def neighbour_probs(
    neighbours: NDArray[np.integer],
    similar: NDArray[np.float32],
    labels: NDArray[np.int64],
    num_classes: int,
) -> NDArray[np.float32]:
    """Class probabilities of every row from its neighbours alone; its own label has no vote.

    A vote counts 1 / ``confirming_size`` of the voter, and only the nearest k vote, k the confirming size of the
    nearest row. One vote is spread over all classes, as the classes are given, so that no probability is 0.

    Args:
        neighbours: (N, M) int64, the nearest first.
        similar: (N, M) float32; a neighbour at -inf (there was none) has no vote.
        labels: (N,) int64 in {-1, 0..K-1}.
        num_classes: K.

    Returns:
        (N, K) float32, rows sum to 1.
    """
    sizes = confirming_size(neighbours, labels, num_classes)
    reliability = 1.0 / sizes
    given = np.bincount(labels[labels >= 0], minlength=num_classes).astype(np.float64)
    prior = (given + 1.0) / (given + 1.0).sum()
    probs = np.empty((len(labels), num_classes), dtype=np.float32)
    places = np.arange(neighbours.shape[1])
    for start in range(0, len(labels), BLOCK):
        near = neighbours[start : start + BLOCK]
        may_vote = (places < sizes[near[:, 0]][:, None]) & np.isfinite(similar[start : start + BLOCK])
        may_vote &= labels[near] >= 0
        weight = np.where(may_vote, reliability[near], 0.0)
        votes = np.zeros((len(near), num_classes))
        row = np.repeat(np.arange(len(near)), near.shape[1])
        np.add.at(votes, (row, np.maximum(labels[near], 0).ravel()), weight.ravel())
        # One vote of a typical voter for the classes as they are given: zero votes are no certainty.
        typical = reliability.mean()
        votes += typical * prior
        probs[start : start + BLOCK] = votes / votes.sum(axis=1, keepdims=True)
    return probs
