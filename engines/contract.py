"""What every engine promises: arrays in, arrays out.

An engine is a function ``train(data, config, *, seed, device, on_epoch, checkpoint)`` that trains one
noise-robust method in full and says, for every sample, how far its given label can be trusted. This
module holds the types on both sides of that call. It knows no method, no file, no database and no screen,
and at this border everything is NumPy.

Letters: N samples, K classes, C x H x W image, D embedding size, E recorded epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

UNLABELED = -1
"""The given label of a sample that has none."""

MAX_SNAPSHOTS = 50
"""Most epochs that a signal's history keeps; longer runs are thinned evenly."""


class EngineError(Exception):
    """Base of what an engine raises on purpose; its text is one line with the remedy."""


class EngineInputError(EngineError, ValueError):
    """The data or the config cannot be trained on; says what, where and what to do."""


class TrainingCancelled(EngineError):
    """Raised by ``on_epoch`` to stop a run; engines let it pass."""


class DeviceMemoryError(EngineError, MemoryError):
    """The device ran out of memory; the text names the smaller batch or the streamed images to try."""


@dataclass(frozen=True, eq=False)
class EvaluationSet:
    """Held-out images with labels: draws the accuracy curve, never trains and never selects anything."""

    images: NDArray[np.uint8]
    """(M, C, H, W) uint8."""
    labels: NDArray[np.int64]
    """(M,) int64 in 0..K-1."""


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Images and their given labels, checked on construction. Nothing in it is ever changed.

    Raises:
        EngineInputError: a shape, dtype or label is wrong; the text names the first offending row.
    """

    images: NDArray[np.uint8]
    """(N, C, H, W) uint8, C in {1, 3}; an array or a memory map, not normalised."""
    given_labels: NDArray[np.int64]
    """(N,) int64 in {-1, 0..K-1}; -1 means unlabeled."""
    num_classes: int
    """K, at least 1."""
    trusted: NDArray[np.bool_] | None = None
    """(N,) bool: a person confirmed this given label. ``None`` means nobody confirmed any."""
    evaluation: EvaluationSet | None = None

    def __post_init__(self) -> None:
        _check_images("images", self.images)
        _check_labels("given_labels", self.given_labels, len(self.images), self.num_classes, low=UNLABELED)
        if self.trusted is None:
            object.__setattr__(self, "trusted", np.zeros(len(self.images), dtype=bool))
        trusted = self.trusted_mask
        if trusted.shape != (len(self.images),) or trusted.dtype != np.bool_:
            raise EngineInputError(
                f"trusted must be ({len(self.images)},) bool, got {trusted.shape} {trusted.dtype}."
            )
        without_label = np.flatnonzero(trusted & (self.given_labels == UNLABELED))
        if len(without_label):
            raise EngineInputError(
                f"trusted[{without_label[0]}] is set but that sample is unlabeled "
                f"({len(without_label)} such rows); a person can only confirm a label that is there."
            )
        if self.evaluation is not None:
            _check_images("evaluation.images", self.evaluation.images)
            if self.evaluation.images.shape[1:] != self.images.shape[1:]:
                raise EngineInputError(
                    f"evaluation images are {self.evaluation.images.shape[1:]} but the images are "
                    f"{self.images.shape[1:]} (C, H, W); decode both at the same size."
                )
            _check_labels(
                "evaluation.labels",
                self.evaluation.labels,
                len(self.evaluation.images),
                self.num_classes,
                low=0,
            )

    @property
    def num_samples(self) -> int:
        """N."""
        return len(self.images)

    @property
    def trusted_mask(self) -> NDArray[np.bool_]:
        """(N,) bool, all False when nobody confirmed any label."""
        assert self.trusted is not None
        return self.trusted

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """(N,) bool: the sample has a given label."""
        return self.given_labels != UNLABELED

    def require_labels(self, *, min_classes: int = 2) -> None:
        """Raise where there is nothing to learn from.

        Raises:
            EngineInputError: no sample is labeled, or fewer than ``min_classes`` classes occur.
        """
        present = np.unique(self.given_labels[self.labeled])
        if not len(present):
            raise EngineInputError("all given labels are missing (-1); an audit needs labels to judge.")
        if len(present) < min_classes:
            raise EngineInputError(
                f"only class {int(present[0])} occurs among the given labels; telling right from wrong "
                f"needs at least {min_classes} classes."
            )


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of one stage, for curves, progress and the estimate of time left."""

    stage: str
    """Which part of the run: ``"train"``, ``"search"``, ``"fold 2"``, ..."""
    epoch: int
    """0-based within the stage."""
    num_epochs: int
    """Epochs planned for this stage."""
    progress: float
    """Share of the engine's whole work that is done, in (0, 1]."""
    seconds: float
    """Wall time of this epoch."""
    losses: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    """``train_accuracy`` on given labels, ``heldout_accuracy``, ``keep_rate`` (R(t)), ..., each in [0, 1]."""
    signals: Mapping[str, NDArray[np.float16]] = field(default_factory=dict)
    """(N,) float16 by name where this epoch was recorded into the signal history; else empty."""


