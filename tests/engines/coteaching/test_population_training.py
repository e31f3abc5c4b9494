"""The inner loop of Co-teaching's family: what a step does, for one pair and for several at once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from engines.coteaching.config import CoteachingConfig
from engines.coteaching.population_training import PopulationTraining
from engines.shared.device import make_generator
from engines.shared.loader import epoch_batches
from tests.engines.coteaching.surroundings import surroundings_of
from tests.engines.coteaching.test_training import tiny
from tests.engines.helpers import digits_data


def training_of(
    config: CoteachingConfig, keep_rates: np.ndarray, *, stacked: bool = False
) -> PopulationTraining:
    data, _ = digits_data(200)
    return PopulationTraining(
        surroundings_of(data, config),
        keep_rates=keep_rates,
        rows=torch.arange(200),
        group=config.group,
        stream=("train", 0),
        stacked=stacked,
    )


def test_run_epoch__keeping_everything_is_two_plain_trainings_bit_for_bit() -> None:
    config = tiny(schedule="constant")
    pair = training_of(config, np.ones((1, 2)))
    here = pair.surroundings
    plain = [here.build("train", 0, "network", g) for g in range(2)]
    for epoch in range(2):
        pair.run_epoch(epoch)
    for network in plain:
        optimizer = torch.optim.Adam(network.parameters(), lr=2e-3, fused=True)
        for epoch in range(2):
            order = make_generator(1, "train", 0, "order", epoch)
            for rows in epoch_batches(torch.arange(200), 32, order):
                loss = F.cross_entropy(network(here.inputs(rows))[1], here.labels[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    for network, expected in zip(pair.population.networks(), plain, strict=True):
        for name, values in network.state_dict().items():
            torch.testing.assert_close(values, expected.state_dict()[name], rtol=0, atol=1e-6)


def test_run_epoch__stacked_trials_train_like_separate_ones() -> None:
    config = tiny(epochs=2)
    rates = np.array([[1.0, 0.6], [1.0, 0.9]])
    together = training_of(config, rates, stacked=True)
    alone = [training_of(config, rates[i : i + 1]) for i in range(2)]
    for epoch in range(2):
        outcomes = [training.run_epoch(epoch) for training in (together, *alone)]
    assert outcomes[0].loss == pytest.approx(np.mean([outcome.loss for outcome in outcomes[1:]]), rel=1e-5)
    rows, labels = torch.arange(200), alone[0].surroundings.labels
    losses = [t.evaluate(t.surroundings.store, labels, rows)[0] for t in (together, *alone)]
    # float32: equal up to the summation order.
    torch.testing.assert_close(losses[0], torch.cat(losses[1:]), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("stacked", [True, False])
def test_start_from__a_shared_warmup_equals_training_it_again(stacked: bool) -> None:
    config = tiny(epochs=3)
    rates = np.array([[1.0, 0.5, 0.5], [1.0, 0.8, 0.8]])
    warmup = training_of(config, np.ones((1, 3)))
    warmup.run_epoch(0)
    shared = training_of(config, rates, stacked=stacked)
    shared.start_from(warmup.state_dict())
    again = training_of(config, rates, stacked=stacked)
    again.run_epoch(0)
    for training in (shared, again):
        training.run_epoch(1)
    for one, other in zip(shared.population.networks(), again.population.networks(), strict=True):
        for name, values in one.state_dict().items():
            torch.testing.assert_close(values, other.state_dict()[name], rtol=0, atol=1e-5 if stacked else 0)


def test_run_epoch__selected_is_the_kept_share() -> None:
    outcome = training_of(tiny(), np.full((1, 4), 0.5)).run_epoch(0)
    # 6 batches of 32 keep 16 each, the last of 8 keeps 4.
    assert outcome.selected.sum() == 100
    assert outcome.visited.all()
    assert set(np.unique(outcome.selected)) <= {0.0, 0.5, 1.0}


def test_run_epoch__drop_last_and_max_batches() -> None:
    assert training_of(tiny(drop_last=True), np.ones((1, 4))).run_epoch(0).visited.sum() == 192
    assert training_of(tiny(max_batches=2), np.ones((1, 4))).run_epoch(0).visited.sum() == 64


def test_adam_betas_of__falls_late_as_published() -> None:
    config = tiny(schedule="linear_tail", late_beta1=0.1)
    assert [config.adam_betas_of(e, 200)[0] for e in (0, 79, 80, 199)] == [0.9, 0.9, 0.1, 0.1]
    assert config.learning_rate_of(79, 200) == 2e-3
    assert config.learning_rate_of(199, 200) == pytest.approx(2e-3 / 120)


def everything_of(training: PopulationTraining, members: list[int]) -> list[torch.Tensor]:
    """Parameters of the members' networks and all that the optimizer knows of them."""
    group, found = training.surroundings.options.group, []
    rows = [member * group + g for member in members for g in range(group)]
    optimizer, population = training._optimizer, training.population
    per_network = len(population.parameters()) // (1 if population.is_stacked else population.size)
    for place, parameter in enumerate(population.parameters()):
        for values in (parameter, *optimizer.state[parameter].values()):
            if population.is_stacked:
                found += [values[rows].detach().clone()] if values.dim() == parameter.dim() else []
            elif place // per_network in rows:
                found.append(values.detach().clone())
    return found


