"""Which classes are given for which others, and what that says of each label.

A label is the more suspect the likelier it is that pictures of the class that the witnesses see were given just
this label. By Bayes' rule, with p_j the witnesses' mean probability of class j and T[j, i] the share of class j
that was labeled i,

    P(true j | picture, given i)  ~  p_j * T[j, i]

so errors that follow a pattern (trucks called cars, seldom cars called trucks) stand out although every single one
looks right, and the suggestion is the class that such labels come from. T is not known. It is read off the
predictions alone, in two ways:

* the likeliest T, by EM (Dawid and Skene 1979, with the witnesses' probabilities in the place of other annotators):
  sharp where errors have a pattern. Networks that learned to predict the noisy labels leave it no error to
  explain; then its small values mean nothing,
* counts of (predicted class, given label) over all rows: blunt, never absurd. A tenth of them is the least value
  of T.

Networks that were hardly trained predict far less surely than they are right, and take whole classes for others:
that looks like wrong labels. Where the mean prediction is less sure than it agrees with the labels, it is
sharpened until both are alike (by a power, as temperature scaling does, Guo and others 2017), and this view counts
less by the same ratio.

How far the pattern is to be believed follows from its *direction*: 0 where every class errs to all others alike, 1
where each errs to one. As the information in the counts it was .16 to .24 on human labels of CIFAR-10, .29 where a
single class errs, .46 to .54 under asymmetric and pair noise (``benchmarks/results/confusions.md``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
import scipy.optimize
from numpy.typing import NDArray

from auditor.statistics.witnesses import (
    UNLABELED,
    Witness,
    mean_predictions,
    row_chunks,
    sum_by_label,
)

MOST_ROWS = 100_000
"""Rows that T is read off at most, evenly spaced."""
MOST_CELLS = 20_000_000
"""Rows times classes that T is read off at most."""
ROUNDS = 20
"""Of EM."""
PRIOR = 3.0
"""Rows that each class counts in advance, with labels as frequent as all labels are: a rare class says little."""
LEAST_OF_COUNTS = 0.1
"""Share of the counts below which the fitted T is not believed."""
NO_PATTERN, PATTERN = 0.25, 0.5
"""Direction up to which errors are taken to have no pattern, and from which they have one."""
MERGED = 0.4
"""Share of predictions that would have to change class until each is predicted as often as the labels name it,
above which a witness is left out: it merges classes, and that would look like a pattern. Engines moved .31 at most
under 40 % asymmetric errors, .37 on 341 photos; one that calls every second class by another's name moves .5."""
MANY_A_CELL = 20
"""Draws a cell from which the expected entropy is taken from its series."""
LEAST_PROBABILITY = 1e-9
MOST_SHARPENED = 50.0
"""Largest power of the mean prediction."""
CELLS_TO_SHARPEN = 2_000_000
"""Rows times classes that the power is fitted on at most, evenly spaced."""


@dataclass(frozen=True, eq=False)
class Confusions:
    """From which class to which labels go wrong."""

    transition: NDArray[np.float64]
    """(K, K) [true, given], rows sum to 1, no value 0."""
    direction: float
    """In [0, 1]: 0 = every class is given for every other as often, 1 = each for one other."""
    weights: Mapping[str, float]
    """By witness, what it counts in the mean prediction; one of weight 0 is heard where no other speaks."""
    sharpness: float = 1.0
    """Power of the mean prediction, at least 1: above it where the prediction was less sure than it was right."""
    sureness: float = 1.0
    """In (0, 1]: mean probability of the predicted class over its agreement with the labels, at most 1."""

    @property
    def pattern(self) -> float:
        """In [0, 1]: how far errors are taken to follow a pattern."""
        return float(np.clip((self.direction - NO_PATTERN) / (PATTERN - NO_PATTERN), 0.0, 1.0))

    @property
    def power(self) -> float:
        """Power of T in the posterior, 1/2 to 1."""
        return (1.0 + self.pattern) / 2

    @property
    def of_given(self) -> NDArray[np.float32]:
        """(K, K) [given, true]: what a sample's probabilities are multiplied by, before they sum to 1 again."""
        return np.asarray((self.transition**self.power).T, dtype=np.float32)

    @property
    def share(self) -> float:
        """What this view counts beside the witnesses' own ranking: 1/2 to 3/4, less where nobody is sure."""
        return (1.0 + self.pattern / 2) / 2 * self.sureness

    def posterior(self, probs: NDArray[np.float32], given_labels: NDArray[np.integer]) -> NDArray[np.float32]:
        """(B, K) P(true | picture, given) of mean predictions (B, K), which have no NaN; all of them labeled."""
        found = sharpened(probs, self.sharpness) * self.of_given[given_labels]
        found /= found.sum(axis=1, keepdims=True)
        return found


