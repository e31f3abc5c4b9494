"""The inner loop of Co-teaching's family: what an epoch and a step do."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from engines.contract import TrainingData
from engines.coteaching.config import CoteachingConfig
from engines.coteaching.training import Learners, area_under_margin, build_learner
from engines.shared.device import make_generator
from engines.shared.loader import epoch_batches
from engines.shared.run import Run
from tests.engines.coteaching.test_training import tiny
from tests.engines.helpers import digits_data


def run_of(data: TrainingData, config: CoteachingConfig) -> Run:
    return Run("coteaching", data, config, seed=1, device="cpu", standardized=config.standardize)


def training_of(config: CoteachingConfig, keep_rate: float, *, num_epochs: int = 4) -> Learners:
    data, _ = digits_data(200)
    return Learners(
        run_of(data, config), config, np.full(num_epochs, keep_rate), torch.arange(200), ("train", 0)
    )


def test_run_epoch__keeping_everything_is_two_plain_trainings_bit_for_bit() -> None:
    config = tiny(schedule="constant")
    pair = training_of(config, 1.0, num_epochs=2)
    run = pair.run
    plain = [build_learner(run, config, "train", 0, "network", g) for g in range(2)]
    for epoch in range(2):
        pair.run_epoch(epoch)
    for network in plain:
        optimizer = torch.optim.Adam(network.parameters(), lr=2e-3, fused=True)
        for epoch in range(2):
            order = make_generator(1, "train", 0, "order", epoch)
            for rows in epoch_batches(torch.arange(200), 32, order):
                loss = F.cross_entropy(network(pair.inputs(rows))[1], run.labels[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    for network, expected in zip(pair.networks, plain, strict=True):
        for name, values in network.state_dict().items():
            torch.testing.assert_close(values, expected.state_dict()[name], rtol=0, atol=1e-6)


def test_load_state_dict__a_shared_warmup_equals_training_it_again() -> None:
    config = tiny(epochs=3)
    warmup, again = training_of(config, 1.0), training_of(config, 1.0)
    warmup.run_epoch(0)
    again.run_epoch(0)
    shared = training_of(config, 0.5)
    shared.load_state_dict(warmup.state_dict())
    again.keep_rates = shared.keep_rates
    for training in (shared, again):
        training.run_epoch(1)
    for one, other in zip(shared.networks, again.networks, strict=True):
        for name, values in one.state_dict().items():
            torch.testing.assert_close(values, other.state_dict()[name], rtol=0, atol=0)


def test_state_dict__does_not_change_when_training_goes_on() -> None:
    training = training_of(tiny(), 0.5)
    training.run_epoch(0)
    state = training.state_dict()
    before = copy.deepcopy(state)
    training.run_epoch(1)
    for part in ("networks", "optimizers"):
        one, other = (list(tensors_in(each[part])) for each in (state, before))
        assert len(one) == len(other) > 0
        assert all(map(torch.equal, one, other))


def tensors_in(state: Any) -> Iterator[torch.Tensor]:
    if isinstance(state, torch.Tensor):
        yield state
    elif isinstance(state, dict | list):
        for value in state.values() if isinstance(state, dict) else state:
            yield from tensors_in(value)


def test_run_epoch__selected_is_the_kept_share() -> None:
    outcome = training_of(tiny(), 0.5).run_epoch(0)
    # 6 batches of 32 keep 16 each, the last of 8 keeps 4.
    assert outcome.selected.sum() == 100
    assert outcome.visited.all()
    assert set(np.unique(outcome.selected)) <= {0.0, 0.5, 1.0}


def test_run_epoch__drop_last_and_max_batches() -> None:
    assert training_of(tiny(drop_last=True), 1.0).run_epoch(0).visited.sum() == 192
    assert training_of(tiny(max_batches=2), 1.0).run_epoch(0).visited.sum() == 64


def test_adam_betas_of__falls_late_as_published() -> None:
    config = tiny(schedule="linear_tail", late_beta1=0.1)
    assert [config.adam_betas_of(e, 200)[0] for e in (0, 79, 80, 199)] == [0.9, 0.9, 0.1, 0.1]
    assert config.learning_rate_of(79, 200) == 2e-3
    assert config.learning_rate_of(199, 200) == pytest.approx(2e-3 / 120)


def everything_of(training: Learners) -> list[torch.Tensor]:
    """All parameters, and all that the optimizers know of them."""
    parameters = [parameter for network in training.networks for parameter in network.parameters()]
    optimizers = training.state_dict()["optimizers"]
    return [parameter.detach().clone() for parameter in parameters] + list(tensors_in(optimizers))


def make_twins(training: Learners) -> None:
    """Give both networks the same weights, so that they agree on every sample."""
    training.networks[1].load_state_dict(training.networks[0].state_dict())


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("variant", ["decoupling", "coteaching_plus"])
def test_run_epoch__without_a_sample_to_learn_from_nothing_moves(variant: str, optimizer: str) -> None:
    config = tiny(variant=variant, optimizer=optimizer, weight_decay=1e-2, plus_gate_steps=0)
    training = training_of(config, 0.5)
    training.run_epoch(0)  # momentum that would move them
    make_twins(training)
    before = everything_of(training)
    training.run_epoch(1)
    after = everything_of(training)
    assert len(before) == len(after) > 0
    for one, other in zip(before, after, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_run_epoch__reweighting_never_lets_a_trusted_sample_judge_itself() -> None:
    """One batch holds all trusted samples: nobody is left to judge it, and the step is a plain one."""
    data, _ = digits_data(100, num_trusted=40)
    trained = []
    for variant in ("reweight", "standard"):
        config = tiny(variant=variant, batch_size=100)
        training = Learners(run_of(data, config), config, np.ones(4), torch.arange(100), ("train", 0))
        training.run_epoch(0)
        trained.append(torch.cat([values.flatten() for values in training.networks[0].parameters()]))
        if variant == "reweight":
            drawn = training._draw_meta_rows(torch.arange(20))
            assert sorted(drawn.tolist()) == list(range(20, 40))
    torch.testing.assert_close(*trained, rtol=0, atol=0)


def test_draw_meta_rows__by_what_the_trusted_samples_stand_for() -> None:
    data, _ = digits_data(100, num_trusted=40)
    weight = np.where(np.arange(100) < 8, 1e6, 1.0).astype(np.float32)
    config = tiny(variant="reweight", batch_size=8)

    def drawn(weight: np.ndarray | None) -> list[int]:
        run = run_of(dataclasses.replace(data, trusted_weight=weight), config)
        learners = Learners(run, config, np.ones(4), torch.arange(100), ("train", 0))
        return sorted(learners._draw_meta_rows(torch.arange(50, 60)).tolist())

    assert drawn(weight) == list(range(8))
    assert drawn(None) != list(range(8))


def learners_of(config: CoteachingConfig, *, num_trusted: int = 0) -> Learners:
    run = run_of(digits_data(60, num_trusted=num_trusted)[0], config)
    return Learners(run, config, np.ones(config.epochs), run.labeled, ("train", 0))


def test_learners__only_the_long_training_keeps_margins() -> None:
    assert training_of(tiny(), 1.0).trackers == []


def test_area_under_margin__is_the_mean_of_both_networks() -> None:
    data, _ = digits_data(100)
    learners = Learners(
        run_of(data, tiny()), tiny(), np.full(4, 0.5), torch.arange(80), ("train", 0), is_final=True
    )
    learners.run_epoch(0)
    one, other = (tracker.margin()[:80] for tracker in learners.trackers)
    area = area_under_margin(learners, np.arange(100) < 90)
    np.testing.assert_allclose(area[:80], (one + other) / 2, rtol=1e-6)
    assert (area[80:90] == np.median(area[:80])).all()  # labeled and never visited: the middle of the ranking
    assert np.isnan(area[90:]).all()


@pytest.mark.parametrize(("num_trusted", "is_weighed"), [(1, False), (2, True)])
def test_choose__two_trusted_samples_are_enough_to_weigh_the_others(
    num_trusted: int, is_weighed: bool
) -> None:
    learners = learners_of(tiny(variant="reweight"), num_trusted=num_trusted)
    trusted = torch.from_numpy(np.flatnonzero(learners.run.data.trusted_mask))
    rows = torch.arange(60)[~torch.isin(torch.arange(60), trusted)][:16]
    images, labels = learners.inputs(rows), learners.run.labels[rows]
    (logits,) = learners._forward(images)
    losses = learners._losses(logits, labels, 0)[None]
    choice = learners._choose(rows, images, labels, losses, logits.argmax(dim=1)[None], 0)
    assert torch.equal(choice.weights, torch.ones_like(losses)) != is_weighed


@pytest.mark.parametrize("dropout", [True, False])
def test_build_learner__has_its_network_s_dropout_unless_it_is_switched_off(dropout: bool) -> None:
    config = tiny(network="cnn9", dropout=dropout)
    data = TrainingData(np.zeros((50, 1, 32, 32), dtype=np.uint8), np.arange(50) % 2, 2)
    network = build_learner(Run("coteaching", data, config, seed=1, device="cpu"), config, "a")
    rates = [part.p for part in network.modules() if isinstance(part, torch.nn.modules.dropout._DropoutNd)]
    assert rates == ([0.25, 0.25] if dropout else [0.0, 0.0])
