"""Shares of wrong labels in the whole set and in its parts, from verified rows however they were drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.statistics import strata
from auditor.statistics.intervals import Interval, per_class_intervals, rate_interval
from auditor.statistics.strata import Stage
from auditor.statistics.witnesses import Verified

FEWEST_EXPECTED = 10.0
"""Rows that chance brings into each stratum of a uniform draw, below which strata are not used (measured)."""


def stages_of(
    part: NDArray[np.bool_], verified: Verified, *, num_rows: int, is_watched: bool
) -> tuple[Stage, ...]:
    """The draws by whose zones a part is counted; empty where rows count as one uniform sample.

    A uniform draw that was judged to its end is counted in the two strata of the ranking that stood before it
    (``Verified.strata``): given how many rows fell into each, they are a uniform sample of it. This is the
    difference estimator with "the ranking thinks it wrong" for a prediction, and its interval stays exact. Whether
    strata are used depends on sizes alone, never on a verdict, so the choice costs no level.

    Args:
        part: (N,) bool.
        verified: its stages, if it has any, are the answer.
        num_rows: of the whole draw, in the part and outside.
        is_watched: the rows judged so far may depend on what they showed.
    """
    strata_of = verified.strata
    if verified.stages or strata_of is None or is_watched:
        return verified.stages
    expected = num_rows * np.bincount(strata_of[part & (strata_of >= 0)], minlength=2)
    if expected.min() < FEWEST_EXPECTED * np.count_nonzero(strata_of >= 0):
        return ()
    return (Stage(np.ones(verified.size, dtype=bool), strata_of),)


def part_interval(
    part: NDArray[np.bool_],
    verified: Verified,
    is_hit: NDArray[np.bool_],
    *,
    cells: int = strata.CELLS,
) -> Interval:
    """The share of hits among the samples of a part; rows drawn at random in all are random in each part.

    Args:
        part: (N,) bool, the samples in question.
        verified: rows outside the part are left out.
        is_hit: (m,) bool, for example ``Verified.is_wrong``.
        cells: see ``strata.CELLS``.
    """
    stages = stages_of(part, verified, num_rows=verified.size, is_watched=verified.is_watched)
    if stages:
        found = strata.counts(stages, part, verified.sample_ids, is_hit, verified.is_unsure)
        return strata.stratified_interval(found, is_watched=verified.is_watched, cells=cells)
    inside = part[verified.sample_ids]
    return rate_interval(
        int((inside & is_hit).sum()),
        int(inside.sum()),
        num_unsure=int((inside & verified.is_unsure).sum()),
        population=int(part.sum()),
        is_watched=verified.is_watched,
    )


def part_intervals(
    parts: NDArray[np.integer], verified: Verified, is_hit: NDArray[np.bool_], num_parts: int
) -> list[Interval]:
    """``part_interval`` of each part; every interval holds for itself at its level.

    Args:
        parts: (N,) int in 0..num_parts-1, -1 outside all of them: given labels, or splits.
        verified: see ``part_interval``.
        is_hit: (m,) bool.
        num_parts: how many there are.
    """
    if not verified.stages and verified.strata is None:
        return per_class_intervals(
            parts,
            verified.sample_ids,
            is_hit,
            num_parts,
            is_unsure=verified.is_unsure,
            is_watched=verified.is_watched,
        )
    seen = set(parts[verified.sample_ids].tolist())
    nobody = verified.subset(np.zeros(verified.size, dtype=bool))
    unknown = part_interval(parts >= 0, nobody, np.zeros(0, dtype=bool))
    return [
        part_interval(parts == part, verified, is_hit, cells=strata.FEW_CELLS) if part in seen else unknown
        for part in range(num_parts)
    ]
