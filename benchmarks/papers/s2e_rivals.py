"""What S2E is compared with in its paper's tables: other spaces of R(t), and rules with loops of their own.

The spaces of the ablation (Eq. 4 with free numbers, one h alone, radial basis functions, a small network), plain
and natural gradients in place of Newton's step, Optuna's TPE and CMA-ES over the unit cube, Hyperband, which
stops bad trainings early, and ASNG, where one pair of networks serves all schedules and theta moves between epochs.
No audit uses them.

Sources: S2E (Yao et al. 2020); Li et al., "Hyperband", 2018 (its brackets with eta = 2.5 as in S2E's comparison,
which is why Optuna's pruner, integer eta only, is not used); Akimoto et al., "Adaptive Stochastic Natural Gradient
Method for One-Shot Neural Architecture Search", 2019.
[assumption] The paper does not print the priors of the RBF and MLP spaces' weights: standard normal here.

Letters: D numbers of x, P numbers of theta, K schedules at once, E epochs, T horizon of a schedule in epochs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri

try:
    import optuna
except ModuleNotFoundError as error:
    raise SystemExit("S2E's rivals need the package optuna: pip install 'label-auditor[search]'.") from error

from engines.coteaching.s2e import RULES as ENGINE_RULES
from engines.coteaching.s2e import (
    Relaxation,
    Trial,
    draw,
    estimate_gradient,
    move_theta,
    standardize_losses,
)
from engines.coteaching.schedules import PARAMETER_FLOOR, S2E_SPACE, FloatArray, ScheduleSpace, basis_curve

HYPERBAND_ETA = 2.5

# --- spaces -----------------------------------------------------------------------------------------------


def _co_space(x: FloatArray, t: FloatArray, horizon: float) -> FloatArray:
    """Eq. (4) with tau ~ U(0, 1), t_k ~ U(0, T), c ~ U(0, 2)."""
    return 1.0 - x[0] * np.minimum((t / (x[1] * horizon)) ** (2.0 * x[2]), 1.0)


def _single_space(x: FloatArray, t: FloatArray, horizon: float) -> FloatArray:
    """One h_i alone; the first number says which."""
    return basis_curve(x[1:], t, horizon, min(int(4 * x[0]), 3))


def _rbf_space(x: FloatArray, t: FloatArray, horizon: float) -> FloatArray:
    """sigmoid(sum_4 v_j exp(-(t/T - mu_j)^2 / (2 s_j^2)) + v_0), v ~ N(0, 1), mu ~ U(0, 1), s ~ U(0, .5)."""
    weights, bias, centres, widths = ndtri(x[:4]), ndtri(x[4]), x[5:9], 0.5 * x[9:13]
    bumps = np.exp(-((t[:, None] / horizon - centres) ** 2) / (2.0 * widths**2))  # (E, 4)
    return expit(bumps @ weights + bias)


def _mlp_space(x: FloatArray, t: FloatArray, horizon: float) -> FloatArray:
    """1 -> 4 ReLU -> sigmoid with standard normal weights."""
    v = ndtri(x)
    hidden = np.maximum((t / horizon)[:, None] * v[:4] + v[4:8], 0.0)  # (E, 4)
    return expit(hidden @ v[8:12] + v[12])


def _numbered(prefix: str, count: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{i + 1}" for i in range(count))


SPACES = {
    space.name: space
    for space in (
        S2E_SPACE,
        ScheduleSpace("co", ("noise_rate", "ramp", "exponent"), _co_space),
        ScheduleSpace("single", ("which", "a1", "a2", "a3", "a4"), _single_space),
        ScheduleSpace("rbf", (*_numbered("v", 4), "v0", *_numbered("mu", 4), *_numbered("s", 4)), _rbf_space),
        ScheduleSpace("mlp", _numbered("v", 13), _mlp_space),
    )
}
"""S2E's space and its rivals, by name."""


# --- gradients --------------------------------------------------------------------------------------------

GRADIENT_STEPS = {"natural": 1.0, "gradient": 2.0}
"""delta by rule: the best of three tried each on the curve-fitting search of the tests (20 seeds)."""
RULES = (*ENGINE_RULES, *GRADIENT_STEPS)


@dataclass(frozen=True)
class SearchResult:
    """Where a search ended."""

    best: Trial
    trials: tuple[Trial, ...]
    iteration_means: tuple[float, ...]
    """Mean accuracy of each iteration's samples."""


def best(trials: Sequence[Trial]) -> Trial:
    """The most accurate trial; the first among equals."""
    return max(trials, key=lambda trial: trial.accuracy)


