"""S2E's search for a keep-rate schedule: stochastic relaxation with a Newton step, and its rivals.

The schedule's numbers x are drawn from p_theta (Dirichlet and Betas). What is minimised is J(theta) =
E[fbar(x)], fbar being minus the validation accuracy of a training under R(x); gradient and Hessian come from
scores alone, so that the training stays a black box. Each estimate subtracts a baseline, without which it
depends on the offset of fbar. The search is handed "train under these schedules for so many epochs" as a
callable and knows no network; what each rule does is in ``s2e_rules.py``.

Resuming: every rule is a deterministic function of its seed and of the values it was told, so a killed search
is run again with the recorded values answering first (``Ledger``) and ends where it would have ended.

Source: Yao et al., "Searching to Exploit Memorization Effect in Learning with Noisy Labels", ICML 2020.
Departures: (13) uses minus (Eq. 8 of the paper prints plus, its Eq. 9 and proofs minus); |H| instead of H,
the floor on its eigenvalues, the cap on the step and the box of theta are safeguards. All K samples count;
``elite`` and ``legacy_newton`` give what the released code does.

Letters: D numbers of x, P numbers of theta, K samples an iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import polygamma, psi

from engines.contract import EngineError
from engines.coteaching.schedules import PARAMETER_FLOOR, FloatArray, ScheduleSpace

THETA_MIN, THETA_MAX = 1.0, 100.0
"""Box of theta: at least 1 keeps every density unimodal, and 1 is the uniform start."""

MAX_STEP_NORM = 5.0
EIGENVALUE_FLOOR = 1e-5

Evaluate = Callable[[Sequence[FloatArray], int], Sequence[float]]
"""(schedules' numbers, epochs to train) -> validation accuracy of each, in [0, 1]."""


@dataclass(frozen=True)
class Trial:
    """One training of the search."""

    x: tuple[float, ...]
    epochs: int
    accuracy: float


class Ledger:
    """Asks for trainings and remembers the answers; recorded answers are given back first.

    Args:
        evaluate: trains what is not recorded.
        recorded: trials of the same search before it was interrupted, in order.
    """

    def __init__(self, evaluate: Evaluate, recorded: Sequence[Trial] = ()) -> None:
        self.trials: list[Trial] = []
        self._evaluate = evaluate
        self._recorded = list(recorded)

    def __call__(self, xs: Sequence[FloatArray], epochs: int) -> list[float]:
        """Accuracies of ``xs`` after ``epochs``.

        Raises:
            EngineError: the recorded trials belong to another search.
        """
        known = self._recorded[len(self.trials) : len(self.trials) + len(xs)]
        for trial, x in zip(known, xs, strict=False):
            if trial.epochs != epochs or trial.x != tuple(map(float, x)):
                raise EngineError(
                    f"trial {len(self.trials)} of the checkpoint belongs to another search; "
                    "start this run without the old checkpoint."
                )
        values = [trial.accuracy for trial in known]
        if len(values) < len(xs):
            values += [float(value) for value in self._evaluate(xs[len(values) :], epochs)]
        self.trials += [Trial(tuple(map(float, x)), epochs, v) for x, v in zip(xs, values, strict=True)]
        return values

    def best(self) -> Trial:
        """The most accurate of the longest trainings; the first among equals."""
        longest = max(trial.epochs for trial in self.trials)
        return max((t for t in self.trials if t.epochs == longest), key=lambda trial: trial.accuracy)


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


def estimate_from_elite(
    utilities: FloatArray, scores: FloatArray, log_hessian: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What the released code estimates: only the best of the K samples speaks, with weight 1/K.

    Its signs are turned from "maximise accuracy, add the step" to "minimise, subtract the step".
    """
    best, count = scores[int(np.argmin(utilities))], len(utilities)
    return -best / count, (np.outer(best, best) + log_hessian) / count


def newton_step(gradient: FloatArray, hessian: FloatArray) -> FloatArray:
    """|H|^{-1} g of Eq. (13), |H| = Q max(|Lambda|, floor) Q^T; a descent direction for every H."""
    eigenvalues, eigenvectors = np.linalg.eigh(hessian)
    size = np.abs(eigenvalues)
    size = np.maximum(size, EIGENVALUE_FLOOR * max(1.0, float(size.max())))
    return eigenvectors @ ((eigenvectors.T @ gradient) / size)


def legacy_newton_step(gradient: FloatArray, hessian: FloatArray) -> FloatArray:
    """The released code's step, not a Newton step: step_i = H^{-1}[i, 0] g_i, singular values floored."""
    left, singular, right = np.linalg.svd(hessian)
    inverse = right.T @ np.diag(1.0 / np.maximum(singular, EIGENVALUE_FLOOR)) @ left.T
    return inverse[:, 0] * gradient


def natural_step(gradient: FloatArray, log_hessian: FloatArray) -> FloatArray:
    """Fisher^{-1} g with the exact Fisher matrix, minus the Hessian of log p."""
    return np.asarray(np.linalg.solve(-log_hessian, gradient), dtype=np.float64)


def legacy_gradient_step(gradient: FloatArray) -> FloatArray:
    """The released code's "gradient": an all-ones matrix times g over (sum g)^2, one step for all."""
    total = float(gradient.sum())
    return np.full_like(gradient, 1.0 / total if total else 0.0)


def move_theta(theta: FloatArray, step: FloatArray, step_size: float) -> FloatArray:
    """theta - delta step, Eq. (13), the move's norm capped and theta kept in its box."""
    move: FloatArray = step_size * step
    norm = float(np.linalg.norm(move))
    if norm > MAX_STEP_NORM:
        move = move * (MAX_STEP_NORM / norm)
    return np.clip(theta - move, THETA_MIN, THETA_MAX)
