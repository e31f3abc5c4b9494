"""Trust in each class of a set, beside planted errors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from numpy.typing import NDArray

from auditor.labels.sets import judging
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
    truth, given, probs = simulated(missing, extra, 6_000)
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


def test_judge__an_engine_that_misjudges_a_class_does_not_make_its_labels_wrong() -> None:
    truth, given, probs = simulated(0.1, 0.1, 3_000)
    odds = np.log(probs / (1 - probs))
    odds[:, 0] += 1.5
    found = judge(given, [1 / (1 + np.exp(-odds))])
    said = (1 - found.trust).mean(axis=0)
    assert said[0] == pytest.approx((given != truth)[:, 0].mean(), abs=0.03)


def test_judge__an_engine_that_knows_nothing_holds_no_label_for_wrong() -> None:
    rng = np.random.default_rng(2)
    given = (rng.random((300, 4)) < [0.9, 0.5, 0.2, 0.05]).astype(np.int8)
    found = judge(given, [rng.random(given.shape)])
    assert not (found.trust < 0.5).any()


def test_slope__is_the_gradient_and_its_determinant_that_of_the_whole_hessian() -> None:
    _, given, probs = simulated([0.15, 0.05, 0.1, 0.1], [0.05, 0.15, 0.1, 0.1], 400)
    odds = np.log(probs / (1 - probs))
    slope = judging._Slope(odds, given > 0, (0.5, 1.0))
    values = np.random.default_rng(3).normal(0, 0.05, 16) + np.array([1, 0, -2, -2, *[0] * 12])

    # The model, cell by cell.
    deviates = values[4:].reshape(4, 3)
    loss = ((values[0] - 1) ** 2 + values[1] ** 2 + (deviates**2).sum()) / 2
    for common in 1 / (1 + np.exp(-values[2:4])):
        loss -= 1.25 * np.log(1 - common) + 0.25 * np.log(common)
    for k in range(4):
        m, e = 1 / (1 + np.exp(-(values[2:4] + deviates[k, 1:])))
        for score, label in zip(odds[:, k], given[:, k], strict=True):
            q = 1 / (1 + np.exp(-(values[0] * score + values[1] + 0.5 * deviates[k, 0])))
            chance = q * (1 - m) + (1 - q) * e
            loss -= np.log(chance if label else 1 - chance)
    assert slope(values)[0] == pytest.approx(loss, rel=1e-9)

    for step in np.eye(16) * 1e-5:
        numeric = (slope(values + step)[0] - slope(values - step)[0]) / 2e-5
        assert slope(values)[1] @ step / 1e-5 == pytest.approx(numeric, rel=1e-4, abs=1e-3)
    best = scipy.optimize.minimize(slope, values, jac=True, method="L-BFGS-B").x
    hessian = np.array([(slope(best + step)[1] - slope(best - step)[1]) / 2e-4 for step in np.eye(16) * 1e-4])
    assert (np.linalg.eigvalsh(hessian) > judging.LEAST_CURVED).all()
    assert slope.log_determinant(best) == pytest.approx(np.linalg.slogdet(hessian)[1], abs=1e-3)