@dataclass(frozen=True)
class Provenance:
    """What makes a run repeatable and its cost known."""

    engine: str
    config: Mapping[str, Any]
    """Every field of the config; ``config_type(**config)`` builds it again."""
    seed: int
    device: str
    versions: Mapping[str, str]
    seconds: float
    peak_memory_bytes: int
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What a method wants to show: the searched R(t), sizes of meta sets, warnings. Plain JSON values."""


@dataclass(frozen=True, eq=False)
class EngineResult:
    """What an engine says about every sample, rows in input order."""

    pred_probs: NDArray[np.float32]
    """(N, K) float32, rows sum to 1; from a final deterministic pass."""
    trust_score: NDArray[np.float32]
    """(N,) float32 in [0, 1], NaN where unlabeled.
    1 = the given label looks right, 0 = it looks wrong."""
    signals: Mapping[str, NDArray[np.float32]]
    """Published signals under their names and own orientation, (N,) float32 each, NaN where undefined."""
    signal_history: Mapping[str, NDArray[np.float16]]
    """The same by epoch, (E, N) float16, E <= MAX_SNAPSHOTS."""
    embeddings: NDArray[np.float32]
    """(N, D) float32."""
    history: tuple[EpochRecord, ...]
    provenance: Provenance
    is_out_of_sample: bool = False
    """True where each sample was judged by a model that never saw its given label."""

    def __post_init__(self) -> None:
        if len(self.pred_probs) != len(self.trust_score):
            raise EngineError(f"{len(self.pred_probs)} predictions but {len(self.trust_score)} trust scores.")


@dataclass(frozen=True)
class SignalSpec:
    """One published signal: what it is called and what it does and does not say."""

    title: str
    """How a screen names it, for example ``"UMN uncertainty ε"``."""
    meaning: str
    """One sentence for people: what it says and what it does not."""
    high_means: str
    """``"suspect"``, ``"clean"``, or ``"neither"`` where measurements found no direction."""
    published_high_means: str | None = None
    """How its paper reads it, ``"suspect"`` or ``"clean"``; None: as ``high_means``. Measures the paper's
    claim, and never turns what people see. Both open (None and ``"neither"``): the paper does not say."""

    @property
    def as_published(self) -> str:
        """How its paper reads a high value: ``"suspect"``, ``"clean"``, or ``"neither"`` where it does not say."""
        return self.published_high_means or self.high_means


class Checkpoint(Protocol):
    """Where a run keeps its state between epochs. State: dicts, lists, tensors, numbers and strings only."""

    def load(self) -> dict[str, Any] | None:
        """Return the last saved state, or None at a first start."""

    def save(self, state: dict[str, Any]) -> None:
        """Keep ``state``; either wholly or not at all."""


OnEpoch = Callable[[EpochRecord], None]


class Train(Protocol):
    """The call that every engine answers."""

    def __call__(
        self,
        data: TrainingData,
        config: Any,
        *,
        seed: int = 0,
        device: str = "auto",
        on_epoch: OnEpoch | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> EngineResult: ...


@dataclass(frozen=True)
class EngineSpec:
    """One row of the registry."""

    name: str
    title: str
    paper: str
    config_type: type[Any]
    """Frozen dataclass with ``preset(name)`` for ``quick``, ``standard`` and ``paper``."""
    train: Train
    signals: Mapping[str, SignalSpec]
    uses_trusted: bool


def _check_images(name: str, images: NDArray[np.uint8]) -> None:
    if images.ndim != 4 or images.dtype != np.uint8:
        raise EngineInputError(f"{name} must be (N, C, H, W) uint8, got {images.shape} {images.dtype}.")
    if images.shape[0] == 0:
        raise EngineInputError(f"{name} is empty; there is nothing to train on.")
    if images.shape[1] not in (1, 3):
        raise EngineInputError(f"{name} has {images.shape[1]} channels; decode to 1 (grey) or 3 (RGB).")


def _check_labels(name: str, labels: NDArray[np.int64], expected: int, num_classes: int, *, low: int) -> None:
    if labels.shape != (expected,) or labels.dtype != np.int64:
        raise EngineInputError(f"{name} must be ({expected},) int64, got {labels.shape} {labels.dtype}.")
    if num_classes < 1:
        raise EngineInputError(f"num_classes is {num_classes}; it must be at least 1.")
    outside = np.flatnonzero((labels < low) | (labels >= num_classes))
    if len(outside):
        first = int(outside[0])
        hint = "; use -1 for an unlabeled sample" if low == UNLABELED else ""
        raise EngineInputError(
            f"{name}[{first}] is {int(labels[first])}, outside 0..{num_classes - 1} "
            f"({len(outside)} such rows){hint}."
        )
