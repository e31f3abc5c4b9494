"""The shared config: all problems at once, presets, the learning rate of an epoch."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
import torch

from engines.contract import EngineInputError
from engines.networks.pretrained import pretrained_network
from engines.shared.config import LoopConfig, learning_rate_at, make_optimizer, set_learning_rate, within


def test_loop_config__lists_every_problem_at_once() -> None:
    with pytest.raises(EngineInputError) as caught:
        LoopConfig(epochs=0, batch_size=1, learning_rate=-1.0, optimizer="lion", views=7, resident="maybe")
    text = str(caught.value)
    assert text.startswith("LoopConfig: ")
    for part in (
        "epochs is 0, it must be at least 1",
        "batch_size is 1, it must be at least 2",
        "learning_rate is -1.0, it must be above 0",
        "optimizer is 'lion', it must be one of adam, sgd",
        "views is 7, it must be 1 to 6",
        "resident is 'maybe', it must be one of auto, yes, no",
    ):
        assert part in text


def test_batch_size_for__many_samples_have_larger_batches_up_to_512() -> None:
    config = LoopConfig(batch_size=128, least_steps=24, most_steps=64)
    sizes = [config.batch_size_for(rows) for rows in (1_000, 8_192, 16_000, 40_000, 1_000_000)]
    assert sizes == [41, 128, 250, 512, 512]
    with pytest.raises(EngineInputError, match="most_steps is 0"):
        LoopConfig(most_steps=0)


def test_batch_size_for__few_samples_have_as_many_steps_and_batches_not_below_32() -> None:
    config = LoopConfig(batch_size=128, least_steps=24)
    assert [config.batch_size_for(rows) for rows in (100, 1_000, 3_000, 5_000)] == [32, 41, 125, 128]
    assert LoopConfig(batch_size=128).batch_size_for(20) == 128
    assert LoopConfig(batch_size=16, least_steps=24).batch_size_for(20) == 16
    with pytest.raises(EngineInputError, match="least_steps is 0"):
        LoopConfig(least_steps=0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0])
def test_loop_config__learning_rate_is_a_positive_number(value: float) -> None:
    with pytest.raises(EngineInputError, match="learning_rate is"):
        LoopConfig(learning_rate=value)


def test_within__both_ends_are_allowed_and_nothing_beyond() -> None:
    values = {"low": 0.0, "high": 1.0, "below": -0.1, "above": 1.1, "none": math.nan}
    config = dataclasses.make_dataclass("Config", values)(*values.values())
    found = within(config, 0, 1, *values)
    assert [line.split()[0] for line in found] == ["below", "above", "none"]


def test_loop_config__nan_weight_decay() -> None:
    with pytest.raises(EngineInputError, match="weight_decay is nan, it must be at least 0"):
        LoopConfig(weight_decay=math.nan)


def test_loop_config__weights_need_a_network_that_has_some() -> None:
    with pytest.raises(
        EngineInputError, match=r"weights need a network 'timm:<name>' or .* network is 'mlp'"
    ):
        LoopConfig(network="mlp", weights="w.pt")


def test_loop_config__subclass_extends_problems_and_schedules() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Config(LoopConfig):
        extra: int = 1

        def problems(self) -> list[str]:
            return [*super().problems(), *([] if self.extra > 0 else ["extra is too small"])]

        @classmethod
        def schedules(cls) -> tuple[str, ...]:
            return (*super().schedules(), "steps")

    assert Config(schedule="steps").schedule == "steps"
    with pytest.raises(EngineInputError, match=r"Config: epochs is 0.*; extra is too small\."):
        Config(epochs=0, extra=0)


def test_loop_config__is_frozen_and_round_trips() -> None:
    config = LoopConfig(epochs=7, augment="none")
    assert LoopConfig(**json.loads(json.dumps(config.as_dict()))) == config
    with pytest.raises(dataclasses.FrozenInstanceError, match="epochs"):
        config.epochs = 3  # type: ignore[misc]


def test_preset__unknown() -> None:
    with pytest.raises(
        EngineInputError, match="there is no preset 'best'; choose one of quick, standard, paper"
    ):
        LoopConfig.preset("best")


def test_learning_rate_at__cosine_ends_at_five_percent() -> None:
    config = LoopConfig(epochs=11, learning_rate=2.0)
    rates = [learning_rate_at(config, epoch) for epoch in range(11)]
    assert rates[0] == 2.0
    assert rates[5] == pytest.approx(2.0 * 0.525)
    assert rates[-1] == pytest.approx(0.1)
    assert rates == sorted(rates, reverse=True)


def test_learning_rate_at__linear_tail_is_co_teachings() -> None:
    config = LoopConfig(epochs=200, learning_rate=1e-3, schedule="linear_tail")
    assert learning_rate_at(config, 79) == learning_rate_at(config, 80) == 1e-3
    assert learning_rate_at(config, 140) == pytest.approx(1e-3 * 60 / 120)
    assert learning_rate_at(config, 199) == pytest.approx(1e-3 * 1 / 120)


def test_learning_rate_at__one_epoch() -> None:
    for schedule in ("cosine", "constant", "linear_tail"):
        assert learning_rate_at(LoopConfig(epochs=1, schedule=schedule), 0) == 1e-3


def test_make_optimizer__kinds_and_rate() -> None:
    network = torch.nn.Linear(2, 1)
    adam = make_optimizer(network, LoopConfig(weight_decay=0.1))
    assert isinstance(adam, torch.optim.Adam)
    assert adam.param_groups[0]["weight_decay"] == 0.1
    sgd = make_optimizer(network, LoopConfig(optimizer="sgd", learning_rate=0.5), momentum=0.8)
    assert isinstance(sgd, torch.optim.SGD)
    assert (sgd.param_groups[0]["lr"], sgd.param_groups[0]["momentum"]) == (0.5, 0.8)
    set_learning_rate(sgd, 0.25)
    assert sgd.param_groups[0]["lr"] == 0.25


def test_make_optimizer__a_pretrained_trunk_learns_more_slowly_than_its_new_head() -> None:
    network = torch.nn.Sequential(pretrained_network("timm:test_resnet", None, 2, side=32))
    config = LoopConfig(optimizer="sgd", learning_rate=0.5, trunk_rate=0.2)
    optimizer = make_optimizer(network, config)
    rates = {id(value): group["lr"] for group in optimizer.param_groups for value in group["params"]}
    trunk, head = network[0].trunk, network[0].head
    assert {rates.pop(id(value)) for value in head.parameters()} == {0.5}
    assert {rates.pop(id(value)) for value in trunk.parameters()} == {0.1}
    assert not rates
    set_learning_rate(optimizer, 0.25)
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.05]


def test_for_finetuning__keeps_what_is_no_matter_of_the_network() -> None:
    config = LoopConfig(epochs=7, augment="shift", network="conv3").for_finetuning(
        "timm:resnet10t", "w.pt", 64
    )
    assert config == LoopConfig(
        epochs=7, augment="auto", network="timm:resnet10t", weights="w.pt", image_side=64
    )


@pytest.mark.parametrize(("field", "value"), [("trunk_rate", 0.0), ("trunk_rate", 1.5), ("image_side", 7)])
def test_loop_config__settings_of_a_pretrained_network_out_of_range(field: str, value: float) -> None:
    with pytest.raises(EngineInputError, match=f"{field} is {value}, it must be"):
        LoopConfig(**{field: value})
