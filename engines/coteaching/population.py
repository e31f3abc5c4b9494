"""Many networks of one architecture, fed the same batch and trained at once.

Stacked, their parameters are one tensor with a leading axis and a step is one batched call
(``torch.func.stack_module_state`` and ``vmap``); one by one, it is a loop. Losses are the same numbers (equal
to rounding in float64, tested); in float32 the two drift apart as any two summation orders do. Dropout draws
differently in the two forms. Knows no loss, no label and no schedule.

Which form is faster was measured, not assumed (``benchmarks/population.py`` prints it again for a device):
on the CPU stacking pays for tiny perceptrons only (784-64-32-10, 16 networks, one thread: 2.4x; at
784-256-128-10 about even), and convolutions lose (0.64x), because a stacked convolution is a grouped one.

Letters: P networks, B samples, K classes, D features.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

STACKED_PARAMETERS_CPU = 80_000
"""Most weights of a perceptron that is stacked on the CPU."""

STACKED_PARAMETERS_CUDA = 300_000
"""Most weights of any network that is stacked on CUDA [assumption: not measured; small kernels dominate]."""

STACKED_AT_LEAST = 4
"""Fewest networks that are stacked."""


class Population:
    """P networks of one architecture on one device.

    Args:
        networks: each returns (features, logits); same architecture. Taken over, not copied.
        stacked: one batched call instead of a loop.
        calls: what to call in place of the networks where they are looped over (compiled forms of them).
    """

    def __init__(
        self,
        networks: Sequence[nn.Module],
        *,
        stacked: bool,
        calls: Sequence[nn.Module] | None = None,
    ) -> None:
        self.size = len(networks)
        self.is_stacked = stacked
        self._networks = list(networks)
        self._calls = list(calls or networks)
        self._training = True
        if stacked:
            # Under vmap cuDNN's batch norm takes plain memory layout only.
            self._networks = [network.to(memory_format=torch.contiguous_format) for network in self._networks]
            # The template only lends its structure; parameters and buffers come from the stack.
            self._template = copy.deepcopy(networks[0]).to("meta")
            self._stack, self._buffers = stack_module_state(self._networks)

    def __call__(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Features (P, B, D) and logits (P, B, K) of every network for the same images (B, C, H, W)."""
        if not self.is_stacked:
            features, logits = zip(*(call(images) for call in self._calls), strict=True)
            return torch.stack(features), torch.stack(logits)

        plain = images.contiguous()

        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
            result: tuple[Tensor, Tensor] = functional_call(self._template, (parameters, buffers), (plain,))
            return result

        result: tuple[Tensor, Tensor] = vmap(one, randomness="different")(self._stack, self._buffers)
        return result

    def parameters(self) -> list[Tensor]:
        """What an optimizer steps: the stacked tensors, or every network's own in turn.

        Element-wise optimizers (Adam, SGD) treat both alike.
        """
        if self.is_stacked:
            return list(self._stack.values())
        return [parameter for network in self._networks for parameter in network.parameters()]

    @torch.no_grad()
    def step(self, optimizer: torch.optim.Optimizer, idle: Tensor) -> None:
        """Step all networks but the ``idle`` ones, (P,) bool, whose parameters and moments stay as they are.

        Stacked, Adam counts its steps for the whole stack: an idle network's moments stand still, the count
        that corrects their bias goes on with the others.
        """
        if not self.is_stacked:
            for network, is_idle in zip(self._networks, idle.tolist(), strict=True):
                if is_idle:
                    network.zero_grad(set_to_none=True)  # an optimizer passes over what has no gradient
            optimizer.step()
            return
        # One tensor holds all networks: the rows of idle ones are put back after the step.
        held = {
            parameter: {name: values[idle].clone() for name, values in _moments(optimizer, parameter)}
            for parameter in self.parameters()
        }
        rows = [parameter[idle].clone() for parameter in held]
        optimizer.step()
        for (parameter, before), values_before in zip(held.items(), rows, strict=True):
            parameter[idle] = values_before
            for name, values in _moments(optimizer, parameter):
                # The first step makes the moments; before it they are 0.
                values[idle] = before.get(name, torch.zeros_like(values[idle]))

    def train(self, mode: bool = True) -> None:
        """Switch dropout and batch norm to training (or, with False, to evaluation)."""
        self._training = mode
        for network in [self._template] if self.is_stacked else self._networks:
            network.train(mode)

    def networks(self) -> list[nn.Module]:
        """The P networks as they are now; in the stacked form copies of the stack's rows."""
        if self.is_stacked:
            with torch.no_grad():
                for i, network in enumerate(self._networks):
                    network.load_state_dict(
                        {name: values[i] for name, values in {**self._stack, **self._buffers}.items()}
                    )
        for network in self._networks:
            network.train(self._training)
        return self._networks

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint: the networks' state_dicts, the same in both forms."""
        return {"networks": [copied_to_cpu(network.state_dict()) for network in self.networks()]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        for network, values in zip(self._networks, state["networks"], strict=True):
            network.load_state_dict(values)
        if self.is_stacked:
            with torch.no_grad():
                for name, values in {**self._stack, **self._buffers}.items():
                    for i, network in enumerate(self._networks):
                        values[i] = network.state_dict()[name]


def _moments(optimizer: torch.optim.Optimizer, parameter: Tensor) -> list[tuple[str, Tensor]]:
    """What ``optimizer`` remembers of each element of ``parameter``; its count of steps is not among it."""
    found = optimizer.state[parameter].items()
    return [
        (name, values) for name, values in found if values is not None and values.dim() == parameter.dim()
    ]


def copied_to_cpu(state: Any) -> Any:
    """A state_dict, whatever it nests, with copies of its tensors on the CPU: training on does not change them."""
    if isinstance(state, Tensor):
        return state.detach().cpu().clone()
    if isinstance(state, dict):
        return {name: copied_to_cpu(value) for name, value in state.items()}
    if isinstance(state, list):
        return [copied_to_cpu(value) for value in state]
    return copy.deepcopy(state)


def is_stacking_faster(network: nn.Module, size: int, device: torch.device) -> bool:
    """Whether ``size`` copies of ``network`` train faster stacked on ``device``; from measurements."""
    if size < STACKED_AT_LEAST:
        return False
    weights = sum(parameter.numel() for parameter in network.parameters())
    has_convolution = any(isinstance(part, nn.Conv2d) for part in network.modules())
    most = STACKED_PARAMETERS_CUDA if device.type == "cuda" else STACKED_PARAMETERS_CPU
    return not has_convolution and weights <= most
