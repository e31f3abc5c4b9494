"""What the pool says of every label: whether it is right, and what it may be instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.statistics.annotators import Consensus
from auditor.statistics.rates import UNLABELED, row_chunks
from auditor.statistics.trust.pool import CrossFit, Pool, Sheet, sheet_of


@dataclass(frozen=True, eq=False)
class Reading:
    """Of N samples, each read by a pool that was fitted without it."""

    trust_score: NDArray[np.float64]
    """(N,) P(true = given | sample, given); NaN where unlabeled or nobody speaks."""
    support: NDArray[np.float64]
    """(N,) P(true = given | sample): what the pool would say of the sample, whatever label it was given."""
    other_label: NDArray[np.int64]
    """(N,) likeliest class but the given one (of an unlabeled sample the likeliest); -1 without."""
    other_probability: NDArray[np.float64]
    """(N,) its probability, given that the given label is wrong; NaN without."""


def read(
    fits: CrossFit, opinions: Sequence[NDArray[np.floating]], given_labels: NDArray[np.integer]
) -> Reading:
    """Read all samples, in chunks.

    Args:
        fits: the pools.
        opinions: W arrays (N, K) of the witnesses that they hear, in that order.
        given_labels: (N,) int in {-1, 0..K-1}.
    """
    num = len(given_labels)
    trust, support, chance = (np.full(num, np.nan) for _ in range(3))
    other = np.full(num, -1, dtype=np.int64)
    for rows in row_chunks(num, opinions[0].shape[1]):
        spoken = np.any([np.isfinite(one[rows].sum(axis=1)) for one in opinions], axis=0)
        for part, pool in enumerate(fits.pools):
            at = rows.start + np.flatnonzero(spoken & (fits.parts[rows] == part))
            if len(at):
                labeled = np.asarray(given_labels)[at] != UNLABELED
                sheet = sheet_of(opinions, at, given_labels)
                trust[at], support[at], other[at], chance[at] = _of_rows(pool, sheet, labeled)
    return Reading(trust, support, other, chance)


def own_opinion(
    fits: CrossFit, opinions: Sequence[NDArray[np.floating]], given_labels: NDArray[np.integer]
) -> NDArray[np.float32]:
    """(N, K) P(true class | sample) by the pool that did not learn from it; NaN where nobody speaks.

    Arguments as of ``read``.
    """
    num, num_classes = opinions[0].shape
    found = np.zeros((num, num_classes), dtype=np.float32)
    for rows in row_chunks(num, num_classes):
        spoken = np.any([np.isfinite(one[rows].sum(axis=1)) for one in opinions], axis=0)
        found[rows][~spoken] = np.nan
        for part, pool in enumerate(fits.pools):
            at = rows.start + np.flatnonzero(spoken & (fits.parts[rows] == part))
            if len(at):
                sheet = sheet_of(opinions, at, given_labels)
                found[at[:, None], sheet.classes] = pool.true(sheet)
    return found


def read_consensus(found: Consensus, pooled: Reading, given_labels: NDArray[np.integer]) -> Reading:
    """Read labels that are the consensus of several answers; where nobody answered, the pool's reading stays."""
    rows = np.flatnonzero((given_labels != UNLABELED) & (found.labels >= 0))
    given, places = given_labels[rows], np.arange(len(rows))
    probs = found.probs[rows].astype(np.float64)
    trust, other, chance = (
        pooled.trust_score.copy(),
        pooled.other_label.copy(),
        pooled.other_probability.copy(),
    )
    trust[rows] = probs[places, given]
    probs[places, given] = 0.0
    other[rows] = probs.argmax(axis=1)
    chance[rows] = probs.max(axis=1) / np.maximum(probs.sum(axis=1), 1e-300)
    return Reading(trust, pooled.support, other, chance)


def _of_rows(pool: Pool, sheet: Sheet, labeled: NDArray[np.bool_]) -> tuple[NDArray[np.generic], ...]:
    """The columns of a ``Reading`` for the n samples of a sheet."""
    places = np.arange(len(labeled))
    pooled, given_as = pool.true(sheet), pool.given_as(sheet)
    given_as[~labeled] = 1.0
    joint = (pooled * given_as).astype(np.float64)
    is_given = (sheet.classes == sheet.given[:, None]) & labeled[:, None]
    own = joint[is_given]
    joint[is_given] = 0.0
    others = joint.sum(axis=1)
    trust, support = np.full(len(labeled), np.nan), np.full(len(labeled), np.nan)
    trust[labeled], support[labeled] = own / (own + others[labeled]), pooled[is_given]
    best = joint.argmax(axis=1)
    exists = joint[places, best] > 0
    chance = np.where(exists, joint[places, best] / np.maximum(others, 1e-300), np.nan)
    return trust, support, np.where(exists, sheet.classes[places, best], -1), chance
