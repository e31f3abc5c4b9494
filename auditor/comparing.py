"""Is one engine better than another, or is the difference too small to tell?

Both questions are *paired*: the same held-out rows judge both sides, so only the rows on which they differ
count. Accuracies: exact McNemar test and the adjusted Wald interval of Agresti and Min (2005). Rankings of the
verified rows: areas under the curve by DeLong et al. (1988). A difference is called clear only when the
interval leaves out zero and the test, after Holm's correction for the number of comparisons, agrees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from auditor.errors import AuditFailedError
from auditor.intervals import percent

LEVEL = 0.95
MIN_OF_A_KIND = 10
"""Wrong and right rows that a comparison of rankings needs."""


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
    measure: str
    """``"accuracy"`` or ``"area under the curve"``."""
    is_clear: bool
    """False: too small to tell on these rows."""

    @property
    def sentence(self) -> str:
        """The verdict for people."""
        values = f"{self.first_value:.3f} and {self.second_value:.3f}"
        span = f"difference {self.difference:+.3f}, {percent(LEVEL)} interval {self.low:+.3f} to {self.high:+.3f}"
        facts = f"{self.measure} {values} on the same {self.num_rows:,} rows; {span}"
        if not self.is_clear:
            return f"{self.first} and {self.second}: too small to tell ({facts})."
        better, worse = (self.first, self.second) if self.difference > 0 else (self.second, self.first)
        return f"{better} is better than {worse} ({facts})."


def compare_accuracy(
    first_right: NDArray[np.bool_],
    second_right: NDArray[np.bool_],
    *,
    names: tuple[str, str] = ("first", "second"),
) -> Difference:
    """Compare two accuracies on the same held-out rows.

    Args:
        first_right: (n,) bool, the first side's prediction was right.
        second_right: (n,) bool, the same rows.
        names: of the two sides.

    Raises:
        AuditFailedError: the rows differ in number or there are none.
    """
    first, second = np.asarray(first_right, dtype=bool), np.asarray(second_right, dtype=bool)
    _check_rows(first, second, names)
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    num = len(first)
    p_value = 1.0
    if only_first + only_second:
        p_value = float(stats.binomtest(only_first, only_first + only_second).pvalue)
    difference = (only_first - only_second) / num
    # Half a row in each of the four cells keeps the interval honest for few or no differing rows.
    above, below, total = only_first + 0.5, only_second + 0.5, num + 2.0
    centre = (above - below) / total
    half = (
        float(stats.norm.ppf(0.5 + LEVEL / 2)) * np.sqrt(above + below - (above - below) ** 2 / total) / total
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
        "accuracy",
        _is_clear(low, high, p_value),
    )


def compare_rankings(
    first_trust: NDArray[np.floating],
    second_trust: NDArray[np.floating],
    is_wrong: NDArray[np.bool_],
    *,
    names: tuple[str, str] = ("first", "second"),
) -> Difference:
    """Compare how well two trust scores rank wrong below right labels on the same verified rows.

    Args:
        first_trust: (m,) float, high = looks right.
        second_trust: (m,) float, the same rows.
        is_wrong: (m,) bool.
        names: of the two sides.

    Raises:
        AuditFailedError: the rows differ in number, or fewer than ``MIN_OF_A_KIND`` are wrong or right.
    """
    wrong = np.asarray(is_wrong, dtype=bool)
    _check_rows(np.asarray(first_trust), np.asarray(second_trust), names)
    num_wrong, num_right = int(wrong.sum()), int((~wrong).sum())
    if min(num_wrong, num_right) < MIN_OF_A_KIND:
        raise AuditFailedError(
            f"{num_wrong} wrong and {num_right} right verified rows cannot rank engines; verify more until "
            f"there are {MIN_OF_A_KIND} of each."
        )
    scores = np.stack([first_trust, second_trust]).astype(np.float64)
    wrong_wins, right_wins = _placements(scores, wrong)
    areas = wrong_wins.mean(axis=1)
    covariance = np.cov(wrong_wins) / num_wrong + np.cov(right_wins) / num_right
    variance = float(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    difference = float(areas[0] - areas[1])
    error = float(np.sqrt(max(variance, 0.0)))
    half = float(stats.norm.ppf(0.5 + LEVEL / 2)) * error
    p_value = float(2 * stats.norm.sf(abs(difference) / error)) if error > 0 else 1.0
    low, high = difference - half, difference + half
    return Difference(
        *names,
        float(areas[0]),
        float(areas[1]),
        difference,
        low,
        high,
        p_value,
        len(wrong),
        "area under the curve",
        _is_clear(low, high, p_value),
    )


def settle_together(differences: Mapping[str, Difference]) -> dict[str, Difference]:
    """Apply Holm's correction (1979) over several comparisons and settle which of them are clear.

    Args:
        differences: by the name of the comparison.
    """
    order = sorted(differences, key=lambda name: differences[name].p_value)
    settled: dict[str, Difference] = {}
    adjusted = 0.0
    for position, name in enumerate(order):
        found = differences[name]
        adjusted = max(adjusted, min(1.0, (len(order) - position) * found.p_value))
        settled[name] = replace(found, p_value=adjusted, is_clear=_is_clear(found.low, found.high, adjusted))
    return {name: settled[name] for name in differences}


def rank_by_accuracy(
    predicted: Mapping[str, NDArray[np.integer]], labels: NDArray[np.integer]
) -> list[Difference]:
    """Return every engine's difference to the best one on the same held-out rows, best first.

    Args:
        predicted: (n,) predicted labels by engine, at least two engines.
        labels: (n,) held-out labels.

    Raises:
        AuditFailedError: fewer than two engines, or rows that do not match.
    """
    rights = {name: np.asarray(values) == labels for name, values in predicted.items()}
    best = _best({name: float(right.mean()) for name, right in rights.items()})
    found = {
        name: compare_accuracy(rights[best], right, names=(best, name))
        for name, right in rights.items()
        if name != best
    }
    return sorted(settle_together(found).values(), key=lambda one: -one.second_value)


def rank_by_detection(
    trust: Mapping[str, NDArray[np.floating]], is_wrong: NDArray[np.bool_]
) -> list[Difference]:
    """Return every engine's difference to the best ranking of the same verified rows, best first.

    Args:
        trust: (m,) trust scores by engine, at least two engines.
        is_wrong: (m,) bool.

    Raises:
        AuditFailedError: fewer than two engines, or too few wrong or right rows.
    """
    names = list(trust)
    _best(dict.fromkeys(names, 0.0))
    against_first = {
        name: compare_rankings(trust[names[0]], trust[name], is_wrong, names=(names[0], name))
        for name in names
    }
    best = _best({name: one.second_value for name, one in against_first.items()})
    found = {
        name: compare_rankings(trust[best], trust[name], is_wrong, names=(best, name))
        for name in names
        if name != best
    }
    return sorted(settle_together(found).values(), key=lambda one: -one.second_value)


def _best(values: Mapping[str, float]) -> str:
    if len(values) < 2:
        raise AuditFailedError(f"a comparison needs two engines, got {list(values)}; run another engine.")
    return max(values, key=lambda name: values[name])


def _placements(
    scores: NDArray[np.float64], wrong: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """DeLong's placement values: share of right rows trusted above each wrong row, and the reverse."""
    num_wrong, num_right = int(wrong.sum()), int((~wrong).sum())
    everywhere = stats.rankdata(scores, axis=1)
    among_wrong = stats.rankdata(scores[:, wrong], axis=1)
    among_right = stats.rankdata(scores[:, ~wrong], axis=1)
    wrong_wins = 1.0 - (everywhere[:, wrong] - among_wrong) / num_right
    right_wins = (everywhere[:, ~wrong] - among_right) / num_wrong
    return wrong_wins, right_wins


def _is_clear(low: float, high: float, p_value: float) -> bool:
    return bool((low > 0 or high < 0) and p_value < 1 - LEVEL)


def _check_rows(first: NDArray[np.generic], second: NDArray[np.generic], names: tuple[str, str]) -> None:
    if first.shape != second.shape or first.ndim != 1:
        raise AuditFailedError(
            f"{names[0]} has {first.shape} rows, {names[1]} {second.shape}; use the same rows."
        )
    if not len(first):
        raise AuditFailedError(f"no held-out row to compare {names[0]} and {names[1]} on.")
