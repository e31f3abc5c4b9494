"""One model of wrong labels: the witnesses pooled, and one matrix T of what each true class is given as.

With p_w(k) the probability that witness w gives class k of a sample that it did not learn from,

    P(true = k | sample)  =  q_k  ~  exp(sum over w of a_w log p_w(k) + b_k),   a_w >= 0,
    P(given = g | true = k)  =  T_kg,

and a, b and T are those under which the given labels are likeliest:

    sum over samples of log(sum over k of q_k T_kg).

A sample whose true class t somebody verified enters as log(q_t T_tg). This is a logarithmic opinion pool (Genest
and Zidek 1986; Hinton 1999) under label noise with a learned T (Bootkrajang and Kaban 2012; Patrini and others
2017).

Fitted is with one part of the samples, read the other, both ways: no label is judged by what was fitted to it. The
parts are cut by what the witnesses say, so the order of the samples never matters.

Letters: N samples, K classes, W witnesses, C classes that are likely for a sample, n samples of a fit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from auditor.statistics.rates import NO_CLASS, UNLABELED, row_chunks

UNKNOWN = -2
"""Instead of a sample's true class: nobody verified it, or who did could not tell."""
LEAST_PROBABILITY = 1e-6
"""Smaller probabilities of a witness count as this."""
LIKELY_CLASSES = 32
"""Classes of a sample that are told apart; the others take part in no sum. 8 to 64 find the same
(``benchmarks/results/constants.md``)."""
FIT_ROWS = 40_000
"""Samples that a fit uses at most, evenly spaced among what the witnesses say."""
PRIOR_DEVIATION = 1.0
"""Of a and b, around 0 (``benchmarks/results/ranking.md``, as the next three)."""
PRIOR_ROWS = 0.5
"""Labels that each class has in advance, spread over all classes; one more is right."""
PARTS = 5
"""Of the samples: fitted is with all but one, read is that one."""
ROUNDS = 10
"""Of EM for T alone."""
MOST_STEPS = 100
LEAST_SUM = np.float32(1e-30)


@dataclass(frozen=True, eq=False)
class Sheet:
    """What the witnesses say of some labeled samples, as the likelihood reads it."""

    logs: NDArray[np.float32]
    """(W, n, C) log probabilities; 0 throughout where a witness has no opinion."""
    classes: NDArray[np.int32]
    """(n, C) the likely classes of each sample, the given one and a verified one among them."""
    given: NDArray[np.int64]
    """(n,) in 0..K-1."""
    possible: NDArray[np.float32]
    """(n, C) 1 where the true class may be this one, 0 where a verdict rules it out."""


@dataclass(frozen=True, eq=False)
class Pool:
    """The model, fitted."""

    weights: NDArray[np.float64]
    """(W,) a, not negative."""
    bias: NDArray[np.float64]
    """(K,) b."""
    transition: NDArray[np.float64]
    """(K, K) T [true, given], rows sum to 1."""
    rate: float = 0.0
    """Share of wrong labels among the samples of the fit: mean of 1 - P(true = given | sample, given)."""

    def true(self, sheet: Sheet) -> NDArray[np.float32]:
        """(n, C) q: P(true class | sample), whatever label was given."""
        scores = np.tensordot(self.weights.astype(np.float32), sheet.logs, 1)
        scores += self.bias.astype(np.float32)[sheet.classes]
        return _softmax(scores)

    def given_as(self, sheet: Sheet) -> NDArray[np.float32]:
        """(n, C) T_kg of each sample's given label and likely classes."""
        return self.transition.astype(np.float32)[sheet.classes, sheet.given[:, None]]

    def posterior(self, sheet: Sheet) -> NDArray[np.float32]:
        """(n, C) P(true class | sample, given label, verdict)."""
        joint = self.true(sheet) * self.given_as(sheet) * sheet.possible
        joint /= joint.sum(axis=1, keepdims=True) + LEAST_SUM
        return joint

    def opinion(self, opinions: Sequence[NDArray[np.floating]], given_label: int) -> NDArray[np.float64]:
        """(K,) P(true class | sample, given label) of one sample, by W opinions (1, K); label -1 = none."""
        sheet = sheet_of(opinions, np.zeros(1, dtype=np.int64), np.array([max(given_label, 0)]))
        found = np.zeros(len(self.bias))
        found[sheet.classes[0]] = (self.true(sheet) if given_label < 0 else self.posterior(sheet))[0]
        return found


