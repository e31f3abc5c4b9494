"""The settings of an engine that trains on masks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import torch

from engines.shared.config import LoopConfig, at_least, check_preset
from engines.shared.work import Work

CPU_SIDE = 160
FEWEST_STEPS = 300
"""Steps that a head on columns has at least: on 22 slices of membranes 24 epochs are 72, and its Dice was .52."""


@dataclass(frozen=True, kw_only=True)
class MaskConfig(LoopConfig):
    """The shared loop on pixels."""

    network: str = "resnet18"
    """Encoder of a U-Net from random weights, by its name in segmentation-models-pytorch; with ``weights`` a
    network of timm (``timm:<name>``) that stays as it is, below a small head."""
    batch_size: int = 8
    """Images per step, at least 2 (batch norm needs two)."""
    augment: str = "auto"
    """``"none"``: images as they are; anything else: mirrored at random, mask and image together."""
    views: int = 2
    """1: the image as it is; 2 or more: the mean with its mirrored view, in the final pass."""
    folds: int = 2
    """Parts of the images, each judged by a network that was trained on the others; 1: one network trains on all
    and judges what it learned."""

    def problems(self) -> list[str]:
        return [*super().problems(), *at_least(self, 1, "folds")]

    def for_finetuning(self, network: str, weights: str | None, image_side: int | None = None) -> Self:
        """This config for a head on what a pretrained network sees, which is not trained itself."""
        found = super().for_finetuning(network, weights, image_side)
        return replace(
            found, epochs=2 * self.epochs, batch_size=4, learning_rate=3e-3, fewest_steps=FEWEST_STEPS
        )

    def side_on(self, device: torch.device) -> int | None:
        """Longest side of images on this device; on a CPU 160 px unless the config says otherwise."""
        return CPU_SIDE if self.side is None and device.type == "cpu" else self.side

    def work(self, num_rows: int, num_classes: int, *, on_features: bool) -> Work:
        del num_classes, on_features
        trained = num_rows if self.folds == 1 else num_rows * (self.folds - 1)
        return Work(self.epochs * trained, self.views * num_rows)

    @classmethod
    def preset(cls, name: str) -> MaskConfig:
        """``quick``: minutes on a laptop for a few hundred images; ``standard``: three times as long."""
        check_preset(name)
        return cls(epochs={"quick": 12, "standard": 40, "paper": 100}[name])
