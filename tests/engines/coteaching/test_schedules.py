"""R(t): inside (0, 1], 1 at the start where the space says so, and equal to the printed formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.s2e_rivals import from_unit_cube
from engines.coteaching.schedules import MIN_KEEP_RATE, SPACES, basis_curve, coteaching_keep_rate

T = 200.0


@pytest.mark.parametrize("name", ["paper", "code"])
def test_keep_rates__ten_thousand_draws_stay_in_range(name: str) -> None:
    space, rng = SPACES[name], np.random.default_rng(0)
    t = np.array([0.0, 1.0, 5.0, 50.0, 199.0, 200.0])
    for u in rng.random((10_000, space.size)):
        rates = space.at(from_unit_cube(space, u), t, T)
        assert rates[0] == pytest.approx(1.0, abs=1e-9)
        assert rates.min() >= MIN_KEEP_RATE
        assert rates.max() <= 1.0  # also false for NaN


@pytest.mark.parametrize("name", sorted(SPACES))
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_keep_rates__any_corner_of_the_cube(name: str, data: st.DataObject) -> None:
    space = SPACES[name]
    number = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
    u = np.array(data.draw(st.lists(number, min_size=space.size, max_size=space.size)))
    rates = space.keep_rates(from_unit_cube(space, u), 7, horizon=200)
    assert rates.shape == (7,)
    assert np.isfinite(rates).all()
    assert (rates >= MIN_KEEP_RATE).all()
    assert (rates <= 1).all()
    assert rates[0] == pytest.approx(1.0, abs=1e-4)


def test_keep_rates__wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="'co' takes 3 numbers, got 2"):
        SPACES["co"].keep_rates(np.array([0.5, 0.5]), 5)


def test_keep_rates__proxy_runs_through_the_same_curve() -> None:
    x = np.array([0.4, 0.3, 0.5])
    full, proxy = SPACES["co"].keep_rates(x, 100), SPACES["co"].keep_rates(x, 10, horizon=100)
    np.testing.assert_allclose(proxy, full[::10])


def test_paper_space__equation_6_by_hand() -> None:
    weights, a, t = [0.1, 0.2, 0.3, 0.4], [0.5, 0.3, 0.2, 0.7], 50.0
    exponential, power = math.exp(-0.3 * 50**0.5), (1 + 0.3 * 50) ** -0.5
    linear, logarithmic = (50 / 200) ** 0.7, math.log(1 + 50**0.7) / math.log(1 + 200**0.7)
    expected = (
        0.1 * (exponential + 0.2 * linear)
        + 0.2 * (exponential + 0.2 * logarithmic)
        + 0.3 * (power + 0.2 * linear)
        + 0.4 * (power + 0.2 * logarithmic)
    )
    rate = SPACES["paper"].at(np.array(weights + a * 4), np.array([t]), T)
    assert rate[0] == pytest.approx(expected, rel=1e-12)


def test_paper_space__each_h_has_its_own_numbers() -> None:
    x = np.full(20, 0.25)
    changed = x.copy()
    changed[4 + 4 * 2 + 1] = 0.9  # a2 of h3
    t = np.array([30.0])
    space = SPACES["paper"]
    gap = basis_curve(changed[12:16], t, T, 2) - basis_curve(x[12:16], t, T, 2)
    assert space.at(changed, t, T) - space.at(x, t, T) == pytest.approx(0.25 * gap)


def test_code_space__equation_7_by_hand() -> None:
    w1, w2, a1, a2, a5, b1, b2, b3, b4, b5, a3, a4 = (
        0.6,
        0.3,
        0.5,
        0.4,
        0.2,
        0.1,
        0.3,
        0.05,
        0.02,
        0.4,
        1.5,
        0.5,
    )
    t = 20.0
    forget = w1 * (1 - math.exp(-b1 * t**a1)) + (1 - w1) * w2 * (1 - (1 + b2 * t) ** -a2)
    forget += (1 - w1) * (1 - w2) * (1 - math.log(1 + a5) / math.log(1 + a5 + b5 * t))
    forget -= b3 * (t / T) ** a3 + b4 * math.log(1 + t**a4) / math.log(1 + T**a4)
    x = [w1, w2, a1, a2, a5, b1 * 2, b2 * 2, b3 * 2, b4 * 2, b5 * 2, a3 / 2, a4 / 2]
    assert SPACES["code"].at(np.array(x), np.array([t]), T)[0] == pytest.approx(1 - forget, rel=1e-12)


def test_code_space__forget_rate_is_never_negative() -> None:
    # All growth, no decay: F would be negative, and the released code would count more than the batch.
    x = np.array([1.0, 0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 1.0, 1.0, 0.0, 0.5, 0.5])
    assert SPACES["code"].at(x, np.array([100.0]), T)[0] == 1.0


def test_coteaching_keep_rate__equation_4() -> None:
    rates = coteaching_keep_rate(np.array([0.0, 5.0, 10.0, 50.0]), noise_rate=0.4, ramp_epochs=10, exponent=2)
    np.testing.assert_allclose(rates, [1.0, 1 - 0.4 * 0.25, 0.6, 0.6])


def test_coteaching_keep_rate__legacy_ramp_jumps_at_its_end() -> None:
    t = np.array([0.0, 9.0, 10.0])
    rates = coteaching_keep_rate(t, noise_rate=0.4, ramp_epochs=10, exponent=2, legacy_ramp=True)
    np.testing.assert_allclose(rates, [1.0, 1 - 0.16, 0.6])
    linear = coteaching_keep_rate(t, noise_rate=0.4, ramp_epochs=10, legacy_ramp=True)
    np.testing.assert_allclose(linear, [1.0, 0.6, 0.6])


def test_from_unit_cube__simplex_part_is_uniform_on_the_simplex() -> None:
    space, rng = SPACES["paper"], np.random.default_rng(1)
    x = np.array([from_unit_cube(space, u) for u in rng.random((4000, 20))])
    np.testing.assert_allclose(x[:, :4].sum(axis=1), 1.0)
    # Dirichlet(1,1,1,1): mean 1/4, variance 3/80.
    np.testing.assert_allclose(x[:, :4].mean(axis=0), 0.25, atol=0.015)
    np.testing.assert_allclose(x[:, :4].var(axis=0), 3 / 80, atol=0.005)
