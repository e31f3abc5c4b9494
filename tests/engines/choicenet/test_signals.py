"""What ChoiceNet says about labels: in one piece or several, and from where a killed run left it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engines.choicenet import SPEC, signals
from engines.choicenet.networks import build_mixture_network
from engines.shared.device import make_generator

SIZE = 5
"""Of the features; the trunk passes them on."""


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    config = SPEC.config_type.preset("quick").for_features()
    return build_mixture_network(config, "linear", (SIZE,), num_classes=3)


def test_final_signals__pieces_say_what_the_whole_says(monkeypatch: pytest.MonkeyPatch) -> None:
    net, labels = network(), np.array([0, 1, 2, -1, 0, 1, 2])
    points = np.random.default_rng(1).normal(size=(7, SIZE)).astype(np.float32)
    whole, rho = signals.final_signals(net, points, labels, torch.device("cpu"))
    monkeypatch.setattr(signals, "_ROWS_AT_ONCE", 3)
    parts, rho_of_parts = signals.final_signals(net, points, labels, torch.device("cpu"))
    np.testing.assert_allclose(rho_of_parts, rho, rtol=1e-6)
    for name, values in whole.items():
        np.testing.assert_allclose(parts[name], values, rtol=1e-5, err_msg=name)
    assert rho[0] == pytest.approx(1.0)  # the target component's correlation with itself


def test_visit_signals__go_on_from_their_state() -> None:
    net, labels = network(), torch.tensor([0, 1, 2])
    points = torch.randn((2, 3, SIZE), generator=make_generator(3))
    first = signals.VisitSignals(3, torch.device("cpu"))
    first.update(torch.arange(3), net.head(points[0]), labels)
    first.end_epoch(0, 1)
    second = signals.VisitSignals(3, torch.device("cpu"))
    second.load_state_dict(first.state_dict())
    for one in (first, second):
        one.update(torch.tensor([1]), net.head(points[1, 1:2]), labels[1:2])
        one.end_epoch(0, 1)
    for name in signals.HISTORY_NAMES:
        np.testing.assert_array_equal(second.now()[name], first.now()[name])
        np.testing.assert_array_equal(second.averages()[name], first.averages()[name])
