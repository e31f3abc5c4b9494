"""The moving average: its formula, its bounds, its buffers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from engines.shared.ema import ExponentialAverage


def _network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def _disturb(network: nn.Module) -> None:
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter))
    network.train()(torch.randn(8, 3))


def test_update__is_the_formula() -> None:
    network = _network()
    average = ExponentialAverage(network)
    expected = [parameter.detach().clone() for parameter in network.parameters()]
    for decay in (0.9, 0.99, 0.5):
        _disturb(network)
        average.update(network, decay)
        pairs = zip(expected, network.parameters(), strict=True)
        expected = [decay * old + (1 - decay) * new.detach() for old, new in pairs]
    for got, want in zip(average.module.parameters(), expected, strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("decay", [0.0, 1.0])
def test_update__bounds_are_exact(decay: float) -> None:
    network = _network()
    average = ExponentialAverage(network)
    start = [parameter.clone() for parameter in average.module.parameters()]
    _disturb(network)
    average.update(network, decay)
    wanted = start if decay == 1.0 else list(network.parameters())
    assert all(torch.equal(a, b) for a, b in zip(average.module.parameters(), wanted, strict=True))


def test_update__copies_buffers_and_needs_no_gradient() -> None:
    network = _network()
    average = ExponentialAverage(network)
    _disturb(network)
    average.update(network, 0.999)
    for got, want in zip(average.module.buffers(), network.buffers(), strict=True):
        assert torch.equal(got, want)
        assert got.data_ptr() != want.data_ptr()
    assert not any(parameter.requires_grad for parameter in average.module.parameters())
    assert not average.module.training
    assert all(parameter.requires_grad for parameter in network.parameters())


@pytest.mark.parametrize("decay", [-0.1, 1.5, float("nan")])
def test_update__decay_outside(decay: float) -> None:
    network = _network()
    with pytest.raises(ValueError, match=f"decay is {decay}, it must be 0 to 1"):
        ExponentialAverage(network).update(network, decay)


def test_state_dict__round_trip() -> None:
    network = _network()
    average = ExponentialAverage(network)
    _disturb(network)
    average.update(network, 0.5)
    again = ExponentialAverage(_network())
    again.load_state_dict(average.state_dict())
    assert all(torch.equal(again.state_dict()[key], value) for key, value in average.state_dict().items())
