"""Promises that hold while people go on looking: after every verdict, for more rows, at every level.

A promise of ``promises`` rests on one draw whose size was fixed beforehand; it is read at the end, and it holds on
average over draws. Here is the form for whoever looks on, draws more because of what was seen, or chooses the level
last. The labels of a head stand in the order that scores alone gave, before anybody looked. For a few lengths K of
a list (fixed shares of the head) the rows that were looked at and lie among the first K are a uniform sample of
these without replacement, in random order. So the number of right labels among the K has a confidence sequence
(Robbins 1970; without replacement: Waudby-Smith and Ramdas 2020), and the lengths share its risk (Bonferroni). With
95 % certainty all bounds hold at all moments together, so any moment, any of the lengths and any level may be
chosen after looking. The price: a list needs four times the looks of a fixed draw and more
(``benchmarks/results/promises.md``).

Draws that follow each other go on as one if each could draw every label of the list that no earlier one took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from auditor.ground.vocabulary import LEVELS
from auditor.ground.wording import percent, plural
from auditor.statistics.rates.intervals import LEVEL, confidence_sequence

LENGTHS = (0.25, 0.375, 0.5, 0.75)
"""Of the head: the lists that can be promised. A head holds twice as many labels as are guessed to be wrong."""


@dataclass(frozen=True)
class RunningPromise:
    """The longest list that the looks so far back at one level."""

    q: float
    length: int
    """The list is the first so many labels of the head; 0 where none is clean enough yet."""
    num_left: int
    """Those of them that nobody has looked at: the promise is about these."""
    sentence: str
    """How many of them are labeled right at most, with ``intervals.LEVEL`` certainty at every moment."""

    @property
    def is_kept(self) -> bool:
        """Something is promised."""
        return self.num_left > 0


@dataclass(frozen=True, eq=False)
class Looks:
    """What people saw of a head so far."""

    places: NDArray[np.integer]
    """(n,) int, each once: the place in the head of every label looked at, in random order; 0 = the most
    suspicious."""
    is_false: NDArray[np.bool_]
    """(n,) bool, a flag on it would be false: labeled right, or nobody could tell."""
    other_places: NDArray[np.integer] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Further labels that somebody looked at, in an order of their own; they back nothing, but they are known."""
    other_is_false: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))


def running_promises(
    looks: Looks, num_head: int, *, levels: Sequence[float] = LEVELS
) -> dict[float, RunningPromise]:
    """Return the longest list at each level that the looks so far back, whatever made people look so long.

    Args:
        looks: at labels of the head.
        num_head: labels in the head.
        levels: each in (0, 1).

    Raises:
        ValueError: a level is outside (0, 1), or a place is outside the head or doubled.
    """
    if not all(0.0 < q < 1.0 for q in levels):
        raise ValueError(f"levels {list(levels)} must lie between 0 and 1; use 0.1 for 10 %.")
    every = np.concatenate([looks.places, looks.other_places])
    if len(np.unique(every)) != len(every) or np.any((every < 0) | (every >= num_head)):
        raise ValueError(f"places must lie in 0..{num_head - 1}, each once.")
    bounds = [_bound(int(share * num_head), looks) for share in LENGTHS]
    return {q: _longest(q, bounds, len(looks.places)) for q in levels}


def _bound(length: int, looks: Looks) -> tuple[int, int, int]:
    """(length, labels of the list that nobody looked at, right ones among them at most)."""
    inside, others = looks.places < length, looks.other_places < length
    num_rows, num_false = int(inside.sum()), int((inside & looks.is_false).sum())
    num_left = length - num_rows - int(others.sum())
    if not num_left:
        return length, 0, 0
    level = 1.0 - (1.0 - LEVEL) / len(LENGTHS)
    high = confidence_sequence(num_false, num_rows, population=length, level=level)[1]
    known_false = num_false + int((others & looks.other_is_false).sum())
    return length, num_left, max(0, min(num_left, round(high * length) - known_false))


def _longest(q: float, bounds: Sequence[tuple[int, int, int]], num_rows: int) -> RunningPromise:
    clean = [one for one in bounds if one[1] and one[2] <= q * one[1]]
    if not clean:
        return RunningPromise(
            q, 0, 0, f"{plural(num_rows, 'look', 'are')} too few for a list at {percent(q)} yet."
        )
    length, left, most = clean[-1]
    sentence = (
        f"Of the {plural(length, 'most suspicious label')} {left:,} wait; at most {percent(q)} of these "
        f"({most:,}) are "
        f"labeled right, with {percent(LEVEL)} certainty, at whichever look you stop ({num_rows:,} so far)."
    )
    return RunningPromise(q, length, left, sentence)
