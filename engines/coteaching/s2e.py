"""S2E's search for a keep-rate schedule: stochastic relaxation with a Newton step.

The schedule's numbers x are drawn from p_theta (Dirichlet and Betas). What is minimised is J(theta) =
E[fbar(x)], fbar being minus the validation accuracy of a training under R(x); gradient and Hessian come from
scores alone, so that the training stays a black box. Each estimate subtracts a baseline, without which it
depends on the offset of fbar. The search is handed the accuracies of trainings and knows no network.

Rules, at an equal price in trainings: ``newton`` is S2E; ``random`` draws from the uniform start. What the paper
compares with (plain and natural gradients, TPE, CMA-ES, Hyperband, ASNG) is in ``benchmarks/papers/s2e_rivals.py``.

Resuming, and training apart: what an iteration draws is a function of the seed and of the trials before it
(``draw``), so its K trainings need nothing of each other, and a killed search goes on from the trials that it has.

Source: Yao et al., "Searching to Exploit Memorization Effect in Learning with Noisy Labels", ICML 2020.
Departures: (13) uses minus (Eq. 8 of the paper prints plus, its Eq. 9 and proofs minus); |H| instead of H,
the floor on its eigenvalues, the cap on the step and the box of theta are safeguards. All K samples count and the
step is Newton's; the released code lets only the best sample speak and multiplies element by element.

Letters: D numbers of x, P numbers of theta, K samples of an iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import polygamma, psi

from engines.coteaching.schedules import PARAMETER_FLOOR, FloatArray, ScheduleSpace

RULES = ("newton", "random")
STEP_SIZE = 3.0
"""delta: the best of three tried on the curve-fitting search of the tests (20 seeds)."""

THETA_MIN, THETA_MAX = 1.0, 100.0
"""Box of theta: at least 1 keeps every density unimodal, and 1 is the uniform start."""

MAX_STEP_NORM = 5.0
EIGENVALUE_FLOOR = 1e-5


@dataclass(frozen=True)
class Trial:
    """One training of the search."""

    x: tuple[float, ...]
    accuracy: float
    """On the validation rows, in [0, 1]."""


def draw(space: ScheduleSpace, trials: Sequence[Trial], *, rule: str, samples: int, seed: int) -> FloatArray:
    """The x (K, D) of the next iteration by one of RULES; ``trials``: those of all iterations before, in order."""
    relaxation = Relaxation.of(space)
    theta = relaxation.uniform() if rule == "random" else theta_after(space, trials, samples=samples)
    return relaxation.sample(theta, samples, np.random.default_rng([seed, len(trials) // samples]))


def theta_after(space: ScheduleSpace, trials: Sequence[Trial], *, samples: int) -> FloatArray:
    """theta (P,) after whole iterations of K trials each, by Eq. (13)."""
    relaxation = Relaxation.of(space)
    theta = relaxation.uniform()
    for start in range(0, len(trials), samples):
        drawn = trials[start : start + samples]
        accuracies = np.array([trial.accuracy for trial in drawn])
        # One sample, or K equal ones, say nothing about a direction.
        if accuracies.std() > 0.0:
            utilities = standardize_losses(-accuracies)
            scores = relaxation.scores(theta, np.array([trial.x for trial in drawn]))
            hessian = estimate_hessian(utilities, scores, relaxation.log_density_hessian(theta))
            step = newton_step(estimate_gradient(utilities, scores), hessian)
            theta = move_theta(theta, step, STEP_SIZE)
    return theta


# --- the distribution of x: a Dirichlet and independent Betas ---------------------------------------------


@dataclass(frozen=True)
class Relaxation:
    """p_theta over the x of a space. theta = (c_1 .. c_S, a_1, b_1, a_2, b_2, ...)."""

    simplex_size: int
    num_betas: int

    @classmethod
    def of(cls, space: ScheduleSpace) -> Relaxation:
        """The relaxation that fits ``space``."""
        return cls(space.simplex_size, space.size - space.simplex_size)

    @property
    def size(self) -> int:
        """P."""
        return self.simplex_size + 2 * self.num_betas

    def uniform(self) -> FloatArray:
        """theta (P,) of the uniform distribution, the start of every search."""
        return np.ones(self.size)

    def sample(self, theta: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw x (K, D), kept PARAMETER_FLOOR inside (0, 1) so that scores stay finite."""
        concentration, alpha, beta = self._split(theta)
        parts = []
        if self.simplex_size:
            weights = np.clip(rng.dirichlet(concentration, size=count), PARAMETER_FLOOR, 1.0)
            parts.append(weights / weights.sum(axis=1, keepdims=True))
        if self.num_betas:
            draws = rng.beta(alpha, beta, size=(count, self.num_betas))
            parts.append(np.clip(draws, PARAMETER_FLOOR, 1 - PARAMETER_FLOOR))
        return np.concatenate(parts, axis=1)

    def mean(self, theta: FloatArray) -> FloatArray:
        """E[x] (D,)."""
        concentration, alpha, beta = self._split(theta)
        weights = concentration / concentration.sum() if self.simplex_size else concentration
        return np.concatenate([weights, alpha / (alpha + beta)])

    def scores(self, theta: FloatArray, x: FloatArray) -> FloatArray:
        """s(x) = grad_theta log p_theta(x), (K, D) -> (K, P); Eqs. (11), (12)."""
        concentration, alpha, beta = self._split(theta)
        weights, draws = x[:, : self.simplex_size], x[:, self.simplex_size :]
        simplex = np.log(weights) - psi(concentration) + psi(concentration.sum())
        both = psi(alpha + beta)
        d_alpha = np.log(draws) - psi(alpha) + both
        d_beta = np.log1p(-draws) - psi(beta) + both
        return np.concatenate([simplex, np.stack([d_alpha, d_beta], axis=2).reshape(len(x), -1)], axis=1)

    def log_density_hessian(self, theta: FloatArray) -> FloatArray:
        """grad^2_theta log p_theta(x), (P, P), independent of x; Eqs. (11), (12). Minus the Fisher matrix."""
        concentration, alpha, beta = self._split(theta)
        hessian = np.zeros((self.size, self.size))
        size = self.simplex_size
        if size:
            hessian[:size, :size] = polygamma(1, concentration.sum())
            hessian[range(size), range(size)] -= polygamma(1, concentration)
        both = polygamma(1, alpha + beta)
        i = size + 2 * np.arange(self.num_betas)
        hessian[i, i] = both - polygamma(1, alpha)
        hessian[i + 1, i + 1] = both - polygamma(1, beta)
        hessian[i, i + 1] = hessian[i + 1, i] = both
        return hessian

    def _split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        return (
            theta[: self.simplex_size],
            theta[self.simplex_size :: 2],
            theta[self.simplex_size + 1 :: 2],
        )


