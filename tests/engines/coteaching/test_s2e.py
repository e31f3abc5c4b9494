"""S2E's estimates against finite differences and quadrature, and its steps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from engines.coteaching.s2e import (
    EIGENVALUE_FLOOR,
    MAX_STEP_NORM,
    Relaxation,
    estimate_gradient,
    estimate_hessian,
    move_theta,
    newton_step,
    standardize_losses,
)
from engines.coteaching.schedules import S2E_SPACE, FloatArray

# --- scores ---


def log_density(relaxation: Relaxation, theta: FloatArray, x: FloatArray) -> float:
    size = relaxation.simplex_size
    total = float(stats.dirichlet.logpdf(x[:size], theta[:size])) if size else 0.0
    for j in range(relaxation.num_betas):
        total += stats.beta.logpdf(x[size + j], theta[size + 2 * j], theta[size + 2 * j + 1])
    return total


def test_scores__equal_finite_differences() -> None:
    relaxation = Relaxation(simplex_size=3, num_betas=2)
    theta = np.array([1.5, 2.0, 3.0, 1.2, 4.0, 2.5, 1.1])
    x = relaxation.sample(theta, 1, np.random.default_rng(0))[0]
    step = 1e-5
    expected = [
        (log_density(relaxation, theta + step * e, x) - log_density(relaxation, theta - step * e, x))
        / (2 * step)
        for e in np.eye(7)
    ]
    np.testing.assert_allclose(relaxation.scores(theta, x[None])[0], expected, rtol=1e-6, atol=1e-7)


def test_log_density_hessian__equals_finite_differences_of_the_score() -> None:
    relaxation = Relaxation(simplex_size=3, num_betas=2)
    theta = np.array([1.5, 2.0, 3.0, 1.2, 4.0, 2.5, 1.1])
    x = relaxation.sample(theta, 1, np.random.default_rng(0))
    step = 1e-5
    expected = [
        (relaxation.scores(theta + step * e, x)[0] - relaxation.scores(theta - step * e, x)[0]) / (2 * step)
        for e in np.eye(7)
    ]
    np.testing.assert_allclose(relaxation.log_density_hessian(theta), expected, rtol=1e-6, atol=1e-8)


def test_scores__mean_zero_and_covariance_minus_the_hessian() -> None:
    relaxation = Relaxation(simplex_size=4, num_betas=2)
    theta = np.array([2.0, 3.0, 2.5, 4.0, 2.0, 3.0, 3.0, 2.0])
    scores = relaxation.scores(theta, relaxation.sample(theta, 200_000, np.random.default_rng(1)))
    # 5 standard errors of the mean.
    assert np.abs(scores.mean(axis=0)).max() < 5 * scores.std(axis=0).max() / np.sqrt(200_000)
    np.testing.assert_allclose(np.cov(scores.T), -relaxation.log_density_hessian(theta), atol=0.02)


def test_sample__stays_inside_and_on_the_simplex() -> None:
    relaxation = Relaxation.of(S2E_SPACE)
    assert relaxation.size == 36
    x = relaxation.sample(relaxation.uniform(), 1000, np.random.default_rng(2))
    assert x.shape == (1000, 20)
    np.testing.assert_allclose(x[:, :4].sum(axis=1), 1.0)
    assert np.isfinite(relaxation.scores(relaxation.uniform(), x)).all()


def test_sample__keeps_a_beta_away_from_both_ends() -> None:
    """Under Beta(100, 1) one draw in 10,000 is above 1 - 1e-6: P(x < c) = c^100; Beta(1, 100) mirrors it."""
    relaxation = Relaxation(simplex_size=0, num_betas=2)
    x = relaxation.sample(np.array([100.0, 1.0, 1.0, 100.0]), 200_000, np.random.default_rng(0))
    assert x[:, 0].max() == 1 - 1e-6
    assert x[:, 1].min() == 1e-6


# --- estimates, of the toy objective fbar(x) = (x - 0.3)^2 + 0.1 sin 5x under Beta(2, 3) ---


def toy(x: FloatArray) -> FloatArray:
    return (x - 0.3) ** 2 + 0.1 * np.sin(5 * x)


def expected_toy(theta: FloatArray) -> float:
    value, _ = integrate.quad(lambda x: float(toy(x) * stats.beta.pdf(x, *theta)), 0, 1, epsabs=1e-12)
    return float(value)


def test_estimates__match_the_quadrature_with_and_without_offset() -> None:
    relaxation, theta, h = Relaxation(0, 1), np.array([2.0, 3.0]), 1e-3
    x = relaxation.sample(theta, 4_000_000, np.random.default_rng(3))
    scores, log_hessian = relaxation.scores(theta, x), relaxation.log_density_hessian(theta)
    losses = toy(x[:, 0])
    e = h * np.eye(2)
    gradient = [(expected_toy(theta + d) - expected_toy(theta - d)) / (2 * h) for d in e]
    hessian = [
        [
            (
                expected_toy(theta + d + c)
                - expected_toy(theta + d - c)
                - expected_toy(theta - d + c)
                + expected_toy(theta - d - c)
            )
            / (4 * h * h)
            for c in e
        ]
        for d in e
    ]
    np.testing.assert_allclose(gradient, [0.00812, -0.00836], atol=1e-5)
    for offset in (0.0, 1000.0):
        shifted = losses + offset
        centred = shifted - shifted.mean()
        np.testing.assert_allclose(estimate_gradient(centred, scores), gradient, atol=3e-4)
        np.testing.assert_allclose(estimate_hessian(centred, scores, log_hessian), hessian, atol=6e-4)


def test_standardize_losses__removes_offset_and_scale() -> None:
    losses = np.array([0.1, 0.4, 0.2])
    np.testing.assert_allclose(standardize_losses(losses), standardize_losses(7 * losses + 1000), atol=1e-9)
    np.testing.assert_array_equal(standardize_losses(np.array([0.3, 0.3])), [0.0, 0.0])


# --- steps ---


def test_newton_step__equals_newton_where_the_hessian_is_positive_definite() -> None:
    hessian, gradient = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -3.0])
    np.testing.assert_allclose(newton_step(gradient, hessian), np.linalg.solve(hessian, gradient))


def test_newton_step__is_a_descent_direction_for_any_symmetric_matrix() -> None:
    rng = np.random.default_rng(4)
    for _ in range(100):
        matrix, gradient = rng.normal(size=(6, 6)), rng.normal(size=6)
        assert gradient @ newton_step(gradient, matrix + matrix.T) >= 0


def test_newton_step__the_least_eigenvalue_is_a_share_of_the_largest() -> None:
    found = newton_step(np.array([1.0, 1.0]), np.diag([1e-9, 1e4]))
    np.testing.assert_allclose(found, [1 / (EIGENVALUE_FLOOR * 1e4), 1e-4])


def test_move_theta__goes_downhill_is_capped_and_boxed() -> None:
    theta = np.array([5.0, 5.0])
    np.testing.assert_allclose(move_theta(theta, np.array([1.0, -1.0]), 0.5), [4.5, 5.5])
    assert np.linalg.norm(move_theta(theta, np.array([0.0, -1e6]), 1.0) - theta) == pytest.approx(
        MAX_STEP_NORM
    )
    np.testing.assert_allclose(move_theta(np.array([1.0, 99.0]), np.array([3.0, -3.0]), 1.0), [1.0, 100.0])


def test_mean__is_that_of_many_draws() -> None:
    relaxation = Relaxation.of(S2E_SPACE)
    theta = np.linspace(1.0, 6.0, relaxation.size)
    drawn = relaxation.sample(theta, 40_000, np.random.default_rng(0))
    np.testing.assert_allclose(relaxation.mean(theta), drawn.mean(axis=0), atol=0.01)
