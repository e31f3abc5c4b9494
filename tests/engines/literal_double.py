"""Engines in float64, and what their optimizers did: for references that must agree to rounding.

In float32 a wrong weight of 1e-5 hides behind rounding. ``in_double`` lets the engines' own code run in float64,
so that a literal reference agrees to about 1e-12 and every changed line shows.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

BUFFERS = ("running_mean", "running_var", "num_batches_tracked")
EXACT = 1e-9
"""Adam divides by the size of a gradient: where that is 0 in exact numbers, rounding moves a weight by 1e-11."""


@contextmanager
def in_double() -> Iterator[None]:
    """Inside, new tensors, ``Tensor.float`` and float32 arrays that become tensors are float64."""
    from_numpy = torch.from_numpy

    def widened(array: np.ndarray) -> Tensor:
        tensor = from_numpy(array)
        return tensor.double() if tensor.dtype == torch.float32 else tensor

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with (
            mock.patch.object(torch.Tensor, "float", torch.Tensor.double),
            mock.patch.object(torch, "from_numpy", widened),
        ):
            yield
    finally:
        torch.set_default_dtype(before)


class Steps:
    """The parameters of every optimizer before its first step and after each, in the optimizer's order."""

    def __init__(self) -> None:
        self.optimizers: list[torch.optim.Optimizer] = []
        self.start: list[list[Tensor]] = []
        self.after: list[list[list[Tensor]]] = []

    @contextmanager
    def watched(self) -> Iterator[Steps]:
        hooks = [
            register_optimizer_step_pre_hook(lambda optimizer, *_: self._before(optimizer)),
            register_optimizer_step_post_hook(lambda optimizer, *_: self._after(optimizer)),
        ]
        try:
            yield self
        finally:
            for hook in hooks:
                hook.remove()

    def _before(self, optimizer: torch.optim.Optimizer) -> None:
        if not any(optimizer is known for known in self.optimizers):
            self.optimizers.append(optimizer)
            self.start.append(_values(optimizer))
            self.after.append([])

    def _after(self, optimizer: torch.optim.Optimizer) -> None:
        which = next(number for number, known in enumerate(self.optimizers) if known is optimizer)
        self.after[which].append(_values(optimizer))


def _values(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [value.detach().clone() for group in optimizer.param_groups for value in group["params"]]


class States:
    """A checkpoint that keeps the state after every epoch."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []

    def load(self) -> None:
        return None

    def save(self, state: dict[str, Any]) -> None:
        self.all.append(copy.deepcopy(state))


def named_start(state: Mapping[str, Tensor], values: list[Tensor]) -> dict[str, Tensor]:
    """Names of a network's saved state with the values before the first step: running statistics as built."""
    names = [name for name in state if not name.endswith(BUFFERS)]
    assert len(names) == len(values), "the optimizer does not train what the checkpoint holds"
    found = dict(zip(names, (value.clone() for value in values), strict=True))
    for name, value in state.items():
        if name.endswith("running_var"):
            found[name] = torch.ones_like(value)
        elif name.endswith(BUFFERS):
            found[name] = torch.zeros_like(value)
    return found


def assert_same(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], where: str) -> None:
    """Same names and, to rounding, the same numbers."""
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        gap = float((found[name].double() - value.double()).abs().max()) if value.numel() else 0.0
        assert gap <= EXACT * max(1.0, float(value.abs().max())), f"{where}: {name} differs by {gap}"


def parameters(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those entries of a state that an optimizer trains."""
    return {name: value for name, value in state.items() if not name.endswith(BUFFERS)}


class Optimizer:
    """Adam and SGD with momentum as their papers write them, one parameter at a time."""

    def __init__(self, kind: str, *, decay: float, betas: tuple[float, float], eps: float, momentum: float):
        self.kind, self.decay, self.betas, self.eps, self.momentum = kind, decay, betas, eps, momentum
        self.first: dict[str, Tensor] = {}
        self.second: dict[str, Tensor] = {}
        self.steps: dict[str, int] = {}

    def step(
        self, values: dict[str, Tensor], gradients: Mapping[str, Tensor | None], learning_rate: float
    ) -> None:
        """Replace the values that have a gradient by the next ones."""
        for name, gradient in gradients.items():
            if gradient is None:
                continue
            g = gradient + self.decay * values[name]
            t = self.steps[name] = self.steps.get(name, 0) + 1
            if self.kind == "sgd":
                velocity = g if t == 1 else self.momentum * self.first[name] + g
                self.first[name] = velocity
                values[name] = values[name] - learning_rate * velocity
                continue
            one, two = self.betas
            zero = torch.zeros_like(g)
            m = self.first[name] = one * self.first.get(name, zero) + (1 - one) * g
            v = self.second[name] = two * self.second.get(name, zero) + (1 - two) * g * g
            m, v = m / (1 - one**t), v / (1 - two**t)
            values[name] = values[name] - learning_rate * m / (v.sqrt() + self.eps)


def learning_rate(schedule: str, first: float, epoch: int, epochs: int) -> float:
    """Every schedule that a config names, at a 0-based epoch."""
    if schedule == "cosine":
        end = max(1, epochs - 1)
        return first * (0.05 + 0.95 * (1 + math.cos(math.pi * epoch / end)) / 2)
    if schedule == "linear_tail":
        return first if epoch <= 0.4 * epochs else first * (epochs - epoch) / (0.6 * epochs)
    if schedule == "steps":
        return first * (1.0 if epoch < 0.5 * epochs else 0.1 if epoch < 0.75 * epochs else 0.01)
    return first


# --- Layers -----------------------------------------------------------------------------------------------


def linear(w: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def conv(w: Mapping[str, Tensor], name: str, x: Tensor, padding: int = 0) -> Tensor:
    return torch.nn.functional.conv2d(x, w[f"{name}.weight"], w.get(f"{name}.bias"), padding=padding)


def batch_norm(w: dict[str, Tensor], name: str, x: Tensor, *, training: bool) -> Tensor:
    """By the statistics of the batch (and then the running ones follow by 1/10), or by the running ones."""
    dims = (0, 2, 3) if x.dim() == 4 else (0,)
    shape = (1, -1, 1, 1) if x.dim() == 4 else (1, -1)
    mean, var = w[f"{name}.running_mean"], w[f"{name}.running_var"]
    if training:
        batch_mean = x.mean(dims)
        batch_var = (x - batch_mean.view(shape)).square().mean(dims)
        count = x.numel() // x.shape[1]
        w[f"{name}.running_mean"] = 0.9 * mean + 0.1 * batch_mean.detach()
        w[f"{name}.running_var"] = 0.9 * var + 0.1 * batch_var.detach() * count / (count - 1)
        w[f"{name}.num_batches_tracked"] = w[f"{name}.num_batches_tracked"] + 1
        mean, var = batch_mean, batch_var
    scaled = (x - mean.view(shape)) / (var.view(shape) + 1e-5).sqrt()
    return scaled * w[f"{name}.weight"].view(shape) + w[f"{name}.bias"].view(shape)


def leaky(x: Tensor) -> Tensor:
    return torch.where(x > 0, x, 0.1 * x)


def relu(x: Tensor) -> Tensor:
    return torch.where(x > 0, x, torch.zeros_like(x))
