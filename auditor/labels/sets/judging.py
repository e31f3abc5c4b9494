"""Which classes of a set are wrong: missing ones and extra ones, each by one model of two classes.

Each class is a question of its own, and all are asked of one pool, the classes' pool (``statistics.trust.pool``)
with two answers: with p the probability that an engine gives a class of a picture that it did not learn from,

    P(shown) = q = 1 / (1 + exp(-(a log(p / (1 - p)) + b))),
    P(given) = q (1 - m) + (1 - q) e,

and a, b, the share m of labels that are missing and the share e of those that are extra are those under which the
given sets are likeliest. They are fitted to all classes together; then each class has its own m and e, as if
``ROWS_BEFORE`` of its labels had been seen that agree with the others. Fitted is with four fifths of the pictures,
read the last one.

Measured on two sets with four kinds of errors (benchmarks/results/multilabel.md): one m and e of each class alone
ranks worse, and so do the same for all where classes differ. A second round in which each class also reads the
others' probabilities finds hardly more, so nothing knows which classes go together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.ground.wording import percent, plural
from auditor.statistics import NoiseRate

LEAST = 1e-4
"""Smaller probabilities of an engine count as this."""
PARTS = 5
ROWS_BEFORE = 25.0
"""Labels of a class that count as seen before any was. With 10 errors that differ by class are found as well or
better, with 100 those that do not (benchmarks/results/multilabel.md)."""
ROUNDS = 20
"""Of EM for each class's m and e."""
STARTS = ((0.1, 0.1), (0.3, 0.02), (0.02, 0.1))
"""(m, e) that a fit begins with; the likeliest end counts."""


@dataclass(frozen=True, eq=False)
class Judged:
    """What an audit says about the given sets of N pictures and K classes."""

    trust: NDArray[np.float64]
    """(N, K) probability that a class is rightly given, or rightly not; NaN where a picture has no label."""
    shown: NDArray[np.float64]
    """(N, K) probability that a class is shown, whatever was given."""
    of_picture: NDArray[np.float64]
    """(N,) probability that a picture's whole set is right."""
    suggested: NDArray[np.int8]
    """(N, K) the given set with its suspects turned round; of a picture without a label what is likelier shown."""
    noise_rate: NoiseRate
    """A guess of the share of pictures whose set is wrong."""


class _Pool(NamedTuple):
    weight: float
    """a"""
    bias: float
    """b"""
    missing: NDArray[np.float64]
    """(K,) m, or one for all."""
    extra: NDArray[np.float64]
    """(K,) e"""

    def shown(self, odds: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, K) q of log odds (n, K)."""
        return _sigmoid(self.weight * odds + self.bias)

    def posterior(self, q: NDArray[np.float64], given: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(n, K) P(shown | picture, given)."""
        yes = q * np.where(given, 1 - self.missing, self.missing)
        no = (1 - q) * np.where(given, self.extra, 1 - self.extra)
        return np.asarray(yes / (yes + no))


def judge(given: NDArray[np.int8], probs: Sequence[NDArray[np.floating]]) -> Judged:
    """Judge sets by what engines say.

    Args:
        given: (N, K) 1 given, 0 not, -1 throughout without a label.
        probs: of each engine (N, K) P(shown) by a model that did not learn from that picture's set.
    """
    odds = np.mean([_log_odds(one) for one in probs], axis=0)
    labeled = given[:, 0] >= 0
    parts = np.full(len(given), -1)
    # The parts are cut by what the engines say, so that the order of the pictures never matters.
    order = np.argsort(np.where(given > 0, odds, -odds).sum(axis=1), kind="stable")
    order = order[labeled[order]]
    parts[order] = np.arange(len(order)) % PARTS
    parts[~labeled] = 0
    shown, trust = np.empty(given.shape), np.full(given.shape, np.nan)
    for part in range(PARTS):
        here, others = parts == part, labeled & (parts != part)
        if not here.any():
            continue
        pool = _fitted(odds[others], given[others] > 0)
        shown[here] = pool.shown(odds[here])
        posterior = pool.posterior(shown[here], given[here] > 0)
        trust[here] = np.where(given[here] > 0, posterior, 1 - posterior)
    trust[~labeled] = np.nan
    doubted = trust < 0.5
    suggested = np.where(labeled[:, None], np.where(doubted, 1 - given, given), shown > 0.5)
    of_picture = np.exp(np.log(np.maximum(trust, 1e-12)).sum(axis=1))
    return Judged(trust, shown, of_picture, suggested.astype(np.int8), _guess(of_picture[labeled]))


