"""Which classes of a set are wrong: missing ones and extra ones, each by one model of two classes.

Each class is a question of its own, and all are asked of one pool, the classes' pool (``statistics.trust.pool``)
with two answers: with p the probability that an engine gives a class of a picture that it did not learn from,

    P(shown) = q = 1 / (1 + exp(-(a log(p / (1 - p)) + b))),
    P(given) = q (1 - m) + (1 - q) e,

where m is the share of a class's labels that are missing, and e of those that are extra. a is one for all
classes; b, log(m / (1 - m)) and log(e / (1 - e)) of a class deviate normally from what classes have in common.
All are fitted to where the given sets are likeliest. How far classes are apart nobody knows, so each pair of
``APART`` is fitted, and what they say of a label is averaged by their evidence (Laplace's approximation; MacKay
2003, chapters 27 and 28).

Measured on two sets with four kinds of errors (benchmarks/results/multilabel.md). The same m and e for all ranks
worse where classes differ, and where they do not, so does each class's own; without a b of its own, what an engine
has wrong about a class is taken for errors of its labels. A second round in which each class also reads the others'
probabilities finds hardly more, so nothing knows which classes go together.
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
APART = ((0.5, 0.0), (0.5, 0.5), (0.5, 1.0), (0.5, 2.0), (2.0, 0.0), (2.0, 1.0))
"""Deviations that are tried: of a class's b, and of the log odds of its m and e, from the common ones. The wide b
is for engines that say next to nothing: without it, labels of a rare class are held for wrong there."""
LEAST_CURVED = 0.01
"""Smaller curvatures of the likelihood count as this: next to a bound it has none."""
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
    bias: NDArray[np.float64]
    """(K,) b"""
    missing: NDArray[np.float64]
    """(K,) m"""
    extra: NDArray[np.float64]
    """(K,) e"""

    def shown(self, odds: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, K) q of log odds (n, K)."""
        return _sigmoid(self.weight * odds + self.bias)

    def posterior(self, odds: NDArray[np.float64], given: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(n, K) P(shown | picture, given)."""
        q = self.shown(odds)
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
    pools, shares = _fitted(odds[labeled], given[labeled] > 0)
    shown, posterior = np.zeros(given.shape), np.zeros(given.shape)
    for pool, share in zip(pools, shares, strict=True):
        shown += share * pool.shown(odds)
        posterior += share * pool.posterior(odds, given > 0)
    trust = np.where(given > 0, posterior, 1 - posterior)
    trust[~labeled] = np.nan
    doubted = trust < 0.5
    suggested = np.where(labeled[:, None], np.where(doubted, 1 - given, given), shown > 0.5)
    of_picture = np.exp(np.log(np.maximum(trust, 1e-12)).sum(axis=1))
    return Judged(trust, shown, of_picture, suggested.astype(np.int8), _guess(of_picture[labeled]))


def _fitted(odds: NDArray[np.float64], given: NDArray[np.bool_]) -> tuple[list[_Pool], NDArray[np.float64]]:
    """Return a pool for each of ``APART``, of (n, K) log odds and given sets, and how probable each is."""
    import scipy.optimize  # takes a good part of a second to import: only where it is used

    num, classes = max(1, len(odds)), odds.shape[1]
    bounds = [(0.0, None), (None, None), (-12.0, 12.0), (-12.0, 12.0), *[(None, None)] * (3 * classes)]
    begin = [np.array([1.0, 0.0, *(np.log(one / (1 - one)) for one in m_e)]) for m_e in STARTS]
    starts = [np.concatenate([one, np.zeros(3 * classes)]) for one in begin]
    pools, evidence = [], []
    for apart in APART:
        slope = _Slope(odds, given, apart)

        def per_row(values: NDArray[np.float64], slope: _Slope = slope) -> tuple[float, NDArray[np.float64]]:
            value, gradient = slope(values)
            return value / num, gradient / num

        ends = [
            scipy.optimize.minimize(per_row, one, jac=True, method="L-BFGS-B", bounds=bounds)
            for one in starts
        ]
        best = min(ends, key=lambda one: float(one.fun)).x
        starts = [best]  # the others begin where this one ended
        pools.append(slope.pool(best))
        evidence.append(-slope(best)[0] - slope.log_determinant(best) / 2)
    shares = np.exp(np.array(evidence) - max(evidence))
    return pools, shares / shares.sum()


class _Slope:
    """Minus the log posterior of (4 + 3 K,) values, and its gradient.

    The values are a, the common b, log odds of m and of e, then of each class three standard normal deviates.
    """

    def __init__(
        self, odds: NDArray[np.float64], given: NDArray[np.bool_], apart: tuple[float, float]
    ) -> None:
        self.odds, self.given = odds, given
        self.scales = np.array([apart[0], apart[1], apart[1]])

    def pool(self, values: NDArray[np.float64]) -> _Pool:
        bias, missing, extra = (values[1:4] + values[4:].reshape(-1, 3) * self.scales).T
        return _Pool(float(values[0]), bias, _sigmoid(missing), _sigmoid(extra))

    def __call__(self, values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        pool, deviates = self.pool(values), values[4:]
        q, m, e = pool.shown(self.odds), pool.missing, pool.extra
        chance = np.clip(q * (1 - m) + (1 - q) * e, 1e-9, 1 - 1e-9)
        slope = np.where(self.given, 1 / chance, -1 / (1 - chance))
        by_score = slope * (1 - m - e) * q * (1 - q)
        by_class = np.stack(
            [
                by_score.sum(axis=0),
                -(slope * q).sum(axis=0) * m * (1 - m),
                (slope * (1 - q)).sum(axis=0) * e * (1 - e),
            ],
            axis=1,
        )
        value = np.log(np.where(self.given, chance, 1 - chance)).sum()
        # As in the classes' pool: a and b of deviation 1, and of each answer one right row and half a one of both.
        common = _sigmoid(values[2:4])
        value -= ((values[0] - 1) ** 2 + values[1] ** 2 + (deviates**2).sum()) / 2
        value += (1.25 * np.log(1 - common) + 0.25 * np.log(common)).sum()
        first = [
            (by_score * self.odds).sum() - (values[0] - 1),
            by_class[:, 0].sum() - values[1],
            *(by_class[:, 1:].sum(axis=0) + 0.25 - 1.5 * common),
        ]
        return -value, -np.concatenate([first, (by_class * self.scales).ravel() - deviates])

    def log_determinant(self, values: NDArray[np.float64]) -> float:
        """Return that of the second derivatives, in which classes meet only through the first four values."""

        def column(step: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray((self(values + step)[1] - self(values - step)[1]) / 2e-4)

        steps = np.zeros((7, len(values)))
        steps[range(4), range(4)] = 1e-4
        for number in range(3):
            steps[4 + number, 4 + number :: 3] = 1e-4
        columns = np.stack([column(step) for step in steps], axis=1)
        own = columns[4:, 4:].reshape(-1, 3, 3)
        shared = columns[4:, :4].reshape(-1, 3, 4)
        rest = columns[:4, :4] - (shared.swapaxes(1, 2) @ np.linalg.solve(own, shared)).sum(axis=0)
        curved = np.concatenate(
            [np.linalg.eigvalsh((one + one.swapaxes(-1, -2)) / 2).ravel() for one in (own, rest)]
        )
        return float(np.log(np.maximum(curved, LEAST_CURVED)).sum())


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
