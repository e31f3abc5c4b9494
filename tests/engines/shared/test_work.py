"""How fast a machine is: the step that a probe measures."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from auditor.bridges import engine_bridge
from engines.shared import work
from engines.shared.work import adam_step, num_seen


def test_adam_step__moves_as_the_optimizer_does() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network, rows = nn.Linear(4, 3), torch.rand(5, 4)
    other = copy.deepcopy(network)
    steps = (adam_step(list(network.parameters())), torch.optim.Adam(other.parameters()).step)
    for _ in range(3):
        for each, step in zip((network, other), steps, strict=True):
            each.zero_grad()
            each(rows).square().sum().backward()
            step()
    for mine, theirs in zip(network.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_estimated_seconds__heads_are_as_wide_as_what_the_network_on_images_sees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(work, "PROBE_S", 0.0)
    work._speed.cache_clear()
    shape, place = (3, 16, 16), torch.device("cpu")
    width = num_seen("conv4", shape, 3, device=place)
    assert width not in (engine_bridge.FEATURES_EXPECTED, 0)
    planned = engine_bridge.configs(["cross_entropy"], "quick", {"cross_entropy": {"network": "conv4"}})
    heads = engine_bridge.configs(["l2b"], "quick", {}, on_features=True)
    found = engine_bridge.estimated_seconds(heads | planned, shape, 50, 3, device="cpu", on_features=["l2b"])
    assert list(found) == ["l2b", "cross_entropy"]
    probed = work._speed.cache_info().misses
    engine_bridge.estimated_seconds(
        heads, shape, 50, 3, device="cpu", on_features=["l2b"], num_features=width
    )
    assert work._speed.cache_info().misses == probed, "asked for the same width, it answers from memory"
    work._speed.cache_clear()  # of probes that measured nothing
