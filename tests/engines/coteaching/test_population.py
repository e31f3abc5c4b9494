"""A stacked population is the same training as a loop over its networks, in double precision."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from engines.coteaching.population import Population, is_stacking_faster
from engines.networks.small import build_network

ATOL_FP64 = 1e-9
"""Adam divides by square roots of tiny second moments, which lifts rounding from 1e-16."""


def make_networks(name: str, count: int) -> list[nn.Module]:
    torch.manual_seed(0)
    return [
        build_network(name, channels=1, image_size=(8, 8), num_classes=3, width=6).double()
        for _ in range(count)
    ]


def train_steps(population: Population, steps: int) -> list[torch.Tensor]:
    optimizer = torch.optim.Adam(population.parameters(), lr=1e-3, fused=True)
    generator = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(steps):
        images = torch.randn(10, 1, 8, 8, generator=generator).double()
        labels = torch.randint(0, 3, (10,), generator=generator)
        _, logits = population(images)
        flat = nn.functional.cross_entropy(logits.flatten(0, 1), labels.repeat(len(logits)), reduction="none")
        each = flat.view(len(logits), -1).mean(dim=1)
        optimizer.zero_grad()
        each.sum().backward()
        optimizer.step()
        losses.append(each.detach())
    return losses


@pytest.mark.parametrize("name", ["mlp", "conv3", "conv4", "preact_resnet18"])
def test_population__stacked_trains_like_one_by_one(name: str) -> None:
    networks = make_networks(name, 3)
    stacked = Population(copy.deepcopy(networks), stacked=True)
    looped = Population(networks, stacked=False)
    for one, other in zip(train_steps(stacked, 4), train_steps(looped, 4), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=ATOL_FP64)
    for one, other in zip(stacked.networks(), looped.networks(), strict=True):
        for name_of, values in one.state_dict().items():
            torch.testing.assert_close(values, other.state_dict()[name_of], rtol=0, atol=1e-7)


def test_population__networks_do_not_influence_each_other() -> None:
    networks = make_networks("mlp", 2)
    alone = Population([copy.deepcopy(networks[0])], stacked=False)
    together = Population(networks, stacked=False)
    first = [losses[0] for losses in train_steps(alone, 3)]
    assert first == [losses[0] for losses in train_steps(together, 3)]


@pytest.mark.parametrize("stacked_first", [True, False])
def test_state_dict__moves_between_the_two_forms(stacked_first: bool) -> None:
    source = Population(make_networks("conv3", 2), stacked=stacked_first)
    train_steps(source, 2)
    target = Population([copy.deepcopy(n) for n in make_networks("conv3", 2)], stacked=not stacked_first)
    target.load_state_dict(source.state_dict())
    images = torch.randn(4, 1, 8, 8).double()
    source.train(False)
    target.train(False)
    torch.testing.assert_close(source(images)[1], target(images)[1], rtol=0, atol=1e-12)


def test_state_dict__does_not_change_when_training_goes_on() -> None:
    population = Population(make_networks("mlp", 2), stacked=False)
    state = population.state_dict()
    before = copy.deepcopy(state)
    train_steps(population, 1)
    for one, other in zip(state["networks"], before["networks"], strict=True):
        for name in one:
            assert torch.equal(one[name], other[name])


def test_population__stacked_weights_lie_plainly() -> None:
    """Under ``vmap`` the batch norm of CUDA refuses channels-last maps; networks of their own are channels last."""
    networks = [
        build_network("conv3", channels=3, image_size=(8, 8), num_classes=3, width=6) for _ in range(3)
    ]
    assert not all(parameter.is_contiguous() for parameter in networks[0].parameters())
    population = Population(networks, stacked=True)
    assert all(parameter.is_contiguous() for parameter in population.parameters())


def test_is_stacking_faster__only_where_it_was_measured_to_be() -> None:
    cpu = torch.device("cpu")
    tiny = build_network("mlp", channels=1, image_size=(8, 8), num_classes=10)
    wide = build_network("mlp", channels=1, image_size=(28, 28), num_classes=10)
    convolutions = build_network("conv3", channels=1, image_size=(8, 8), num_classes=10, width=6)
    assert is_stacking_faster(tiny, 16, cpu)
    assert not is_stacking_faster(tiny, 2, cpu)
    assert not is_stacking_faster(wide, 16, cpu)
    assert not is_stacking_faster(convolutions, 16, cpu)
    assert not is_stacking_faster(convolutions, 16, torch.device("cuda"))
