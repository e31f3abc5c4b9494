"""Known label errors, planted to check that the machinery works and to compare engines on a user's own data.

Planted errors do not calibrate human ones: a false-discovery rate of 10 % set with them was 27 to 51 % on
human noise, because random flips are far easier to find and likely ones partly hit the truth. Every result
carries that warning. The planted labels are never in the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.ground.errors import AuditFailedError
from auditor.ground.wording import plural
from auditor.statistics import UNLABELED, row_chunks

WARNING = (
    "Planted errors give too good a picture: real mistakes are harder to find. They compare engines and check that "
    "the audit works; they do not tell how many of the real errors are found. Real mistakes that nobody "
    "has found yet are in the same ranking and count against every engine."
)

BUDGETS = (0.01, 0.02, 0.05, 0.10)
"""Shares of the labels that a person may have time to look at, the least trusted first."""
PLANTING_STREAM = 20_415


@dataclass(frozen=True, eq=False)
class Planted:
    """Given labels with known errors among them."""

    labels: NDArray[np.int64]
    """(N,) given labels, some replaced."""
    mask: NDArray[np.bool_]
    """(N,) where a label was replaced."""
    is_measured: NDArray[np.bool_]
    """(N,) rows that count: labeled, and none of those that were to be left alone."""
    kind: str
    warning: str = WARNING


@dataclass(frozen=True)
class Recovery:
    """How well a ranking brings the planted errors to the top."""

    auroc: float
    average_precision: float
    precision_at_planted: float
    """Share of planted among as many of the least trusted labels as were planted."""
    found: Mapping[float, float]
    """By budget of ``BUDGETS``: share of the planted errors that one meets in that share of the labels."""
    num_planted: int
    num_measured: int
    """Labels that were ranked, the planted ones among them."""
    sentence: str


def plant_second_most_likely(
    given_labels: NDArray[np.integer],
    pred_probs: Sequence[NDArray[np.floating]],
    rate: float,
    *,
    seed: int,
    keep: NDArray[np.bool_] | None = None,
) -> Planted:
    """Replace a random share of labels by the class that the models find most likely after their favourite.

    The favourite itself is never planted: where the given label is already wrong, it is probably the truth.

    Args:
        given_labels: (N,) int, -1 unlabeled and left alone.
        pred_probs: of each model, (N, K), arrays or memory maps; their mean counts, so that no model alone
            decides what it is then asked to find. Rows with NaN are left alone.
        rate: share of the labeled samples to replace, in (0, 1).
        seed: of the choice.
        keep: (N,) bool, rows to leave alone and out of the measure (trusted, or known to be wrong).

    Raises:
        AuditFailedError: the rate is out of range or more rows than may be changed.
    """
    targets = np.full(len(given_labels), -1, dtype=np.int64)
    for rows in row_chunks(len(given_labels), pred_probs[0].shape[1]):
        total = np.array(pred_probs[0][rows], np.float32)
        for other in pred_probs[1:]:
            total += other[rows]  # as good as the mean: only the order counts
        targets[rows] = _second_classes(np.asarray(given_labels[rows]), total)
    is_measured = _measured(given_labels, keep)
    candidates = is_measured & (targets >= 0)
    count = _num_to_plant(given_labels, rate, int(candidates.sum()))
    chosen = _generator(seed).permutation(np.flatnonzero(candidates))[:count]
    return _replace(given_labels, chosen, targets[chosen], is_measured, "second most likely class")


def plant_by_transition(
    given_labels: NDArray[np.integer],
    transition: NDArray[np.floating],
    rate: float,
    *,
    seed: int,
    keep: NDArray[np.bool_] | None = None,
) -> Planted:
    """Replace labels as an estimated T says: classes that err more lose more labels, to where they err.

    Args:
        given_labels: (N,) int, -1 unlabeled and left alone.
        transition: (K, K) T[true, given]; only the shape off its diagonal counts.
        rate: share of the labeled samples to replace, in (0, 1).
        seed: of the choice.
        keep: (N,) bool, rows to leave alone and out of the measure.

    Raises:
        AuditFailedError: T moves nothing, the rate is out of range or more rows than may be changed.
    """
    moves = np.clip(np.asarray(transition, dtype=np.float64), 0.0, None)
    moves = moves * (1.0 - np.eye(len(moves)))
    mass = moves.sum(axis=1)
    is_measured = _measured(given_labels, keep)
    candidates = is_measured & (mass[np.maximum(given_labels, 0)] > 0)
    count = _num_to_plant(given_labels, rate, int(candidates.sum()))
    generator = _generator(seed)
    rows = np.flatnonzero(candidates)
    # Gumbel's trick draws without replacement in proportion to the mass.
    keys = np.log(mass[given_labels[rows]]) + generator.gumbel(size=len(rows))
    chosen = rows[np.argsort(-keys, kind="stable")[:count]]
    shares = np.cumsum(moves / np.where(mass > 0, mass, 1.0)[:, None], axis=1)
    draws = generator.random(len(chosen))
    targets = np.array(
        [
            np.searchsorted(shares[label], draw * shares[label, -1], side="right")
            for label, draw in zip(given_labels[chosen], draws, strict=True)
        ],
        dtype=np.int64,
    )
    return _replace(given_labels, chosen, targets, is_measured, "estimated transition matrix")


def measure_recovery(planted: Planted, trust_score: NDArray[np.floating]) -> Recovery:
    """Return how well low trust finds the planted errors; the real errors among the rest count against it.

    Raises:
        AuditFailedError: nothing was planted or everything was.
    """
    known = np.isfinite(trust_score) & planted.is_measured
    truth, doubt = planted.mask[known], -np.asarray(trust_score, dtype=np.float64)[known]
    if truth.all() or not truth.any():
        raise AuditFailedError(
            "a ranking is measured on some planted and some untouched labels; change the rate."
        )
    from sklearn.metrics import (  # takes most of a second to import: only where it is used
        average_precision_score,
        roc_auc_score,
    )

    count = int(truth.sum())
    auroc, precision = float(roc_auc_score(truth, doubt)), float(average_precision_score(truth, doubt))
    hit = _hits(truth, doubt, count) / count
    found = {budget: _hits(truth, doubt, num_looked_at(budget, len(truth))) / count for budget in BUDGETS}
    sentence = (
        f"{plural(count, 'error')} planted ({planted.kind}): {hit:.0%} of the {count:,} least trusted labels are "
        f"planted ones (area under the curve {auroc:.3f}). {planted.warning}"
    )
    return Recovery(auroc, precision, hit, found, count, len(truth), sentence)


def num_looked_at(budget: float, num_labels: int) -> int:
    """How many of ``num_labels`` a budget pays for, at least one."""
    return max(1, round(budget * num_labels))


def _hits(truth: NDArray[np.bool_], doubt: NDArray[np.float64], count: int) -> float:
    """Planted errors among the ``count`` most doubted; of labels that tie at the cut, the expected number.

    Whatever order a sort leaves ties in, it would give the engine luck or the lack of it.
    """
    cut = np.partition(doubt, -count)[-count]
    above, level = doubt > cut, doubt == cut
    return float(truth[above].sum() + (count - above.sum()) * truth[level].mean())


def _measured(labels: NDArray[np.integer], keep: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    labeled = np.asarray(labels) != UNLABELED
    return labeled if keep is None else labeled & ~keep


def _second_classes(labels: NDArray[np.integer], probs: NDArray[np.float32]) -> NDArray[np.int64]:
    """(B,) most likely class that is neither the given label nor the favourite; -1 where there is none."""
    rows = np.arange(len(labels))
    spoken = np.isfinite(probs).all(axis=1) & (labels != UNLABELED)
    probs[~spoken] = 0.0
    probs[rows, probs.argmax(axis=1)] = -1.0
    probs[rows, np.maximum(labels, 0)] = -1.0
    targets = probs.argmax(axis=1).astype(np.int64)
    targets[(probs[rows, targets] < 0) | ~spoken] = -1
    return targets


def _generator(seed: int) -> np.random.Generator:
    """A stream of its own: an engine trained with the same seed must not draw the numbers that planted."""
    return np.random.default_rng([seed, PLANTING_STREAM])


def _num_to_plant(given_labels: NDArray[np.integer], rate: float, num_candidates: int) -> int:
    if not 0.0 < rate < 1.0:
        raise AuditFailedError(f"the planted rate is {rate}; it must lie between 0 and 1, for example 0.1.")
    count = max(1, round(rate * int(np.count_nonzero(given_labels != UNLABELED))))
    if count > num_candidates:
        raise AuditFailedError(
            f"{plural(count, 'error')} to plant but only {plural(num_candidates, 'label')} may be changed; "
            f"lower the rate."
        )
    return count


def _replace(
    given_labels: NDArray[np.integer],
    chosen: NDArray[np.int64],
    targets: NDArray[np.int64],
    is_measured: NDArray[np.bool_],
    kind: str,
) -> Planted:
    labels = np.array(given_labels, dtype=np.int64)
    mask = np.zeros(len(labels), dtype=bool)
    labels[chosen] = targets
    mask[chosen] = True
    return Planted(labels, mask, is_measured, kind)
