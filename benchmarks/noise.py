"""Synthetic label noise: every generator of the four papers, seeded, with nominal and effective rate.

The same nominal rate means different things: ``sym_excl`` draws among the *other* classes, ``sym_incl``
among all of them, so that 50 % of the one is 45 % of the other at ten classes. A result therefore says both:
the nominal rate that was asked for and the effective rate, the share of labels that are really wrong.

Letters: N samples, K classes. Labels are (N,) int64 in {-1, 0..K-1}; -1 passes through every generator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.contract import UNLABELED, EngineInputError

Labels = NDArray[np.int64]

CIFAR10_MAP = (0, 1, 0, 5, 7, 3, 6, 7, 8, 1)
"""Truck to automobile, bird to airplane, deer to horse, cat and dog trade places; the rest stay."""

MNIST_PERMUTATION = (7, 9, 0, 4, 2, 1, 3, 5, 6, 8)
"""ChoiceNet's fixed permutation of the digits; no digit stays."""

CIFAR100_GROUPS = (
    (4, 30, 55, 72, 95),
    (1, 32, 67, 73, 91),
    (54, 62, 70, 82, 92),
    (9, 10, 16, 28, 61),
    (0, 51, 53, 57, 83),
    (22, 39, 40, 86, 87),
    (5, 20, 25, 84, 94),
    (6, 7, 14, 18, 24),
    (3, 42, 43, 88, 97),
    (12, 17, 37, 68, 76),
    (23, 33, 49, 60, 71),
    (15, 19, 21, 31, 38),
    (34, 63, 64, 66, 75),
    (26, 45, 77, 79, 99),
    (2, 11, 35, 46, 98),
    (27, 29, 44, 78, 93),
    (36, 50, 65, 74, 80),
    (47, 52, 56, 59, 96),
    (8, 13, 48, 58, 90),
    (41, 69, 81, 85, 89),
)
"""CIFAR-100's twenty super-classes of five classes each, by class number."""

REQUIRED_CLASSES = {"asym_cifar10": 10, "permute_map": 10, "asym_cifar100": 100, "one_way_binary": 2}


@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """Labels after corruption, and what was changed."""

    labels: Labels
    """(N,) int64, -1 where the input was."""
    mask: NDArray[np.bool_]
    """(N,) bool: the label differs from the input."""
    nominal_rate: float
    """The rate that was asked for."""
    effective_rate: float
    """Share of the labeled samples whose label differs, in [0, 1]; 0 where nothing is labeled."""


def make_noise(
    kind: str, labels: Labels, rate: float, seed: int, num_classes: int | None = None
) -> NoisyLabels:
    """Corrupt ``labels`` by the generator called ``kind`` (a key of ``GENERATORS``); the input stays.

    ``num_classes`` defaults to the largest label plus one. A rate of 0 is the identity for every kind.

    Raises:
        EngineInputError: unknown kind, rate outside [0, 1], labels outside the classes, or a kind that needs
            another number of classes.
    """
    labels = np.asarray(labels, dtype=np.int64)
    labeled = labels != UNLABELED
    if num_classes is None:
        num_classes = max(2, int(labels.max(initial=0)) + 1)
    _check(kind, labels, rate, num_classes)
    rng = np.random.default_rng(seed)
    noisy = labels.copy()
    if rate > 0 and labeled.any():
        noisy[labeled] = GENERATORS[kind](labels[labeled], rate, num_classes, rng)
    mask = noisy != labels
    return NoisyLabels(noisy, mask, rate, float(mask[labeled].mean()) if labeled.any() else 0.0)


def _check(kind: str, labels: Labels, rate: float, num_classes: int) -> None:
    if kind not in GENERATORS:
        raise EngineInputError(f"there is no noise {kind!r}; choose one of {', '.join(GENERATORS)}.")
    if not 0 <= rate <= 1:
        raise EngineInputError(f"the noise rate is {rate}, it must be 0 to 1.")
    required = REQUIRED_CLASSES.get(kind)
    if required is not None and num_classes != required:
        raise EngineInputError(f"noise {kind!r} is for {required} classes, got {num_classes}.")
    if num_classes < 2:
        raise EngineInputError(f"noise needs at least 2 classes, got {num_classes}.")
    if kind == "flip_two" and num_classes < 3:
        raise EngineInputError(f"noise 'flip_two' needs at least 3 classes, got {num_classes}.")
    outside = np.flatnonzero((labels < UNLABELED) | (labels >= num_classes))
    if len(outside):
        first = int(outside[0])
        raise EngineInputError(f"labels[{first}] is {int(labels[first])}, outside 0..{num_classes - 1}.")


# --- Generators: labels (N,) without -1, rate in (0, 1], K, generator -> labels (N,) ----------------------


def _sym_excl(labels: Labels, rate: float, num_classes: int, rng: np.random.Generator) -> Labels:
    """Each label with probability r becomes one of the other K-1."""
    return np.where(rng.random(len(labels)) < rate, _another(labels, num_classes, rng), labels)


def _sym_incl(labels: Labels, rate: float, num_classes: int, rng: np.random.Generator) -> Labels:
    """Each label with probability r is drawn anew among all K."""
    hit = rng.random(len(labels)) < rate
    return np.where(hit, rng.integers(num_classes, size=len(labels)), labels)


def _sym_incl_exact(labels: Labels, rate: float, num_classes: int, rng: np.random.Generator) -> Labels:
    """Exactly floor(rN) labels are drawn anew among all K."""
    noisy, rows = labels.copy(), _exact_rows(len(labels), rate, rng)
    noisy[rows] = rng.integers(num_classes, size=len(rows))
    return noisy