# --- estimates and steps ----------------------------------------------------------------------------------


def standardize_losses(losses: FloatArray) -> FloatArray:
    """Utilities u (K,): losses minus their mean (the baseline of (10)) over their standard deviation."""
    return (losses - losses.mean()) / (losses.std() + 1e-12)


def estimate_gradient(utilities: FloatArray, scores: FloatArray) -> FloatArray:
    """grad J = E[u s], Eq. (8): (K,), (K, P) -> (P,)."""
    return utilities @ scores / len(utilities)


def estimate_hessian(utilities: FloatArray, scores: FloatArray, log_hessian: FloatArray) -> FloatArray:
    """Hess J = E[u (grad^2 log p + s s^T)], Eq. (9): (K,), (K, P), (P, P) -> (P, P) symmetric."""
    outer = (scores * utilities[:, None]).T @ scores / len(utilities)
    hessian = outer + utilities.mean() * log_hessian
    return 0.5 * (hessian + hessian.T)


def newton_step(gradient: FloatArray, hessian: FloatArray) -> FloatArray:
    """|H|^{-1} g of Eq. (13), |H| = Q max(|Lambda|, floor) Q^T; a descent direction for every H."""
    eigenvalues, eigenvectors = np.linalg.eigh(hessian)
    size = np.abs(eigenvalues)
    size = np.maximum(size, EIGENVALUE_FLOOR * max(1.0, float(size.max())))
    return eigenvectors @ ((eigenvectors.T @ gradient) / size)


def move_theta(theta: FloatArray, step: FloatArray, step_size: float) -> FloatArray:
    """theta - delta step, Eq. (13), the move's norm capped and theta kept in its box."""
    move: FloatArray = step_size * step
    norm = float(np.linalg.norm(move))
    if norm > MAX_STEP_NORM:
        move = move * (MAX_STEP_NORM / norm)
    return np.clip(theta - move, THETA_MIN, THETA_MAX)
