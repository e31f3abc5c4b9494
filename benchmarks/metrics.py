"""How well wrong labels are found and how honest probabilities are, on plain arrays with known truth.

Nothing here is used where the truth is unknown. Convention: ``is_wrong``
(N,) bool is the positive class and ``suspicion`` (N,) is high where a label looks wrong (``1 - trust``).
Rows where the suspicion is NaN (unlabeled) are left out.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Detection(NamedTuple):
    """Precision, recall and F1, each in [0, 1]."""

    precision: float
    recall: float
    f1: float


def auroc(is_wrong: ArrayLike, suspicion: ArrayLike) -> float:
    """Chance that a wrong label looks more suspicious than a right one, ties half: in [0, 1].

    NaN where one of the two kinds is missing. Constant suspicion gives 0.5.
    """
    wrong, score = _known(is_wrong, suspicion)
    num_wrong, num_right = int(wrong.sum()), int((~wrong).sum())
    if not num_wrong or not num_right:
        return float("nan")
    _, inverse, counts = np.unique(score, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2.0
    rank_sum = mean_rank[inverse][wrong].sum()
    return float((rank_sum - num_wrong * (num_wrong + 1) / 2.0) / (num_wrong * num_right))


def average_precision(is_wrong: ArrayLike, suspicion: ArrayLike) -> float:
    """Sum over thresholds of precision times the recall gained; tied scores are one threshold.

    NaN where no label is wrong.
    """
    wrong, score = _known(is_wrong, suspicion)
    if not wrong.any():
        return float("nan")
    found, flagged, _ = _curve(wrong, score)
    gained = np.diff(found, prepend=0)
    return float((gained * found / flagged).sum() / wrong.sum())


def precision_at_k(is_wrong: ArrayLike, suspicion: ArrayLike, k: int | None = None) -> float:
    """Share of wrong labels among the ``k`` most suspicious; ``k`` None is the true number of wrong ones.

    Ties at the cut count by their mean, so that the order of equal scores does not matter. NaN where k is 0.
    """
    wrong, score = _known(is_wrong, suspicion)
    k = min(int(wrong.sum()) if k is None else k, len(score))
    if k <= 0:
        return float("nan")
    cut = np.partition(score, len(score) - k)[len(score) - k]
    above, tied = score > cut, score == cut
    hits = wrong[above].sum() + wrong[tied].mean() * (k - above.sum())
    return float(hits / k)


def precision_recall_f1(is_wrong: ArrayLike, flagged: ArrayLike) -> Detection:
    """Precision TP/(TP+FP), recall TP/(TP+FN), F1 of the flags: (N,), (N,) bool. 0/0 is 0, with a warning."""
    wrong, flag = np.asarray(is_wrong, dtype=bool), np.asarray(flagged, dtype=bool)
    hits = float((wrong & flag).sum())
    precision = _ratio(hits, float(flag.sum()), "precision is 0/0 (nothing is flagged)")
    recall = _ratio(hits, float(wrong.sum()), "recall is 0/0 (no label is wrong)")
    total = precision + recall
    return Detection(precision, recall, 2 * precision * recall / total if total else 0.0)


def label_precision(is_wrong: ArrayLike, kept: ArrayLike) -> float:
    """Share of right labels among the kept: (N,), (N,) bool -> [0, 1]; an oracle has 1. NaN of nothing."""
    wrong, keep = np.asarray(is_wrong, dtype=bool), np.asarray(kept, dtype=bool)
    return float((~wrong[keep]).mean()) if keep.any() else float("nan")


def _known(is_wrong: ArrayLike, suspicion: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    wrong, score = np.asarray(is_wrong, dtype=bool), np.asarray(suspicion, dtype=np.float64)
    if wrong.shape != score.shape:
        raise ValueError(f"is_wrong is {wrong.shape} but suspicion is {score.shape}.")
    known = ~np.isnan(score)
    return wrong[known], score[known]


def _curve(
    wrong: NDArray[np.bool_], score: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """At each distinct score from the top: wrong ones found, samples flagged, the score itself."""
    order = np.argsort(-score, kind="stable")
    falling = score[order]
    last_of_ties = np.flatnonzero(np.append(falling[1:] != falling[:-1], True)).astype(np.int64)
    found = np.cumsum(wrong[order], dtype=np.int64)[last_of_ties]
    return found, last_of_ties + 1, falling[last_of_ties]


def _ratio(part: float, whole: float, warning: str) -> float:
    if whole == 0:
        warnings.warn(warning, stacklevel=3)
        return 0.0
    return part / whole