def _fitted(odds: NDArray[np.float64], given: NDArray[np.bool_]) -> _Pool:
    """The pool of (n, K) log odds and given sets: for all classes together, then each class's m and e."""
    pool = max((_climbed(odds.ravel(), given.ravel(), start) for start in STARTS), key=lambda one: one[0])[1]
    q = pool.shown(odds)
    missing, extra = (np.repeat(one, given.shape[1]) for one in (pool.missing, pool.extra))
    for _ in range(ROUNDS):
        posterior = pool._replace(missing=missing, extra=extra).posterior(q, given)
        yes, no = posterior.sum(axis=0), (1 - posterior).sum(axis=0)
        missing = ((posterior * ~given).sum(axis=0) + ROWS_BEFORE * pool.missing) / (yes + ROWS_BEFORE)
        extra = (((1 - posterior) * given).sum(axis=0) + ROWS_BEFORE * pool.extra) / (no + ROWS_BEFORE)
    return pool._replace(missing=missing, extra=extra)


def _climbed(
    odds: NDArray[np.float64], given: NDArray[np.bool_], start: tuple[float, float]
) -> tuple[float, _Pool]:
    """(log likelihood, pool) by L-BFGS from (m, e), over (n,) log odds and whether each class was given."""
    import scipy.optimize  # takes a good part of a second to import: only where it is used

    num = max(1, len(odds))

    def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weight, bias = values[:2]
        m, e = _sigmoid(values[2:])
        q = _sigmoid(weight * odds + bias)
        chance = np.clip(q * (1 - m) + (1 - q) * e, 1e-9, 1 - 1e-9)
        slope = np.where(given, 1 / chance, -1 / (1 - chance))
        by_score = slope * (1 - m - e) * q * (1 - q)
        value = np.log(np.where(given, chance, 1 - chance)).sum()
        # As in the classes' pool: a and b of deviation 1, and of each answer one right row and half a one of both.
        value -= ((weight - 1) ** 2 + bias**2) / 2
        value += sum(1.25 * np.log(1 - one) + 0.25 * np.log(one) for one in (m, e))
        gradient = np.array(
            [
                (by_score * odds).sum() - (weight - 1),
                by_score.sum() - bias,
                -(slope * q).sum() * m * (1 - m) + 0.25 - 1.5 * m,
                (slope * (1 - q)).sum() * e * (1 - e) + 0.25 - 1.5 * e,
            ]
        )
        return -value / num, -gradient / num

    first = np.array([1.0, 0.0, *(np.log(one / (1 - one)) for one in start)])
    bounds = [(0.0, None), (None, None), (-12.0, 12.0), (-12.0, 12.0)]
    best = scipy.optimize.minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds)
    m, e = _sigmoid(best.x[2:])
    return -float(best.fun), _Pool(float(best.x[0]), float(best.x[1]), np.array(m), np.array(e))


def _log_odds(probs: NDArray[np.floating]) -> NDArray[np.float64]:
    clipped = np.clip(np.asarray(probs, dtype=np.float64), LEAST, 1 - LEAST)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


def _sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -500, 500))))


def _guess(trust: NDArray[np.float64]) -> NoiseRate:
    """From the pictures' (N,) trust; half and twice as many are as well possible."""
    point = float((1 - trust).mean()) if len(trust) else 0.0
    low, high = point / 2, min(1.0, 2 * point)
    sentence = (
        f"A guess: between {percent(low)} and {percent(high)} of {plural(len(trust), 'picture')} lack a label or "
        "have one too many. Judge a random sample to know."
    )
    return NoiseRate(low, point, high, "guess", sentence)
