"""From what engines predict to trust in a given number, a suggested one and its interval. Pure functions.

Trust ranks by the plain residual |given - predicted|. The prediction is the mean of the engines, weighed by how
near each usually is; their networks never saw the number. Measured (benchmarks/results/numbers.md): the tail of
the plain network's mixture ranks far worse, ChoiceNet's about as its residual; the residual over the predicted
deviation not better on the whole; a plain mean lost where one engine was much worse. cleanlab's score
``residual`` of the same prediction ranks alike, because it falls with the same distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.ground.wording import percent, plural
from auditor.statistics import NoiseRate

MAD_TO_DEVIATION = 1.4826
SMALLEST = 1e-100
FAR = 3.0
"""Usual residuals from which on a number is doubted; its trust is 1/2 there."""
NEARER = 2.5
"""The same for the upper end of the guess of how many numbers are wrong."""
MOST_PLACES = 9
LEVEL = 0.9
"""Share of the numbers that are not doubted which lie inside the interval around what is predicted for them."""


@dataclass(frozen=True, eq=False)
class Judged:
    """What an audit says about N given numbers."""

    predicted: NDArray[np.float64]
    """(N,) the suggested number, as finely as the given ones are written and the interval allows."""
    half_width: float
    """Of the interval around every suggestion."""
    trust: NDArray[np.float64]
    """(N,) in (0, 1], NaN where no number is given."""
    is_doubtful: NDArray[np.bool_]
    num_against: NDArray[np.int64]
    """(N,) engines of which each doubts the number by itself."""
    noise_rate: NoiseRate
    """A guess."""


def judge(given: NDArray[np.float64], predicted: Sequence[NDArray[np.float64]]) -> Judged:
    """Judge ``given`` (N,), NaN where there is none, by what each engine predicts (N,).

    One usual residual is 1.4826 times the median of all, the deviation of right numbers as long as fewer than half
    are wrong.
    """
    weights = [1 / _usual(np.abs(given - one)) ** 2 for one in predicted]
    together = np.average(predicted, axis=0, weights=weights)
    away = _away(given, together)
    known = np.isfinite(given)
    doubtful = away > FAR
    near = np.abs(given - together)[known & ~doubtful]
    half_width = float(np.quantile(near, LEVEL)) if len(near) else float("nan")
    step = 10.0 ** -_places(given[known], half_width)
    return Judged(
        predicted=np.round(together, _places(given[known], half_width)),
        half_width=float(np.round(np.ceil(half_width / step - 1e-9) * step, MOST_PLACES)),
        trust=1 / (1 + (away / FAR) ** 2),
        is_doubtful=doubtful,
        num_against=np.sum([_away(given, one) > FAR for one in predicted], axis=0),
        noise_rate=_guess(away[known]),
    )


def _places(given: NDArray[np.float64], half_width: float) -> int:
    """Decimal places of a suggestion: as many as the given numbers have, and two digits of the half width."""
    written = next((one for one in range(MOST_PLACES) if (np.round(given, one) == given).all()), MOST_PLACES)
    if not 0 < half_width < np.inf:
        return written
    return min(written, max(0, 1 - math.floor(math.log10(half_width))))


def _away(given: NDArray[np.float64], predicted: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N,) residuals in usual ones; NaN where no number is given."""
    residual = np.abs(given - predicted)
    return residual / _usual(residual)


def _usual(residual: NDArray[np.float64]) -> float:
    """The usual residual, above 0, of residuals (N,) with NaN."""
    return max(MAD_TO_DEVIATION * float(np.nanmedian(residual)), SMALLEST)


def _guess(away: NDArray[np.float64]) -> NoiseRate:
    """From none, because what is predicted may be wrong where the number is right."""
    point, high = (float((away > cut).mean()) for cut in (FAR, NEARER))
    sentence = (
        f"A guess: between {percent(0)} and {percent(high)} of {plural(len(away), 'number')} may be wrong. So many "
        "lie far from what is predicted, which may be wrong itself; wrong numbers that lie near are not among "
        "them. Judge a random sample to know."
    )
    return NoiseRate(0.0, point, high, "guess", sentence)
