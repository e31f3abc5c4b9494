"""How fast a machine is: the step that a probe measures."""

from __future__ import annotations

import copy

import torch
from torch import nn

from engines.shared.work import adam_step


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
