"""The exponential moving average of a network: a slower teacher beside the network that is trained."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn


class ExponentialAverage:
    """A copy of ``module`` without gradients, in evaluation mode, that follows it.

    Every ``update`` moves parameters by ``average = decay * average + (1 - decay) * current`` and copies
    buffers (running statistics of batch norm are averages already).
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = copy.deepcopy(module).requires_grad_(False).eval()

    @torch.no_grad()
    def update(self, module: nn.Module, decay: float) -> None:
        """Follow ``module``; ``decay`` in [0, 1], 0 copies it exactly and 1 never changes.

        Raises:
            ValueError: ``decay`` is outside [0, 1].
        """
        if not 0.0 <= decay <= 1.0:
            raise ValueError(f"decay is {decay}, it must be 0 to 1.")
        averages: list[torch.Tensor] = list(self.module.parameters())
        currents = [parameter.detach() for parameter in module.parameters()]
        if averages:
            torch._foreach_lerp_(averages, currents, 1.0 - decay)
        for average, current in zip(self.module.buffers(), module.buffers(), strict=True):
            average.copy_(current)

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return self.module.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        self.module.load_state_dict(state)