def _sym_excl_exact(labels: Labels, rate: float, num_classes: int, rng: np.random.Generator) -> Labels:
    """Exactly floor(rN) labels become one of the other K-1."""
    noisy, rows = labels.copy(), _exact_rows(len(labels), rate, rng)
    noisy[rows] = _another(labels[rows], num_classes, rng)
    return noisy


def _mapped(kind: str) -> Generator:
    """Each label with probability r goes where the map of ``kind`` sends it."""

    def generate(labels: Labels, rate: float, num_classes: int, rng: np.random.Generator) -> Labels:
        return np.where(rng.random(len(labels)) < rate, _target_map(kind, num_classes)[labels], labels)

    return generate


def _mapped_exact(kind: str) -> Generator:
    """Exactly floor(rN) labels, of all classes, go where the map of ``kind`` sends them."""

    def generate(labels: Labels, rate: float, num_classes: int, rng: np.random.Generator) -> Labels:
        noisy, rows = labels.copy(), _exact_rows(len(labels), rate, rng)
        noisy[rows] = _target_map(kind, num_classes)[labels[rows]]
        return noisy

    return generate


def _flip(num_targets: int) -> Generator:
    """Each label with probability r becomes one of its class's ``num_targets`` random other classes."""

    def generate(labels: Labels, rate: float, num_classes: int, rng: np.random.Generator) -> Labels:
        targets = _random_targets(num_classes, num_targets, rng)
        hit = rng.random(len(labels)) < rate
        column = rng.integers(num_targets, size=len(labels))
        return np.where(hit, targets[labels, column], labels)

    return generate


def _umn_within_class(labels: Labels, rate: float, num_classes: int, rng: np.random.Generator) -> Labels:
    """Within each class round(r n_c) labels become one of the other K-1."""
    noisy = labels.copy()
    for rows in _rows_by_class(labels, rate, rng):
        noisy[rows] = _another(labels[rows], num_classes, rng)
    return noisy


def _permute_map(labels: Labels, rate: float, num_classes: int, rng: np.random.Generator) -> Labels:
    """Within each class round(r n_c) labels go where the permutation sends them."""
    noisy, target = labels.copy(), _target_map("permute_map", num_classes)
    for rows in _rows_by_class(labels, rate, rng):
        noisy[rows] = target[labels[rows]]
    return noisy


def _one_way_binary(labels: Labels, rate: float, num_classes: int, rng: np.random.Generator) -> Labels:
    """round(r n_0) labels of class 0 become 1; class 1 stays."""
    del num_classes
    noisy, zeros = labels.copy(), rng.permutation(np.flatnonzero(labels == 0))
    noisy[zeros[: _rounded(rate * len(zeros))]] = 1
    return noisy


Generator = Callable[[Labels, float, int, np.random.Generator], Labels]

GENERATORS: dict[str, Generator] = {
    "sym_excl": _sym_excl,
    "sym_incl": _sym_incl,
    "sym_incl_exact": _sym_incl_exact,
    "sym_excl_exact": _sym_excl_exact,
    "pair": _mapped("pair"),
    "asym_cifar10": _mapped_exact("asym_cifar10"),
    "asym_cifar100": _mapped("asym_cifar100"),
    "flip_one": _flip(1),
    "flip_two": _flip(2),
    "umn_within_class": _umn_within_class,
    "permute_map": _permute_map,
    "bias0": _mapped_exact("bias0"),
    "one_way_binary": _one_way_binary,
}


def _target_map(kind: str, num_classes: int) -> Labels:
    """Where each class goes: (K,) int64."""
    if kind == "pair":
        return (np.arange(num_classes) + 1) % num_classes
    if kind == "bias0":
        return np.zeros(num_classes, dtype=np.int64)
    if kind == "asym_cifar10":
        return np.array(CIFAR10_MAP)
    if kind == "permute_map":
        return np.array(MNIST_PERMUTATION)
    target = np.empty(num_classes, dtype=np.int64)
    for group in CIFAR100_GROUPS:
        target[list(group)] = np.roll(group, -1)
    return target


def _random_targets(num_classes: int, num_targets: int, rng: np.random.Generator) -> Labels:
    """Different random other classes of each class: (K, num_targets)."""
    rows = [rng.choice(num_classes - 1, size=num_targets, replace=False) for _ in range(num_classes)]
    targets = np.array(rows, dtype=np.int64)
    return targets + (targets >= np.arange(num_classes)[:, None])


def _another(labels: Labels, num_classes: int, rng: np.random.Generator) -> Labels:
    """A uniform draw among the other K-1 classes for each label: (N,) -> (N,)."""
    return (labels + rng.integers(1, num_classes, size=len(labels))) % num_classes


def _exact_rows(num_samples: int, rate: float, rng: np.random.Generator) -> Labels:
    """floor(rN) random rows; 1e-9 keeps 0.29 * 100 at 29."""
    return rng.permutation(num_samples)[: int(rate * num_samples + 1e-9)]


def _rows_by_class(labels: Labels, rate: float, rng: np.random.Generator) -> list[Labels]:
    """round(r n_c) random rows of each class that occurs, class 0 first."""
    chosen = []
    for each in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == each))
        chosen.append(rows[: _rounded(rate * len(rows))])
    return chosen


def _rounded(count: float) -> int:
    """Nearest whole number, halves up (Python's round takes 2.5 to 2)."""
    return int(count + 0.5 + 1e-9)
