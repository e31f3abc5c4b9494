"""What an engine does between two checkpoints, written again slowly and literally in float64.

The tests that use this run a real engine through ``SPEC.train`` on a few digits, take the weights after every
epoch out of its checkpoints, and compute the same epochs from the papers' formulas: plain loops, one formula a
function, autograd only for the gradient of a literal loss. Nothing here is shared with the engines but the
layers of a network and the named random streams (initialisation, order of the samples, augmentation).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engines.contract import EngineResult, EngineSpec, TrainingData
from engines.networks.small import build_network
from engines.shared.checkpoint import deserialize_state, serialize_state
from engines.shared.config import LoopConfig

ROUNDING = 3e-5
"""Largest difference of a weight after a few float32 steps; one changed sample or sign moves weights by 1e-3."""

NO_STEP = 1e-30
"""A learning rate that changes no float32 weight: such a run shows how the networks began."""


# --- watching an engine -----------------------------------------------------------------------------------


class EveryState:
    """A checkpoint that keeps all states and gives none back."""

    def __init__(self) -> None:
        self.states: list[dict[str, Any]] = []

    def load(self) -> dict[str, Any] | None:
        """Nothing: every run starts anew."""
        return None

    def save(self, state: dict[str, Any]) -> None:
        """Keep a copy."""
        self.states.append(deserialize_state(serialize_state(state)))


def watch(
    spec: EngineSpec, data: TrainingData, config: LoopConfig, *, seed: int = 0
) -> tuple[EngineResult, list[dict[str, Any]]]:
    """The engine's result and its state after every epoch."""
    kept = EveryState()
    result = spec.train(data, config, seed=seed, device="cpu", checkpoint=kept)
    return result, kept.states


def networks_in(state: Any) -> list[dict[str, Tensor]]:
    """Weights of every network that ``state`` holds, in order, however deep they lie."""
    if isinstance(state, dict):
        if "head.weight" in state:
            return [state]
        return [found for value in state.values() for found in networks_in(value)]
    if isinstance(state, list):
        return [found for value in state for found in networks_in(value)]
    return []


def first_weights(
    spec: EngineSpec, data: TrainingData, config: LoopConfig, *, seed: int = 0
) -> list[list[dict[str, Tensor]]]:
    """Weights of the networks as they began: one list for each epoch of the run."""
    _, states = watch(spec, data, replace(config, learning_rate=NO_STEP), seed=seed)
    return [networks_in(state) for state in states]


def double_network(
    config: Any, data: TrainingData, weights: dict[str, Tensor], *, name: str | None = None
) -> nn.Module:
    """The network in float64 with these weights and batch statistics that have seen nothing."""
    _, channels, height, width = data.images.shape
    network = build_network(
        name or config.network,
        channels=channels,
        image_size=(height, width),
        num_classes=data.num_classes,
        width=getattr(config, "width", None),
    ).double()
    names = {name for name, _ in network.named_parameters()}
    network.load_state_dict({n: v for n, v in weights.items() if n in names}, strict=False)
    return network


def assert_same_weights(engine: dict[str, Tensor], literal: nn.Module, tolerance: float = ROUNDING) -> None:
    """Every parameter and every batch statistic is the same to float32 rounding."""
    for name, value in literal.state_dict().items():
        torch.testing.assert_close(
            engine[name].double(), value.double(), rtol=0, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )


# --- images -----------------------------------------------------------------------------------------------


def pixels(data: TrainingData) -> Tensor:
    """(N, C, H, W) in [0, 1]."""
    return torch.from_numpy(data.images.astype(np.float64) / 255.0)


def standardized(data: TrainingData, images: Tensor | None = None) -> Tensor:
    """Each channel minus its mean over all images, over its standard deviation."""
    every = pixels(data)
    result = (every if images is None else images).clone()
    for c in range(every.shape[1]):
        mean = every[:, c].mean()
        deviation = max(float(((every[:, c] - mean) ** 2).mean().sqrt()), 0.01)
        result[:, c] = (result[:, c] - mean) / deviation
    return result


