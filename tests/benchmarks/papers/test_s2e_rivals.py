"""What S2E is compared with: rival spaces stay in range, Hyperband promotes the best, ASNG moves to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.s2e_rivals import (
    SPACES,
    SharedWeightsRule,
    hyperband_brackets,
    plan_hyperband,
    search_with_hyperband,
)
from engines.coteaching.schedules import MIN_KEEP_RATE, FloatArray, basis_curve

START_ANYWHERE = {"rbf", "rbf_code", "mlp", "mlp_code"}
"""Spaces whose R(0) may be below 1."""


@pytest.mark.parametrize("name", sorted(SPACES))
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_keep_rates__any_corner_of_the_cube(name: str, data: st.DataObject) -> None:
    space = SPACES[name]
    number = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
    u = np.array(data.draw(st.lists(number, min_size=space.size, max_size=space.size)))
    rates = space.keep_rates(space.from_unit_cube(u), 7, horizon=200)
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


def test_hyperband_brackets__published_numbers() -> None:
    brackets = hyperband_brackets(200, 2.5)
    assert len(brackets) == 6  # s_max = floor(log 200 / log 2.5) = 5
    assert [rungs[0][0] for rungs in brackets] == [98, 47, 24, 13, 8, 6]
    assert brackets[0] == [(98, 2), (39, 5), (15, 13), (6, 32), (2, 80), (1, 200)]


@pytest.mark.parametrize(("trainings", "epochs"), [(12, 10), (3, 7), (1, 5)])
def test_plan_hyperband__costs_no_more_than_the_trainings_in_full(trainings: int, epochs: int) -> None:
    cost = 0
    for rungs in plan_hyperband(trainings, epochs):
        done = 0
        for count, length in rungs:
            cost += count * (length - done)
            done = length
    assert 0 < cost <= trainings * epochs


def test_search_with_hyperband__promotes_the_best() -> None:
    seen: list[tuple[int, list[float]]] = []

    def evaluate(xs: Sequence[FloatArray], epochs: int) -> list[float]:
        seen.append((epochs, [float(x[0]) for x in xs]))
        return [float(x[0]) for x in xs]

    trials = search_with_hyperband(SPACES["co"], evaluate, trainings=20, epochs=10, seed=0)
    assert seen[1][1] == sorted(seen[0][1], reverse=True)[: len(seen[1][1])]
    assert seen[1][0] > seen[0][0]
    assert len(trials) == sum(len(xs) for _, xs in seen)
    assert max(trial.epochs for trial in trials) == 10


def test_shared_weights_rule__moves_its_mean_to_the_better_schedules() -> None:
    rule = SharedWeightsRule(SPACES["co"], seed=0)
    for epoch in range(60):
        x = rule.ask(epoch, 4)
        rule.tell(x, -np.abs(x[:, 0] - 0.8))
    assert abs(rule.relaxation.mean(rule.theta)[0] - 0.8) < 0.12  # starts at 0.5
