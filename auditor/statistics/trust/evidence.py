"""Whether labels show that any of them is wrong: the pool against one for which every label is right.

Weak witnesses on few samples make the pool take right labels for wrong ones. Each label has a likelihood under the
pool that was fitted without it, and under one fitted with T = I, for which every label is right. The first explains
a share w of the labels and the second the rest, w by the likelihood (stacking, Wolpert 1992). Something stands out
if this explains the labels better than w = 0, by more than one parameter brings by itself: half the log of their
number (Schwarz 1978). Measured in ``benchmarks/results/guess.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from auditor.statistics.rates import UNLABELED, row_chunks
from auditor.statistics.trust.pool import (
    FIT_ROWS,
    LEAST_SUM,
    PRIOR_DEVIATION,
    CrossFit,
    Pool,
    Sheet,
    sheet_of,
)

ROUNDS = 500
"""Of EM for w, one number: more than it needs."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """That some of N labels are wrong."""

    stands_out: bool
    share: NDArray[np.float64]
    """(N,) P(the label is one that the pool explains); 0 where unlabeled."""


def weigh(
    fits: CrossFit,
    opinions: Sequence[NDArray[np.floating]],
    given_labels: NDArray[np.integer],
    known: NDArray[np.integer],
) -> Evidence:
    """Compare both models on labels that neither was fitted to, and on what is known of them.

    Arguments as of ``reading.read``, and ``known`` as of ``pool.cross_fit``.
    """
    given_labels = np.asarray(given_labels)
    labeled, ahead = given_labels != UNLABELED, np.zeros(len(given_labels))
    for part, pool in enumerate(fits.pools):
        others = np.flatnonzero(labeled & (fits.parts != part))
        step = max(1, -(-len(others) // FIT_ROWS))
        right = _all_right(sheet_of(opinions, others[::step], given_labels), len(pool.bias))
        for rows in row_chunks(len(given_labels), len(pool.bias)):
            at = rows.start + np.flatnonzero(labeled[rows] & (fits.parts[rows] == part))
            if len(at):
                sheet = sheet_of(opinions, at, given_labels, known)
                both = (pool.true(sheet) * pool.given_as(sheet) * sheet.possible).sum(axis=1)
                plain = (right.true(sheet) * sheet.possible)[_is_given(sheet)]
                ahead[at] = np.log(both + LEAST_SUM) - np.log(plain + LEAST_SUM)
    ahead = ahead[labeled]
    if not len(ahead):
        return Evidence(False, np.zeros(len(given_labels)))
    weight = 0.5
    for _ in range(ROUNDS):
        share = _share(weight, ahead)
        weight = float(share.mean())
    gain = float(np.logaddexp(np.log(weight + 1e-300) + ahead, np.log1p(-min(weight, 1 - 1e-12))).sum())
    found = np.zeros(len(given_labels))
    found[labeled] = _share(weight, ahead)
    return Evidence(bool(gain > 0.5 * np.log(len(ahead))), found)


def _share(weight: float, ahead: NDArray[np.float64]) -> NDArray[np.float64]:
    odds = weight * np.exp(np.minimum(ahead, 700.0))
    return np.asarray(odds / (odds + 1.0 - weight + 1e-300))


def _is_given(sheet: Sheet) -> NDArray[np.bool_]:
    return np.asarray(sheet.classes == sheet.given[:, None])


def _all_right(sheet: Sheet, num_classes: int) -> Pool:
    """a and b by L-BFGS with T = I."""
    num_witnesses, is_given = len(sheet.logs), _is_given(sheet)

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights, bias = np.split(parameters, [num_witnesses])
        pooled = Pool(weights, bias, np.empty(0)).true(sheet)
        residual = is_given - pooled
        value = np.log(pooled[is_given] + LEAST_SUM, dtype=np.float64).sum()
        value -= parameters @ parameters / (2 * PRIOR_DEVIATION**2)
        by_weight = [np.vdot(one, residual) for one in sheet.logs]
        by_bias = np.bincount(sheet.classes.ravel(), residual.ravel(), num_classes)
        return -value, parameters / PRIOR_DEVIATION**2 - np.concatenate([by_weight, by_bias])

    first = np.concatenate([np.full(num_witnesses, 1 / num_witnesses), np.zeros(num_classes)])
    bounds = [(0.0, None)] * num_witnesses + [(None, None)] * num_classes
    best = scipy.optimize.minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds)
    weights, bias = np.split(best.x, [num_witnesses])
    return Pool(weights, bias, np.eye(num_classes))
