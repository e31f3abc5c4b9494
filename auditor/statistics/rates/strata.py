"""Shares counted on draws that look at some zones of a data set more often than at others.

A draw takes rows uniformly inside each of its zones, so the number of wrong labels in a zone is hypergeometric and
the number in the whole set is a sum over zones. Three things follow, all for finite sets and without a normal law:

* The estimate is the sum of zone sizes times the shares seen there; zones that follow the ranking make it as sharp
  as a difference estimator with the predictions would.
* One draw whose size was fixed has an exact interval: a total stays in it where some split over the zones makes
  a sum of weighted shares as far out as the one seen as likely as the tail allows (Wendell and Schmee 1996).
  Splits that the zones' own exact intervals exclude at a small level are left out and that level is paid (Berger
  and Boos 1994). The search is over cells of splits and takes the worse corner of each, so that it errs outwards.
* Draws that follow each other, or that are watched, have a confidence sequence: the product over zones of
  the mixture martingales of ``intervals`` is again one, and a total stays in where some split keeps the product
  below 1 / alpha (for zones: Spertus, Sridhar and Stark 2024, union-intersection tests).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import betaln, digamma, gammaln

from auditor.statistics.rates.intervals import (
    MIXTURE,
    confidence_sequence,
    hypergeometric_interval,
    log_hypergeometric,
)

SPLIT_LEVEL = 0.05
"""Of a tail, what is paid for looking only at splits that the zones' own intervals allow."""
CELLS = 96
"""Cells a zone that the exact search looks at for a whole data set."""
FEW_CELLS = 32
"""The same for one class or split, of which there may be many."""
LEAST_MASS = 1e-12
"""Counts less likely than this in every split are left out of a sum, and counted as possible."""
CURVE_POINTS = 600
PLANNED_SHARES = (0.7, 0.2, 0.02)
"""Shares of wrong labels in the upper and lower half of a head and in the rest by which draws are weighed against
each other, whatever they showed; the middle one for uniform draws. Equal ones err twice as much where a ranking is
strong, and a quarter less where it is weak (``benchmarks/results/constants.md``)."""


@dataclass(frozen=True, eq=False)
class Stage:
    """One draw, or several uniform ones after each other: what could be drawn, and which rows it holds."""

    rows: NDArray[np.bool_]
    """(m,) bool, verified rows that this stage drew."""
    zones: NDArray[np.int8]
    """(N,) zone of each sample, -1 where this stage could not draw it. 0 alone = uniform; else 0 and 1 are the
    halves of the head, the more suspicious first, and 2 is the rest."""
    fixed: NDArray[np.bool_] | None = None
    """(m,) bool, of these the rows of a draw whose size was fixed beforehand and that is judged to its end; None =
    all of them, unless the judge watched."""

    @property
    def is_uniform(self) -> bool:
        """Every label that it could draw had the same chance."""
        return not (self.zones > 0).any()

    def subset(self, rows: NDArray[np.bool_]) -> Stage:
        """The stage of the verified rows in the (m,) mask."""
        fixed = None if self.fixed is None else self.fixed[rows]
        return replace(self, rows=self.rows[rows], fixed=fixed)


@dataclass(frozen=True)
class Counts:
    """What one stage says about a part of the data set: one entry a zone."""

    sizes: tuple[int, ...]
    """Samples that could be drawn."""
    drawn: tuple[int, ...]
    """Rows judged."""
    hits: tuple[int, ...]
    unsure: tuple[int, ...]
    """Rows judged that may be hits or not; not among ``hits``."""
    known_hits: int = 0
    """Among what it could not draw: rows of earlier stages, and labels that people had decided on before."""
    known_misses: int = 0
    known_unsure: int = 0
    """Of these, what nobody could tell, or what waits."""

    @property
    def total(self) -> int:
        """Samples of the part."""
        return sum(self.sizes) + self.known_hits + self.known_misses + self.known_unsure

    def scaled(self, factor: float) -> Counts:
        """Return what ``factor`` times as many rows would show if they were like these."""
        drawn = [min(size, round(factor * num)) for size, num in zip(self.sizes, self.drawn, strict=True)]
        hits = [min(num, round(factor * hit)) for num, hit in zip(drawn, self.hits, strict=True)]
        room = zip(drawn, hits, self.unsure, strict=True)
        unsure = [min(num - hit, round(factor * one)) for num, hit, one in room]
        return replace(self, drawn=tuple(drawn), hits=tuple(hits), unsure=tuple(unsure))


