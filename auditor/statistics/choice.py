"""A few looks choose which weighting leads.

Candidates rank the same labels; verified rows, each weighed by the inverse of the chance with which it was drawn,
say which ranking puts wrong labels below right ones more often (area under the curve, AUROC). Learned coefficients
need hundreds of rows; to choose one of a few fixed weightings, tens are enough. The safe one stays unless another
is ahead by more than a standard error of the difference, so that a few unlucky rows cost little.

Rows that choose calibrate nothing afterwards: whoever calls keeps the two apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST_OF_A_KIND = 4
"""Wrong and right rows below which nothing is chosen."""
ERRORS_AHEAD = 0.5
"""Standard errors of the difference that a candidate must be ahead by."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Which of C candidates leads. The first is the safe one."""

    chosen: int
    aurocs: NDArray[np.float64]
    """(C,) in [0, 1], on the rows; NaN where they are too few."""
    num_wrong: int
    num_right: int


def choose(
    trust: NDArray[np.floating], is_wrong: NDArray[np.bool_], weights: NDArray[np.floating] | None = None
) -> Choice:
    """Choose by inverse-probability-weighted AUROC, with shrinkage to the first candidate.

    Args:
        trust: (m, C) trust of the m verified rows by each candidate; high = the label looks right.
        is_wrong: (m,) bool, what the judge found; leave rows out that nobody could judge.
        weights: (m,) positive, how many labels a row stands for; None = all the same.

    Returns:
        The candidate with the highest AUROC less ``ERRORS_AHEAD`` standard errors of its lead (after DeLong, DeLong
        and Clarke-Pearson 1988, weighted), where that is above the safe one's; else the safe one.
    """
    wrong = np.asarray(is_wrong, dtype=bool)
    stand_for = np.ones(len(wrong)) if weights is None else np.asarray(weights, dtype=np.float64)
    num_wrong, num_right = int(wrong.sum()), int((~wrong).sum())
    if min(num_wrong, num_right) < FEWEST_OF_A_KIND:
        return Choice(0, np.full(trust.shape[1], np.nan), num_wrong, num_right)
    of_wrong = stand_for[wrong] / stand_for[wrong].sum()
    of_right = stand_for[~wrong] / stand_for[~wrong].sum()
    aurocs, by_wrong, by_right = [], [], []
    for column in trust.T:
        below = column[wrong][:, None] < column[~wrong][None, :]
        tied = column[wrong][:, None] == column[~wrong][None, :]
        wins = below + 0.5 * tied
        by_wrong.append(wins @ of_right)
        by_right.append(of_wrong @ wins)
        aurocs.append(float(of_wrong @ by_wrong[-1]))
    found = np.array(aurocs)
    leads = np.zeros(len(found))
    for number in range(1, len(found)):
        ahead = found[number] - found[0]
        spread = np.sum((of_wrong * (by_wrong[number] - by_wrong[0] - ahead)) ** 2)
        spread += np.sum((of_right * (by_right[number] - by_right[0] - ahead)) ** 2)
        leads[number] = ahead - ERRORS_AHEAD * np.sqrt(spread)
    return Choice(int(leads.argmax()), found, num_wrong, num_right)
