"""The one reduction of a backbone's features, between it and all that reads them.

Principal components of the set's own rows on one common scale. How many of them are kept is not set: those that
explain best the given labels that a noise model did not learn from.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from engines.noise_model.training import best_dimension
from engines.shared.components import principal_components

DIMENSIONS = (16, 32, 64, 128, 256)
"""Directions that are tried."""
EXPECTED = 64
"""Directions that an estimate reckons with: 16 or 32 are kept of 500 rows, 64 of 3,000, 64 or 128 of 25,000
(benchmarks/results/backbones.jsonl)."""
ROWS_AT_ONCE = 4_096
ROWS_TO_CHOOSE = 10_000
"""Labeled rows on which they are compared; a draw of more."""


def reduce_features(
    features: NDArray[np.floating], given_labels: NDArray[np.int64], num_classes: int, out: Path
) -> int:
    """Write the features' directions that are worth reading to ``out``, (N, V, d) float32 ``.npy``; returns d.

    Args:
        features: (N, V, D); a memory map is read in pieces.
        given_labels: (N,) int in {-1, 0..K-1}.
        num_classes: K.
        out: is replaced; whole once this returns.

    Raises:
        EngineInputError: no labels or one class, or fewer than five labeled rows.
    """
    components = principal_components(features, max(DIMENSIONS))
    rows = np.flatnonzero(given_labels >= 0)
    if len(rows) > ROWS_TO_CHOOSE:
        rows = np.sort(np.random.default_rng(0).permutation(rows)[:ROWS_TO_CHOOSE])
    parts = [
        components.of(features[rows[at : at + ROWS_AT_ONCE]]) for at in range(0, len(rows), ROWS_AT_ONCE)
    ]
    size = best_dimension(np.concatenate(parts), given_labels[rows], num_classes, DIMENSIONS)
    components = components.first(size)
    written = open_memmap(out, "w+", np.float32, (*features.shape[:2], size))
    for start in range(0, len(features), ROWS_AT_ONCE):
        written[start : start + ROWS_AT_ONCE] = components.of_views(features[start : start + ROWS_AT_ONCE])
    written.flush()
    return size
