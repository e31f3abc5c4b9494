"""Does a suggestion in view move verdicts? Looks of both kinds at one pool of labels, compared exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from auditor.ground.wording import percent
from auditor.statistics.intervals import LEVEL

FEWEST_LOOKS = 20
"""Of either kind, below which nothing is compared: not even 3 of 20 against 9 of 20 would be told apart."""
SURPRISING = 0.01
"""p below which a difference is called one: lower than usual, because people read it again and again."""


@dataclass(frozen=True)
class Influence:
    """Shares found wrong among shown and among blind looks at labels that chance dealt to either."""

    shown: tuple[int, int]
    """Labels found wrong with the suggestion in view, of so many looks."""
    blind: tuple[int, int]
    """The same without it."""
    low: float
    """Lower end of the factor by which the suggestion changes the odds of "wrong", at ``intervals.LEVEL``."""
    high: float
    p_value: float
    """Of Fisher's exact test that verdicts do not depend on what is in view, in [0, 1]."""

    @property
    def sentence(self) -> str:
        """What both shares show, in words."""
        said = [
            f"{hits:,} of {num:,} looks ({percent(hits / num)})" for hits, num in (self.shown, self.blind)
        ]
        if self.p_value >= SURPRISING:
            verdict = "Nothing shows that the suggestion moves verdicts"
        else:
            way = "more" if self.low > 1 else "fewer"
            verdict = f"The suggestion seems to move verdicts: {way} labels are found wrong with it"
        odds = f"{self.low:.2g} to {self.high:.2g}" if np.isfinite(self.high) else f"at least {self.low:.2g}"
        return (
            f"{verdict}. Found wrong with the suggestion in view: {said[0]}, without: {said[1]}; the odds change "
            f"by a factor of {odds} ({percent(LEVEL)} interval; exact test: p = {self.p_value:.2g})."
        )


def influence(shown: tuple[int, int], blind: tuple[int, int]) -> Influence | None:
    """Compare ``(found wrong, looks)`` of both kinds; None where either kind has too few looks to tell.

    Chance must have decided which label got which kind of look. Then, if verdicts do not depend on it, the wrong
    ones fall on both kinds as in a draw without replacement: Fisher's exact test, and the interval of the odds
    ratio that conditions on the same margins.
    """
    if min(shown[1], blind[1]) < FEWEST_LOOKS:
        return None
    table = np.array([[hits, num - hits] for hits, num in (shown, blind)])
    limits = scipy.stats.contingency.odds_ratio(table).confidence_interval(LEVEL)
    low, high = float(limits.low), float(limits.high)
    if not table.sum(axis=0).all():  # all wrong, or none: any factor is possible
        low, high = 0.0, float("inf")
    return Influence(shown, blind, low, high, float(scipy.stats.fisher_exact(table).pvalue))
