"""R(t): inside (0, 1], 1 at the start where the space says so, and equal to the printed formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.papers.s2e_rivals import from_unit_cube
from engines.coteaching.schedules import MIN_KEEP_RATE, S2E_SPACE, basis_curve, coteaching_keep_rate

T = 200.0


def test_keep_rates__ten_thousand_draws_stay_in_range() -> None:
    space, rng = S2E_SPACE, np.random.default_rng(0)
    t = np.array([0.0, 1.0, 5.0, 50.0, 199.0, 200.0])
    for u in rng.random((10_000, space.size)):
        rates = space.at(from_unit_cube(space, u), t, T)
        assert rates[0] == pytest.approx(1.0, abs=1e-9)
        assert rates.min() >= MIN_KEEP_RATE
        assert rates.max() <= 1.0  # also false for NaN


def test_keep_rates__wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="'paper' takes 20 numbers, got 2"):
        S2E_SPACE.keep_rates(np.array([0.5, 0.5]), 5)


def test_keep_rates__proxy_runs_through_the_same_curve() -> None:
    x = np.linspace(0.1, 0.9, 20)
    full, proxy = S2E_SPACE.keep_rates(x, 100), S2E_SPACE.keep_rates(x, 10, horizon=100)
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
    rate = S2E_SPACE.at(np.array(weights + a * 4), np.array([t]), T)
    assert rate[0] == pytest.approx(expected, rel=1e-12)


def test_paper_space__each_h_has_its_own_numbers() -> None:
    x = np.full(20, 0.25)
    changed = x.copy()
    changed[4 + 4 * 2 + 1] = 0.9  # a2 of h3
    t = np.array([30.0])
    space = S2E_SPACE
    gap = basis_curve(changed[12:16], t, T, 2) - basis_curve(x[12:16], t, T, 2)
    assert space.at(changed, t, T) - space.at(x, t, T) == pytest.approx(0.25 * gap)


def test_coteaching_keep_rate__equation_4() -> None:
    rates = coteaching_keep_rate(np.array([0.0, 5.0, 10.0, 50.0]), noise_rate=0.4, ramp_epochs=10)
    np.testing.assert_allclose(rates, [1.0, 0.8, 0.6, 0.6])


def test_from_unit_cube__simplex_part_is_uniform_on_the_simplex() -> None:
    space, rng = S2E_SPACE, np.random.default_rng(1)
    x = np.array([from_unit_cube(space, u) for u in rng.random((4000, 20))])
    np.testing.assert_allclose(x[:, :4].sum(axis=1), 1.0)
    # Dirichlet(1,1,1,1): mean 1/4, variance 3/80.
    np.testing.assert_allclose(x[:, :4].mean(axis=0), 0.25, atol=0.015)
    np.testing.assert_allclose(x[:, :4].var(axis=0), 3 / 80, atol=0.005)
