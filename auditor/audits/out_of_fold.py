"""What a simple model says of labels that it did not learn from: cheap, and it cannot have memorised them.

Linear discriminant analysis with shrinkage in five folds, on the audit's own features where it has them, else on
thumbnails. It is no witness: on thumbnails it errs often. But however long the engines trained, its errors are its
own, so what it contradicts bounds the guess of the noise rate from above.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.statistics import UNLABELED, OutOfFold

MOST_ROWS = 4_000
"""Rows that are asked; more would say the same to within a per cent."""
SIDE = 12
"""Pixels of a thumbnail's side."""
MOST_COMPONENTS = 64
NUM_FOLDS = 5


def disagreement(
    inputs: NDArray[np.generic], given_labels: NDArray[np.integer], *, seed: int = 0
) -> OutOfFold | None:
    """Count on how many rows the model predicts another class; None where there are too few rows or one class.

    Args:
        inputs: (N, D) or (N, V, D) features, or (N, C, H, W) uint8 images; may be a memory map.
        given_labels: (N,) int in {-1, 0..K-1}; -1 is left out.
        seed: of the rows and folds.
    """
    generator = np.random.default_rng(seed)
    rows = generator.permutation(np.flatnonzero(given_labels != UNLABELED))[:MOST_ROWS]
    labels = np.asarray(given_labels)[rows]
    if len(rows) < 2 * NUM_FOLDS or len(np.unique(labels)) < 2:
        return None
    from sklearn.decomposition import PCA  # takes most of a second to import: only where it is used
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.model_selection import KFold

    order = np.argsort(rows)  # a memory map is read in its order
    rows, labels = rows[order], labels[order]
    table = np.stack([_vector(np.asarray(inputs[row])) for row in rows]).astype(np.float64)
    table = (table - table.mean(axis=0)) / (table.std(axis=0) + 1e-6)
    differ = 0
    for fit, judged in KFold(NUM_FOLDS, shuffle=True, random_state=seed).split(table):
        # A class of one row has no spread to learn.
        fit = fit[np.bincount(labels[fit])[labels[fit]] > 1]
        if len(np.unique(labels[fit])) < 2:
            differ += len(judged)
            continue
        num = min(MOST_COMPONENTS, len(fit) - 1, table.shape[1])
        reduce = PCA(num, random_state=seed).fit(table[fit])
        model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        model.fit(reduce.transform(table[fit]), labels[fit])
        differ += int((model.predict(reduce.transform(table[judged])) != labels[judged]).sum())
    return OutOfFold(differ, len(rows))


def _vector(one: NDArray[np.generic]) -> NDArray[np.float64]:
    """(D,) of one row: the mean of its views, or a thumbnail."""
    if one.ndim == 1:
        return one.astype(np.float64)
    if one.ndim == 2:
        return one.astype(np.float64).mean(axis=0)
    tall, wide = (max(1, size // SIDE) for size in one.shape[1:])
    high, broad = (size // step * step for size, step in zip(one.shape[1:], (tall, wide), strict=True))
    blocks = one[:, :high, :broad].astype(np.float64)
    blocks = blocks.reshape(len(one), high // tall, tall, broad // wide, wide)
    return np.asarray(blocks.mean(axis=(2, 4))).ravel()
