"""A tiny network for masks, batches for it, and a literal step of momentum in float64."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from engines.contract import IGNORED_PIXEL

K, SIZE = 3, 6


class Tiny(nn.Module):
    """Two convolutions with batch norm between them."""

    def __init__(self, channels: int = 2) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.last = nn.Conv2d(4, K, 3, padding=1)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = torch.tanh(self.norm(self.first(images)))
        return features.mean(dim=(2, 3)), self.last(features)


def batch(seed: int, num: int) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    images = torch.randn(num, 2, SIZE, SIZE, generator=random, dtype=torch.float64)
    masks = torch.randint(0, K, (num, SIZE, SIZE), generator=random)
    masks[0, 0, :2] = IGNORED_PIXEL
    return images, masks


def moved(
    weights: Sequence[Tensor],
    gradients: Sequence[Tensor],
    buffers: list[Tensor | None],
    *,
    rate: float,
    clip: float,
) -> None:
    """Move ``weights`` by SGD with momentum .9, the gradients cut together to the norm ``clip``."""
    norm = torch.stack([one.norm() for one in gradients]).norm()
    scale = min(1.0, clip / (float(norm) + 1e-6))
    with torch.no_grad():
        for at, (value, one) in enumerate(zip(weights, gradients, strict=True)):
            before = buffers[at]
            moment = one * scale if before is None else 0.9 * before + one * scale
            buffers[at] = moment
            value -= rate * moment


def assert_same_state(ours: nn.Module, literal: nn.Module, note: object) -> None:
    """Weights and running statistics agree to rounding."""
    for (name, mine), theirs in zip(ours.state_dict().items(), literal.state_dict().values(), strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-6, atol=1e-8), f"{note}, {name}"