def search_schedule(
    space: ScheduleSpace,
    train: Callable[[FloatArray], float],
    *,
    rule: str,
    iterations: int,
    samples: int,
    seed: int,
) -> SearchResult:
    """Search by one of RULES: M ``iterations`` of K ``samples``, each trained under its x (D,)."""
    relaxation, trials = Relaxation.of(space), list[Trial]()
    theta = relaxation.uniform()
    for iteration in range(iterations):
        if rule in ENGINE_RULES:
            drawn = draw(space, trials, rule=rule, samples=samples, seed=seed)
        else:
            drawn = relaxation.sample(theta, samples, np.random.default_rng([seed, iteration]))
        accuracies = np.array([float(train(x)) for x in drawn])
        trials += [Trial(tuple(map(float, x)), float(a)) for x, a in zip(drawn, accuracies, strict=True)]
        if rule in GRADIENT_STEPS and accuracies.std() > 0.0:
            theta = move_theta(
                theta, gradient_step(rule, relaxation, theta, drawn, -accuracies), GRADIENT_STEPS[rule]
            )
    means = np.array([trial.accuracy for trial in trials]).reshape(iterations, samples).mean(axis=1)
    return SearchResult(best(trials), tuple(trials), tuple(means.tolist()))


def gradient_step(
    rule: str, relaxation: Relaxation, theta: FloatArray, x: FloatArray, losses: FloatArray
) -> FloatArray:
    """The step (P,) of ``gradient`` or ``natural`` from K samples x (K, D) with losses (K,); to be subtracted."""
    gradient = estimate_gradient(standardize_losses(losses), relaxation.scores(theta, x))
    return gradient if rule == "gradient" else natural_step(gradient, relaxation.log_density_hessian(theta))


def natural_step(gradient: FloatArray, log_hessian: FloatArray) -> FloatArray:
    """Fisher^{-1} g with the exact Fisher matrix, minus the Hessian of log p."""
    return np.asarray(np.linalg.solve(-log_hessian, gradient), dtype=np.float64)


# --- Optuna ----------------------------------------------------------------------------------------------

OPTUNA_RULES = ("tpe", "cmaes")


def from_unit_cube(space: ScheduleSpace, u: FloatArray) -> FloatArray:
    """Map independent uniforms u (D,) to x: the simplex part becomes uniform on the simplex."""
    x = np.clip(np.asarray(u, dtype=np.float64), PARAMETER_FLOOR, 1 - PARAMETER_FLOOR)
    if space.simplex_size:
        spacings = -np.log(x[: space.simplex_size])
        x = np.concatenate([spacings / spacings.sum(), x[space.simplex_size :]])
    return x


