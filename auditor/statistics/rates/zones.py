"""Which rows a draw takes: uniformly, or most of them from the head of a ranking and some from the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.statistics.rates.noise import NoiseRate
from auditor.statistics.rates.strata import Stage
from auditor.statistics.rates.verified import Verified

HEAD_SHARE = 0.7
"""Of the rows of a draw for promises, those from the head; more of them make lists hardly longer, and the rest is
seen less (``benchmarks/results/constants.md``)."""
HEAD_PER_ERROR = 2.0
"""Labels in a head for each that is guessed to be wrong: 1 to 2 hold most, and a guess may be half of the truth
(``benchmarks/results/constants.md``)."""
HEAD_PER_ROW = 3
"""Labels that a head has at least for each row drawn from it: what is all verified leaves nothing to promise."""


@dataclass(frozen=True, eq=False)
class ZonedDraw:
    """Rows drawn uniformly inside the head and uniformly inside the rest, in random order."""

    sample_ids: NDArray[np.int64]
    """(n,) in drawing order, both zones mixed: whoever stops early has judged a random part of each."""
    head: NDArray[np.int64]
    """Samples of the head, the most suspicious first."""
    rest: NDArray[np.int64]
    num_from_head: int

    def stage(self, num_samples: int, rows: NDArray[np.bool_]) -> Stage:
        """As ``Verified`` counts it: ``rows`` (m,) bool are those of this draw."""
        zones = np.full(num_samples, -1, dtype=np.int8)
        zones[self.rest] = 2
        zones[self.head] = 2 * np.arange(len(self.head)) >= len(self.head)
        return Stage(rows, zones)

    def judged(self, true_labels: NDArray[np.integer], num_samples: int, **roles: bool) -> Verified:
        """This draw alone with the verdicts (n,), judged to its end."""
        pool = np.zeros(num_samples, dtype=bool)
        pool[self.head] = True
        return Verified(
            self.sample_ids,
            true_labels,
            backing=pool[self.sample_ids],
            backing_pool=pool,
            backing_words=f"the {len(self.head):,} most suspicious labels",
            stages=(self.stage(num_samples, np.ones(len(self.sample_ids), dtype=bool)),),
            **roles,  # type: ignore[arg-type]
        )


def share_for_head(rate: NoiseRate) -> float:
    """The share of wrong labels that a head is cut by: an interval's point; of a guess at least its range's middle.

    A head that is too small caps every list that is promised, one that is too large costs some resolution. So where
    the range of a guess is wide, its point, which tends to be low, gives way to the range's geometric mean.
    """
    if rate.kind == "interval":
        return rate.point
    return max(rate.point, float(np.sqrt(rate.low * rate.high)))


def head_size(guessed_share: float, num_drawable: int, size: int) -> int:
    """Labels in the head of a draw of ``size`` rows: by the guess alone, never by a verdict on one of them."""
    guessed = HEAD_PER_ERROR * guessed_share * num_drawable
    return min(num_drawable, round(max(guessed, HEAD_PER_ROW * HEAD_SHARE * size)))


def draw_zones(
    ordered: NDArray[np.integer],
    guessed_share: float,
    size: int,
    generator: np.random.Generator,
    *,
    head_share: float = HEAD_SHARE,
) -> ZonedDraw:
    """Draw ``size`` rows from a ranking.

    Args:
        ordered: what can be drawn, at least ``size`` samples, the most suspicious first.
        guessed_share: of wrong labels, in [0, 1].
        size: rows to draw.
        generator: of random numbers.
        head_share: of the rows, those from the head.
    """
    num_head = head_size(guessed_share, len(ordered), size)
    head, rest = np.split(np.asarray(ordered, dtype=np.int64), [num_head])
    from_head = min(len(head), max(round(head_share * size), size - len(rest)))
    parts = [
        zone[generator.permutation(len(zone))[:num]]
        for zone, num in ((head, from_head), (rest, size - from_head))
    ]
    return ZonedDraw(generator.permutation(np.concatenate(parts)), head, rest, from_head)