def views_of(images: Tensor, count: int) -> list[Tensor]:
    """Grey test-time views: the image, and moved by one pixel (14 pixels of side a pixel, at least one)."""
    s = max(1, images.shape[2] // 14)
    moves = [(0, 0), (s, 0), (-s, 0), (0, s), (0, -s), (s, s)]
    return [torch.roll(images, move, dims=(2, 3)) for move in moves[:count]]


# --- formulas ---------------------------------------------------------------------------------------------


def log_softmax(logits: Tensor) -> Tensor:
    """z_k - log sum_j exp z_j for each row."""
    top = logits.max(dim=1, keepdim=True).values
    return logits - top - (logits - top).exp().sum(dim=1, keepdim=True).log()


def nt_xent(projected: Tensor, temperature: float) -> Tensor:
    """-log of the share that each view's own other view has among all others; the two halves are the two views."""
    z = projected / projected.norm(dim=1, keepdim=True)
    half, total = len(z) // 2, torch.zeros((), dtype=torch.float64)
    for i in range(len(z)):
        scores = {j: (z[i] * z[j]).sum() / temperature for j in range(len(z)) if j != i}
        every = torch.stack(list(scores.values())).exp().sum()
        total = total - (scores[(i + half) % len(z)].exp() / every).log()
    return total / len(z)


def losses_of(logits: Tensor, labels: Sequence[int]) -> list[Tensor]:
    """-log p_i[y_i], one number a sample."""
    log_probs = log_softmax(logits)
    return [-log_probs[i, label] for i, label in enumerate(labels)]


def margin_of(row: Tensor, label: int) -> float:
    """The given class minus the best other; NaN without a label."""
    if label < 0:
        return float("nan")
    others = [float(value) for k, value in enumerate(row) if k != label]
    return float(row[label]) - max(others)


def percentile(values: Sequence[float]) -> list[float]:
    """(mid rank - 1/2) / number of values, for each value; NaN stays and does not count."""
    known = [v for v in values if not math.isnan(v)]
    result = []
    for v in values:
        if math.isnan(v):
            result.append(v)
            continue
        below, equal = sum(w < v for w in known), sum(w == v for w in known)
        result.append((below + (equal + 1) / 2 - 0.5) / len(known))
    return result


def trust_of(*evidence: Sequence[float]) -> NDArray[np.float64]:
    """Mean percentile of the evidence."""
    return np.mean([percentile(list(map(float, one))) for one in evidence], axis=0)


def mean_log_probs(network: nn.Module, images: Tensor, views: int) -> Tensor:
    """Mean over the views of log p, in evaluation mode."""
    network.eval()
    with torch.no_grad():
        parts = [log_softmax(network(view)[1]) for view in views_of(images, views)]
    network.train()
    return torch.stack(parts).mean(dim=0)


def features_of(network: nn.Module, images: Tensor) -> Tensor:
    """Features of the unmoved images in evaluation mode."""
    network.eval()
    with torch.no_grad():
        features: Tensor = network(images)[0]
    network.train()
    return features


def rate_at(
    schedule: str, learning_rate: float, epoch: int, epochs: int, *, tail_start: float = 0.4
) -> float:
    """Learning rate of an epoch, by the name of the schedule."""
    if schedule == "constant":
        return learning_rate
    if schedule == "linear_tail":
        start = tail_start * epochs
        return learning_rate if epoch < start else learning_rate * (epochs - epoch) / (epochs - start)
    if schedule == "cosine_to_zero":
        return learning_rate * (1 + math.cos(math.pi * epoch / epochs)) / 2
    angle = math.pi * epoch / max(epochs - 1, 1)
    return learning_rate * (0.05 + 0.95 * (1 + math.cos(angle)) / 2)


def clipped(gradients: list[Tensor], largest: float) -> list[Tensor]:
    """All gradients times max / norm where their common norm is above ``largest``; 0 clips nothing."""
    norm = math.sqrt(sum(float((g.detach() ** 2).sum()) for g in gradients))
    if not largest or norm <= largest:
        return gradients
    return [g * (largest / norm) for g in gradients]


class Sgd:
    """v <- 0.9 v + (g + wd p), p <- p - lr v; the first v is g + wd p."""

    def __init__(self, network: nn.Module, weight_decay: float) -> None:
        self.parameters, self.weight_decay = list(network.parameters()), weight_decay
        self.velocity: list[Tensor] | None = None

    def step(self, gradients: list[Tensor], rate: float, *_: Any) -> None:
        """One step."""
        pull = [g + self.weight_decay * p.detach() for g, p in zip(gradients, self.parameters, strict=True)]
        if self.velocity is None:
            self.velocity = pull
        else:
            self.velocity = [0.9 * v + d for v, d in zip(self.velocity, pull, strict=True)]
        with torch.no_grad():
            for p, v in zip(self.parameters, self.velocity, strict=True):
                p -= rate * v


class Adam:
    """m, v as moving means of g and g^2 with bias correction; weight decay is an L2 term of g."""

    def __init__(self, network: nn.Module, weight_decay: float) -> None:
        self.parameters, self.weight_decay = list(network.parameters()), weight_decay
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.count = 0

    def step(self, gradients: list[Tensor], rate: float, beta1: float = 0.9) -> None:
        """One step."""
        self.count += 1
        with torch.no_grad():
            for i, (p, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
                g = gradient + self.weight_decay * p
                self.first[i] = beta1 * self.first[i] + (1 - beta1) * g
                self.second[i] = 0.999 * self.second[i] + 0.001 * g**2
                mean = self.first[i] / (1 - beta1**self.count)
                spread = self.second[i] / (1 - 0.999**self.count)
                p -= rate * mean / (spread.sqrt() + 1e-8)


def optimizer_of(config: LoopConfig, network: nn.Module) -> Sgd | Adam:
    """The optimizer that the config names."""
    return (Adam if config.optimizer == "adam" else Sgd)(network, config.weight_decay)


def gradients_of(loss: Tensor, network: nn.Module, *, graph: bool = False) -> list[Tensor]:
    """Gradient of ``loss`` by every parameter."""
    return list(
        torch.autograd.grad(
            loss, list(network.parameters()), create_graph=graph, materialize_grads=True, retain_graph=True
        )
    )


def untouched_copy(network: nn.Module) -> nn.Module:
    """A copy to look ahead with: what it sees leaves no trace in the batch statistics."""
    return copy.deepcopy(network)
