"""The rules that decide which schedules S2E's search tries next, at an equal price: trainings.

``newton`` is S2E; ``natural`` and ``gradient`` share its estimates; ``random`` draws from the uniform start;
``tpe`` and ``cmaes`` are Optuna's samplers over the unit cube; ``hyperband`` stops bad trainings early. Each
is deterministic in its seed and in the accuracies it is told, which is what makes a search resumable.
``SharedWeightsRule`` is the relaxation without separate trainings (ASNG): one pair of networks serves all
schedules and theta moves between epochs.

Sources: S2E (see ``s2e.py``); Li et al., "Hyperband", 2018 (its brackets with eta = 2.5 as in S2E's
comparison, which is why Optuna's pruner, integer eta only, is not used); Akimoto et al., "Adaptive Stochastic
Natural Gradient Method for One-Shot Neural Architecture Search", 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import optuna

from engines.coteaching.s2e import (
    Ledger,
    Relaxation,
    Trial,
    estimate_from_elite,
    estimate_gradient,
    estimate_hessian,
    legacy_gradient_step,
    legacy_newton_step,
    move_theta,
    natural_step,
    newton_step,
    standardize_losses,
)
from engines.coteaching.schedules import FloatArray, ScheduleSpace

RELAXATION_RULES = ("newton", "natural", "gradient")
RULES = (*RELAXATION_RULES, "random", "tpe", "cmaes", "hyperband")
DEFAULT_STEP_SIZE = {"newton": 3.0, "natural": 1.0, "gradient": 2.0}
"""delta by rule: the best of three tried each on the curve-fitting search of the tests (20 seeds)."""
HYPERBAND_ETA = 2.5


@dataclass(frozen=True, kw_only=True)
class SearchBudget:
    """How much a search may train."""

    iterations: int
    """M: times that theta moves."""
    samples: int
    """K: schedules drawn each time."""
    epochs: int
    """Epochs of one training."""

    @property
    def trainings(self) -> int:
        """M K."""
        return self.iterations * self.samples

    @property
    def trained_epochs(self) -> int:
        """M K epochs: what Hyperband spends in pieces."""
        return self.trainings * self.epochs


@dataclass(frozen=True)
class SearchResult:
    """Where a search ended."""

    best: Trial
    trials: tuple[Trial, ...]
    theta: FloatArray | None = None
    """(P,) final parameters of the relaxation; None for rules without one."""
    iteration_means: tuple[float, ...] = field(default=())
    """Mean accuracy of each iteration's samples."""


def search_schedule(
    space: ScheduleSpace,
    ledger: Ledger,
    *,
    rule: str,
    budget: SearchBudget,
    seed: int,
    step_size: float | None = None,
    elite: bool = False,
    legacy_newton: bool = False,
) -> SearchResult:
    """Look for the schedule with the highest validation accuracy.

    Args:
        space: what is searched.
        ledger: trains and remembers.
        rule: one of RULES.
        budget: how much may be trained; every rule spends the same.
        seed: of the draws. Same seed and same accuracies give the same search.
        step_size: delta of Eq. (13); default by rule.
        elite: only the best of the K samples speaks, as in the released code.
        legacy_newton: the released code's element-wise step in place of Newton's.

    Raises:
        ValueError: the rule is unknown.
    """
    if rule in RELAXATION_RULES:
        delta = DEFAULT_STEP_SIZE[rule] if step_size is None else step_size
        theta, means = _relaxed(space, ledger, rule, budget, seed, delta, elite, legacy_newton)
        return SearchResult(ledger.best(), tuple(ledger.trials), theta, means)
    if rule == "random":
        means = _random(space, ledger, budget, seed)
    elif rule in ("tpe", "cmaes"):
        means = _optuna(space, ledger, rule, budget, seed)
    elif rule == "hyperband":
        means = _hyperband(space, ledger, budget, seed)
    else:
        raise ValueError(f"search rule {rule!r} is unknown; choose one of {', '.join(RULES)}.")
    return SearchResult(ledger.best(), tuple(ledger.trials), None, means)


