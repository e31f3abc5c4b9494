"""The inner loop of Co-teaching: what an epoch and a step do."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from engines.contract import TrainingData
from engines.coteaching import training
from engines.coteaching.config import CoteachingConfig
from engines.coteaching.training import Learners, area_under_margin, build_learner
from engines.shared.device import make_generator
from engines.shared.loader import epoch_batches
from engines.shared.run import Run
from tests.engines.coteaching.test_training import tiny
from tests.engines.helpers import digits_data


def run_of(data: TrainingData, config: CoteachingConfig) -> Run:
    return Run("coteaching", data, config, seed=1, device="cpu", standardized=not config.as_published)


def training_of(config: CoteachingConfig, keep_rate: float, *, num_epochs: int = 4) -> Learners:
    data, _ = digits_data(200)
    return Learners(
        run_of(data, config), config, np.full(num_epochs, keep_rate), torch.arange(200), ("train", 0)
    )


def test_run_epoch__keeping_everything_is_two_plain_trainings_bit_for_bit() -> None:
    config = tiny(schedule="constant")
    pair = training_of(config, 1.0, num_epochs=2)
    run = pair.run
    plain = [build_learner(run, "train", 0, "network", g) for g in range(2)]
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
    for pair in (shared, again):
        pair.run_epoch(1)
    for one, other in zip(shared.networks, again.networks, strict=True):
        for name, values in one.state_dict().items():
            torch.testing.assert_close(values, other.state_dict()[name], rtol=0, atol=0)


def test_state_dict__does_not_change_when_training_goes_on() -> None:
    pair = training_of(tiny(), 0.5)
    pair.run_epoch(0)
    state = pair.state_dict()
    before = copy.deepcopy(state)
    pair.run_epoch(1)
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


def test_run_epoch__as_published_has_full_batches_alone_and_401_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tiny(as_published=True)
    assert training_of(config, 1.0).run_epoch(0).visited.sum() == 192
    assert training.MOST_BATCHES == 401
    monkeypatch.setattr(training, "MOST_BATCHES", 2)
    assert training_of(config, 1.0).run_epoch(0).visited.sum() == 64


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
