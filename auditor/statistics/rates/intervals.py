"""Exact intervals for a share that was counted on a random sample.

Two kinds, and each says which it is. *Exact* holds for a sample whose size was fixed before anybody looked
(Clopper and Pearson 1934, in the hypergeometric form of a finite data set). A
*confidence sequence* holds at all sizes together, so a person may watch it and stop when it is good enough
(Robbins 1970; without replacement: Waudby-Smith and Ramdas 2020). The sequence keeps every share p for
which the likelihood of the count is more than alpha times its Beta(1/2, 1/2) mixture; their ratio is a
martingale, so by Ville's inequality the true share ever leaves with probability at most alpha.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import lgamma

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

LEVEL = 0.95
MIXTURE = 0.5
"""Both parameters of the Beta mixture: Jeffreys' prior, tight for small shares."""


@dataclass(frozen=True)
class Interval:
    """A range that holds the true share with probability ``level``."""

    low: float
    high: float
    level: float
    kind: str
    """``"exact"`` (size fixed beforehand) or ``"sequence"`` (valid while watched)."""
    num_hits: int
    num_rows: int
    estimate: float | None = None
    """Where rows stand for different numbers of labels: the share that they estimate."""

    @property
    def point(self) -> float:
        """Share that the sample shows; NaN for an empty one."""
        if self.estimate is not None:
            return self.estimate
        return self.num_hits / self.num_rows if self.num_rows else float("nan")

    @property
    def kind_in_words(self) -> str:
        """Return what the interval promises, for a screen."""
        if self.kind == "sequence":
            return "valid at every size while you watch"
        return "exact for a sample size fixed beforehand"


def hypergeometric_interval(
    num_hits: int, num_rows: int, population: int, *, level: float = LEVEL
) -> tuple[float, float]:
    """Return the exact interval of a finite population's share, drawn without replacement.

    Keeps every number of hits in the population under which neither tail is below (1 - level) / 2.

    Raises:
        ValueError: the counts do not fit into the population.
    """
    _check_counts(num_hits, num_rows, population)
    tail = (1.0 - level) / 2.0
    fewest, most = num_hits, population - (num_rows - num_hits)
    below, above = np.arange(num_hits + 1), np.arange(num_hits, num_rows + 1)

    def upper_tail_allows(hits: int) -> bool:
        return float(np.exp(log_hypergeometric(above, num_rows, hits, population)).sum()) > tail

    def lower_tail_allows(hits: int) -> bool:
        return float(np.exp(log_hypergeometric(below, num_rows, hits, population)).sum()) > tail

    low = _first_true(upper_tail_allows, fewest, most)
    high = most - _first_true(lambda step: lower_tail_allows(most - step), 0, most - fewest)
    return low / population, high / population


def confidence_sequence(
    num_hits: int, num_rows: int, population: int, *, level: float = LEVEL
) -> tuple[float, float]:
    """Return an interval of a finite population's share that is valid at all sample sizes together.

    Raises:
        ValueError: the counts do not fit.
    """
    _check_counts(num_hits, num_rows, population)
    if num_rows == 0:
        return 0.0, 1.0
    floor = np.log1p(-level) + _log_mixture(num_hits, num_rows)
    fewest, most = num_hits, population - (num_rows - num_hits)
    peak = int(np.clip(round(num_hits / num_rows * population), fewest, most))

    drawn = _log_ways(population, num_rows)

    def inside(hits: int) -> bool:
        ways = _log_ways(hits, num_hits) + _log_ways(population - hits, num_rows - num_hits)
        return ways - drawn > floor

    low = _first_true(inside, fewest, peak)
    high = most - _first_true(lambda step: inside(most - step), 0, most - peak)
    return low / population, high / population


def _log_ways(total: int, part: int) -> float:
    """log C(total, part) for 0 <= part <= total."""
    return lgamma(total + 1) - lgamma(part + 1) - lgamma(total - part + 1)


def log_hypergeometric(
    seen: NDArray[np.integer], num_rows: int, hits: int | NDArray[np.integer], population: int
) -> NDArray[np.float64]:
    """log P(each number of hits seen among the rows drawn | hits in the population); ``hits`` may be a column."""
    misses, others = num_rows - seen, population - hits
    possible = (seen <= hits) & (misses <= others)
    seen, misses = np.where(possible, seen, 0), np.where(possible, misses, 0)
    ways = gammaln(hits + 1) - gammaln(seen + 1) - gammaln(hits - seen + 1)
    ways += gammaln(others + 1) - gammaln(misses + 1) - gammaln(others - misses + 1)
    return np.where(possible, ways - _log_ways(population, num_rows), -np.inf)


def _log_mixture(num_hits: int, num_rows: int) -> float:
    """log P(hits) when the share is drawn from Beta(MIXTURE, MIXTURE): the beta-binomial law."""
    posterior = betaln(num_hits + MIXTURE, num_rows - num_hits + MIXTURE)
    return _log_ways(num_rows, num_hits) + float(posterior - betaln(MIXTURE, MIXTURE))


def _first_true(test: Callable[[int], bool], start: int, stop: int) -> int:
    """Smallest integer in start..stop for which a monotone test holds; ``stop`` is known to pass."""
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if test(middle) else (middle + 1, high)
    return low


def _check_counts(num_hits: int, num_rows: int, population: int) -> None:
    if not 0 <= num_hits <= num_rows:
        raise ValueError(f"{num_hits} hits among {num_rows} rows; a count lies in 0..rows.")
    if num_rows > population:
        raise ValueError(f"{num_rows} rows drawn from {population}; a sample cannot be larger than its set.")
