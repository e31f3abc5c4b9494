"""One model of several answers: the likeliest class of each picture, and one matrix T an annotator.

With q_k the probability of class k by what a picture looks like (equal ones b_k where nothing is known of that),

    P(true = k | picture)  =  q_k  ~  exp(a log p_k + b_k),    P(annotator m gives g | true = k)  =  T^m_kg,

the likelihood is the product over the pictures of the sum over k of q_k times the product over the answers of
T^m_kg. From the answers alone this is Dawid and Skene's model (1979); with p, out of fold, it is the pool of
``trust.pool`` with one T an annotator. Maximised is by expectation and maximisation.

*Few answers an annotator.* Each row of T^m has rows in advance: what all annotators together give this class as,
with the annotator's own share of errors. How many rows is what makes the counts likeliest (Dirichlet-multinomial).

*Answers that are not independent.* Of each pair of annotators, how often both say what all others find unlikely
is compared with what their two T allow; r = 0 where they are independent, 1 where one copies the other. An answer
counts 1 / (1 + sum of r over the picture's other answers), the design effect of clustered samples (Kish 1965), so
copies count once. Three or more who copy each other speak for each other and are not found. Annotators who err on
the same hard pictures cannot be told from right ones by answers alone: in the probability of a consensus label
every pair has an r of ``USUAL`` at least, so that it is not too sure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import gammaln

from auditor.ground.errors import AuditFailedError
from auditor.statistics.annotators.answers import Answers

ROUNDS = 60
"""Of expectation and maximisation, at most."""
ENOUGH = 1e-6
"""Gain of the mean log-likelihood below which they end."""
PSEUDO_ROWS = 0.5
"""Answers that each class has in advance over all annotators, spread over all classes; one more is right."""
STRENGTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
"""Rows in advance that are tried."""
LEAST = 1e-6
"""Smaller probabilities count as this."""
FEWEST_SHARED = 30
"""Pictures that two annotators must share before their dependence is measured."""
MOST_ANNOTATORS_IN_PAIRS = 200
"""Of those with most answers, all pairs are measured."""
ALONE_ROUNDS = 20
"""With which the T of one annotator is found where the others' shares stand."""
USUAL = 0.3
"""r of people at least: with it .048 of the consensus labels of CIFAR-10N's three people are expected to be wrong
where .058 are; with 0, .026 (``benchmarks/annotators.py``)."""
LOOKS = 3
"""Times that the dependence is measured and the model fitted again."""
MOST_CELLS = 100_000_000


@dataclass(frozen=True, eq=False)
class Consensus:
    """What the model makes of the answers."""

    probs: NDArray[np.float32]
    """(N, K) P(true class | picture, answers), as sure as the dependence of the answers allows."""
    labels: NDArray[np.int64]
    """(N,) likeliest class; -1 where nobody answered and nothing is known of the picture."""
    transitions: NDArray[np.float64]
    """(M, K, K) T [annotator, true, given], rows sum to 1."""
    quality: NDArray[np.float64]
    """(M,) share of an annotator's answers that is right; NaN without answers."""
    quality_low: NDArray[np.float64]
    quality_high: NDArray[np.float64]
    """(M,) from the 95 % interval with an r of ``USUAL`` at least to the one with r as it was found."""
    num_answers: NDArray[np.int64]
    """(M,)"""
    dependence: NDArray[np.float64]
    """(M, M) r of each pair, in [0, 1]; NaN where they share too few pictures."""
    log_likelihood: float
    """Mean over the pictures with answers."""
    weight: float
    """a: what the picture's own probabilities count; 0 without any."""

    sizes: NDArray[np.float64]
    """(M, K) answers of each annotator by true class, as far as that is known; soft counts."""

    def interval(self, annotator: int, true: int, given: int) -> tuple[float, float]:
        """Jeffreys' 95 % interval of a cell of T."""
        size, share = self.sizes[annotator, true], self.transitions[annotator, true, given]
        hits = size * share
        low, high = scipy.stats.beta.ppf((0.025, 0.975), hits + 0.5, size - hits + 0.5)
        return float(low), float(high)

    def probability(self) -> NDArray[np.float32]:
        """(N,) of each consensus label; NaN where there is none."""
        rows = np.arange(len(self.labels))
        return np.where(self.labels >= 0, self.probs[rows, self.labels], np.float32("nan"))


