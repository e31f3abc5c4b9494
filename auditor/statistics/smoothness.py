"""Does a witness say the same of things that look alike?

A network that learned the classes predicts the same class for samples that look alike, one that has memorised wrong
labels does not. Asked without truth, of each witness's own predictions and of each sample's nearest others
in feature space:

    smooth = 1 - H(neighbours) / H(everybody)

where H is the mean of -log p(the class predicted for a sample), p the mean prediction of its neighbours, or of all
samples. It is 1 where all neighbours are sure of the class, and 0 where they say no more of it than everybody does:
so it is for a constant prediction and for one at random. A network whose predicted classes have lost their meaning
(exchanged names) is as smooth as one that kept it; that shows in its agreement with the given labels.

Measured in features of a backbone (``benchmarks/results/backbones.md``). It orders witnesses well under structured
noise and on good features; on weak features it prefers networks that merge classes, and in features that were
themselves trained on the labels it flatters whoever follows them. So it never leads before verified rows say so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.statistics.witnesses import Witness

MOST_ROWS = 20_000
"""Samples that are asked at most, evenly spaced; their neighbours may be any."""
BLOCK = 2_048
LEAST_PROBABILITY = 1e-6


def smoothness(witness: Witness, neighbours: NDArray[np.integer]) -> float:
    """How far the nearest samples share a witness's predictions, beyond chance, in [0, 1].

    Args:
        witness: with ``pred_probs`` (N, K), array or memory map; samples without an opinion are left out.
        neighbours: (N, k) int, each sample's nearest others in feature space; -1 = there is none.
    """
    assert witness.pred_probs is not None
    num_rows, num_classes = witness.pred_probs.shape
    if num_classes < 2 or neighbours.shape[1] == 0:
        return 0.0
    rows = np.arange(0, num_rows, -(-num_rows // MOST_ROWS))
    near_log, base_counts, mean = 0.0, np.zeros(num_classes), np.zeros(num_classes)
    num_spoken = 0
    for start in range(0, len(rows), BLOCK):
        part = rows[start : start + BLOCK]
        own = np.array(witness.pred_probs[part], dtype=np.float32)
        near = np.asarray(neighbours[part])
        there = near >= 0
        others = np.array(witness.pred_probs[np.maximum(near, 0).ravel()], dtype=np.float32)
        others = others.reshape(*near.shape, num_classes)
        heard = there & np.isfinite(others).all(axis=2)
        spoken = np.isfinite(own).all(axis=1) & heard.any(axis=1)
        own, others, heard = own[spoken], others[spoken], heard[spoken]
        said = own.argmax(axis=1)
        of_said = np.take_along_axis(others, said[:, None, None], axis=2)[:, :, 0]
        shared = np.where(heard, of_said, 0.0).sum(axis=1) / heard.sum(axis=1)
        near_log -= float(np.log(np.maximum(shared, LEAST_PROBABILITY)).sum())
        base_counts += np.bincount(said, minlength=num_classes)
        mean += own.sum(axis=0)
        num_spoken += len(own)
    if not num_spoken:
        return 0.0
    by_chance = -float(base_counts @ np.log(np.maximum(mean / num_spoken, LEAST_PROBABILITY)))
    if by_chance <= num_spoken * 1e-3:  # one class for everything
        return 0.0
    return float(np.clip(1.0 - near_log / by_chance, 0.0, 1.0))
