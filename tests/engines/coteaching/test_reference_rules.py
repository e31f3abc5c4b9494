"""Every search rule against a literal form of its updates: derivatives of log densities by autograd, loops else.

A search is run for a few iterations on a known function of the schedule's numbers. What it draws, where theta
goes and what it reports are compared with the formulas of S2E, and with Optuna asked directly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from benchmarks.papers.s2e_rivals import RULES, SPACES, search_schedule
from engines.coteaching import s2e
from engines.coteaching.s2e import theta_after
from engines.coteaching.schedules import S2E_SPACE, FloatArray, ScheduleSpace

SEED = 7
FLOOR = 1e-6
TIMES = np.array([0.0, 3.0, 10.0, 30.0, 80.0])
WANTED = np.array([1.0, 0.9, 0.7, 0.5, 0.4])


def accuracy(space: ScheduleSpace, x: Sequence[float]) -> float:
    """A made-up accuracy: how near R is to a wanted curve."""
    gap = space.at(np.asarray(x), TIMES, 100.0) - WANTED
    return 1.0 - float(np.mean(gap**2)) + 1e-3


class Search:
    """A search that is watched: every call of the trainer, and the calls of each iteration."""

    def __init__(self, space: str, rule: str, *, iterations: int = 3, samples: int = 4):
        self.space = SPACES[space]
        self.calls: list[list[float]] = []

        def evaluate(x: FloatArray) -> float:
            self.calls.append(list(map(float, x)))
            return accuracy(self.space, x)

        self.result = search_schedule(
            self.space, evaluate, rule=rule, iterations=iterations, samples=samples, seed=SEED
        )
        self.iterations = [self.calls[m * samples : (m + 1) * samples] for m in range(iterations)]


def log_density(theta: torch.Tensor, x: Sequence[float], simplex: int) -> torch.Tensor:
    """log of a Dirichlet of the first numbers and a Beta of each other one."""
    total = torch.zeros((), dtype=torch.float64)
    if simplex:
        c = theta[:simplex]
        total = total + torch.lgamma(c.sum()) - torch.lgamma(c).sum()
        for i in range(simplex):
            total = total + (c[i] - 1) * math.log(x[i])
    for j in range(simplex, len(x)):
        a, b = theta[simplex + 2 * (j - simplex)], theta[simplex + 2 * (j - simplex) + 1]
        total = total + torch.lgamma(a + b) - torch.lgamma(a) - torch.lgamma(b)
        total = total + (a - 1) * math.log(x[j]) + (b - 1) * math.log(1 - x[j])
    return total


def score(theta: np.ndarray, x: Sequence[float], simplex: int) -> np.ndarray:
    point = torch.tensor(theta, requires_grad=True)
    (slope,) = torch.autograd.grad(log_density(point, x, simplex), point)
    return slope.numpy()


def curvature(theta: np.ndarray, x: Sequence[float], simplex: int) -> np.ndarray:
    return torch.autograd.functional.hessian(
        lambda t: log_density(t, x, simplex), torch.tensor(theta)
    ).numpy()


def draw(theta: np.ndarray, count: int, space: ScheduleSpace, *stream: int) -> list[list[float]]:
    """K schedules from p_theta: weights first, then the others."""
    rng = np.random.default_rng(list(stream))
    simplex = space.simplex_size
    rows: list[list[float]] = [[] for _ in range(count)]
    if simplex:
        for row, weights in zip(rows, rng.dirichlet(theta[:simplex], size=count), strict=True):
            inside = [max(w, FLOOR) for w in weights]
            row += [w / sum(inside) for w in inside]
    others = space.size - simplex
    alpha, beta = theta[simplex::2], theta[simplex + 1 :: 2]
    for row, values in zip(rows, rng.beta(alpha, beta, size=(count, others)), strict=True):
        row += [min(max(v, FLOOR), 1 - FLOOR) for v in values]
    return rows


def utilities_of(accuracies: Sequence[float]) -> list[float]:
    """Losses (minus accuracies) minus their mean, over their standard deviation."""
    losses = [-a for a in accuracies]
    mean = sum(losses) / len(losses)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in losses) / len(losses))
    return [(v - mean) / deviation for v in losses]


def moved(theta: np.ndarray, step: np.ndarray, delta: float) -> np.ndarray:
    """theta - delta step: no longer than 5, every number of theta between 1 and 100."""
    move = delta * step
    length = math.sqrt(float((move**2).sum()))
    if length > 5.0:
        move = move * 5.0 / length
    return np.array([min(max(value, 1.0), 100.0) for value in theta - move])


def literal_step(
    rule: str,
    theta: np.ndarray,
    xs: list[list[float]],
    accuracies: list[float],
    simplex: int,
) -> np.ndarray:
    """Eqs. (8), (9), (13)."""
    u = utilities_of(accuracies)
    count = len(xs)
    scores = [score(theta, x, simplex) for x in xs]
    log_hessian = curvature(theta, xs[0], simplex)
    gradient = sum(u[k] * scores[k] for k in range(count)) / count
    hessian = sum(u[k] * (np.outer(scores[k], scores[k]) + log_hessian) for k in range(count)) / count
    if rule == "natural":
        return np.linalg.inv(-log_hessian) @ gradient
    if rule == "gradient":
        return gradient
    values, vectors = np.linalg.eigh(hessian)
    floor = 1e-5 * max(1.0, max(abs(values)))
    step = np.zeros(len(theta))
    for value, vector in zip(values, vectors.T, strict=True):
        step += vector * (vector @ gradient) / max(abs(value), floor)
    return step


DELTAS = {"newton": 3.0, "natural": 1.0, "gradient": 2.0}


@pytest.mark.parametrize("space", ["paper", "co"])
@pytest.mark.parametrize("rule", ["newton", "natural", "gradient"])
def test_search_schedule__moves_theta_by_its_formula(rule: str, space: str) -> None:
    # With all of K = 4 samples the Hessian of 36 numbers has rank 4: its floor must not decide, so K is larger.
    samples = 60 if rule == "newton" and space == "paper" else 6
    search = Search(space, rule, samples=samples, iterations=3)
    simplex = search.space.simplex_size
    theta = np.ones(simplex + 2 * (search.space.size - simplex))
    means = []
    for m in range(3):
        xs = search.iterations[m]
        np.testing.assert_allclose(xs, draw(theta, samples, search.space, SEED, m), rtol=1e-5, atol=1e-7)
        accuracies = [accuracy(search.space, x) for x in xs]
        means.append(sum(accuracies) / samples)
        theta = moved(theta, literal_step(rule, theta, xs, accuracies, simplex), DELTAS[rule])
    if rule == "newton":
        found = theta_after(search.space, search.result.trials, samples=samples)
        np.testing.assert_allclose(found, theta, rtol=1e-5)
    assert np.abs(theta - 1).max() > 0.01
    assert search.result.iteration_means == pytest.approx(means)
    everything = [accuracy(search.space, x) for x in search.calls]
    assert search.result.best.accuracy == pytest.approx(max(everything))
    assert [t.accuracy for t in search.result.trials] == pytest.approx(everything)


@pytest.mark.parametrize("rule", s2e.RULES)
def test_draw__goes_on_from_the_trials_before(rule: str) -> None:
    whole = Search("paper", rule).result.trials
    for done in (0, 4, 8):
        drawn = s2e.draw(S2E_SPACE, whole[:done], rule=rule, samples=4, seed=SEED)
        np.testing.assert_array_equal(drawn, [trial.x for trial in whole[done : done + 4]])


def test_theta_after__equal_accuracies_move_nothing() -> None:
    trials = [s2e.Trial((0.1 * i,) * 20, 0.5) for i in range(1, 9)]
    np.testing.assert_array_equal(theta_after(S2E_SPACE, trials, samples=4), 1.0)


@pytest.mark.parametrize("rule", ["newton", "natural", "gradient"])
def test_search_schedule__last_samples_beat_the_first(rule: str) -> None:
    first, last = [], []
    for seed in range(20):
        result = search_schedule(
            S2E_SPACE, lambda x: accuracy(S2E_SPACE, x), rule=rule, iterations=10, samples=6, seed=seed
        )
        first.append(result.iteration_means[0])
        last.append(result.iteration_means[-1])
    assert np.mean(last) > np.mean(first) + 0.01


@pytest.mark.parametrize("rule", RULES)
def test_search_schedule__reports_the_best_ever_seen(rule: str) -> None:
    search = Search("co", rule)
    assert len(search.result.trials) == len(search.calls) == 12
    assert search.result.best.accuracy == max(trial.accuracy for trial in search.result.trials)


def test_search_schedule__random_always_draws_from_the_uniform_start() -> None:
    search = Search("paper", "random")
    for m, xs in enumerate(search.iterations):
        np.testing.assert_allclose(xs, draw(np.ones(36), 4, search.space, SEED, m))
    means = [np.mean([accuracy(search.space, x) for x in xs]) for xs in search.iterations]
    assert search.result.iteration_means == pytest.approx(means)
