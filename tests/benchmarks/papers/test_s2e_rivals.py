"""What S2E is compared with: rival spaces stay in range, Hyperband promotes the best, ASNG moves to them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.s2e_rivals import (
    SPACES,
    SharedWeightsRule,
    from_unit_cube,
    hyperband_brackets,
    natural_step,
    search_with_hyperband,
    search_with_optuna,
)
from engines.coteaching.s2e import Relaxation
from engines.coteaching.schedules import MIN_KEEP_RATE, PARAMETER_FLOOR, FloatArray, basis_curve
from tests.engines.coteaching.test_reference_rules import (
    SEED,
    accuracy,
    curvature,
    draw,
    moved,
    score,
    utilities_of,
)

START_ANYWHERE = {"rbf", "mlp"}
"""Spaces whose R(0) may be below 1."""


@pytest.mark.parametrize("name", sorted(SPACES))
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_keep_rates__any_corner_of_the_cube(name: str, data: st.DataObject) -> None:
    space = SPACES[name]
    number = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
    u = np.array(data.draw(st.lists(number, min_size=space.size, max_size=space.size)))
    rates = space.keep_rates(from_unit_cube(space, u), 7, horizon=200)
    assert rates.shape == (7,)
    assert (rates >= MIN_KEEP_RATE).all()
    assert (rates <= 1).all()  # also false for NaN
    if name not in START_ANYWHERE:
        assert rates[0] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("which", range(4))
def test_single_space__first_number_says_which_h(which: int) -> None:
    a, t = np.array([0.5, 0.3, 0.2, 0.7]), np.array([1.0, 30.0, 150.0])
    found = SPACES["single"].at(np.array([(which + 0.5) / 4, *a]), t, 200.0)
    np.testing.assert_allclose(found, np.clip(basis_curve(a, t, 200.0, which), MIN_KEEP_RATE, 1))


def test_natural_step__solves_with_the_exact_fisher_matrix() -> None:
    relaxation, theta = Relaxation(2, 1), np.array([2.0, 1.5, 3.0, 2.0])
    hessian, gradient = relaxation.log_density_hessian(theta), np.array([1.0, 2.0, -1.0, 0.5])
    np.testing.assert_allclose(-hessian @ natural_step(gradient, hessian), gradient)


def test_hyperband_brackets__published_numbers() -> None:
    brackets = hyperband_brackets(200, 2.5)
    assert len(brackets) == 6  # s_max = floor(log 200 / log 2.5) = 5
    assert [rungs[0][0] for rungs in brackets] == [98, 47, 24, 13, 8, 6]
    assert brackets[0] == [(98, 2), (39, 5), (15, 13), (6, 32), (2, 80), (1, 200)]


def literal_brackets(longest: int) -> list[list[tuple[int, int]]]:
    """Hyperband with eta = 2.5."""
    eta, s_max = 2.5, 0
    while 2.5 ** (s_max + 1) <= longest:
        s_max += 1
    brackets = []
    for s in reversed(range(s_max + 1)):
        n = math.ceil((s_max + 1) / (s + 1) * eta**s)
        brackets.append(
            [(max(1, math.floor(n / eta**i)), max(1, round(longest / eta ** (s - i)))) for i in range(s + 1)]
        )
    return brackets


@pytest.mark.parametrize(
    ("iterations", "samples", "longest"), [(3, 4, 10), (2, 2, 16), (5, 5, 7), (1, 1, 40)]
)
def test_search_with_hyperband__promotes_and_pays(iterations: int, samples: int, longest: int) -> None:
    space, calls = SPACES["co"], []

    def grown(x: Sequence[float], epochs: int) -> float:
        return accuracy(space, x) + 1e-4 * epochs

    def evaluate(xs: Sequence[FloatArray], epochs: int) -> list[float]:
        calls.append((np.array(xs), epochs))
        return [grown(x, epochs) for x in xs]

    trials = search_with_hyperband(space, evaluate, trainings=iterations * samples, epochs=longest, seed=SEED)
    left = iterations * samples * longest
    plan, brackets, b = [], literal_brackets(longest), 0
    while True:
        rungs = brackets[b % len(brackets)]
        cost, before = 0, 0
        for count, epochs in rungs:
            cost += count * (epochs - before)
            before = epochs
        if cost > left:
            break
        plan.append(rungs)
        left -= cost
        b += 1
    if left >= longest:
        plan.append([(left // longest, longest)])
    asked, expected = iter(calls), []
    for number, rungs in enumerate(plan):
        alive = draw(np.ones(6), rungs[0][0], space, SEED, number)
        for i, (count, epochs) in enumerate(rungs):
            xs, length = next(asked)
            if i:
                alive = sorted(alive, key=lambda x: -accuracy(space, x))[:count]
            assert length == epochs
            np.testing.assert_allclose(xs, alive)
            expected += [grown(x, epochs) for x in alive]
    assert next(asked, None) is None
    assert [trial.accuracy for trial in trials] == pytest.approx(expected)
    assert max(trial.epochs for trial in trials) == longest


def test_shared_weights_rule__moves_its_mean_to_the_better_schedules() -> None:
    rule = SharedWeightsRule(SPACES["co"], seed=0)
    for epoch in range(60):
        x = rule.ask(epoch, 4)
        rule.tell(x, -np.abs(x[:, 0] - 0.8))
    assert abs(rule.relaxation.mean(rule.theta)[0] - 0.8) < 0.12  # starts at 0.5


def test_shared_weights_rule__eight_updates_of_asng() -> None:
    """Akimoto et al. 2019: natural gradients of unit length in the Fisher metric, and a step that adapts."""
    space = SPACES["co"]
    rule = SharedWeightsRule(space, seed=SEED)
    theta, size = np.ones(6), 6
    delta, gamma, path = 1.0, 0.0, np.zeros(size)
    steps = []
    for epoch in range(8):
        xs = rule.ask(epoch, 4)
        np.testing.assert_allclose(xs, draw(theta, 4, space, SEED, epoch), rtol=1e-6)
        accuracies = [accuracy(space, x) for x in xs]
        rule.tell(xs, np.array(accuracies))
        u = utilities_of(accuracies)
        scores = [score(theta, x, 0) for x in xs]
        gradient = sum(u[k] * scores[k] for k in range(4)) / 4
        fisher = -curvature(theta, list(xs[0]), 0)
        natural = np.linalg.inv(fisher) @ gradient
        root = np.linalg.cholesky(fisher).T
        length = math.sqrt(float(natural @ fisher @ natural))
        theta = moved(theta, natural / length, delta)
        beta = delta / math.sqrt(size)
        path = (1 - beta) * path + math.sqrt(beta * (2 - beta)) * (root @ natural) / length
        gamma = (1 - beta) ** 2 * gamma + beta * (2 - beta)
        delta *= math.exp(beta * (float(path @ path) / 1.5 - gamma))
        delta = min(max(delta, 0.01), 1.0)
        steps.append(delta)
        np.testing.assert_allclose(rule.theta, theta, rtol=1e-6)
    assert len(set(steps)) > 2


def test_shared_weights_rule__equal_accuracies_say_nothing() -> None:
    rule = SharedWeightsRule(SPACES["co"], seed=SEED)
    rule.tell(rule.ask(0, 3), np.array([0.5, 0.5, 0.5]))
    np.testing.assert_array_equal(rule.theta, 1.0)


@pytest.mark.parametrize(("rule", "samples", "at_once"), [("tpe", 5, 1), ("cmaes", 5, 5), ("cmaes", 2, 2)])
def test_search_with_optuna__asks_and_tells(rule: str, samples: int, at_once: int) -> None:
    space, calls = SPACES["paper"], list[list[float]]()

    def train(x: FloatArray) -> float:
        calls.append(x.tolist())
        return accuracy(space, calls[-1])

    result = search_with_optuna(space, train, rule=rule, iterations=3, samples=samples, seed=SEED)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler: optuna.samplers.BaseSampler
    if rule == "tpe":
        sampler = optuna.samplers.TPESampler(seed=SEED, n_startup_trials=15 // 4)
    else:
        sampler = optuna.samplers.CmaEsSampler(seed=SEED, popsize=max(4, samples))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    cube = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in space.parameters}
    values = []
    for start in range(0, len(calls), at_once):
        xs = calls[start : start + at_once]
        trials = [study.ask(cube) for _ in xs]
        for trial, x in zip(trials, xs, strict=True):
            u = [
                min(max(trial.params[name], PARAMETER_FLOOR), 1 - PARAMETER_FLOOR)
                for name in space.parameters
            ]
            spacings = [-math.log(value) for value in u[:4]]
            weights = [s / sum(spacings) for s in spacings]
            np.testing.assert_allclose(x, weights + u[4:])
        for trial, x in zip(trials, xs, strict=True):
            values.append(accuracy(space, x))
            study.tell(trial, values[-1])
    assert len(values) == 3 * samples
    expected = [np.mean(values[m * samples : (m + 1) * samples]) for m in range(3)]
    assert result.iteration_means == pytest.approx(expected)


def test_search_with_optuna__tpe_trains_as_much_as_the_others() -> None:
    space = SPACES["co"]
    result = search_with_optuna(
        space, lambda x: accuracy(space, x.tolist()), rule="tpe", iterations=1, samples=4, seed=SEED
    )
    assert len(result.trials) == 4