def make_twins(training: PopulationTraining, member: int) -> None:
    """Give both networks of a member the same weights, so that they agree on every sample."""
    saved = training.population.state_dict()
    saved["networks"][2 * member + 1] = saved["networks"][2 * member]
    training.population.load_state_dict(saved)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("stacked", [True, False])
@pytest.mark.parametrize("variant", ["decoupling", "coteaching_plus"])
def test_run_epoch__without_a_sample_to_learn_from_nothing_moves(
    variant: str, stacked: bool, optimizer: str
) -> None:
    config = tiny(variant=variant, optimizer=optimizer, weight_decay=1e-2, plus_gate_steps=0)
    training = training_of(config, np.full((1, 4), 0.5), stacked=stacked)
    training.run_epoch(0)  # momentum that would move them
    make_twins(training, 0)
    before = everything_of(training, [0])
    training.run_epoch(1)
    after = everything_of(training, [0])
    assert len(before) == len(after) > 0
    for one, other in zip(before, after, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("stacked", [True, False])
@pytest.mark.parametrize("warm", [True, False], ids=["with momentum", "first step"])
def test_run_epoch__only_the_pair_without_disagreement_stands_still(
    warm: bool, stacked: bool, optimizer: str
) -> None:
    config = tiny(
        variant="coteaching_plus", optimizer=optimizer, weight_decay=1e-2, plus_gate_steps=0, max_batches=1
    )
    training = training_of(config, np.full((2, 4), 0.5), stacked=stacked)
    if warm:
        training.run_epoch(0)
    make_twins(training, 1)
    start, moving = everything_of(training, [1]), everything_of(training, [0])
    training.run_epoch(1)
    end = everything_of(training, [1])
    # Before the first step there are no moments; those that a stack makes for all are 0 where none was due.
    for one, other in zip(start, [values for values in end if warm or values.any()], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert not all(map(torch.equal, moving, everything_of(training, [0])[: len(moving)]))


def test_run_epoch__reweighting_never_lets_a_trusted_sample_judge_itself() -> None:
    """One batch holds all trusted samples: nobody is left to judge it, and the step is a plain one."""
    data, _ = digits_data(100, num_trusted=40)
    trained = []
    for variant in ("reweight", "standard"):
        config = tiny(variant=variant, batch_size=100)
        training = PopulationTraining(
            surroundings_of(data, config),
            keep_rates=np.ones((1, 4)),
            rows=torch.arange(100),
            group=1,
            stream=("train", 0),
        )
        training.run_epoch(0)
        trained.append(torch.cat([values.flatten() for values in training.population.parameters()]))
        if variant == "reweight":
            drawn = training._draw_meta_rows(torch.arange(20))
            assert sorted(drawn.tolist()) == list(range(20, 40))
    torch.testing.assert_close(*trained, rtol=0, atol=0)
