"""What an engine trains on, behind one protocol: N rows that batches are taken from by index.

Two forms: images (``loader.ImageStore``) and features of a frozen backbone (``FeatureRows``). An engine asks for a
batch, for the same rows moved at random, or for their test-time views, and never for what is behind them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.contract import EngineInputError
from engines.shared.loader import RESIDENT_SHARE, ImageStore, MeanStd, standardize

FEATURE_STATISTICS_SAMPLE = 65_536
"""Samples that the mean and deviation of features are taken from at most (evenly spaced, so always the same)."""

STATISTICS_VALUES = 2**20
"""Features turned to float64 at a time."""

FEATURES_SCORED = 2048
"""Samples of features scored at once."""


class Rows(Protocol):
    """N samples that batches are taken from by index (B,) int64 on the device. Never writes to its source."""

    num_samples: int
    """N."""
    shape: tuple[int, ...]
    """Of one sample as a network takes it: (C, H, W) of images, (D,) of features."""
    device: torch.device

    def __len__(self) -> int:
        """N."""

    @property
    def scoring_batch(self) -> int:
        """Samples scored at once."""

    def batch(self, index: Tensor) -> Tensor:
        """(B, *shape) float32 on the device, not moved and not standardised: the first view."""

    def resolve_augment(self, kind: str) -> str:
        """Return what ``kind`` of a config means for these rows, ``"auto"`` included."""

    def moved(self, index: Tensor, kind: str, generator: torch.Generator) -> Tensor:
        """``batch``, each sample moved by its own random amount, drawn on the device; ``kind`` is resolved."""

    def views(self, index: Tensor, num_views: int, mean_std: MeanStd | None) -> Iterator[Tensor]:
        """At most ``num_views`` test-time views (B, *shape), standardised where ``mean_std`` is given."""

    def mean_std(self) -> MeanStd:
        """Mean and deviation to standardise by: (C,) each of images, (D,) each of features."""


def open_rows(
    inputs: NDArray[Any], device: torch.device | str, *, resident: str = "auto", side: int | None = None
) -> Rows:
    """The rows of checked inputs: (N, C, H, W) uint8 images, reduced to ``side``, or (N, V, D) float features."""
    if inputs.ndim == 3:
        return FeatureRows(inputs, device, resident=resident)
    return ImageStore(inputs, device, resident=resident, side=side)


class FeatureRows:
    """N samples of V views with D features each. Never writes to the features.

    Memory: a memory map on the CPU is read where a batch asks for it and never as a whole, so the peak is one batch
    (B * D * 4 bytes) and 8 MB while ``mean_std`` is taken; an array stays as it is, without a copy. On CUDA the
    features lie on the device in their own dtype, N * V * D * 2 bytes as float16, where they fit. A million samples
    of 128 float16 features in one view are 256 MB on disk, and a run adds the scores, N * (2K + H) * 4 bytes for K
    classes and H = 256 hidden units: 1.1 GB at 10 classes. (The operating system keeps pages of the map in memory
    that it has to spare; they count as resident and are given back when others need them.)

    Args:
        features: (N, V, D) float16 or float32, the centre view first; an array or a memory map.
        device: where batches go.
        resident: ``"yes"``, ``"no"`` or ``"auto"``, as for images.
    """

    def __init__(
        self, features: NDArray[np.floating], device: torch.device | str, *, resident: str = "auto"
    ) -> None:
        self.num_samples, self.num_views, _ = features.shape
        self.shape: tuple[int, ...] = (features.shape[2],)
        self.device = torch.device(device)
        self.is_resident = resident == "yes" or (resident == "auto" and self._fits(features))
        self._features = features
        self._tensor: Tensor | None = None
        if self.is_resident and self.device.type == "cuda":
            self._tensor = torch.empty(features.shape, dtype=_torch_dtype(features), device=self.device)
            for rows in self._pieces(np.arange(self.num_samples)):
                self._tensor[rows[0] : rows[-1] + 1] = torch.from_numpy(np.array(features[rows])).to(
                    self.device
                )
        elif self.is_resident and isinstance(features, np.memmap):
            self._features = np.array(features)

    def __len__(self) -> int:
        return self.num_samples

    def _fits(self, features: NDArray[np.floating]) -> bool:
        if self.device.type != "cuda":
            return not isinstance(features, np.memmap)
        free, _ = torch.cuda.mem_get_info(self.device)
        free += torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return bool(features.nbytes <= RESIDENT_SHARE * free)

    def _pieces(self, rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """``rows`` in pieces of at most ``STATISTICS_VALUES`` features."""
        at_once = max(1, STATISTICS_VALUES // (self.num_views * self.shape[0]))
        for start in range(0, len(rows), at_once):
            yield rows[start : start + at_once]

    @property
    def scoring_batch(self) -> int:
        """Samples scored at once."""
        return FEATURES_SCORED

    def _take(self, index: Tensor, view: Tensor | int) -> Tensor:
        if self._tensor is not None:
            return self._tensor[index, view].float()
        chosen_views = view.cpu().numpy() if isinstance(view, Tensor) else view
        taken = torch.from_numpy(
            np.asarray(self._features[index.cpu().numpy(), chosen_views], dtype=np.float32)
        )
        return taken.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else taken

    def batch(self, index: Tensor) -> Tensor:
        """The first view of each sample at ``index`` (B,) int64: (B, D) float32 on the device."""
        return self._take(index, 0)

    def resolve_augment(self, kind: str) -> str:
        """``"view"`` for ``"auto"`` where there is more than one view, else ``"none"``.

        Raises:
            EngineInputError: ``kind`` moves the pixels of an image.
        """
        if kind not in ("auto", "none"):
            raise EngineInputError(
                f"augment {kind!r} moves the pixels of images and these are features; use 'auto' (a random view "
                "of each sample) or 'none'."
            )
        return "view" if kind == "auto" and self.num_views > 1 else "none"

    def moved(self, index: Tensor, kind: str, generator: torch.Generator) -> Tensor:
        """``"view"``: one of the V views of each sample, drawn on the device; ``"none"``: the first."""
        if kind == "none":
            return self.batch(index)
        size = (len(index),)
        view = torch.randint(self.num_views, size, generator=generator, device=index.device)
        return self._take(index, view)

    def views(self, index: Tensor, num_views: int, mean_std: MeanStd | None) -> Iterator[Tensor]:
        """The first ``num_views`` views, or all of them where there are fewer: (B, D) each."""
        for view in range(min(num_views, self.num_views)):
            values = self._take(index, view)
            yield values if mean_std is None else standardize(values, *mean_std)

    def mean_std(self) -> MeanStd:
        """Mean of each value over samples and views, and one deviation for all of them: (D,) float32 each.

        Directions keep their own spread: brought to the same deviation, those that are noise would weigh as much as
        those that tell classes apart. Taken from at most 65,536 evenly spaced samples, in float64 and in
        pieces of 8 MB.
        """
        step = -(-self.num_samples // FEATURE_STATISTICS_SAMPLE)
        chosen = np.arange(0, self.num_samples, step)
        count, (num_features,) = len(chosen) * self.num_views, self.shape
        total = np.zeros(num_features)
        for rows in self._pieces(chosen):
            total += self._features[rows].astype(np.float64).sum(axis=(0, 1))
        mean, squares = total / count, 0.0
        for rows in self._pieces(chosen):
            squares += float(np.square(self._features[rows].astype(np.float64) - mean).sum())
        deviation = np.sqrt(squares / (count * num_features)) or 1.0
        found = (mean, np.full(num_features, deviation))
        return tuple(torch.from_numpy(each.astype(np.float32)).to(self.device) for each in found)  # type: ignore[return-value]


def _torch_dtype(features: NDArray[np.floating]) -> torch.dtype:
    return torch.float16 if features.dtype == np.float16 else torch.float32
