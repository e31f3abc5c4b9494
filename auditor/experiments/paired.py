"""Is one side more accurate than another, or is the difference too small to tell?

The question is *paired*: the same held-out rows judge both sides, so only the rows on which they differ count.
Exact McNemar test and the adjusted Wald interval of Agresti and Min (2005). A difference is called clear only when
the interval leaves out zero and the test agrees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from auditor.ground.errors import AuditFailedError
from auditor.ground.wording import percent, plural

LEVEL = 0.95
NUM_FLIPS = 9_999


@dataclass(frozen=True)
class Difference:
    """How much better ``first`` is than ``second`` on the same rows."""

    first: str
    second: str
    first_value: float
    second_value: float
    difference: float
    """``first_value - second_value``."""
    low: float
    high: float
    p_value: float
    num_rows: int
    is_clear: bool
    """False: too small to tell on these rows."""

    @property
    def sentence(self) -> str:
        """The verdict for people."""
        values = f"{self.first_value:.3f} and {self.second_value:.3f}"
        span = f"difference {self.difference:+.3f}, {percent(LEVEL)} interval {self.low:+.3f} to {self.high:+.3f}"
        facts = f"accuracy {values} on the same {plural(self.num_rows, 'row')}; {span}"
        if not self.is_clear:
            return f"{self.first} and {self.second}: too small to tell ({facts})."
        better, worse = (self.first, self.second) if self.difference > 0 else (self.second, self.first)
        return f"{better} is better than {worse} ({facts})."


def compare_accuracy(
    first_right: NDArray[np.bool_],
    second_right: NDArray[np.bool_],
    *,
    names: tuple[str, str] = ("first", "second"),
    weights: NDArray[np.float64] | None = None,
) -> Difference:
    """Compare two accuracies on the same held-out rows.

    Rows that stand for different numbers of samples are weighed by these: then the interval is the normal one of a
    weighted mean and the test flips the signs of the rows that differ.

    Args:
        first_right: (n,) bool, the first side's prediction was right.
        second_right: (n,) bool, the same rows.
        names: of the two sides.
        weights: (n,) positive, how many samples each row stands for; None or all equal = the exact test.

    Raises:
        AuditFailedError: the rows differ in number or there are none.
    """
    first, second = np.asarray(first_right, dtype=bool), np.asarray(second_right, dtype=bool)
    _check_rows(first, second, names)
    if weights is not None and np.ptp(weights) > 0:
        return _compare_weighted(first, second, names, np.asarray(weights, dtype=np.float64))
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    num = len(first)
    p_value = 1.0
    if only_first + only_second:
        p_value = float(scipy.stats.binomtest(only_first, only_first + only_second).pvalue)
    difference = (only_first - only_second) / num
    # Half a row in each of the four cells keeps the interval honest for few or no differing rows.
    above, below, total = only_first + 0.5, only_second + 0.5, num + 2.0
    centre = (above - below) / total
    half = (
        float(scipy.stats.norm.ppf(0.5 + LEVEL / 2))
        * np.sqrt(above + below - (above - below) ** 2 / total)
        / total
    )
    low, high = max(-1.0, min(centre - half, difference)), min(1.0, max(centre + half, difference))
    return Difference(
        *names,
        float(first.mean()),
        float(second.mean()),
        difference,
        float(low),
        float(high),
        p_value,
        num,
        bool((low > 0 or high < 0) and p_value < 1 - LEVEL),
    )


def _compare_weighted(
    first: NDArray[np.bool_], second: NDArray[np.bool_], names: tuple[str, str], weights: NDArray[np.float64]
) -> Difference:
    """As ``compare_accuracy``, for rows of unequal weight."""
    gain = first.astype(np.float64) - second
    difference = float(np.average(gain, weights=weights))
    # Half a row in each of the four cells, as above; a row of the weight that a row of the sample has on average.
    usual = float((weights**2).sum() / weights.sum())
    padded, share = np.append(gain, [1.0, -1.0, 0.0, 0.0]), np.append(weights, [usual / 2] * 4)
    centre = float(np.average(padded, weights=share))
    half = float(
        scipy.stats.norm.ppf(0.5 + LEVEL / 2)
        * np.sqrt((share**2 * (padded - centre) ** 2).sum())
        / share.sum()
    )
    differing = gain != 0
    p_value = 1.0
    if differing.any():
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(NUM_FLIPS, int(differing.sum())))
        flipped = np.abs(signs @ weights[differing])
        seen = abs(float((weights * gain).sum())) * (1 - 1e-12)
        p_value = float((1 + np.count_nonzero(flipped >= seen)) / (1 + NUM_FLIPS))
    low, high = max(-1.0, min(centre - half, difference)), min(1.0, max(centre + half, difference))
    return Difference(
        *names,
        float(np.average(first, weights=weights)),
        float(np.average(second, weights=weights)),
        difference,
        low,
        high,
        p_value,
        len(first),
        bool((low > 0 or high < 0) and p_value < 1 - LEVEL),
    )


def _check_rows(first: NDArray[np.generic], second: NDArray[np.generic], names: tuple[str, str]) -> None:
    if first.shape != second.shape or first.ndim != 1:
        raise AuditFailedError(
            f"{names[0]} has {first.shape} rows, {names[1]} {second.shape}; use the same rows."
        )
    if not len(first):
        raise AuditFailedError(f"no held-out row to compare {names[0]} and {names[1]} on.")
