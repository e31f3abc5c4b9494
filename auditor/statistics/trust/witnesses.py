"""Who has an opinion on the given labels, and whom the pool can hear.

A witness is an engine, or a user's own predicted probabilities. The pool asks how likely the given labels are under
what witnesses say, so it can hear only those that did not learn from the label that they judge. Others still rank
the labels, but only those on which no other witness has an opinion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from auditor.ground.errors import AuditFailedError
from auditor.statistics.rates import SUM_TOLERANCE, UNLABELED, row_chunks

BY_HEART = 0.25
"""Share of the others' loss below which probabilities come from a model that learned the labels: those of the best
published network have .45 of it beside a small one's (``benchmarks/results/ranking.json``)."""


@dataclass(frozen=True, eq=False)
class Witness:
    """One opinion on every given label."""

    name: str
    trust_score: NDArray[np.floating]
    """(N,) float, high = the given label looks right, NaN where it has no opinion. Only its order counts."""
    pred_probs: NDArray[np.floating]
    """(N, K) rows sum to 1, or a row of NaN where it has no opinion; array or memory map."""
    is_out_of_sample: bool = False
    """Every sample was judged by a model that never learned from its given label."""


def knows_by_heart(
    pred_probs: NDArray[np.floating],
    others: Sequence[NDArray[np.floating]],
    given_labels: NDArray[np.integer],
) -> bool:
    """Return whether probabilities of unknown origin fit the given labels far better than ``others`` do.

    Then their model learned the labels. Where it learned them by half, nobody can tell it from a better model.

    Args:
        pred_probs: (N, K); a row with NaN has no opinion.
        others: the same of witnesses that are out of sample; none = nobody can tell.
        given_labels: (N,) int, -1 unlabeled.
    """
    losses = [_loss(one, given_labels) for one in (pred_probs, *others)]
    return bool(others) and losses[0] < BY_HEART * min(losses[1:])


def _loss(pred_probs: NDArray[np.floating], given_labels: NDArray[np.integer]) -> float:
    """Mean of -log p(given) over the labeled samples with an opinion; infinite without any."""
    total, num = 0.0, 0
    for rows in row_chunks(*pred_probs.shape):
        given = given_labels[rows]
        own = np.asarray(pred_probs[rows], dtype=np.float64)[np.arange(len(given)), given]
        told = own[np.isfinite(own) & (given != UNLABELED)]
        total, num = total - float(np.log(np.maximum(told, 1e-6)).sum()), num + len(told)
    return total / num if num else float("inf")


def check_witnesses(witnesses: Sequence[Witness], num_samples: int, num_classes: int) -> None:
    """Refuse witnesses that do not speak about this data set.

    Raises:
        AuditFailedError: none, a doubled name, an array of a wrong shape, or a row that is no distribution.
    """
    if not witnesses:
        raise AuditFailedError("no witness: run at least one engine, or give predicted probabilities.")
    names = [witness.name for witness in witnesses]
    if len(set(names)) != len(names):
        raise AuditFailedError(f"two witnesses have the same name in {names}; give each its own.")
    for witness in witnesses:
        if np.shape(witness.trust_score) != (num_samples,):
            raise AuditFailedError(
                f"witness {witness.name!r} scores {np.shape(witness.trust_score)}, expected ({num_samples},)."
            )
        if witness.pred_probs.shape != (num_samples, num_classes):
            raise AuditFailedError(
                f"witness {witness.name!r} predicts {witness.pred_probs.shape}, "
                f"expected ({num_samples}, {num_classes})."
            )
        for rows in row_chunks(num_samples, num_classes):
            _check_rows(witness.name, np.asarray(witness.pred_probs[rows], dtype=np.float32), rows.start)


def _check_rows(name: str, probs: NDArray[np.float32], start: int) -> None:
    sums = probs.sum(axis=1)
    bad = np.isfinite(sums) & ((np.abs(sums - 1.0) > SUM_TOLERANCE) | (probs.min(axis=1) < -1e-6))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise AuditFailedError(
            f"pred_probs of {name!r}, row {start + row}: probabilities sum to {sums[row]:.4f}, the smallest is "
            f"{probs[row].min():.4f}; each row must be non-negative and sum to 1."
        )


def rank_percentiles(scores: NDArray[np.floating], among: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return (N,) mid-rank percentiles in (0, 1) among the samples ``among`` that have a score; NaN elsewhere.

    Ties share their mean rank, so that the order of samples never matters.
    """
    values = np.asarray(scores)
    spoken = among & np.isfinite(values)
    percentiles = np.full(len(values), np.nan, dtype=np.float32)
    if spoken.any():
        percentiles[spoken] = (scipy.stats.rankdata(values[spoken]) - 0.5) / spoken.sum()
    return percentiles
