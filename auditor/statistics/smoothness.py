"""Does a witness say the same of things that look alike, and do the labels follow from it?

A network that learned the classes predicts the same class for samples that look alike, one that memorised wrong
labels does not. But one that merges two classes is smooth too. So two lengths are added, both in nats a sample,
both read from the mean prediction p of a sample's nearest others in feature space:

    what it says:    -log p(the class that it predicts for the sample)
    what was given:  -log sum_z p(z) T[z, given label]

with the T that makes the second shortest (expectation maximisation, as for any mixture of known parts). A network
that merges classes cannot say which of the two labels was given; one that fitted the errors says unlike things of
samples that look alike. The shorter the sum, the better the witness (two-part code, Rissanen 1978).

The features must know the classes as well as the witnesses do. Where a witness predicts given labels far more often
than the neighbours' labels agree with it (``Alike.beyond``), it memorised or sees more than the features show, and
neighbours cannot judge it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.statistics.witnesses import UNLABELED, Witness

MOST_ROWS = 20_000
"""Samples that are asked at most, evenly spaced; their neighbours may be any."""
MOST_CLASSES = 16
"""Classes of a neighbourhood's mean prediction that explain the given label, the likeliest."""
BLOCK = 2_048
STEPS = 30
"""Of expectation maximisation."""
LEAST_PROBABILITY = 1e-6


@dataclass(frozen=True)
class Alike:
    """What a sample's neighbours know of a witness's predictions and of the given labels."""

    nats: float
    """Both lengths together, not negative; shorter is better. Infinite where nothing could be asked."""
    beyond: float
    """In [-1, 1]: share of the samples whose given label the witness predicts, less the share of neighbours whose
    given label is what it predicts for the sample."""


def alike(witness: Witness, given_labels: NDArray[np.integer], neighbours: NDArray[np.integer]) -> Alike:
    """How well a witness's predictions follow from those for the nearest samples, and explain given labels.

    Args:
        witness: with ``pred_probs`` (N, K), array or memory map; samples without an opinion are left out.
        given_labels: (N,) int, -1 unlabeled; samples without a label are left out.
        neighbours: (N, k) int, each sample's nearest others in feature space; -1 = there is none.
    """
    assert witness.pred_probs is not None
    num_rows, num_classes = witness.pred_probs.shape
    if num_classes < 2 or neighbours.shape[1] == 0:
        return Alike(np.inf, 0.0)
    rows = np.arange(0, num_rows, -(-num_rows // MOST_ROWS))
    kept = min(MOST_CLASSES, num_classes)
    says_nats, num_fit, shares = 0.0, 0, 0.0
    classes, chances, labels = [], [], []
    for start in range(0, len(rows), BLOCK):
        part = rows[start : start + BLOCK]
        own = np.array(witness.pred_probs[part], dtype=np.float32)
        near, given = np.asarray(neighbours[part]), np.asarray(given_labels[part])
        at = np.maximum(near, 0)
        others = np.array(witness.pred_probs[at.ravel()], dtype=np.float32).reshape(*near.shape, num_classes)
        heard = (near >= 0) & np.isfinite(others).all(axis=2)
        asked = np.isfinite(own).all(axis=1) & heard.any(axis=1) & (given != UNLABELED)
        own, others, heard, given, at = own[asked], others[asked], heard[asked], given[asked], at[asked]
        said = own.argmax(axis=1)
        mean = np.where(heard[:, :, None], others, 0.0).sum(axis=1) / heard.sum(axis=1, keepdims=True)
        of_said = np.take_along_axis(mean, said[:, None], axis=1)
        says_nats -= float(np.log(np.maximum(of_said, LEAST_PROBABILITY)).sum())
        num_fit += int((said == given).sum())
        agree = (np.asarray(given_labels)[at] == said[:, None]) & heard
        shares += float((agree.sum(axis=1) / heard.sum(axis=1)).sum())
        likeliest = np.argpartition(-mean, kept - 1, axis=1)[:, :kept]
        classes.append(likeliest)
        chances.append(np.take_along_axis(mean, likeliest, axis=1))
        labels.append(given)
    given = np.concatenate(labels)
    if not len(given):
        return Alike(np.inf, 0.0)
    label_nats = _nats_of_labels(np.concatenate(classes), np.concatenate(chances), given, num_classes)
    return Alike(says_nats / len(given) + label_nats, (num_fit - shares) / len(given))


def _nats_of_labels(
    classes: NDArray[np.integer],
    chances: NDArray[np.floating],
    given: NDArray[np.integer],
    num_classes: int,
) -> float:
    """Mean -log sum_z p(z) T[z, given] by the T that makes it shortest.

    Args:
        classes: (n, c) the likeliest classes z.
        chances: (n, c) their p(z).
        given: (n,) labels, none unlabeled.
        num_classes: K.
    """
    chances = np.maximum(chances.astype(np.float64), LEAST_PROBABILITY)
    chances /= chances.sum(axis=1, keepdims=True)
    # Only pairs of a class and a label that occur have an entry of T: with many classes most never do.
    pairs, entry = np.unique(classes * num_classes + given[:, None], return_inverse=True)
    entry = entry.reshape(classes.shape)
    of_pair = pairs // num_classes
    transition = np.where(of_pair == pairs % num_classes, 0.9, 0.0) + 0.1 / num_classes
    for _ in range(STEPS):
        joint = chances * transition[entry]
        joint /= joint.sum(axis=1, keepdims=True)
        counts = np.bincount(entry.ravel(), weights=joint.ravel(), minlength=len(pairs))
        totals = np.bincount(of_pair, weights=counts, minlength=num_classes)
        transition = counts / np.maximum(totals[of_pair], 1e-300)
        transition = np.maximum(transition, LEAST_PROBABILITY / num_classes)
    return float(-np.log((chances * transition[entry]).sum(axis=1)).mean())