def share(found: Sequence[Counts]) -> float:
    """The estimated share of hits; NaN where nothing was judged.

    Stages are weighed by the precision that was planned, never by what they showed.
    """
    total = found[0].total if found else 0
    estimates, precisions = [], []
    for one in found:
        decided = np.array(one.drawn, dtype=np.float64) - np.array(one.unsure)
        places = np.flatnonzero(decided > 0)
        if not len(places):
            continue
        sizes = np.array(one.sizes, dtype=np.float64)
        # A zone that nobody looked at in this part is taken to be like the next less suspicious one.
        nearest = [int(min(places, key=lambda at: (at < zone, abs(at - zone)))) for zone in range(len(sizes))]
        shares = (np.array(one.hits) / np.maximum(decided, 1.0))[nearest]
        estimates.append((one.known_hits + float(sizes @ shares)) / max(1, total - one.known_unsure))
        planned = np.array(PLANNED_SHARES[: len(sizes)] if len(sizes) > 1 else PLANNED_SHARES[1:2])
        spread = planned * (1 - planned) / np.maximum(decided, 0.5) * (sizes / max(1, total)) ** 2
        precisions.append(1.0 / max(float(spread.sum()), 1e-12))
    return float(np.average(estimates, weights=precisions)) if estimates else float("nan")


@functools.lru_cache(maxsize=4096)
def exact_range(one: Counts, level: float, cells: int = CELLS) -> tuple[float, float]:
    """Fewest and most hits that a stage of fixed size, judged to its end, allows at ``level``.

    Unsure rows count as misses below and as hits above. ``cells``: see ``CELLS``.
    """
    sizes, drawn, hits = (np.array(each) for each in (one.sizes, one.drawn, one.hits))
    most, seen = hits + np.array(one.unsure), drawn > 0
    blind, inside = int(sizes[~seen].sum()), int(sizes[seen].sum())
    if seen.sum() == 1:
        rows = int(drawn.sum()), inside
        fewest = hypergeometric_interval(int(hits.sum()), *rows, level=level)[0] * inside
        highest = hypergeometric_interval(int(most.sum()), *rows, level=level)[1] * inside
    else:
        tail = (1.0 - level) / 2.0
        key = tuple(sizes[seen].tolist()), tuple(drawn[seen].tolist())
        highest = _most_hits(*key, tuple(most[seen].tolist()), tail, cells)
        fewest = inside - _most_hits(*key, tuple((drawn - hits)[seen].tolist()), tail, cells)
    return fewest + one.known_hits, highest + blind + one.known_hits + one.known_unsure


@functools.lru_cache(maxsize=65536)
def sequence_range(found: tuple[Counts, ...], level: float) -> tuple[float, float]:
    """Fewest and most hits that the product of the zones' martingales does not exclude, at all sizes together."""
    one = found[0]
    if len(found) == 1 and len(one.sizes) == 1:
        size, rows, hits, unsure = one.sizes[0], one.drawn[0], one.hits[0], one.unsure[0]
        low = confidence_sequence(hits, rows, size, level=level)[0] * size
        high = confidence_sequence(hits + unsure, rows, size, level=level)[1] * size
        return low + one.known_hits, high + one.known_hits + one.known_unsure
    low, high = (_sequence_end(found, one.total, level, upper=upper) for upper in (False, True))
    return low, high


@functools.lru_cache(maxsize=4096)
def _most_hits(
    sizes: tuple[int, ...], drawn: tuple[int, ...], hits: tuple[int, ...], tail: float, cells: int
) -> int:
    """Most hits in all zones together under which a weighted share as low as the one seen is not too rare."""
    paid = SPLIT_LEVEL * tail if len(sizes) > 1 else 0.0
    zones = [
        _zone(size, num, seen, (paid or tail) / max(1, 2 * len(sizes)), cells)
        for size, num, seen in zip(sizes, drawn, hits, strict=True)
    ]
    while len(zones) < 3:
        zones.append(_Zone(np.zeros(1), np.zeros(1), np.ones((1, 1)), 0, 0.0))
    observed = sum(zone.weight * seen for zone, seen in zip(zones, hits, strict=False))
    first, second, third = zones
    left = [zone.weight * (zone.least + np.arange(zone.pmf.shape[1])) for zone in (first, second)]
    room = observed * (1 + 1e-12) + 1e-9 - left[0][:, None] - left[1][None, :]
    most = np.floor(room / third.weight) if third.weight else np.where(room >= 0, 0.0, -1.0)
    places = np.clip(most - third.least, -1, third.pmf.shape[1] - 1).astype(np.int64) + 1
    cumulated = np.concatenate([np.zeros((len(third.pmf), 1)), np.cumsum(third.pmf, axis=1)], axis=1)
    # What was left out of the sums for being next to impossible counts as possible.
    allowed = tail - paid - 3 * LEAST_MASS
    best = 0
    for below, line in zip(third.upper, cumulated, strict=True):
        chance = first.pmf @ line[places] @ second.pmf.T
        passing = chance > allowed
        if passing.any():
            totals = first.upper[:, None] + second.upper[None, :]
            best = max(best, int(below + totals[passing].max()))
    return max(best, sum(hits))


