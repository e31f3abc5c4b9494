"""Trust in each class of a set, beside planted errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.labels.sets.judging import judge


def simulated(
    missing: float | list[float], extra: float, num: int = 1_500, seed: int = 0
) -> tuple[NDArray[np.bool_], NDArray[np.int8], NDArray[np.float64]]:
    """(truth, given, probabilities) of ``num`` pictures and 4 classes; the probabilities are right on average."""
    rng = np.random.default_rng(seed)
    probs = 1 / (1 + np.exp(-rng.normal(-1, 3, (num, 4))))
    truth = rng.random(probs.shape) < probs
    chance = rng.random(probs.shape)
    given = np.where(truth, chance >= missing, chance < extra)
    return truth, given.astype(np.int8), probs


@pytest.mark.parametrize(("missing", "extra"), [(0.2, 0.0), (0.0, 0.1), (0.15, 0.05)])
def test_judge__trusts_as_often_as_labels_are_right(missing: float, extra: float) -> None:
    truth, given, probs = simulated(missing, extra)
    found = judge(given, [probs])
    right = given == truth
    assert np.mean(found.trust) == pytest.approx(right.mean(), abs=0.015)
    for low, high in ((0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
        within = (found.trust >= low) & (found.trust < high)
        assert right[within].mean() == pytest.approx(found.trust[within].mean(), abs=0.08)
    wrong_pictures = (~right).any(axis=1).mean()
    assert found.noise_rate.point == pytest.approx(wrong_pictures, abs=0.05)
    assert found.noise_rate.low < wrong_pictures < found.noise_rate.high


def test_judge__classes_whose_labels_are_missing_more_often_are_trusted_less() -> None:
    truth, given, probs = simulated([0.4, 0.4, 0.0, 0.0], 0.0)
    found = judge(given, [probs])
    doubted = found.trust < 0.5
    right = (given == truth)[doubted]
    assert right.mean() < 0.35
    assert doubted[:, :2].sum() > 10 * doubted[:, 2:].sum()


def test_judge__turns_suspects_round_and_lets_the_rest_be() -> None:
    truth, given, probs = simulated(0.1, 0.1, 300)
    given[:3] = -1
    found = judge(given, [probs])
    doubted = found.trust < 0.5
    assert np.isnan(found.trust[:3]).all()
    assert np.isnan(found.of_picture[:3]).all()
    assert (found.suggested[3:] == np.where(doubted, 1 - given, given)[3:]).all()
    assert (found.suggested[:3] == (found.shown[:3] > 0.5)).all()
    assert found.of_picture[5] == pytest.approx(found.trust[5].prod())
    assert (found.suggested[3:] == truth[3:]).mean() > (given[3:] == truth[3:]).mean()


def test_judge__does_not_depend_on_the_order_of_pictures() -> None:
    _, given, probs = simulated(0.1, 0.05, 200)
    turned = judge(given[::-1], [probs[::-1]])
    assert np.allclose(judge(given, [probs]).trust, turned.trust[::-1], atol=1e-6)


def test_judge__hears_two_engines_as_one() -> None:
    truth, given, probs = simulated(0.1, 0.05, 1_000)
    odds, rng = np.log(probs / (1 - probs)), np.random.default_rng(9)
    one, other = (1 / (1 + np.exp(-(odds + rng.normal(0, 3, odds.shape)))) for _ in range(2))
    gaps = []
    for heard in ([one], [other], [one, other]):
        trust = judge(given, heard).trust
        gaps.append(trust[given == truth].mean() - trust[given != truth].mean())
    assert gaps[2] > 1.2 * max(gaps[:2])
