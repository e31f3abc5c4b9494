"""The fields that every engine's config shares, and the optimizer and learning rate that follow from them.

A config is a frozen dataclass: it is the settings table, the defaults, and what a run's provenance keeps.
All its problems are collected and raised once, so that a user mends them in one go.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import torch

from engines.contract import EngineInputError
from engines.networks import DOORS, HEADS, Backbone
from engines.shared import optimizers
from engines.shared.work import Work

PRESETS = ("quick", "standard", "paper")
OPTIMIZERS = ("adam", "sgd")
SCHEDULES = ("cosine", "constant", "linear_tail")
AUGMENTS = ("auto", "none", "shift", "shift_flip", "crop_flip", "turn_crop_flip")
MAX_VIEWS = 6
SMALLEST_BATCH, LARGEST_BATCH = 32, 512
"""What ``least_steps`` does not go below, and ``most_steps`` not above."""

CPU_SIDE = 112
"""Longest side on a CPU unless a config says otherwise: on 3,440 photos of 224 px the plain engine ranked as well
at 112 px for a quarter of the work (AUROC and average precision .950 and .756; at 224 px .949 and .734)."""
SMALLEST_SIDE = 8

LINEAR_TAIL_START = 0.4
"""``linear_tail`` is constant for this share of the epochs (Co-teaching: 80 of 200)."""

COSINE_FLOOR = 0.05
"""A cosine schedule ends at this share of the first learning rate (measured: better than 0 in short runs)."""


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """Network, optimizer, images and precision of one training loop; engine configs inherit from it.

    Raises:
        EngineInputError: one or more fields are out of range; the text lists every one of them.
    """

    network: str = "auto"
    """The network: ``"auto"`` (one that suits the images), a small one by its name, such as ``"cnn9"``, or a large
    one of a library, ``"timm:<name>"`` or ``"torchvision:<name>"``; on features ``"mlp"`` (``"auto"``) or
    ``"linear"``."""
    weights: str | None = None
    """Path of a file with pretrained weights for a network of timm or torchvision. Nothing is downloaded."""
    image_side: int | None = None
    """Side in pixels of the images that a pretrained network gets, at least 8; None: as its weights want it, at
    most 224."""
    trunk_rate: float = 0.1
    """Learning rate of a pretrained network's own weights, as a share of ``learning_rate``, which the new head has:
    above 0, at most 1."""
    epochs: int = 20
    """Passes over the labeled samples, at least 1."""
    batch_size: int = 128
    """Samples per step, at least 2 (batch norm needs two)."""
    least_steps: int = 1
    """Steps of an epoch, at least 1: on few samples batches are smaller than ``batch_size``, but not below 32."""
    most_steps: int | None = None
    """Steps of an epoch, at least 1: on many samples batches are larger than ``batch_size``, but not above 512."""
    fewest_steps: int = 1
    """Steps of a whole training, at least 1: on few samples there are more ``epochs``, until it has them."""
    learning_rate: float = 1e-3
    """First learning rate, above 0."""
    optimizer: str = "adam"
    """``"adam"`` or ``"sgd"`` (momentum 0.9)."""
    weight_decay: float = 0.0
    """L2 penalty given to the optimizer, at least 0."""
    schedule: str = "cosine"
    """``"cosine"`` (to 5 %), ``"constant"`` or ``"linear_tail"`` (constant for 40 %, then linear to 0)."""
    augment: str = "auto"
    """``"auto"``, ``"none"``, ``"shift"``, ``"shift_flip"``, ``"crop_flip"`` or ``"turn_crop_flip"`` (see
    ``loader.augment``); on features ``"auto"`` is a random view of each sample at every step, ``"none"`` the first
    view."""
    views: int = 6
    """Views of each image in the final pass, 1 to 6; 1 = the image as it is. On features: at most all of them."""
    precision: str = "float32"
    """``"float32"`` or ``"bfloat16"`` (mixed precision where the device computes in it; ignored elsewhere)."""
    side: int | None = None
    """Longest side in pixels of the images that are trained on, at least 8; larger ones are reduced, smaller ones
    stay. None: 112 on a CPU, as imported on CUDA. Features have no side."""
    resident: str = "auto"
    """``"yes"``: all images are on the device as uint8; ``"no"``: streamed; ``"auto"``: all if they fit."""

    def __post_init__(self) -> None:
        problems = self.problems()
        if problems:
            raise EngineInputError(f"{type(self).__name__}: " + "; ".join(problems) + ".")

    def problems(self) -> list[str]:
        """Every field that is out of range, one line each. Subclasses extend the list with their own."""
        found = [
            *at_least(self, 1, "epochs", "least_steps", "fewest_steps"),
            *at_least(self, 2, "batch_size"),
            *([] if self.most_steps is None else at_least(self, 1, "most_steps")),
            *at_least(self, 0, "weight_decay"),
            *([] if self.side is None else at_least(self, SMALLEST_SIDE, "side")),
            *one_of(self, "optimizer", OPTIMIZERS),
            *one_of(self, "schedule", self.schedules()),
            *one_of(self, "augment", AUGMENTS),
            *one_of(self, "precision", ("float32", "bfloat16")),
            *one_of(self, "resident", ("auto", "yes", "no")),
        ]
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            found.append(f"learning_rate is {self.learning_rate}, it must be above 0")
        if not 1 <= self.views <= MAX_VIEWS:
            found.append(f"views is {self.views}, it must be 1 to {MAX_VIEWS}")
        if not 0 < self.trunk_rate <= 1:
            found.append(f"trunk_rate is {self.trunk_rate}, it must be above 0 and at most 1")
        if self.image_side is not None:
            found += at_least(self, 8, "image_side")
        if self.weights is not None and not self.network.startswith(DOORS):
            found.append(
                f"weights need a network 'timm:<name>' or 'torchvision:<name>', but network is {self.network!r}"
            )
        return found

    @classmethod
    def schedules(cls) -> tuple[str, ...]:
        """Learning-rate schedules that this config accepts."""
        return SCHEDULES

    @classmethod
    def preset(cls, name: str) -> Self:
        """The config named ``quick``, ``standard`` or ``paper``; every engine's config overrides this."""
        check_preset(name)
        return cls()

    def for_features(self) -> Self:
        """This config for features of a backbone instead of images: ``Config.preset("quick").for_features()``.

        Networks and augmentations of images become ``"auto"``, and the precision float32: a head is too small to
        gain from another. Engines change what features need besides (fewer epochs, larger batches) and say so where
        they do.
        """
        network = self.network if self.network in HEADS else "auto"
        augment = "none" if self.augment == "none" else "auto"
        return replace(self, network=network, weights=None, augment=augment, precision="float32")

    def side_on(self, device: torch.device) -> int | None:
        """Longest side of images on this device; None: as they are."""
        return CPU_SIDE if self.side is None and device.type == "cpu" else self.side

    def batch_size_for(self, num_rows: int) -> int:
        """Samples per step of an epoch on ``num_rows``: see ``least_steps`` and ``most_steps``."""
        size = self.batch_size
        if self.least_steps > 1:
            size = min(size, max(SMALLEST_BATCH, num_rows // self.least_steps))
        if self.most_steps is not None:
            size = max(size, min(LARGEST_BATCH, num_rows // self.most_steps))
        return size

    def lengthened(self, num_rows: int) -> Self:
        """Return this config with the epochs that a training on ``num_rows`` has: see ``fewest_steps``."""
        steps = max(1, num_rows // self.batch_size_for(num_rows))
        return replace(self, epochs=max(self.epochs, -(-self.fewest_steps // steps)), fewest_steps=1)

    def work(self, num_rows: int, num_classes: int, *, on_features: bool) -> Work:
        """Rows that a run on ``num_rows`` passes through its network, in plain steps; engines override it."""
        del num_classes, on_features
        return Work(self.epochs * num_rows, self.views * num_rows)

    def for_finetuning(self, network: str, weights: str | None, image_side: int | None = None) -> Self:
        """This config for training a pretrained network further: ``timm:<name>`` with the weights of that file.

        In float32: on a CPU, L2B's steps of a network of timm in bfloat16 were not the same from run to run and
        some were no numbers. Engines change what it needs besides and say so where they do.
        """
        augment = "none" if self.augment == "none" else "auto"
        return replace(
            self,
            network=network,
            weights=weights,
            image_side=image_side,
            augment=augment,
            precision="float32",
        )

    def as_dict(self) -> dict[str, Any]:
        """Every field as plain values; ``type(self)(**config.as_dict())`` builds the config again."""
        return asdict(self)


def check_preset(name: str) -> None:
    """Raise EngineInputError where ``name`` is none of the three presets."""
    if name not in PRESETS:
        raise EngineInputError(f"there is no preset {name!r}; choose one of {', '.join(PRESETS)}.")


def at_least(config: object, low: float, *fields: str) -> list[str]:
    """Problems of ``fields`` that are below ``low`` or not a number."""
    return [
        f"{field} is {getattr(config, field)}, it must be at least {low}"
        for field in fields
        if not getattr(config, field) >= low
    ]


def within(config: object, low: float, high: float, *fields: str) -> list[str]:
    """Problems of ``fields`` outside [low, high] or not a number."""
    return [
        f"{field} is {getattr(config, field)}, it must be {low} to {high}"
        for field in fields
        if not low <= getattr(config, field) <= high
    ]


def one_of(config: object, field: str, allowed: Iterable[str]) -> list[str]:
    """The problem of ``field`` where its value is none of ``allowed``."""
    value, allowed = getattr(config, field), tuple(allowed)
    return [] if value in allowed else [f"{field} is {value!r}, it must be one of {', '.join(allowed)}"]


def parameter_groups(network: torch.nn.Module, config: LoopConfig) -> list[dict[str, Any]]:
    """The parameters for an optimizer: one group, or two where a part of the network was pretrained.

    ``share`` of a group is what ``set_learning_rate`` multiplies its learning rate by: ``trunk_rate`` for what was
    pretrained.
    """
    trunks = [part for part in network.modules() if isinstance(part, Backbone)]
    pretrained = {id(value) for trunk in trunks for value in trunk.parameters()}
    new = [value for value in network.parameters() if id(value) not in pretrained]
    groups: list[dict[str, Any]] = [{"params": new}]
    if pretrained:
        old = [value for value in network.parameters() if id(value) in pretrained]
        groups.append({"params": old, "share": config.trunk_rate})
    return groups


def make_optimizer(
    network: torch.nn.Module, config: LoopConfig, *, momentum: float = 0.9
) -> torch.optim.Optimizer:
    """Adam or SGD (with ``momentum``) as the config says, at its first learning rate."""
    optimizer = _optimizer(parameter_groups(network, config), config, momentum)
    set_learning_rate(optimizer, config.learning_rate)
    return optimizer


def _optimizer(
    parameters: list[dict[str, Any]], config: LoopConfig, momentum: float
) -> torch.optim.Optimizer:
    if config.optimizer == "adam":
        return optimizers.Adam(parameters, lr=config.learning_rate, weight_decay=config.weight_decay)
    return optimizers.SGD(
        parameters, lr=config.learning_rate, momentum=momentum, weight_decay=config.weight_decay
    )


def learning_rate_at(config: LoopConfig, epoch: int, num_epochs: int | None = None) -> float:
    """Learning rate of ``epoch`` (0-based); depends on the epoch alone, so a resumed run needs no state.

    ``cosine``: from ``learning_rate`` at epoch 0 to 5 % of it at the last epoch; ``constant``: unchanged;
    ``linear_tail``: unchanged for 40 % of the epochs, then in equal steps to 0 after the last one.
    """
    total = num_epochs or config.epochs
    if config.schedule == "constant":
        return config.learning_rate
    if config.schedule == "linear_tail":
        start = LINEAR_TAIL_START * total
        return config.learning_rate * min(1.0, (total - epoch) / (total - start))
    last = max(1, total - 1)
    share = 0.5 * (1 + math.cos(math.pi * min(1.0, epoch / last)))
    return config.learning_rate * (COSINE_FLOOR + (1 - COSINE_FLOOR) * share)


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Give every parameter group of ``optimizer`` this learning rate, or its ``share`` of it."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * group.get("share", 1.0)
