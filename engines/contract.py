"""What every engine promises: arrays in, arrays out.

An engine is a function ``train(data, config, *, seed, device, on_epoch, checkpoint)`` that trains one
noise-robust method in full and says, for every sample, how far its given label can be trusted. This
module holds the types on both sides of that call. It knows no method, no file, no database and no screen,
and at this border everything is NumPy.

Letters: N samples, K classes, C x H x W image, V views of D features, E recorded epochs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
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
    """Held-out samples with labels: draws the accuracy curve, never trains and never selects anything.

    ``EvaluationSet(images, labels)`` or ``EvaluationSet(None, labels, features)``, as the training data.
    """

    images: NDArray[np.uint8] | None
    """(M, C, H, W) uint8."""
    labels: NDArray[np.int64]
    """(M,) int64 in 0..K-1."""
    features: NDArray[np.floating] | None = None
    """(M, V, D) float16 or float32; only the first view of each sample is read."""

    @property
    def inputs(self) -> NDArray[Any]:
        """The images or the features, whichever is given."""
        return _the_given("evaluation.", self.images, self.features)


class _Samples(ABC):
    """What data of every kind of label have: N inputs, of which a person confirmed some."""

    trusted: NDArray[np.bool_] | None

    @property
    @abstractmethod
    def inputs(self) -> NDArray[Any]:
        """Return what is trained on: (N, ...)."""

    @property
    def num_samples(self) -> int:
        """N."""
        return len(self.inputs)

    @property
    def trusted_mask(self) -> NDArray[np.bool_]:
        """(N,) bool, all False when nobody confirmed any label."""
        assert self.trusted is not None
        return self.trusted

    def _check_trusted(self) -> NDArray[np.bool_]:
        """Write out who is trusted.

        Raises:
            EngineInputError: the wrong shape or dtype.
        """
        if self.trusted is None:
            object.__setattr__(self, "trusted", np.zeros(self.num_samples, dtype=bool))
        trusted = self.trusted_mask
        if trusted.shape != (self.num_samples,) or trusted.dtype != np.bool_:
            raise EngineInputError(
                f"trusted must be ({self.num_samples},) bool, got {trusted.shape} {trusted.dtype}."
            )
        return trusted


@dataclass(frozen=True, eq=False)
class TrainingData(_Samples):
    """Images, or features of them, and their given labels, checked on construction. Nothing in it is ever changed.

    Exactly one form is given: ``TrainingData(images, labels, K)`` or ``TrainingData(None, labels, K,
    features=features)``. Features are read once in small pieces to find values that are not finite: a memory map
    larger than memory is fine (16 MB at a time).

    Raises:
        EngineInputError: a shape, dtype, label or feature is wrong; the text names the first offending row.
    """

    images: NDArray[np.uint8] | None
    """(N, C, H, W) uint8, C in {1, 3}; an array or a memory map, not normalised."""
    given_labels: NDArray[np.int64]
    """(N,) int64 in {-1, 0..K-1}; -1 means unlabeled."""
    num_classes: int
    """K, at least 1."""
    trusted: NDArray[np.bool_] | None = None
    """(N,) bool: a person confirmed this given label. ``None`` means nobody confirmed any."""
    evaluation: EvaluationSet | None = None
    features: NDArray[np.floating] | None = None
    """(N, V, D) float16 or float32: V views of each image as a frozen backbone sees them, the centre view first;
    an array or a memory map, not normalised."""
    trusted_weight: NDArray[np.float32] | None = None
    """(N,) positive: how many samples each trusted one stands for where they were not drawn alike; ``None`` = 1."""

    def __post_init__(self) -> None:
        num_samples = len(self.inputs)
        _check_inputs("", self.images, self.features)
        _check_labels("given_labels", self.given_labels, num_samples, self.num_classes, low=UNLABELED)
        trusted = self._check_trusted()
        weight = self.trusted_weight
        if weight is not None and (weight.shape != (num_samples,) or not (weight[trusted] > 0).all()):
            raise EngineInputError(
                f"trusted_weight must be ({num_samples},) and positive where trusted, got {weight.shape}."
            )
        without_label = np.flatnonzero(trusted & (self.given_labels == UNLABELED))
        if len(without_label):
            raise EngineInputError(
                f"trusted[{without_label[0]}] is set but that sample is unlabeled "
                f"({len(without_label)} such rows); a person can only confirm a label that is there."
            )
        if self.evaluation is not None:
            self._check_evaluation(self.evaluation)

    def _check_evaluation(self, evaluation: EvaluationSet) -> None:
        heldout = evaluation.inputs
        if (evaluation.images is None) != (self.images is None):
            form = "features" if self.images is None else "images"
            raise EngineInputError(f"training is on {form}; give the evaluation set as {form} too.")
        _check_inputs("evaluation.", evaluation.images, evaluation.features)
        if self.images is not None and heldout.shape[1:] != self.images.shape[1:]:
            raise EngineInputError(
                f"evaluation images are {heldout.shape[1:]} but the images are "
                f"{self.images.shape[1:]} (C, H, W); decode both at the same size."
            )
        if self.features is not None and heldout.shape[2] != self.features.shape[2]:
            raise EngineInputError(
                f"evaluation.features have {heldout.shape[2]} values a view but the features have "
                f"{self.features.shape[2]}; take both from the same backbone."
            )
        _check_labels("evaluation.labels", evaluation.labels, len(heldout), self.num_classes, low=0)

    @property
    def inputs(self) -> NDArray[Any]:
        """The images or the features, whichever is given: (N, ...)."""
        return _the_given("", self.images, self.features)

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """(N,) bool: the sample has a given label."""
        return self.given_labels != UNLABELED

    def require_labels(self) -> None:
        """Raise where there is nothing to learn from.

        Raises:
            EngineInputError: no sample is labeled, or one class only occurs.
        """
        present = np.unique(self.given_labels[self.labeled])
        if not len(present):
            raise EngineInputError("all given labels are missing (-1); an audit needs labels to judge.")
        if len(present) < 2:
            raise EngineInputError(
                f"only class {int(present[0])} occurs among the given labels; telling right from wrong "
                "needs at least 2 classes."
            )


IGNORED_PIXEL = 255
"""In a mask: the pixel has no class; it is not learned from and not judged."""


@dataclass(frozen=True, eq=False)
class MaskData(_Samples):
    """Images and a given class of every pixel, checked on construction. Nothing in it is ever changed.

    Raises:
        EngineInputError: a shape, dtype or class is wrong; the text names the first offending image.
    """

    images: NDArray[np.uint8]
    """(N, C, H, W) uint8, C in {1, 3}; an array or a memory map, not normalised."""
    masks: NDArray[np.uint8]
    """(N, H, W) uint8 in {0..K-1, 255}: what is trained on. An image of 255 alone is not trained on."""
    num_classes: int
    """K, 2 to 254."""
    judged: NDArray[np.uint8] | None = None
    """(N, H, W) the masks that are judged, where a person corrected some of those that are trained on."""
    trusted: NDArray[np.bool_] | None = None
    """(N,) bool: a person confirmed this mask. ``None`` means nobody confirmed any."""

    def __post_init__(self) -> None:
        _check_images("images", self.images)
        if not 2 <= self.num_classes < IGNORED_PIXEL:
            raise EngineInputError(f"num_classes is {self.num_classes}; masks need 2 to 254 classes.")
        num, _, height, width = self.images.shape
        for name, masks in (("masks", self.masks), ("judged", self.judged_masks)):
            if masks.shape != (num, height, width) or masks.dtype != np.uint8:
                raise EngineInputError(
                    f"{name} must be {(num, height, width)} uint8, got {masks.shape} {masks.dtype}."
                )
            for row in range(num):
                values = np.unique(masks[row])
                if ((values >= self.num_classes) & (values != IGNORED_PIXEL)).any():
                    raise EngineInputError(
                        f"{name}[{row}] holds the class {values[values < IGNORED_PIXEL].max()}, outside "
                        f"0..{self.num_classes - 1}; use 255 for a pixel without a class."
                    )
        self._check_trusted()

    @property
    def judged_masks(self) -> NDArray[np.uint8]:
        """(N, H, W) the masks that are judged."""
        return self.masks if self.judged is None else self.judged

    @property
    def inputs(self) -> NDArray[np.uint8]:
        """The images."""
        return self.images

    @property
    def given_labels(self) -> NDArray[np.uint8]:
        """The masks."""
        return self.masks

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """(N,) bool: some pixel has a class."""
        return np.array([bool((mask != IGNORED_PIXEL).any()) for mask in self.masks])

    def require_labels(self) -> None:
        """Raise where there is nothing to learn from.

        Raises:
            EngineInputError: fewer than four images have a mask, or all pixels are of one class.
        """
        labeled = np.flatnonzero(self.labeled)
        if len(labeled) < FEWEST_MASKS:
            raise EngineInputError(
                f"{len(labeled)} images have a mask; an audit of masks needs at least {FEWEST_MASKS}."
            )
        classes = {int(one) for row in labeled for one in np.unique(self.masks[row])} - {IGNORED_PIXEL}
        if len(classes) < 2:
            raise EngineInputError(
                f"only class {min(classes)} occurs in the masks; telling right from wrong needs two."
            )


FEWEST_MASKS = 4
FEWEST_NUMBERS = 10


@dataclass(frozen=True, eq=False)
class NumberData(_Samples):
    """Images, or features of them, and a given number of each, checked on construction. Nothing in it is changed.

    Exactly one form of input is given, as for ``TrainingData``.

    Raises:
        EngineInputError: a shape, dtype or value is wrong; the text names the first offending row.
    """

    images: NDArray[np.uint8] | None
    """(N, C, H, W) uint8, C in {1, 3}; an array or a memory map, not normalised."""
    numbers: NDArray[np.float64]
    """(N,) float64, finite, or NaN where there is none: what is trained on."""
    features: NDArray[np.floating] | None = None
    """(N, V, D) float16 or float32."""
    judged: NDArray[np.float64] | None = None
    """(N,) the numbers that are judged, where a person corrected some of those that are trained on."""
    trusted: NDArray[np.bool_] | None = None
    """(N,) bool: a person confirmed this number. ``None`` means nobody confirmed any."""

    def __post_init__(self) -> None:
        num = len(self.inputs)
        _check_inputs("", self.images, self.features)
        for name, values in (("numbers", self.numbers), ("judged", self.judged_numbers)):
            if values.shape != (num,) or values.dtype != np.float64:
                raise EngineInputError(f"{name} must be ({num},) float64, got {values.shape} {values.dtype}.")
            if np.isinf(values).any():
                row = int(np.flatnonzero(np.isinf(values))[0])
                raise EngineInputError(
                    f"{name}[{row}] is {values[row]}; use NaN for a sample without a number."
                )
        self._check_trusted()

    @property
    def judged_numbers(self) -> NDArray[np.float64]:
        """(N,) the numbers that are judged."""
        return self.numbers if self.judged is None else self.judged

    @property
    def inputs(self) -> NDArray[Any]:
        """The images or the features, whichever is given."""
        return _the_given("", self.images, self.features)

    @property
    def given_labels(self) -> NDArray[np.float64]:
        """The numbers."""
        return self.numbers

    @property
    def num_classes(self) -> int:
        """One output: the number."""
        return 1

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """(N,) bool: the sample has a number to train on."""
        return np.isfinite(self.numbers)

    def require_labels(self) -> None:
        """Raise where there is nothing to learn from.

        Raises:
            EngineInputError: fewer than ten samples have a number, or all have the same.
        """
        known = self.numbers[self.labeled]
        if len(known) < FEWEST_NUMBERS:
            raise EngineInputError(
                f"{len(known)} samples have a number; an audit of numbers needs at least {FEWEST_NUMBERS}."
            )
        if known.min() == known.max():
            raise EngineInputError(
                f"every number is {known[0]:g}; telling right from wrong needs two different ones."
            )


@dataclass(frozen=True, eq=False)
class SetData(_Samples):
    """Features of images, and the classes given to each, checked on construction. Nothing in it is changed.

    Raises:
        EngineInputError: a shape, dtype or value is wrong; the text names the first offending row.
    """

    features: NDArray[np.floating]
    """(N, V, D) float16 or float32."""
    sets: NDArray[np.int8]
    """(N, K) int8: 1 where a class is given, 0 where not, -1 throughout where a sample has no label."""
    trusted: NDArray[np.bool_] | None = None
    """(N,) bool: a person confirmed this set. ``None`` means nobody confirmed any."""

    def __post_init__(self) -> None:
        _check_features("features", self.features)
        sets = self.sets
        if sets.ndim != 2 or len(sets) != len(self.features) or sets.dtype != np.int8:
            raise EngineInputError(
                f"sets must be ({len(self.features)}, K) int8, got {sets.shape} {sets.dtype}."
            )
        mixed = ~(np.isin(sets, (0, 1)).all(axis=1) | (sets == UNLABELED).all(axis=1))
        if mixed.any():
            row = int(np.flatnonzero(mixed)[0])
            raise EngineInputError(
                f"sets[{row}] holds more than 0 and 1; -1 throughout is a sample without a label."
            )
        self._check_trusted()

    @property
    def inputs(self) -> NDArray[Any]:
        """The features."""
        return self.features

    @property
    def given_labels(self) -> NDArray[np.int8]:
        """The sets."""
        return self.sets

    @property
    def num_classes(self) -> int:
        """K."""
        return int(self.sets.shape[1])

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """(N,) bool: the sample has a given set, which may be empty."""
        return (self.sets != UNLABELED).all(axis=1)

    def is_asked(self, label: int) -> bool:
        """Return whether a class is given to some samples, and not to others."""
        return len(np.unique(self.sets[self.labeled, label])) == 2

    def require_labels(self) -> None:
        """Raise where there is nothing to learn from.

        Raises:
            EngineInputError: no class is given to some samples and not to others.
        """
        if not any(self.is_asked(label) for label in range(self.num_classes)):
            raise EngineInputError(
                "no class is given to some samples and not to others; telling right from wrong needs one."
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
    features: NDArray[np.float16] | None = None
    """(N, V, D) float16: what the network saw early in training, for other engines to train on; None where the
    config did not ask for it."""

    def __post_init__(self) -> None:
        if len(self.pred_probs) != len(self.trust_score):
            raise EngineError(f"{len(self.pred_probs)} predictions but {len(self.trust_score)} trust scores.")


@dataclass(frozen=True, eq=False)
class MaskResult:
    """What an engine says about every pixel, images in input order."""

    predicted: NDArray[np.uint8]
    """(N, H, W) the likeliest class."""
    predicted_prob: NDArray[np.float16]
    """(N, H, W) its probability."""
    given_prob: NDArray[np.float16]
    """(N, H, W) probability of the judged mask's class; 1 where that has none."""
    embeddings: NDArray[np.float32]
    """(N, D) float32."""
    history: tuple[EpochRecord, ...]
    provenance: Provenance
    is_out_of_sample: bool
    """Each image was judged by a network that never saw its mask."""