def relaxation_step(
    rule: str,
    relaxation: Relaxation,
    theta: FloatArray,
    x: FloatArray,
    losses: FloatArray,
    *,
    elite: bool = False,
    legacy: bool = False,
) -> FloatArray:
    """The step (P,) that ``rule`` takes from K samples x (K, D) with losses (K,); to be subtracted."""
    utilities = standardize_losses(losses)
    scores = relaxation.scores(theta, x)
    log_hessian = relaxation.log_density_hessian(theta)
    gradient, hessian = (
        estimate_from_elite(utilities, scores, log_hessian)
        if elite
        else (estimate_gradient(utilities, scores), estimate_hessian(utilities, scores, log_hessian))
    )
    if rule == "newton":
        return (legacy_newton_step if legacy else newton_step)(gradient, hessian)
    if rule == "natural":
        return natural_step(gradient, log_hessian)
    return legacy_gradient_step(gradient) if legacy else gradient


def _relaxed(
    space: ScheduleSpace,
    ledger: Ledger,
    rule: str,
    budget: SearchBudget,
    seed: int,
    step_size: float,
    elite: bool,
    legacy: bool,
) -> tuple[FloatArray, tuple[float, ...]]:
    relaxation = Relaxation.of(space)
    theta, means = relaxation.uniform(), []
    for m in range(budget.iterations):
        # 1. Draw K schedules and train under each.
        x = relaxation.sample(theta, budget.samples, np.random.default_rng([seed, m]))
        accuracies = np.asarray(ledger(list(x), budget.epochs))
        means.append(float(accuracies.mean()))
        # 2. One sample, or K equal ones, say nothing about a direction.
        if accuracies.std() == 0.0:
            continue
        # 3. Move theta.
        step = relaxation_step(rule, relaxation, theta, x, -accuracies, elite=elite, legacy=legacy)
        theta = move_theta(theta, step, step_size)
    return theta, tuple(means)


def _random(space: ScheduleSpace, ledger: Ledger, budget: SearchBudget, seed: int) -> tuple[float, ...]:
    relaxation, means = Relaxation.of(space), []
    for m in range(budget.iterations):
        x = relaxation.sample(relaxation.uniform(), budget.samples, np.random.default_rng([seed, m]))
        means.append(float(np.mean(ledger(list(x), budget.epochs))))
    return tuple(means)


def _optuna(
    space: ScheduleSpace, ledger: Ledger, rule: str, budget: SearchBudget, seed: int
) -> tuple[float, ...]:
    """Optuna's TPE (one training at a time) or CMA-ES (a population of K) over the unit cube."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    at_once = 1 if rule == "tpe" else budget.samples
    seed %= 2**32  # all that Optuna takes
    sampler: optuna.samplers.BaseSampler
    if rule == "tpe":
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=max(2, budget.trainings // 4))
    else:
        sampler = optuna.samplers.CmaEsSampler(seed=seed, popsize=max(4, budget.samples))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    cube: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in space.parameters
    }
    values: list[float] = []
    while len(values) < budget.trainings:
        trials = [study.ask(cube) for _ in range(min(at_once, budget.trainings - len(values)))]
        xs = [space.from_unit_cube(np.array([t.params[n] for n in space.parameters])) for t in trials]
        accuracies = ledger(xs, budget.epochs)
        for trial, accuracy in zip(trials, accuracies, strict=True):
            study.tell(trial, accuracy)
        values += accuracies
    return tuple(float(np.mean(part)) for part in np.array_split(values, budget.iterations))


# --- Hyperband --------------------------------------------------------------------------------------------


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


def plan_hyperband(budget: SearchBudget) -> list[list[tuple[int, int]]]:
    """As many brackets, round and round, as the budget pays; at least one training in full."""
    brackets = hyperband_brackets(budget.epochs)
    left, plan = budget.trained_epochs, []
    for index in range(1000 * len(brackets)):
        bracket = brackets[index % len(brackets)]
        cost = sum(_rung_cost(bracket))
        if cost > left:
            break
        plan.append(bracket)
        left -= cost
    full = left // budget.epochs
    return plan + ([[(full, budget.epochs)]] if full else [])


def _hyperband(space: ScheduleSpace, ledger: Ledger, budget: SearchBudget, seed: int) -> tuple[float, ...]:
    relaxation, means = Relaxation.of(space), []
    for b, rungs in enumerate(plan_hyperband(budget)):
        alive = list(relaxation.sample(relaxation.uniform(), rungs[0][0], np.random.default_rng([seed, b])))
        accuracies: list[float] = []
        for count, epochs in rungs:
            if accuracies:
                order = np.argsort(-np.asarray(accuracies), kind="stable")
                alive = [alive[i] for i in order[:count]]
            accuracies = ledger(alive, epochs)
        means.append(float(np.mean(accuracies)))
    return tuple(means)


# --- weight sharing ---------------------------------------------------------------------------------------


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