@dataclass(frozen=True, eq=False)
class _Fit:
    shares: NDArray[np.float64]
    """(N, K) posterior."""
    prior: NDArray[np.float64]
    """(N, K) log q."""
    transitions: NDArray[np.float64]
    weight: float
    log_likelihood: float


def consensus(
    answers: Answers, opinion: NDArray[np.floating] | None = None, *, usual: float = USUAL
) -> Consensus:
    """Fit the model.

    Args:
        answers: at least one.
        opinion: (N, K) probabilities by the picture alone, of a model that did not learn from this picture's
            answers; a row with NaN has none. None: from the answers alone.
        usual: least r that probabilities and one end of quality allow for, in [0, 1]; 0: all are independent.

    Raises:
        AuditFailedError: no answers, an opinion of another shape, or too many annotators times classes.
    """
    shape = (answers.num_rows, answers.num_classes)
    if not len(answers.rows):
        raise AuditFailedError("no answers; name the columns of the annotators.")
    if opinion is not None and opinion.shape != shape:
        raise AuditFailedError(f"the opinion is {opinion.shape}, expected {shape}.")
    if answers.num_annotators * answers.num_classes**2 > MOST_CELLS:
        raise AuditFailedError(
            f"{answers.num_annotators:,} annotators and {answers.num_classes:,} classes are too many for one "
            "matrix an annotator; give the majority as one label column instead."
        )
    logs = np.zeros(shape)
    if opinion is not None:
        told = np.isfinite(opinion.sum(axis=1))
        logs[told] = np.log(np.maximum(opinion[told], LEAST))
    ones = np.ones(len(answers.rows))
    # Who copy each other are looked for before they are taken for the truth.
    fitted = _fit(answers, logs, ones, has_opinion=opinion is not None, rounds=1)
    dependence = _dependence(answers, fitted, ones)
    for _ in range(LOOKS if answers.num_annotators > 2 else 1):
        weights = _weights(answers, np.nan_to_num(dependence))
        fitted = _fit(answers, logs, weights, has_opinion=opinion is not None)
        dependence = _dependence(answers, fitted, weights)
    careful = _weights(answers, np.maximum(np.nan_to_num(dependence), usual))
    honest = _posterior(answers, fitted.prior, fitted.transitions, careful)[0]
    has = answers.counts().any(axis=1) | logs.any(axis=1)
    free = _posterior(
        answers, fitted.prior, fitted.transitions, _weights(answers, np.nan_to_num(dependence))
    )[0]
    # People lie between both: answers as independent as they were found, or as dependent as usual.
    found = np.array([_quality(answers, shares) for shares in (honest, free)])
    return Consensus(
        honest.astype(np.float32),
        np.where(has, fitted.shares.argmax(axis=1), -1),
        fitted.transitions,
        found[:, 0].mean(axis=0),
        found[:, 1].min(axis=0),
        found[:, 2].max(axis=0),
        np.bincount(answers.annotators, minlength=answers.num_annotators),
        dependence,
        fitted.log_likelihood,
        fitted.weight,
        _soft_counts(answers, honest).sum(axis=2),
    )


def _fit(
    answers: Answers,
    logs: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    has_opinion: bool,
    rounds: int = ROUNDS,
) -> _Fit:
    counts = answers.counts()
    votes = answers.sums(np.eye(answers.num_classes)[answers.labels] * weights[:, None])
    shares = votes / np.maximum(votes.sum(axis=1, keepdims=True), LEAST)
    answered = counts.any(axis=1)
    weight, bias, before = float(has_opinion), np.zeros(answers.num_classes), -np.inf
    for number in range(rounds):
        transitions = _transitions(_soft_counts(answers, shares))
        if number % 3 == 0:
            weight, bias = _opinion_counts(logs[answered], shares[answered], weight, bias)
        scores = weight * logs + bias
        prior = scores - scipy.special.logsumexp(scores, axis=1, keepdims=True)
        shares, likelihood = _posterior(answers, prior, transitions, weights)
        now = float(likelihood[answered].mean())
        if number > 3 and abs(now - before) < ENOUGH:
            break
        before = now
    return _Fit(shares, prior, transitions, weight, now)