@dataclass(frozen=True, eq=False)
class ByConfusions:
    """What predictions and T together say of each label."""

    margin: NDArray[np.float32]
    """(N,) log P(true = given) minus log P(true = likeliest other class); NaN where unlabeled or not predicted."""
    given_probability: NDArray[np.float32]
    """(N,) P(true = given); NaN likewise."""
    other_label: NDArray[np.int32]
    """(N,) likeliest class that is not the given one (of an unlabeled sample the likeliest one); -1 without."""
    other_probability: NDArray[np.float32]
    """(N,) its probability; NaN without."""


def weights_of_mean(
    witnesses: Sequence[Witness],
    given_labels: NDArray[np.integer],
    weights: Mapping[str, float],
    unheard: Sequence[str],
) -> dict[str, float]:
    """What each witness counts in the mean prediction: half of it the same for all, half its weight in the ranking.

    The ranking's weights alone would leave one or two witnesses, whose probabilities are less even than the mean's.
    One that merges classes, is ``unheard`` or predicts nothing counts 0: it is heard where no other speaks.
    """
    labeled = np.flatnonzero(np.asarray(given_labels) != UNLABELED)
    rows = labeled[:: max(1, -(-len(labeled) // MOST_ROWS))]
    counted = [
        witness.name
        for witness in witnesses
        if witness.pred_probs is not None and witness.name not in unheard
    ]
    whole = [one.name for one in witnesses if one.name in counted and not _merges(one, given_labels, rows)]
    counted = whole or counted
    total = sum(max(weights[name], 0.0) for name in counted)
    return {
        one.name: max(weights[one.name], 0.0) / (2 * total or 1.0) + 1 / (2 * len(counted))
        if one.name in counted
        else 0.0
        for one in witnesses
    }


def _merges(witness: Witness, given_labels: NDArray[np.integer], rows: NDArray[np.integer]) -> bool:
    assert witness.pred_probs is not None
    probs = np.asarray(witness.pred_probs[rows])
    spoken = np.isfinite(probs).all(axis=1)
    if not spoken.any():
        return False
    said = np.bincount(probs[spoken].argmax(axis=1), minlength=probs.shape[1])
    named = np.bincount(np.asarray(given_labels)[rows][spoken], minlength=probs.shape[1])
    return bool(np.abs(said - named).sum() / (2 * spoken.sum()) > MERGED)


def fit_confusions(
    witnesses: Sequence[Witness],
    given_labels: NDArray[np.integer],
    num_classes: int,
    weights: Mapping[str, float],
) -> Confusions | None:
    """Read T off the mean prediction; None where nobody predicts a labeled sample.

    Args:
        witnesses: ones without predictions are passed over.
        given_labels: (N,) int in {-1, 0..K-1}.
        num_classes: K.
        weights: by witness, of ``weights_of_mean``.
    """
    voters = [witness for witness in witnesses if witness.pred_probs is not None]
    labeled = np.flatnonzero(np.asarray(given_labels) != UNLABELED)
    if not voters or not len(labeled):
        return None
    most = min(MOST_ROWS, max(1, MOST_CELLS // num_classes))
    rows = labeled[:: max(1, -(-len(labeled) // most))]
    probs = mean_predictions(voters, rows, _in_order(voters, weights))
    spoken = ~np.isnan(probs[:, 0])
    if not spoken.any():
        return None
    probs, given = np.maximum(probs[spoken], LEAST_PROBABILITY), np.asarray(given_labels)[rows[spoken]]
    agreement, sureness = float((probs.argmax(axis=1) == given).mean()), float(probs.max(axis=1).mean())
    sharpness = _sharpness(probs, agreement)
    probs = sharpened(probs, sharpness)
    cells = probs.argmax(axis=1).astype(np.int64) * num_classes + given
    counts = np.bincount(cells, minlength=num_classes**2).reshape(num_classes, num_classes).astype(np.float64)
    labels = np.bincount(given, minlength=num_classes) / len(given)
    transition = np.maximum(_likeliest(probs, given, labels), LEAST_OF_COUNTS * _as_shares(counts, labels))
    return Confusions(
        transition / transition.sum(axis=1, keepdims=True),
        direction(counts),
        weights,
        sharpness,
        min(1.0, sureness / max(agreement, LEAST_PROBABILITY)),
    )


def _in_order(voters: Sequence[Witness], weights: Mapping[str, float]) -> NDArray[np.float32]:
    return np.array([weights[voter.name] for voter in voters], dtype=np.float32)


def by_confusions(
    witnesses: Sequence[Witness],
    given_labels: NDArray[np.integer],
    confusions: Confusions,
) -> ByConfusions:
    """Judge every label by the mean prediction and ``confusions``, in one pass.

    Args:
        witnesses: ones without predictions are passed over.
        given_labels: (N,) int in {-1, 0..K-1}.
        confusions: of ``fit_confusions``.
    """
    voters = [witness for witness in witnesses if witness.pred_probs is not None]
    in_order = _in_order(voters, confusions.weights)
    num, num_classes = len(given_labels), len(confusions.transition)
    found = ByConfusions(
        margin=np.full(num, np.nan, dtype=np.float32),
        given_probability=np.full(num, np.nan, dtype=np.float32),
        other_label=np.full(num, -1, dtype=np.int32),
        other_probability=np.full(num, np.nan, dtype=np.float32),
    )
    for rows in row_chunks(num, num_classes):
        probs = mean_predictions(voters, rows, in_order)
        given = np.asarray(given_labels[rows])
        spoken = ~np.isnan(probs[:, 0])
        labeled = spoken & (given != UNLABELED)
        probs[labeled] = confusions.posterior(probs[labeled], given[labeled])
        local = np.flatnonzero(labeled)
        own = probs[local, given[local]]
        probs[local, given[local]] = -1.0
        local = np.flatnonzero(spoken)
        other = probs[local].argmax(axis=1)
        best = probs[local, other]
        exists = best >= 0  # with a single class there is no other
        at = rows.start + local[exists]
        found.other_label[at], found.other_probability[at] = other[exists], best[exists]
        at = rows.start + np.flatnonzero(labeled)
        found.given_probability[at] = own
        others = np.nan_to_num(found.other_probability[at])
        tiny = np.finfo(np.float32).tiny
        found.margin[at] = np.log(np.maximum(own, tiny)) - np.log(np.maximum(others, tiny))
    return found


def sharpened(probs: NDArray[np.float32], power: float) -> NDArray[np.float32]:
    """(B, K) probabilities to the ``power``, at least ``LEAST_PROBABILITY``, summing to 1 but for that."""
    found = np.maximum(probs, LEAST_PROBABILITY)
    if power == 1.0:
        return found
    found = (found / found.max(axis=1, keepdims=True)) ** np.float32(power)
    found /= found.sum(axis=1, keepdims=True)
    return np.maximum(found, LEAST_PROBABILITY)


def _sharpness(probs: NDArray[np.float32], agreement: float) -> float:
    """Power that makes the mean of the largest probabilities ``agreement``; 1 where it is that already, or more."""
    few = probs[:: max(1, -(-probs.size // CELLS_TO_SHARPEN))]

    def lacks(power: float) -> float:
        return float(sharpened(few, power).max(axis=1).mean()) - agreement

    if lacks(1.0) >= 0:
        return 1.0
    if lacks(MOST_SHARPENED) <= 0:
        return MOST_SHARPENED
    return float(scipy.optimize.brentq(lacks, 1.0, MOST_SHARPENED, xtol=1e-3))


def _likeliest(
    probs: NDArray[np.float32], given: NDArray[np.integer], labels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(K, K) T [true, given] that makes given labels (n,) likeliest beside predictions (n, K) and the prior."""
    num_classes = len(labels)
    posterior = probs
    for _ in range(ROUNDS):
        transition = _as_shares(sum_by_label(posterior, given, num_classes), labels)
        posterior = probs * transition.T.astype(np.float32)[given]
        posterior /= posterior.sum(axis=1, keepdims=True)
    return transition


def _as_shares(counts: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """(K, K) counts [true, given] as shares of each true class, with ``PRIOR`` labels as frequent as in the set."""
    shares: NDArray[np.float64] = (counts + PRIOR * labels) / (counts.sum(axis=1, keepdims=True) + PRIOR)
    return shares


def direction(counts: NDArray[np.float64]) -> float:
    """How far wrong labels go one way: 0 where each class errs to all others alike, 1 where each errs to one.

    1 minus the entropy of a class's wrong labels over that of as many labels drawn from all others alike (few
    labels fill few cells), in the mean over classes, each by its number of wrong labels.

    Args:
        counts: (K, K) [likely true, given].
    """
    num_others = len(counts) - 1
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0.0)
    num_wrong = wrong.sum(axis=1)
    shares = wrong / np.maximum(num_wrong, 1.0)[:, None]
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
    sizes, at = np.unique(num_wrong, return_inverse=True)
    alike = np.array([entropy_of_even_draws(int(size), num_others) for size in sizes])[at]
    known = alike > 0
    if not known.any():
        return 0.0
    one_way = 1.0 - entropy[known] / alike[known]
    return max(0.0, float(num_wrong[known] @ one_way / num_wrong[known].sum()))


def entropy_of_even_draws(size: int, num_cells: int) -> float:
    """Expected entropy, in nats, of the shares that ``size`` draws from equally likely cells fill; 0 below two."""
    if size < 2 or num_cells < 2:
        return 0.0
    if size > MANY_A_CELL * num_cells:
        return float(np.log(num_cells) - (num_cells - 1) / (2 * size))  # Miller 1955
    hits = np.arange(1, size + 1)
    chance = scipy.stats.binom.pmf(hits, size, 1 / num_cells)
    return float(num_cells * (chance * -(hits / size) * np.log(hits / size)).sum())
