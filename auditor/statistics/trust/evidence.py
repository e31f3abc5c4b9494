"""Whether labels show that any of them is wrong: the pool against one for which every label is right.

Weak witnesses on few samples make the pool take right labels for wrong ones. Each label has a likelihood under the
pool that was fitted without it, and under one fitted with T = I, for which every label is right. The first explains
a share w of the labels and the second the rest, w by the likelihood (stacking, Wolpert 1992). What w brings is held
against what one parameter brings by itself, half the log of the number N of labels (Schwarz 1978).

Labels that people gave and a strong network predicts are as likely under both models: likelihood alone cannot say
whether the labels err or the network. But whoever errs seldom is believed. So something stands out if

    what w brings  >  1/2 log N  times  log(how often the pool errs, by itself / how often it says that labels do).

Measured in ``benchmarks/results/guess.md`` and ``benchmarks/results/ranking.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def weigh(
    fits: CrossFit,
    opinions: Sequence[NDArray[np.floating]],
    given_labels: NDArray[np.integer],
    known: NDArray[np.integer],
) -> tuple[bool, float]:
    """Compare both models on labels that neither was fitted to, and on what is known of them.

    Returns whether something stands out, and w. ``known``: as of ``pool.cross_fit``.
    """
    given_labels = np.asarray(given_labels)
    labeled, ahead = given_labels != UNLABELED, np.zeros(len(given_labels))
    wrong = unsure = 0.0
    for part, pool in enumerate(fits.pools):
        others = np.flatnonzero(labeled & (fits.parts != part))
        step = max(1, -(-len(others) // FIT_ROWS))
        right = _all_right(sheet_of(opinions, others[::step], given_labels), len(pool.bias))
        for rows in row_chunks(len(given_labels), len(pool.bias)):
            at = rows.start + np.flatnonzero(labeled[rows] & (fits.parts[rows] == part))
            if len(at):
                sheet = sheet_of(opinions, at, given_labels, known)
                true, is_given = pool.true(sheet), sheet.classes == sheet.given[:, None]
                joint = true * pool.given_as(sheet) * sheet.possible
                both = joint.sum(axis=1)
                wrong += float((1.0 - joint[is_given] / (both + LEAST_SUM)).sum())
                unsure += float((1.0 - true.max(axis=1)).sum())
                # Each model says which of the likely classes is given; all of them are likely where K is small.
                if sheet.classes.shape[1] < len(pool.bias):
                    named = pool.transition[sheet.classes[:, :, None], sheet.classes[:, None, :]].sum(axis=2)
                    both /= (true * named).sum(axis=1)
                plain = (right.true(sheet) * sheet.possible)[is_given]
                ahead[at] = np.log(both + LEAST_SUM) - np.log(plain + LEAST_SUM)
    ahead = ahead[labeled]
    if not len(ahead):
        return False, 0.0
    weight, odds = 0.5, np.exp(np.minimum(ahead, 700.0))
    for _ in range(ROUNDS):
        shares = weight * odds / (weight * odds + 1.0 - weight + 1e-300)
        weight = float((shares.sum() + 1.0) / (len(shares) + 2.0))  # never 0: the order of the labels stays
    gain = float(np.logaddexp(np.log(weight + 1e-300) + ahead, np.log1p(-min(weight, 1 - 1e-12))).sum())
    return bool(gain > 0.5 * np.log(len(ahead)) * who_errs(unsure, wrong)), weight


def who_errs(unsure: float, wrong: float) -> float:
    """Log of the odds that a pool errs against the labels, by what it says of both: 0 where they err alike."""
    return float(np.log((unsure + 1e-9) / (wrong + 1e-9)))


def _all_right(sheet: Sheet, num_classes: int) -> Pool:
    """a and b by L-BFGS with T = I."""
    num_witnesses, is_given = len(sheet.logs), sheet.classes == sheet.given[:, None]

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
