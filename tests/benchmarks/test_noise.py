"""Every generator against its transition matrix, its exact counts and its formula of the effective rate."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.noise import (
    CIFAR10_MAP,
    CIFAR100_GROUPS,
    GENERATORS,
    MNIST_PERMUTATION,
    REQUIRED_CLASSES,
    make_noise,
)
from engines.contract import EngineInputError

NUM = 100_000
STANDARD_ERRORS = 4


def _classes(kind: str) -> int:
    return REQUIRED_CLASSES.get(kind, 10)


def _balanced(num: int, classes: int) -> np.ndarray:
    return np.random.default_rng(1).permutation(np.arange(num) % classes)


def _transition(kind: str, rate: float, classes: int, seed: int) -> np.ndarray:
    """T[i, j] = P(given = j | true = i) as the kind is defined: (K, K), rows sum to 1."""
    eye = np.eye(classes)
    if kind in ("sym_incl", "sym_incl_exact"):
        return (1 - rate) * eye + rate / classes
    if kind in ("sym_excl", "sym_excl_exact", "umn_within_class"):
        return (1 - rate) * eye + rate / (classes - 1) * (1 - eye)
    if kind == "one_way_binary":
        return np.array([[1 - rate, rate], [0.0, 1.0]])
    return (1 - rate) * eye + rate * _moved(kind, classes, seed)


def _moved(kind: str, classes: int, seed: int) -> np.ndarray:
    """Where a label of each class goes if it moves: (K, K)."""
    if kind in ("flip_one", "flip_two"):
        return _drawn_targets(kind, classes, seed)
    next_in_group = {label: group[(i + 1) % 5] for group in CIFAR100_GROUPS for i, label in enumerate(group)}
    target = {
        "pair": [(label + 1) % classes for label in range(classes)],
        "bias0": [0] * classes,
        "asym_cifar10": CIFAR10_MAP,
        "permute_map": MNIST_PERMUTATION,
        "asym_cifar100": [next_in_group[label] for label in sorted(next_in_group)],
    }
    return np.eye(classes)[list(target[kind])]


def _drawn_targets(kind: str, classes: int, seed: int) -> np.ndarray:
    """The targets that ``seed`` draws, read off labels which all move; every class has as many, never itself."""
    labels = _balanced(NUM, classes)
    noisy = make_noise(kind, labels, 1.0, seed, classes).labels
    moved = np.zeros((classes, classes))
    moved[labels, noisy] = 1.0
    num_targets = 1 if kind == "flip_one" else 2
    assert not moved.diagonal().any()
    assert (moved.sum(axis=1) == num_targets).all()
    return moved / num_targets


@pytest.mark.parametrize("kind", list(GENERATORS))
def test_make_noise__empirical_transition_matches(kind: str) -> None:
    classes, rate = _classes(kind), 0.3
    labels = _balanced(NUM, classes)
    noisy = make_noise(kind, labels, rate, seed=4, num_classes=classes)
    expected = _transition(kind, rate, classes, seed=4)
    np.testing.assert_allclose(expected.sum(axis=1), 1.0)
    counts = np.zeros((classes, classes))
    np.add.at(counts, (labels, noisy.labels), 1)
    each = counts.sum(axis=1, keepdims=True)
    # Two more counts of slack: the normal bound fails where a cell expects a handful.
    slack = STANDARD_ERRORS * np.sqrt(expected * (1 - expected) / each) + 2 / each
    assert (np.abs(counts / each - expected) <= slack).all()


@pytest.mark.parametrize("kind", list(GENERATORS))
def test_make_noise__rate_zero_is_the_identity(kind: str) -> None:
    labels = _balanced(500, _classes(kind))
    noisy = make_noise(kind, labels, 0.0, seed=0, num_classes=_classes(kind))
    np.testing.assert_array_equal(noisy.labels, labels)
    assert (noisy.effective_rate, noisy.mask.any()) == (0.0, False)


@pytest.mark.parametrize("kind", list(GENERATORS))
def test_make_noise__seeds_masks_inputs_and_missing_labels(kind: str) -> None:
    labels = _balanced(2000, _classes(kind))
    labels[::7] = -1
    before = labels.copy()
    one, again, other = (make_noise(kind, labels, 0.4, seed, _classes(kind)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.labels, again.labels)
    assert not np.array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(labels, before)
    assert (one.labels[::7] == -1).all()
    np.testing.assert_array_equal(one.mask, one.labels != labels)
    assert one.effective_rate == one.mask[labels >= 0].mean()
    assert one.nominal_rate == 0.4


@pytest.mark.parametrize("kind", ["sym_excl", "sym_excl_exact", "pair", "umn_within_class"])
def test_make_noise__rate_one_never_keeps_the_true_label(kind: str) -> None:
    assert make_noise(kind, _balanced(5000, 10), 1.0, seed=0).mask.all()


@pytest.mark.parametrize(
    ("kind", "classes", "nominal", "effective"),
    [
        ("sym_excl", 10, 0.2, 0.2),
        ("sym_incl", 10, 0.5, 0.45),
        ("sym_incl", 100, 0.8, 0.792),
        ("sym_incl", 8, 0.2, 0.175),
        ("sym_incl_exact", 10, 0.9, 0.81),
        ("pair", 10, 0.45, 0.45),
        ("asym_cifar10", 10, 0.4, 0.2),
        ("flip_two", 10, 0.3, 0.3),
        ("bias0", 10, 0.3, 0.27),
        ("one_way_binary", 2, 0.4, 0.2),
    ],
)
def test_make_noise__effective_rate(kind: str, classes: int, nominal: float, effective: float) -> None:
    noisy = make_noise(kind, _balanced(NUM, classes), nominal, seed=3, num_classes=classes)
    assert noisy.effective_rate == pytest.approx(effective, abs=STANDARD_ERRORS * 0.5 / np.sqrt(NUM))


def test_make_noise__exact_counts() -> None:
    labels = _balanced(1003, 10)
    assert make_noise("sym_excl_exact", labels, 0.29, 0).mask.sum() == 290  # floor(290.87)
    assert make_noise("sym_excl_exact", labels[:100], 0.29, 0).mask.sum() == 29  # not 28 by rounding
    zeros = make_noise("bias0", labels, 0.3, 0).labels == 0
    assert zeros.sum() >= 300


@pytest.mark.parametrize("kind", ["umn_within_class", "permute_map"])
def test_make_noise__exact_per_class(kind: str) -> None:
    labels = np.repeat(np.arange(10), [3, 10, 11, 25, 100, 7, 1, 50, 2, 9])
    noisy = make_noise(kind, labels, 0.3, seed=5)
    changed = [int(noisy.mask[labels == each].sum()) for each in range(10)]
    assert changed == [1, 3, 3, 8, 30, 2, 0, 15, 1, 3]  # round(0.3 n), halves up


def test_make_noise__asym_cifar10_moves_five_classes_only() -> None:
    labels = _balanced(20_000, 10)
    noisy = make_noise("asym_cifar10", labels, 0.5, seed=0)
    for each in (0, 1, 6, 7, 8):
        assert not noisy.mask[labels == each].any()
    targets = {int(each): set(noisy.labels[(labels == each) & noisy.mask]) for each in (2, 3, 4, 5, 9)}
    assert targets == {2: {0}, 3: {5}, 4: {7}, 5: {3}, 9: {1}}


def test_make_noise__asym_cifar100_stays_in_the_group() -> None:
    groups = np.empty(100, dtype=int)
    for number, group in enumerate(CIFAR100_GROUPS):
        groups[list(group)] = number
    assert sorted(each for group in CIFAR100_GROUPS for each in group) == list(range(100))
    labels = _balanced(10_000, 100)
    noisy = make_noise("asym_cifar100", labels, 1.0, seed=0)
    assert noisy.mask.all()
    np.testing.assert_array_equal(groups[noisy.labels], groups[labels])


def test_make_noise__two_classes_pair_is_symmetric() -> None:
    labels = _balanced(NUM, 2)
    pair, symmetric = (make_noise(kind, labels, 0.3, seed=8, num_classes=2) for kind in ("pair", "sym_excl"))
    assert abs(pair.effective_rate - symmetric.effective_rate) < 0.01


def test_make_noise__permutation_leaves_no_digit() -> None:
    assert sorted(MNIST_PERMUTATION) == list(range(10))
    assert all(target != source for source, target in enumerate(MNIST_PERMUTATION))


def test_make_noise__nothing_labeled() -> None:
    noisy = make_noise("sym_excl", np.full(5, -1), 0.5, seed=0, num_classes=10)
    assert (noisy.effective_rate, noisy.labels.tolist()) == (0.0, [-1] * 5)


@pytest.mark.parametrize(
    ("kind", "labels", "rate", "classes", "text"),
    [
        ("uniform", [0, 1], 0.2, 2, "there is no noise 'uniform'; choose one of sym_excl, "),
        ("pair", [0, 1], 1.2, 2, "the noise rate is 1.2, it must be 0 to 1"),
        ("pair", [0, 1], float("nan"), 2, "the noise rate is nan"),
        ("pair", [0, 3], 0.2, 3, r"labels\[1\] is 3, outside 0..2"),
        ("pair", [0, -2], 0.2, 3, r"labels\[1\] is -2, outside 0..2"),
        ("pair", [0, 0], 0.2, 1, "noise needs at least 2 classes, got 1"),
        ("permute_map", [0, 1], 0.2, 2, "noise 'permute_map' is for 10 classes, got 2"),
        ("flip_two", [0, 1], 0.2, 2, "noise 'flip_two' needs at least 3 classes, got 2"),
    ],
)
def test_make_noise__refusals(kind: str, labels: list[int], rate: float, classes: int, text: str) -> None:
    with pytest.raises(EngineInputError, match=text):
        make_noise(kind, np.array(labels), rate, 0, classes)