@dataclass(frozen=True, eq=False)
class NumberResult:
    """What an engine says about every given number, rows in input order."""

    predicted: NDArray[np.float64]
    """(N,) what the number should be, in the unit of the given ones."""
    deviation: NDArray[np.float64]
    """(N,) standard deviation of the predicted mixture, above 0, in the same unit."""
    signals: Mapping[str, NDArray[np.float32]]
    """(N,) float32 each, high = looks right, NaN where there is no judged number: ``tail``, and a method's own."""
    embeddings: NDArray[np.float32]
    """(N, D) float32."""
    history: tuple[EpochRecord, ...]
    provenance: Provenance
    is_out_of_sample: bool
    """Each sample was judged by a network that never saw its number."""


@dataclass(frozen=True, eq=False)
class SetResult:
    """What an engine says about every class of every sample, rows in input order."""

    probs: NDArray[np.float32]
    """(N, K) P(class is shown | sample), whatever was given; rows sum to nothing in particular."""
    history: tuple[EpochRecord, ...]
    provenance: Provenance
    is_out_of_sample: bool
    """Each sample was judged by a model that never saw its set."""


@dataclass(frozen=True)
class SignalSpec:
    """One published signal: what it is called and what it does and does not say."""

    title: str
    """How a screen names it, for example ``"UMN uncertainty ε"``."""
    meaning: str
    """One sentence for people: what it says and what it does not."""
    high_means: str
    """``"suspect"``, ``"clean"``, or ``"neither"`` where measurements found no direction."""
    in_export: bool = False
    """The signal is a column of an exported table: the engine's name, an underscore, its own name."""


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