def search_with_optuna(
    space: ScheduleSpace,
    train: Callable[[FloatArray], float],
    *,
    rule: str,
    iterations: int,
    samples: int,
    seed: int,
) -> SearchResult:
    """Optuna's TPE (one training at a time) or CMA-ES (K at a time) over the unit cube; M K trainings in all."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    total, at_once = iterations * samples, 1 if rule == "tpe" else samples
    seed %= 2**32  # all that Optuna takes
    sampler: optuna.samplers.BaseSampler
    if rule == "tpe":
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=max(2, total // 4))
    else:
        sampler = optuna.samplers.CmaEsSampler(seed=seed, popsize=max(4, samples))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    cube: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in space.parameters
    }
    done: list[Trial] = []
    while len(done) < total:
        asked = [study.ask(cube) for _ in range(min(at_once, total - len(done)))]
        for one in asked:
            x = from_unit_cube(space, np.array([one.params[name] for name in space.parameters]))
            done.append(Trial(tuple(map(float, x)), float(train(x))))
            study.tell(one, done[-1].accuracy)
    parts = np.array_split([trial.accuracy for trial in done], iterations)
    return SearchResult(best(done), tuple(done), tuple(float(np.mean(part)) for part in parts))


# --- Hyperband --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HyperbandTrial:
    """One training, as long as its rung."""

    x: tuple[float, ...]
    epochs: int
    accuracy: float


def hyperband_brackets(max_epochs: int, eta: float = HYPERBAND_ETA) -> list[list[tuple[int, int]]]:
    """Brackets s = s_max .. 0 of rungs (trainings n_i, epochs r_i).

    n = ceil((s_max + 1) / (s + 1) eta^s), r = R eta^-s; rung i trains floor(n eta^-i) for r eta^i epochs and
    promotes the top floor(n_i / eta).
    """
    s_max = math.floor(math.log(max_epochs) / math.log(eta) + 1e-9)
    brackets = []
    for s in range(s_max, -1, -1):
        n = math.ceil((s_max + 1) / (s + 1) * eta**s - 1e-9)
        rungs = [
            (max(1, int(n / eta**i + 1e-9)), max(1, round(max_epochs * eta ** (i - s)))) for i in range(s + 1)
        ]
        brackets.append(rungs)
    return brackets


def _rung_cost(rungs: list[tuple[int, int]]) -> list[int]:
    """Epochs that each rung trains: promoted trainings go on, they do not start again."""
    before = [0, *(epochs for _, epochs in rungs[:-1])]
    return [count * (epochs - done) for (count, epochs), done in zip(rungs, before, strict=True)]


def plan_hyperband(trainings: int, epochs: int) -> list[list[tuple[int, int]]]:
    """As many brackets, round and round, as ``trainings`` of ``epochs`` pay; at least one training in full."""
    brackets = hyperband_brackets(epochs)
    left, plan = trainings * epochs, []
    for index in range(1000 * len(brackets)):
        bracket = brackets[index % len(brackets)]
        cost = sum(_rung_cost(bracket))
        if cost > left:
            break
        plan.append(bracket)
        left -= cost
    full = left // epochs
    return plan + ([[(full, epochs)]] if full else [])


def search_with_hyperband(
    space: ScheduleSpace,
    evaluate: Callable[[Sequence[FloatArray], int], list[float]],
    *,
    trainings: int,
    epochs: int,
    seed: int,
) -> list[HyperbandTrial]:
    """Hyperband at the price of ``trainings`` in full; every trial, in order.

    ``evaluate`` trains each x until ``epochs``, going on where an earlier rung stopped, and returns accuracies.
    """
    relaxation, trials = Relaxation.of(space), []
    for b, rungs in enumerate(plan_hyperband(trainings, epochs)):
        alive = list(relaxation.sample(relaxation.uniform(), rungs[0][0], np.random.default_rng([seed, b])))
        accuracies: list[float] = []
        for count, length in rungs:
            if accuracies:
                order = np.argsort(-np.asarray(accuracies), kind="stable")
                alive = [alive[i] for i in order[:count]]
            accuracies = evaluate(alive, length)
            trials += [
                HyperbandTrial(tuple(map(float, x)), length, accuracy)
                for x, accuracy in zip(alive, accuracies, strict=True)
            ]
    return trials


# --- ASNG: weight sharing ---------------------------------------------------------------------------------


class SharedWeightsRule:
    """ASNG: theta takes natural-gradient steps of adaptive length between epochs of shared networks.

    Each epoch draws K schedules; each trains a copy of the shared networks for that one epoch; the rule is
    told their accuracies. [assumption] The paper of S2E does not say how many or which copy goes on: K is
    the search's K and the most accurate copy becomes the shared one.
    """

    def __init__(self, space: ScheduleSpace, seed: int, step_size: float = 1.0) -> None:
        self.relaxation = Relaxation.of(space)
        self.theta = self.relaxation.uniform()
        self._seed = seed
        self._delta_start = self._delta = step_size
        self._accumulated: FloatArray = np.zeros(self.relaxation.size)
        self._gamma = 0.0

    def ask(self, epoch: int, count: int) -> FloatArray:
        """Draw x (K, D) for one epoch."""
        return self.relaxation.sample(self.theta, count, np.random.default_rng([self._seed, epoch]))

    def tell(self, x: FloatArray, accuracies: FloatArray) -> None:
        """Move theta and adapt the step: it grows while the natural gradients agree, shrinks when not."""
        if np.std(accuracies) == 0.0:
            return
        utilities = standardize_losses(-np.asarray(accuracies))
        gradient = estimate_gradient(utilities, self.relaxation.scores(self.theta, x))
        fisher = -self.relaxation.log_density_hessian(self.theta)
        step: FloatArray = natural_step(gradient, -fisher)
        root = np.linalg.cholesky(fisher).T  # |root step| is the length in the Fisher metric
        length = float(np.linalg.norm(root @ step)) + 1e-12
        self.theta = move_theta(self.theta, step / length, self._delta)
        rate = min(1.0, self._delta / math.sqrt(self.relaxation.size))
        self._accumulated = (1 - rate) * self._accumulated
        self._accumulated += math.sqrt(rate * (2 - rate)) * (root @ step) / length
        self._gamma = (1 - rate) ** 2 * self._gamma + rate * (2 - rate)
        signal = float(self._accumulated @ self._accumulated)
        self._delta *= math.exp(rate * (signal / 1.5 - self._gamma))
        self._delta = float(np.clip(self._delta, 0.01 * self._delta_start, self._delta_start))
