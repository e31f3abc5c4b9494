"""The one reduction of a backbone's features, between it and all that reads them.

Principal components of the set's own rows on one common scale. How many of them are kept is not set: those that
explain best the given labels that a noise model did not learn from.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from engines.noise_model.training import ROWS_TO_CHOOSE, NoiseModelConfig, best_dimension
from engines.shared.components import principal_components, seconds_of_components
from engines.shared.device import threads
from engines.shared.work import speed

DIMENSIONS = (16, 32, 64, 128, 256)
"""Directions that are tried."""
EXPECTED = 64
"""Directions that an estimate reckons with: 16 or 32 are kept of 500 rows, 64 of 3,000, 64 or 128 of 25,000
(benchmarks/results/backbones.jsonl)."""
ROWS_AT_ONCE = 4_096


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
    with threads(
        1
    ):  # a fit of so few rows hardly gains by a second; on a busy machine they wait for each other
        size = best_dimension(np.concatenate(parts), given_labels[rows], num_classes, DIMENSIONS)
    components = components.first(size)
    written = open_memmap(out, "w+", np.float32, (*features.shape[:2], size))
    for start in range(0, len(features), ROWS_AT_ONCE):
        written[start : start + ROWS_AT_ONCE] = components.of_views(features[start : start + ROWS_AT_ONCE])
    written.flush()
    return size


def seconds_of_reduction(num_rows: int, num_features: int, num_classes: int) -> float:
    """Return how long ``reduce_features`` takes on this machine, by probes of a moment."""
    cpu = torch.device("cpu")
    with threads(1):
        head = speed("auto", (min(EXPECTED, num_features),), num_classes, device=cpu, precision="float32")
    fits = NoiseModelConfig(rows_to_fit=ROWS_TO_CHOOSE).work(num_rows, num_classes, on_features=True)
    # Half the steps of as many fits as a noise model has.
    return seconds_of_components(num_rows, num_features) + head.seconds(fits) / 2