OnProbabilities = Callable[[NDArray[np.int64], NDArray[np.float32]], None]
"""Hears of the final pass: rows (B,) and their probabilities (B, K, H, W)."""


class TrainMasks(Protocol):
    """The call that an engine for masks answers."""

    def __call__(
        self,
        data: MaskData,
        config: Any,
        *,
        seed: int = 0,
        device: str = "auto",
        on_epoch: OnEpoch | None = None,
        checkpoint: Checkpoint | None = None,
        on_probabilities: OnProbabilities | None = None,
    ) -> MaskResult: ...


class TrainNumbers(Protocol):
    """The call that an engine for numbers answers."""

    def __call__(
        self,
        data: NumberData,
        config: Any,
        *,
        seed: int = 0,
        device: str = "auto",
        on_epoch: OnEpoch | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> NumberResult: ...


class TrainSets(Protocol):
    """The call that an engine for sets of classes answers."""

    def __call__(
        self,
        data: SetData,
        config: Any,
        *,
        seed: int = 0,
        device: str = "auto",
        on_epoch: OnEpoch | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> SetResult: ...


@dataclass(frozen=True)
class EngineSpec:
    """One row of the registry. ``train`` and ``config_type`` load the method, and so torch."""

    name: str
    """Also that of its package below ``engines``, whose module ``training`` holds ``train`` and the config."""
    title: str
    paper: str
    config: str
    """Class of the config: a frozen dataclass with ``preset(name)`` for ``quick``, ``standard``, ``paper``."""
    signals: Mapping[str, SignalSpec]
    needs_features: bool = False
    """Works in the feature space of a backbone only, never on images."""
    other_configs: Mapping[str, str] = field(default_factory=dict)
    """Class of the config by module, ``masks``, ``numbers`` or ``sets``, of what it takes besides class labels."""

    @property
    def train(self) -> Train:
        """The method."""
        train: Train = self._module().train
        return train

    @property
    def config_type(self) -> type[Any]:
        """The config's class."""
        found: type[Any] = getattr(self._module(), self.config)
        return found

    @property
    def train_masks(self) -> TrainMasks:
        """The method on masks, where it has one."""
        train: TrainMasks = self._module("masks").train
        return train

    @property
    def train_numbers(self) -> TrainNumbers:
        """The method on numbers, where it has one."""
        train: TrainNumbers = self._module("numbers").train
        return train

    @property
    def train_sets(self) -> TrainSets:
        """The method on sets of classes, where it has one."""
        train: TrainSets = self._module("sets").train
        return train

    def config_type_on(self, labels: str) -> type[Any]:
        """The config's class for ``masks``, ``numbers`` or ``sets``."""
        found: type[Any] = getattr(self._module(labels), self.other_configs[labels])
        return found

    def _module(self, name: str = "training") -> Any:
        return import_module(f"engines.{self.name}.{name}")


FINITE_CHECK_BYTES = 2**24
"""How much of the features is looked at at a time."""


def _the_given(
    prefix: str, images: NDArray[np.uint8] | None, features: NDArray[np.floating] | None
) -> NDArray[Any]:
    if images is not None and features is None:
        return images
    if features is not None and images is None:
        return features
    found = "neither" if images is None else "both"
    raise EngineInputError(f"give {prefix}images or {prefix}features, exactly one of the two; got {found}.")


def _check_inputs(
    prefix: str, images: NDArray[np.uint8] | None, features: NDArray[np.floating] | None
) -> None:
    if images is not None:
        _check_images(f"{prefix}images", images)
    if features is not None:
        _check_features(f"{prefix}features", features)


def _check_features(name: str, features: NDArray[np.floating]) -> None:
    if features.ndim != 3 or features.dtype not in (np.float16, np.float32):
        raise EngineInputError(
            f"{name} must be (N, V, D) float16 or float32, got {features.shape} {features.dtype}; "
            "one view is features[:, None, :]."
        )
    if 0 in features.shape:
        raise EngineInputError(f"{name} is empty {features.shape}; there is nothing to train on.")
    at_once = max(1, FINITE_CHECK_BYTES // (features[0].size * features.itemsize))
    for start in range(0, len(features), at_once):
        finite = np.isfinite(features[start : start + at_once])
        if not finite.all():
            row, view, column = np.argwhere(~finite)[0].tolist()
            value = features[start + row, view, column]
            raise EngineInputError(
                f"{name}[{start + row}] (view {view}, value {column}) is {value}; features must be finite: "
                "leave such a sample out or embed it again."
            )


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