@dataclass(frozen=True, eq=False)
class CrossFit:
    """One pool a part of the samples, each fitted without that part."""

    names: tuple[str, ...]
    """The W witnesses that the pools hear."""
    pools: tuple[Pool, ...]
    parts: NDArray[np.int8]
    """(N,) which pool reads a sample; 0 where it has no label."""

    @property
    def weights(self) -> dict[str, float]:
        """By witness, the mean of a."""
        means = np.mean([pool.weights for pool in self.pools], axis=0)
        return dict(zip(self.names, means.tolist(), strict=True))

    @property
    def transition(self) -> NDArray[np.float64]:
        """(K, K) the mean of T."""
        return np.asarray(np.mean([pool.transition for pool in self.pools], axis=0))


def cross_fit(
    names: Sequence[str],
    opinions: Sequence[NDArray[np.floating]],
    given_labels: NDArray[np.integer],
    num_classes: int,
    known: NDArray[np.integer] | None = None,
) -> CrossFit:
    """Cut the labeled samples into ``PARTS`` and fit a pool without each.

    Args:
        names: of the W witnesses.
        opinions: their probabilities (N, K), arrays or memory maps; a row with NaN has no opinion.
        given_labels: (N,) int in {-1, 0..K-1}.
        num_classes: K.
        known: (N,) true classes that somebody verified, ``NO_CLASS`` or ``UNKNOWN``.
    """
    given_labels = np.asarray(given_labels)
    support = np.full(len(given_labels), np.nan, dtype=np.float32)
    for rows in row_chunks(len(given_labels), num_classes):
        labeled = rows.start + np.flatnonzero(given_labels[rows] != UNLABELED)
        sheets = (log_opinion(one, labeled) for one in opinions)
        support[labeled] = sum(one[np.arange(len(labeled)), given_labels[labeled]] for one in sheets)
    order = np.lexsort((support, given_labels))[np.count_nonzero(given_labels == UNLABELED) :]
    parts = np.zeros(len(given_labels), dtype=np.int8)
    parts[order] = np.arange(len(order)) % PARTS
    verified = np.zeros(len(given_labels), dtype=bool) if known is None else known != UNKNOWN
    pools: list[Pool] = []
    for part in range(PARTS):
        others = order[parts[order] != part]
        step = max(1, -(-len(others) // FIT_ROWS))
        chosen = others[(np.arange(len(others)) % step == 0) | verified[others]]
        pools.append(fit(sheet_of(opinions, chosen, given_labels, known), num_classes))
    return CrossFit(tuple(names), tuple(pools), parts)


def told(
    fits: CrossFit,
    opinions: Sequence[NDArray[np.floating]],
    given_labels: NDArray[np.integer],
    known: NDArray[np.integer],
) -> CrossFit:
    """Fit T alone anew, now that people decided more; a and b stay, so that a moment is enough.

    Arguments as of ``cross_fit``. What people decide lies at the head of a ranking, where all witnesses err: a and
    b fitted to few labels of that kind rank the rest worse, T does not (``benchmarks/results/ranking.md``).
    """
    num_classes = opinions[0].shape[1]
    labeled, verified = np.asarray(given_labels) != UNLABELED, known != UNKNOWN
    pools: list[Pool] = []
    for part, pool in enumerate(fits.pools):
        others = np.flatnonzero(labeled & (fits.parts != part))
        step = max(1, -(-len(others) // FIT_ROWS))
        sheet = sheet_of(opinions, np.union1d(others[::step], others[verified[others]]), given_labels, known)
        cells = _cells(sheet, num_classes)
        pooled = pool.true(sheet) * sheet.possible
        first = pooled * pool.given_as(sheet)
        first /= first.sum(axis=1, keepdims=True) + LEAST_SUM
        transition, posterior = _by_em(pooled, first, cells, num_classes)
        pools.append(
            dataclasses.replace(pool, transition=shrunk(transition, _wrong(posterior, cells, num_classes)))
        )
    return dataclasses.replace(fits, pools=tuple(pools))


def all_alike(names: Sequence[str], num_samples: int, num_classes: int) -> CrossFit:
    """Return what stands in for a pool where nothing can be fitted: all witnesses count the same, and T says
    nothing.
    """
    weights, nothing = (
        np.full(len(names), 1 / len(names)),
        np.full((num_classes, num_classes), 1 / num_classes),
    )
    pool = Pool(weights, np.zeros(num_classes), nothing)
    return CrossFit(tuple(names), (pool,), np.zeros(num_samples, dtype=np.int8))


def fit(sheet: Sheet, num_classes: int) -> Pool:
    """Find a, b and T by L-BFGS; T by square roots, in which its information is the same everywhere.

    From all witnesses alike with the T that EM finds for them; from T near I it ends in worse places.
    """
    num_witnesses, num_rows = len(sheet.logs), max(1, len(sheet.given))
    cells = _cells(sheet, num_classes)
    alike = Pool(np.full(num_witnesses, 1 / num_witnesses), np.zeros(num_classes), np.empty(0))
    pooled = alike.true(sheet) * sheet.possible
    transition, _ = _by_em(pooled, pooled, cells, num_classes)
    first = np.concatenate([alike.weights, alike.bias, np.sqrt(transition).ravel()])
    bounds = [(0.0, None)] * num_witnesses + [(None, None)] * num_classes + [(1e-6, None)] * num_classes**2
    prior = _prior(num_classes)

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights, bias, roots = _parted(parameters, num_witnesses, num_classes)
        squares = roots**2
        transition = squares / squares.sum(axis=1, keepdims=True)
        pool = Pool(weights, bias, transition)
        pooled = pool.true(sheet)
        joint = pooled * transition.astype(np.float32).ravel()[cells] * sheet.possible
        likely = joint.sum(axis=1) + LEAST_SUM
        residual = joint / likely[:, None]
        counts = _sums(residual, cells, num_classes) + prior
        residual -= pooled
        value = (
            np.log(likely, dtype=np.float64).sum() + (prior * np.log(np.maximum(transition, 1e-300))).sum()
        )
        value -= (weights @ weights + bias @ bias) / (2 * PRIOR_DEVIATION**2)
        by_weight = np.array([np.vdot(one, residual) for one in sheet.logs], dtype=np.float64)
        by_bias = np.bincount(sheet.classes.ravel(), residual.ravel(), num_classes)
        by_root = 2 * (counts - transition * counts.sum(axis=1, keepdims=True)) / roots
        gradient = np.concatenate(
            [
                by_weight - weights / PRIOR_DEVIATION**2,
                by_bias - bias / PRIOR_DEVIATION**2,
                by_root.ravel(),
            ]
        )
        return -value / num_rows, -gradient / num_rows

    best = scipy.optimize.minimize(
        loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": MOST_STEPS, "maxcor": 20}
    )
    weights, bias, roots = _parted(best.x, num_witnesses, num_classes)
    squares = roots**2
    found = Pool(weights, bias, squares / squares.sum(axis=1, keepdims=True))
    wrong = _wrong(found.posterior(sheet), cells, num_classes)
    found = dataclasses.replace(found, transition=shrunk(found.transition, wrong))
    right = found.posterior(sheet)[sheet.classes == sheet.given[:, None]]
    return dataclasses.replace(found, rate=float(1.0 - right.sum(dtype=np.float64) / num_rows))


def sheet_of(
    opinions: Sequence[NDArray[np.floating]],
    rows: NDArray[np.integer],
    given_labels: NDArray[np.integer],
    known: NDArray[np.integer] | None = None,
) -> Sheet:
    """Read what the witnesses say of ``rows``, all of them labeled.

    Args:
        opinions: W arrays (N, K) of probabilities, or memory maps; a row with NaN has no opinion.
        rows: (n,) samples.
        given_labels: (N,) int in {-1, 0..K-1}.
        known: (N,) true classes that were verified, ``NO_CLASS`` or ``UNKNOWN``; None = ``UNKNOWN`` throughout.
    """
    logs = np.stack([log_opinion(one, rows) for one in opinions])
    num_classes = logs.shape[2]
    given = np.asarray(given_labels)[rows].astype(np.int64)
    true = np.full(len(rows), UNKNOWN) if known is None else np.asarray(known)[rows]
    classes = np.broadcast_to(np.arange(num_classes, dtype=np.int32), (len(rows), num_classes))
    if num_classes > LIKELY_CLASSES:
        mean = logs.mean(axis=0)
        mean[np.arange(len(rows)), given] = np.inf
        verified = np.flatnonzero(true >= 0)
        mean[verified, true[verified]] = np.inf
        likely = np.argpartition(mean, -LIKELY_CLASSES, axis=1)[:, -LIKELY_CLASSES:]
        classes = np.sort(likely, axis=1).astype(np.int32)
        logs = np.take_along_axis(logs, classes[None].astype(np.int64), axis=2)
    possible = np.ones(classes.shape, dtype=np.float32)
    possible[(true == NO_CLASS)[:, None] & (classes == given[:, None])] = 0.0
    possible[(true >= 0)[:, None] & (classes != true[:, None])] = 0.0
    return Sheet(logs, classes, given, possible)


def log_opinion(probs: NDArray[np.floating], rows: NDArray[np.integer] | slice) -> NDArray[np.float32]:
    """(n, K) log probabilities of ``rows``, 0 throughout where there is no opinion."""
    found = np.array(probs[rows], dtype=np.float32)
    silent = ~np.isfinite(found.sum(axis=1))
    found[silent] = 1.0
    return np.log(np.maximum(found, LEAST_PROBABILITY, out=found), out=found)


def shrunk(transition: NDArray[np.float64], wrong: NDArray[np.float64]) -> NDArray[np.float64]:
    """T with each class's wrong labels drawn towards equal ones, as far as chance explains how they differ.

    By m labels a class, with m by the moments of a Dirichlet-multinomial distribution, the median of the classes
    (empirical Bayes). The diagonal stays.

    Args:
        transition: (K, K) T.
        wrong: (K, K) [true, given] expected numbers of wrong labels, 0 on the diagonal.
    """
    num_others = len(transition) - 1
    totals = wrong.sum(axis=1)
    several = totals > 1.0
    if num_others < 2 or not several.any():
        return transition
    expected = np.maximum(totals, 1e-12) / num_others
    distance = (wrong**2).sum(axis=1) / expected - totals  # chi-square over the other classes
    beyond = (distance[several] / (num_others - 1) - 1.0) / (totals[several] - 1.0)
    alike = np.median(1.0 / np.clip(beyond, 1e-6, 1.0) - 1.0)
    shares = wrong + alike / num_others + 1e-12
    np.fill_diagonal(shares, 0.0)
    right = np.diag(transition)
    found = shares * ((1.0 - right) / shares.sum(axis=1))[:, None]
    np.fill_diagonal(found, right)
    return np.asarray(found)


def _by_em(
    pooled: NDArray[np.float32], posterior: NDArray[np.float32], cells: NDArray[np.int64], num_classes: int
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """T for ``pooled`` (n, C), and the posterior (n, C) under it."""
    for _ in range(ROUNDS):
        counts = _sums(posterior, cells, num_classes) + _prior(num_classes)
        transition = counts / counts.sum(axis=1, keepdims=True)
        joint = pooled * transition.astype(np.float32).ravel()[cells]
        posterior = joint / (joint.sum(axis=1, keepdims=True) + LEAST_SUM)
    return transition, posterior


def _parted(
    parameters: NDArray[np.float64], num_witnesses: int, num_classes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    weights, bias, roots = np.split(parameters, [num_witnesses, num_witnesses + num_classes])
    return weights, bias, roots.reshape(num_classes, num_classes)


def _prior(num_classes: int) -> NDArray[np.float64]:
    return np.full((num_classes, num_classes), PRIOR_ROWS / num_classes) + np.eye(num_classes)


def _cells(sheet: Sheet, num_classes: int) -> NDArray[np.int64]:
    """(n, C) which cell of T each likely class of a sample and its given label are."""
    return sheet.classes.astype(np.int64) * num_classes + sheet.given[:, None]


def _wrong(posterior: NDArray[np.float32], cells: NDArray[np.int64], num_classes: int) -> NDArray[np.float64]:
    """(K, K) [true, given] expected numbers of wrong labels, 0 on the diagonal."""
    found = _sums(posterior, cells, num_classes)
    np.fill_diagonal(found, 0.0)
    return found


def _sums(values: NDArray[np.float32], cells: NDArray[np.int64], num_classes: int) -> NDArray[np.float64]:
    """(K, K) [class, given]: sums of the (n, C) values."""
    summed = np.bincount(cells.ravel(), values.ravel(), num_classes**2)
    return np.asarray(summed, dtype=np.float64).reshape(num_classes, num_classes)


def _softmax(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores
