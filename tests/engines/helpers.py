"""Small real data for engine tests: scikit-learn's handwritten digits, with planted label errors."""

from __future__ import annotations

import weakref
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.noise import make_noise
from engines.contract import UNLABELED, EngineResult, EvaluationSet, TrainingData
from engines.shared.checkpoint import deserialize_state, serialize_state


@cache
def _digits() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    digits = load_digits()
    images = (digits.images * (255 / 16)).round().astype(np.uint8)[:, None]
    return images, digits.target.astype(np.int64)


def digits(num: int, *, side: int = 8, start: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """``num`` real digits from row ``start``: images (num, 1, side, side) uint8 (8, 16, ... px), labels."""
    images, labels = _digits()
    images = images[start : start + num].repeat(side // 8, axis=2).repeat(side // 8, axis=3)
    return images, labels[start : start + num].copy()


def digits_data(
    num: int = 200,
    *,
    side: int = 8,
    noise: str = "sym_excl_exact",
    noise_rate: float = 0.2,
    num_unlabeled: int = 0,
    num_trusted: int = 0,
    with_evaluation: bool = False,
    seed: int = 0,
) -> tuple[TrainingData, NDArray[np.bool_]]:
    """Digits with planted errors, and the mask of the wrong labels.

    The first ``num_unlabeled`` rows lose their label; the next ``num_trusted`` rows keep the true one.
    """
    images, true_labels = digits(num, side=side)
    noisy = make_noise(noise, true_labels, noise_rate, seed, 10)
    given, wrong = noisy.labels, noisy.mask.copy()
    trusted = np.zeros(num, dtype=bool)
    trusted[num_unlabeled : num_unlabeled + num_trusted] = True
    given[trusted], wrong[trusted] = true_labels[trusted], False
    given[:num_unlabeled], wrong[:num_unlabeled] = UNLABELED, False
    evaluation = EvaluationSet(*digits(100, side=side, start=1600)) if with_evaluation else None
    return TrainingData(images, given, 10, trusted, evaluation), wrong


def features_of(images: NDArray[np.uint8]) -> NDArray[np.float16]:
    """Three views of each image as features: its pixels, and those of the image moved right and left by one."""
    views = [np.roll(images, move, axis=3).reshape(len(images), -1) for move in (0, 1, -1)]
    return (np.stack(views, axis=1) / 255).astype(np.float16)


def on_features(data: TrainingData) -> TrainingData:
    """The same data with features instead of images."""
    assert data.images is not None
    heldout = data.evaluation
    if heldout is not None:
        assert heldout.images is not None
        heldout = EvaluationSet(None, heldout.labels, features_of(heldout.images))
    return TrainingData(
        None, data.given_labels, data.num_classes, data.trusted, heldout, features_of(data.images)
    )


class PeakMemory(TorchDispatchMode):
    """Inside, ``peak`` is the most bytes that tensors made inside have had at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.untyped_storage()._cdata not in self._sizes:
                storage = leaf.untyped_storage()
                self._sizes[storage._cdata] = storage.nbytes()
                self.now += storage.nbytes()
                self.peak = max(self.peak, self.now)
                weakref.finalize(storage, self._freed, storage._cdata)
        return result

    def _freed(self, key: int) -> None:
        self.now -= self._sizes.pop(key, 0)


def rank_correlation(one: EngineResult, other: EngineResult) -> float:
    """Spearman correlation of two results' trust over the rows where both are known."""
    known = np.isfinite(one.trust_score) & np.isfinite(other.trust_score)
    return float(spearmanr(one.trust_score[known], other.trust_score[known]).statistic)


class MemoryCheckpoint:
    """Keeps the last state in memory, serialized, so that training on does not change it."""

    def __init__(self) -> None:
        self.data: bytes | None = None
        self.num_saves = 0

    def load(self) -> dict[str, Any] | None:
        """The last saved state, or None."""
        return None if self.data is None else deserialize_state(self.data)

    def save(self, state: dict[str, Any]) -> None:
        """Keep ``state``."""
        self.data = serialize_state(state)
        self.num_saves += 1


class Kept:
    """A checkpoint in memory."""

    def __init__(self) -> None:
        self.state: dict[str, Any] | None = None

    def load(self) -> dict[str, Any] | None:
        return self.state

    def save(self, state: dict[str, Any]) -> None:
        self.state = deserialize_state(serialize_state(state))