@dataclass(frozen=True, eq=False)
class _Zone:
    """Cells of possible numbers of hits in one zone."""

    lower: NDArray[np.float64]
    """(G,) fewest hits of each cell, at which small counts are likeliest."""
    upper: NDArray[np.float64]
    """(G,) most hits of each cell."""
    pmf: NDArray[np.float64]
    """(G, X) chance of each count at the cell's lower end."""
    least: int
    """The count of the first column."""
    weight: float
    """Hits in the zone for one that is seen."""


def _zone(size: int, drawn: int, hits: int, tail: float, cells: int) -> _Zone:
    low, high = _zone_range(hits, drawn, size, tail)
    edges = np.unique(np.linspace(low, high + 1, min(cells, high - low + 1) + 1).astype(np.int64))
    lower, upper = edges[:-1], edges[1:] - 1
    seen = np.arange(drawn + 1)
    pmf = np.exp(log_hypergeometric(seen[None, :], drawn, lower[:, None], size))
    likely = np.flatnonzero(pmf.max(axis=0) > LEAST_MASS / (drawn + 1))
    kept = slice(int(likely[0]), int(likely[-1]) + 1)
    return _Zone(lower.astype(float), upper.astype(float), pmf[:, kept], kept.start, size / drawn)


def _zone_range(hits: int, drawn: int, size: int, tail: float) -> tuple[int, int]:
    """Fewest and most hits of a zone that ``hits`` of ``drawn`` rows allow at ``tail`` either way."""
    fewest, most = hits, size - (drawn - hits)

    def first(allows: object, low: int, high: int) -> int:
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if allows(middle) else (middle + 1, high)  # type: ignore[operator]
        return low

    low = first(lambda total: scipy.stats.hypergeom.sf(hits - 1, size, total, drawn) > tail, fewest, most)
    step = first(
        lambda back: scipy.stats.hypergeom.cdf(hits, size, most - back, drawn) > tail, 0, most - fewest
    )
    return low, most - step


def _sequence_end(found: Sequence[Counts], total: int, level: float, *, upper: bool) -> float:
    """One end: unsure rows are hits for the upper one and misses for the lower one."""
    grid = np.linspace(0, total, 8 * CURVE_POINTS + 1)
    evidence = np.zeros(len(grid))
    for one in found:
        known = one.known_hits + (one.known_unsure if upper else 0)
        curves = [
            _curve(size, num, hits + (unsure if upper else 0))
            for size, num, hits, unsure in zip(one.sizes, one.drawn, one.hits, one.unsure, strict=True)
            if num
        ]
        blind = sum(size for size, num in zip(one.sizes, one.drawn, strict=True) if not num)
        if not curves:
            continue
        slopes = np.unique(np.concatenate([slope for _, _, slope in curves]))
        totals = sum(np.interp(slopes, slope, at) for at, _, slope in curves)
        values = sum(np.interp(slopes, slope, value) for _, value, slope in curves)
        shifted = np.asarray(totals) + known + (blind if upper else 0)
        least = int(np.argmin(values))
        # On the far side of the best split this end does not ask.
        flat = np.where(np.arange(len(slopes)) < least, np.min(values), values) if upper else values
        flat = flat if upper else np.where(np.arange(len(slopes)) > least, np.min(values), flat)
        evidence += np.interp(grid, shifted, flat, left=flat[0] if upper else np.inf)
        evidence[grid > shifted[-1]] = np.inf if upper else flat[-1]
        evidence[grid < shifted[0]] = np.inf if not upper else flat[0]
    inside = np.flatnonzero(evidence < -np.log1p(-level))
    if not len(inside):
        return float(total if upper else 0)
    place = inside[-1] + 1 if upper else inside[0] - 1  # a cell outwards: the curves are drawn through points
    return float(grid[np.clip(place, 0, len(grid) - 1)])


@functools.lru_cache(maxsize=512)
def _curve(size: int, drawn: int, hits: int) -> tuple[NDArray[np.float64], ...]:
    """Numbers of hits in a zone, the log martingale at each, and its slope; convex."""
    fewest, most = hits, size - (drawn - hits)
    angle = np.linspace(0, np.pi / 2, CURVE_POINTS)
    peak = np.clip(hits / drawn * size, fewest, most)
    at = np.unique(
        np.concatenate([fewest + (peak - fewest) * np.sin(angle), most - (most - peak) * np.sin(angle)])
    )
    misses = drawn - hits

    def ways(number: NDArray[np.float64], part: float) -> NDArray[np.float64]:
        return np.asarray(gammaln(number + 1) - gammaln(part + 1) - gammaln(number - part + 1))

    whole = np.array([float(size)])
    likelihood = ways(at, hits) + ways(size - at, misses) - ways(whole, drawn)
    mixture = ways(np.array([float(drawn)]), hits) + betaln(hits + MIXTURE, misses + MIXTURE)
    value = mixture - betaln(MIXTURE, MIXTURE) - likelihood
    slope = -(digamma(at + 1) - digamma(at - hits + 1)) + (
        digamma(size - at + 1) - digamma(size - at - misses + 1)
    )
    return at, value, np.maximum.accumulate(slope)
