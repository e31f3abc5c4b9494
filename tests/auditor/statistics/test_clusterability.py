"""The share of wrong labels from samples that look alike."""

import numpy as np
import pytest

from auditor.statistics.clusterability import noise_share


def world(seed=0, *, rate=0.2, num=4_000, num_classes=6, strangers=0.0, pairs=False):
    """(given, neighbours, true) of samples whose two nearest show the same class, except a share of strangers."""
    rng = np.random.default_rng(seed)
    true = rng.integers(num_classes, size=num)
    shift = 1 if pairs else rng.integers(1, num_classes, size=num)
    given = np.where(rng.random(num) < rate, (true + shift) % num_classes, true)
    of_class = [np.flatnonzero(true == label) for label in range(num_classes)]
    near = np.stack([rng.choice(of_class[label], 2) for label in true])
    near = np.where(rng.random((num, 2)) < strangers, rng.integers(num, size=(num, 2)), near)
    return given, near, true


@pytest.mark.parametrize(
    ("rate", "pairs"), [(0.02, False), (0.2, False), (0.5, False), (0.2, True), (0.42, True)]
)
def test_noise_share__finds_the_rate_where_neighbours_show_the_same_class(rate, pairs):
    given, near, true = world(rate=rate, pairs=pairs)
    assert noise_share(given, near, 6) == pytest.approx((given != true).mean(), abs=0.02)


def test_noise_share__reads_high_where_neighbours_are_strangers_and_less_so_with_predictions():
    given, near, true = world(rate=0.1, strangers=0.2)
    high = noise_share(given, near, 6)
    assert high > 0.18
    assert noise_share(given, near, 6, predicted=true) == pytest.approx(0.1, abs=0.03)


def test_noise_share__unlabeled_samples_and_missing_neighbours_are_left_out():
    given, near, true = world()
    given = np.where(np.arange(len(given)) % 3 == 0, -1, given)
    near[::5, 1] = -1
    known = given >= 0
    assert noise_share(given, near, 6) == pytest.approx((given != true)[known].mean(), abs=0.03)


def test_noise_share__says_nothing_of_too_few_samples():
    given, near, _ = world()
    assert noise_share(given[:50], near[:50] % 50, 6) is None
    assert noise_share(given, near[:, :1], 6) is None
    assert noise_share(np.zeros_like(given), near, 1) is None


def test_noise_share__classes_of_a_few_samples_do_no_harm():
    given, near, true = world(num_classes=300, num=6_000)
    assert noise_share(given, near, 300) == pytest.approx((given != true).mean(), abs=0.06)
