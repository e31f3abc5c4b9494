"""Shares of wrong labels in the whole set and in its parts, from verified rows however they were drawn.

What people decided before a draw is counted as it is: the draw left it out, so it speaks of the others alone. The
wrong labels of a part are those that are known, and a share of the rest that the draw tells.

An interval holds at its level at every moment of a review, and it never becomes wider: it is what all of these
leave together, whose risks add up to 1 - ``LEVEL``.

* The first draw has an exact interval once it is judged to its end, for its size was fixed beforehand
  (``EXACT_RISK``).
* A confidence sequence of all draws holds at all sizes at once, so that what it excluded once stays excluded
  (``WATCHED_RISK``). It is asked at sizes that are fixed beforehand (``checkpoints``).
* What people settled is no matter of chance: as many are wrong as were found, and none of those found right.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from auditor.statistics.rates import strata
from auditor.statistics.rates.intervals import LEVEL, Interval, hypergeometric_interval
from auditor.statistics.rates.strata import Counts, Stage
from auditor.statistics.rates.verified import Verified

FEWEST_EXPECTED = 10.0
"""Rows that chance brings into each stratum of a uniform draw, below which strata are not used: intervals
were up to 13 % wider there (``benchmarks/results/promises.md``)."""
EXACT_RISK, WATCHED_RISK = 0.04, 0.01
EVERY_LOOK, STEP = 30, 1.1
"""Rows up to which a sequence is asked after each; from there on after a tenth more, so that it is read at once."""
UNKNOWN, MISS, HIT = 0, 1, 2


def part_interval(
    part: NDArray[np.bool_],
    verified: Verified,
    is_hit: NDArray[np.bool_],
    *,
    cells: int = strata.CELLS,
    factor: float = 1.0,
) -> Interval:
    """The share of hits among the samples of a part; rows drawn at random in all are random in each part.

    Args:
        part: (N,) bool, the samples in question.
        verified: rows outside the part are left out.
        is_hit: (m,) bool, for example ``Verified.is_wrong``.
        cells: see ``strata.CELLS``.
        factor: above 1, what so many times as many rows would leave if they were like these.
    """
    return part_intervals(np.where(part, 0, -1), verified, is_hit, 1, cells=cells, factor=factor)[0]


def part_intervals(
    parts: NDArray[np.integer],
    verified: Verified,
    is_hit: NDArray[np.bool_],
    num_parts: int,
    *,
    cells: int = strata.FEW_CELLS,
    factor: float = 1.0,
) -> list[Interval]:
    """``part_interval`` of each part; every interval holds for itself at its level.

    Args:
        parts: (N,) int in 0..num_parts-1, -1 outside all of them: given labels, or splits.
        verified: see ``part_interval``.
        is_hit: (m,) bool.
        num_parts: how many there are.
        cells: see ``strata.CELLS``.
        factor: see ``part_interval``.
    """
    tally = _Tally.of(parts, verified, is_hit, num_parts)
    return [tally.interval(part, cells, factor) for part in range(num_parts)]


def first_interval(num_hits: int, num_rows: int, population: int) -> Interval:
    """Return what a first draw will say where it is uniform, no ranking stands before it, and nobody decided
    anything.
    """
    low, high = hypergeometric_interval(num_hits, num_rows, population, level=1.0 - EXACT_RISK)
    return Interval(low, high, 1.0 - EXACT_RISK, "exact", num_hits, num_rows)


def checkpoints(num_rows: int) -> Iterator[int]:
    """Sizes up to ``num_rows`` at which a sequence is asked: the same ones, however many rows follow."""
    size = 1
    while size <= num_rows:
        yield size
        size = size + 1 if size < EVERY_LOOK else int(STEP * size) + 1


@dataclass(frozen=True, eq=False)
class _Tally:
    """Everything that intervals of parts are counted from; S stages, P parts, Z zones."""

    stages: tuple[Stage, ...]
    state: NDArray[np.int8]
    """(m,) ``MISS``, ``HIT`` or, where nobody could tell, ``UNKNOWN``."""
    sizes: NDArray[np.int64]
    """(S, P, Z) samples that could be drawn."""
    known: NDArray[np.int64]
    """(S, P, 3) samples that could not, by state."""
    facts: NDArray[np.int64]
    """(P, 3) samples by state, after all that people said."""
    rows: list[NDArray[np.int64]]
    """Of each part, its verified rows in the order of their draw."""
    zone_of_row: NDArray[np.int8]
    """(S, m)"""
    fixed: NDArray[np.bool_]
    """(m,) rows of the first draw, where it is judged to its end."""
    strata: NDArray[np.int64] | None
    """(P, 2) sizes of the strata of the ranking that stood before the first draw."""
    stratum_of_row: NDArray[np.int8]

    @classmethod
    def of(
        cls, parts: NDArray[np.integer], verified: Verified, is_hit: NDArray[np.bool_], num_parts: int
    ) -> _Tally:
        """Count once for all parts."""
        ids = np.asarray(verified.sample_ids, dtype=np.int64)
        inside = parts >= 0
        everything = np.where(inside, 0, -1).astype(np.int8)
        if verified.decided is not None and not verified.stages:
            everything[verified.decided.sample_ids] = -1
        stages = verified.stages or (Stage(np.ones(len(ids), dtype=bool), everything),)
        state = np.where(is_hit, HIT, MISS).astype(np.int8)
        state[verified.is_unsure] = UNKNOWN
        of_sample = np.zeros(len(parts), dtype=np.int8)
        if verified.decided is not None:
            of_sample[verified.decided.sample_ids] = np.where(verified.decided.is_wrong, HIT, MISS)
        of_sample[ids] = state
        num_zones = 1 + max(int(stage.zones.max(initial=0)) for stage in stages)

        def counted(chosen: NDArray[np.bool_], kind: NDArray[np.integer], num: int) -> NDArray[np.int64]:
            code = parts[chosen].astype(np.int64) * num + kind[chosen]
            return np.bincount(code, minlength=num_parts * num).reshape(num_parts, num)

        first = stages[0]
        fixed = first.fixed if first.fixed is not None else first.rows & (not verified.is_watched)
        strata_of = verified.strata if first.is_uniform else None
        part_of_row = parts[ids]
        return cls(
            stages=stages,
            state=state,
            sizes=np.stack([counted(inside & (one.zones >= 0), one.zones, num_zones) for one in stages]),
            known=np.stack([counted(inside & (one.zones < 0), of_sample, 3) for one in stages]),
            facts=counted(inside, of_sample, 3),
            rows=_by_part(part_of_row, num_parts),
            zone_of_row=np.stack([one.zones[ids] for one in stages]),
            fixed=fixed,
            strata=None if strata_of is None else counted(inside & (strata_of >= 0), strata_of, 2),
            stratum_of_row=np.zeros(len(ids), np.int8) if strata_of is None else strata_of[ids],
        )

    def interval(self, part: int, cells: int, factor: float) -> Interval:
        """Of one part."""
        rows = self.rows[part]
        total, hits, misses = int(self.facts[part].sum()), *map(int, self.facts[part, [HIT, MISS]])
        if not total:
            return Interval(0.0, 1.0, LEVEL, "exact", 0, 0)
        low, high = float(hits), float(total - misses)
        fixed = rows[self.fixed[rows]]
        kind = "exact" if len(fixed) == len(rows) else "sequence"
        told = []
        if len(fixed):
            told.append(strata.exact_range(self._of_fixed(part, fixed), 1.0 - EXACT_RISK, cells))
        for size in checkpoints(len(rows)):
            told.append(strata.sequence_range(self._counts(part, rows[:size]), 1.0 - WATCHED_RISK))
        if factor > 1.0 and len(rows):
            more = tuple(one.scaled(factor) for one in self._counts(part, rows))
            told.append(strata.sequence_range(more, 1.0 - WATCHED_RISK))
            if not len(fixed) and len(more) == 1:  # the first draw, once it is judged to its end
                told.append(strata.exact_range(more[0], 1.0 - EXACT_RISK, cells))
        for fewest, most in told:
            if max(low, fewest) <= min(high, most):  # else chance led one of them astray: the others stay
                low, high = max(low, fewest), min(high, most)
        point = strata.share(self._counts(part, rows)) if len(rows) else float("nan")
        seen = int(np.count_nonzero(self.state[rows] == HIT))
        found = Interval(low / total, high / total, LEVEL, kind, seen, len(rows))
        return replace(
            found, estimate=None if np.isnan(point) else float(np.clip(point, found.low, found.high))
        )

    def _counts(self, part: int, rows: NDArray[np.int64]) -> tuple[Counts, ...]:
        """Return what the first rows say, one entry a stage that has any."""
        found = []
        for number, stage in enumerate(self.stages):
            mine = rows[stage.rows[rows]]
            if len(mine) or not number:
                zones = self.zone_of_row[number, mine]
                found.append(self._of(self.sizes[number, part], self.known[number, part], zones, mine))
        return tuple(found)

    def _of_fixed(self, part: int, rows: NDArray[np.int64]) -> Counts:
        """Return what the first draw says.

        A uniform one is counted in the two strata of the ranking that stood before it (``Verified.strata``): given
        how many rows fell into each, they are a uniform sample of it. This is the difference estimator with "the
        ranking thinks it wrong" for a prediction, and its interval stays exact. Whether strata are used depends on
        sizes alone, never on a verdict, so the choice costs no level.
        """
        sizes, zones = self.sizes[0, part], self.zone_of_row[0, rows]
        if self.strata is not None:
            of_strata = self.strata[part]
            if (len(rows) * of_strata).min() >= FEWEST_EXPECTED * of_strata.sum():
                sizes, zones = of_strata, self.stratum_of_row[rows]
        return self._of(sizes, self.known[0, part], zones, rows)

    def _of(
        self,
        sizes: NDArray[np.int64],
        known: NDArray[np.int64],
        zones: NDArray[np.int8],
        rows: NDArray[np.int64],
    ) -> Counts:
        num = len(sizes) if sizes[1:].any() else 1

        def by_zone(chosen: NDArray[np.bool_]) -> tuple[int, ...]:
            return tuple(np.bincount(zones[chosen], minlength=num).tolist())

        state = self.state[rows]
        return Counts(
            sizes=tuple(sizes[:num].tolist()),
            drawn=by_zone(np.ones(len(rows), dtype=bool)),
            hits=by_zone(state == HIT),
            unsure=by_zone(state == UNKNOWN),
            known_hits=int(known[HIT]),
            known_misses=int(known[MISS]),
            known_unsure=int(known[UNKNOWN]),
        )


def _by_part(part_of_row: NDArray[np.integer], num_parts: int) -> list[NDArray[np.int64]]:
    order = np.argsort(part_of_row, kind="stable")
    edges = np.searchsorted(part_of_row[order], np.arange(num_parts + 1))
    return [order[start:stop] for start, stop in itertools.pairwise(edges)]