def _posterior(
    answers: Answers,
    prior: NDArray[np.float64],
    transitions: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(N, K) posterior and (N,) log-likelihood, the log of each answer's T times its (A,) weight."""
    said = np.log(transitions).transpose(0, 2, 1)[answers.annotators, answers.labels]
    scores = prior + answers.sums(said * weights[:, None])
    total = scipy.special.logsumexp(scores, axis=1, keepdims=True)
    return np.exp(scores - total), total[:, 0]


def _soft_counts(answers: Answers, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """(M, K, K) [annotator, true, given]: sums of the pictures' (N, K) shares over the answers."""
    size = answers.num_annotators * answers.num_classes
    cells = scipy.sparse.csr_array(
        (
            np.ones(len(answers.rows)),
            (answers.annotators * answers.num_classes + answers.labels, answers.rows),
        ),
        shape=(size, answers.num_rows),
    )
    found = (cells @ shares).reshape(answers.num_annotators, answers.num_classes, answers.num_classes)
    return np.ascontiguousarray(found.transpose(0, 2, 1))


def _transitions(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """T of each annotator by its (M, K, K) soft counts and the rows in advance."""
    num_classes = counts.shape[1]
    eye = np.eye(num_classes)
    pooled = counts.sum(axis=0) + eye + PSEUDO_ROWS / num_classes
    pooled /= pooled.sum(axis=1, keepdims=True)
    wrong = 1.0 - np.diag(pooled)
    sizes = counts.sum(axis=2)
    own = sizes - np.einsum("mkk->mk", counts)
    ratio = (own.sum(axis=1) + 1) / ((sizes * wrong).sum(axis=1) + 1)  # its errors for each that is usual
    rate = np.clip(wrong * ratio[:, None], LEAST, 0.95)
    kinds = pooled * (1 - eye)
    kinds /= kinds.sum(axis=1, keepdims=True)
    means = rate[:, :, None] * kinds + (1 - rate)[:, :, None] * eye

    def evidence(strength: float) -> float:
        ahead = strength * means
        of_rows = gammaln(strength) - gammaln(sizes + strength)
        return float(of_rows.sum() + (gammaln(counts + ahead) - gammaln(ahead)).sum())

    best = max(STRENGTHS, key=evidence)
    found = np.maximum(counts + best * means, 1e-12)
    return np.asarray(found / found.sum(axis=2, keepdims=True))


def _opinion_counts(
    logs: NDArray[np.float64], shares: NDArray[np.float64], weight: float, bias: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """a and b under which the (n, K) posterior is likeliest, by a multinomial regression with a penalty of 1/2."""

    def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scores = values[0] * logs + values[1:]
        scores -= scipy.special.logsumexp(scores, axis=1, keepdims=True)
        residual = shares - np.exp(scores)
        value = (shares * scores).sum() - values @ values / 2
        gradient = np.concatenate([[(residual * logs).sum()], residual.sum(axis=0)]) - values
        return -value / len(logs), -gradient / len(logs)

    bounds = [(0.0, None if weight else 0.0), *[(None, None)] * len(bias)]
    first = np.concatenate([[weight], bias])
    found = scipy.optimize.minimize(
        loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 20}
    )
    return float(found.x[0]), found.x[1:]


def _dependence(answers: Answers, fitted: _Fit, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(M, M) r of each pair, judged by what all others say."""
    num = answers.num_annotators
    found = np.full((num, num), np.nan)
    most = np.argsort(-np.bincount(answers.annotators, minlength=num), kind="stable")
    logs = np.log(fitted.transitions).transpose(0, 2, 1)
    whole = fitted.prior + answers.sums(logs[answers.annotators, answers.labels] * weights[:, None])
    lines = {int(one): np.flatnonzero(answers.annotators == one) for one in most[:MOST_ANNOTATORS_IN_PAIRS]}
    for first, of_first in lines.items():
        for second, of_second in lines.items():
            if second >= first:
                continue
            rows, left, right = np.intersect1d(
                answers.rows[of_first], answers.rows[of_second], assume_unique=True, return_indices=True
            )
            if len(rows) < FEWEST_SHARED:
                continue
            left, right = of_first[left], of_second[right]
            x, y = answers.labels[left], answers.labels[right]
            scores = (
                whole[rows] - weights[left, None] * logs[first, x] - weights[right, None] * logs[second, y]
            )
            shares = scipy.special.softmax(scores, axis=1)
            found[first, second] = found[second, first] = _same_unlikely(shares, x, y)
    return found


def _same_unlikely(shares: NDArray[np.float64], x: NDArray[np.int64], y: NDArray[np.int64]) -> float:
    """R of two annotators' answers on n shared pictures, by what all others say of these, (n, K) shares.

    Seen is the sum over the pictures where both say the same class j of 1 - share of j, less twice its deviation;
    0 is what two with their T reach independently, 1 what they reach if they agree as often as their T allow.
    """
    left, right = _given_as(shares, x), _given_as(shares, y)
    each = (x == y) * (1.0 - shares[np.arange(len(x)), x])
    seen = each.sum() - 2.0 * np.sqrt((each**2).sum())
    alike, unlikely = shares.T @ (1.0 - shares), (left * right, np.minimum(left, right))
    chance, most = ((alike * one).sum() for one in unlikely)
    return float(np.clip((seen - chance) / (most - chance), 0.0, 1.0)) if most - chance > LEAST else 0.0


def _given_as(shares: NDArray[np.float64], given: NDArray[np.int64]) -> NDArray[np.float64]:
    """(K, K) T of one annotator's n answers where others' (n, K) shares are all that is known of the classes."""
    num_classes = shares.shape[1]
    eye = np.eye(num_classes)
    said = eye[given]
    found = 0.8 * eye + 0.2 / num_classes
    for _ in range(ALONE_ROUNDS):
        own = shares * found.T[given]
        counts = (own / own.sum(axis=1, keepdims=True)).T @ said + eye + PSEUDO_ROWS / num_classes
        found = counts / counts.sum(axis=1, keepdims=True)
    return found


def _weights(answers: Answers, dependence: NDArray[np.float64]) -> NDArray[np.float64]:
    """(A,) 1 / (1 + sum of r over the picture's other answers)."""
    between = dependence - np.diag(np.diag(dependence))
    by_row = scipy.sparse.csr_array(
        (np.ones(len(answers.rows)), (answers.rows, answers.annotators)),
        shape=(answers.num_rows, answers.num_annotators),
    )
    return np.asarray(1.0 / (1.0 + (by_row @ between)[answers.rows, answers.annotators]))


def _quality(
    answers: Answers, shares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(M,) share of right answers with Jeffreys' interval, on as many answers as are known (Louis 1982).

    An answer that is right with probability r tells as much less than one that is known as r (1 - r) is of the
    variance between answers.
    """
    right = shares[answers.rows, answers.labels]
    num = np.bincount(answers.annotators, minlength=answers.num_annotators)
    hits = np.bincount(answers.annotators, right, answers.num_annotators)
    unknown = np.bincount(answers.annotators, right * (1 - right), answers.num_annotators)
    with np.errstate(invalid="ignore", divide="ignore"):
        quality = hits / num
        told = np.clip(1.0 - unknown / (num * quality * (1 - quality)), 0.0, 1.0)
    told = np.nan_to_num(told)
    a, b = hits * told + 0.5, (num - hits) * told + 0.5
    low, high = (scipy.stats.beta.ppf(level, a, b) for level in (0.025, 0.975))
    return quality, np.where(num, low, np.nan), np.where(num, high, np.nan)
