"""Principal components: the directions of a set's features in the order of their spread, on one common scale.

A backbone gives 1,280 numbers a picture, most of them noise on a few thousand pictures. On all of them, each
brought to the same deviation, engines memorise wrong labels; on the first 32 to 128 directions, which keep their
own spread, they find them (benchmarks/results/noise_model.md).
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

AXES_PRODUCTS = 3
"""Products of square matrices of D that finding the axes takes as long as (D = 2,560)."""
PROBE_SIZE = 512
ROWS_TO_FIT = 200_000
"""Rows that directions are taken from at most, evenly spaced."""
VALUES_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Components:
    """A linear map of features of D numbers to m directions."""

    mean: NDArray[np.float32]
    """(D,) taken off first."""
    axes: NDArray[np.float32]
    """(D, m) orthogonal columns, the direction of the largest spread first."""
    scale: float
    """What the result is divided by: its overall standard deviation where the map was made."""

    @property
    def num_directions(self) -> int:
        """m."""
        return int(self.axes.shape[1])

    @classmethod
    def of_columns(cls, num_features: int) -> Components:
        """Return the map that changes nothing."""
        return cls(np.zeros(num_features, np.float32), np.eye(num_features, dtype=np.float32), 1.0)

    def first(self, num_directions: int) -> Components:
        """Return the map to the first directions alone, on the same scale."""
        return Components(self.mean, self.axes[:, :num_directions], self.scale)

    def of(self, features: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return (n, m) float32 of features (n, D), or of the mean over the views of (n, V, D)."""
        if features.ndim == 2:
            return self._mapped(np.asarray(features, dtype=np.float32))
        found = np.empty((len(features), self.num_directions), dtype=np.float32)
        for rows in _pieces(*features.shape):
            found[rows] = self._mapped(np.asarray(features[rows], dtype=np.float32).mean(axis=1))
        return found

    def of_views(self, features: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return (n, V, m) float32 of features (n, V, D)."""
        return self._mapped(np.asarray(features, dtype=np.float32))

    def _mapped(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        found = ((rows - self.mean) @ self.axes).astype(np.float32, copy=False)
        found /= np.float32(self.scale)
        return found


def principal_components(features: NDArray[np.floating], most: int) -> Components:
    """Return the map to the first ``most`` principal components, or to all where there are fewer.

    Args:
        features: (N, D) or (N, V, D), finite; an array or a memory map, read in pieces of 16 MB. Above
            ``ROWS_TO_FIT`` rows evenly spaced ones tell the directions.
        most: at least 1.
    """
    from scipy.linalg import eigh  # takes a good part of a second to import: only where it is used

    table = features[:, None] if features.ndim == 2 else features
    num, views, size = table.shape
    rows = np.arange(0, num, -(-num // ROWS_TO_FIT))
    pieces = [rows[piece] for piece in _pieces(len(rows), views, size)]
    mean = sum(np.asarray(table[piece], np.float64).sum(axis=(0, 1)) for piece in pieces) / (
        len(rows) * views
    )
    scatter = np.zeros((size, size))
    for piece in pieces:
        centred = (np.asarray(table[piece], np.float64) - mean).reshape(-1, size)
        scatter += centred.T @ centred
    scatter /= len(rows) * views
    # No more directions than rows can have; one where all rows are alike.
    count = max(1, min(most, size, len(rows) * views - 1))
    spread, axes = eigh(scatter, subset_by_index=(size - count, size - 1))
    axes = axes[:, ::-1]
    # An axis and its opposite are the same direction: the largest entry decides, so that every machine takes one.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(count)])
    scale = float(np.sqrt(max(spread.clip(0).mean(), 0.0)))
    return Components(np.asarray(mean, np.float32), np.ascontiguousarray(axes, np.float32), scale or 1.0)


def seconds_of_components(num_rows: int, num_features: int) -> float:
    """Return how long ``principal_components`` of (num_rows, num_features) takes, by a product measured here."""
    rows = min(num_rows, ROWS_TO_FIT) + AXES_PRODUCTS * num_features
    return _product_seconds() * rows * num_features**2


@functools.lru_cache(maxsize=1)
def _product_seconds() -> float:
    """Seconds of one multiplication in a product of float64 matrices."""
    square = np.random.default_rng(0).random((PROBE_SIZE, PROBE_SIZE))
    square @ square
    began = time.perf_counter()
    for _ in range(3):
        square @ square
    return (time.perf_counter() - began) / 3 / PROBE_SIZE**3


def _pieces(num: int, views: int, size: int) -> list[slice]:
    step = max(1, VALUES_AT_ONCE // (views * size))
    return [slice(start, start + step) for start in range(0, num, step)]
