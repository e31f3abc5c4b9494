"""Networks of ChoiceNet: any trunk of `networks.py` or the paper's MNIST trunk, under the Cholesky block.

Letters: B batch, Q feature size, K components, D classes.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from engines.choicenet.cholesky import CholeskyBlock, Mixture
from engines.choicenet.config import RESIDUAL_TRUNK, ChoiceNetConfig
from engines.contract import EngineInputError
from engines.networks import build_for_shape

HEAD_SCALE = 0.01
"""Standard deviation of the initial weights of the rho, pi and variance heads."""


class MixtureNetwork(nn.Module):
    """Trunk and head; in the house's form (features, logits).

    Args:
        trunk: module that returns (features, logits); only its features are used.
        feature_size: size of those features.
        head: maps the features to a ``Mixture``.
    """

    def __init__(self, trunk: nn.Module, head: nn.Module, *, feature_size: int) -> None:
        super().__init__()
        self.trunk = trunk
        self.head = head
        self.feature_size = feature_size

    def mixture(self, images: Tensor) -> tuple[Tensor, Mixture]:
        """Images (B, C, H, W) to (h (B, Q), mixture); the head computes in float32."""
        features, _ = self.trunk(images)
        with torch.autocast(images.device.type, enabled=False):
            features = features.float()
            return features, self.head(features)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Images to (features (B, Q), logits of the target component (B, D))."""
        features, mixture = self.mixture(images)
        return features, mixture.target


LARGEST_MAP = 8
"""Sides of the maps that the paper's fully connected layer reads, at most: 7 at its 28 px, 8 at 32 px. Larger maps
are averaged first, so that the layer keeps at most 64 * 8 * 8 * 256 weights instead of 51 million at 224 px."""


class ResidualTrunk(nn.Module):
    """The paper's MNIST trunk: two residual blocks with pooling, a fully connected layer, batch norm, ReLU.

    Up to 35 px it is the paper's; maps of larger images are averaged to at most ``LARGEST_MAP`` a side in between.

    Args:
        channels: C.
        image_size: (H, W), at least 4 x 4.
        width: channels of the convolutions, 64 in the paper.
        feature_size: Q, 256 in the paper.
    """

    def __init__(
        self,
        *,
        channels: int,
        image_size: tuple[int, int],
        width: int = 64,
        feature_size: int = 256,
    ) -> None:
        super().__init__()
        if min(image_size) < 4:
            raise EngineInputError(f"{RESIDUAL_TRUNK} needs images of at least 4 x 4 px, got {image_size}.")
        self.feature_size = feature_size
        self.blocks = nn.Sequential(_ResidualBlock(channels, width), _ResidualBlock(width, width))
        sides = [side // 4 for side in image_size]
        self.window = (-(-sides[0] // LARGEST_MAP), -(-sides[1] // LARGEST_MAP))
        flat = width * math.prod(-(-side // size) for side, size in zip(sides, self.window, strict=True))
        self.tail = nn.Sequential(
            nn.Flatten(), nn.Linear(flat, feature_size), nn.BatchNorm1d(feature_size), nn.ReLU()
        )
        self.apply(initialize)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Images (B, C, H, W) to (features (B, Q), the same); heads sit on top."""
        maps = self.blocks(images)
        if self.window != (1, 1):
            maps = nn.functional.avg_pool2d(maps, self.window, ceil_mode=True)
        features = self.tail(maps)
        return features, features


class _ResidualBlock(nn.Module):
    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.identity: nn.Module = nn.Identity()
        if channels != width:
            self.identity = nn.Sequential(nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width))
        self.main = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.BatchNorm2d(width),
        )

    def forward(self, images: Tensor) -> Tensor:
        added = torch.relu(self.main(images) + self.identity(images))
        return nn.functional.max_pool2d(added, 2)


def initialize(module: nn.Module) -> None:
    """The authors' initialisation: standard deviation 0.01 everywhere, batch norm gains N(1, 0.01²)."""
    if isinstance(module, nn.Conv2d):
        nn.init.trunc_normal_(module.weight, std=0.01, a=-0.02, b=0.02)
    elif isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.01)
    elif isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
        nn.init.normal_(module.weight, mean=1.0, std=0.01)
    if isinstance(module, (nn.Conv2d, nn.Linear)) and module.bias is not None:
        nn.init.zeros_(module.bias)


def build_mixture_network(
    config: ChoiceNetConfig, name: str, shape: tuple[int, ...], *, num_classes: int
) -> MixtureNetwork:
    """The network that ``config`` describes on the trunk ``name``, parameters from torch's global generator.

    Args:
        config: the head and its settings.
        name: a resolved network (not ``"auto"``).
        shape: (C, H, W) of images, (D,) of features.
        num_classes: D, at least 2.
    """
    trunk, size = build_trunk(config, name, shape, num_classes=num_classes)
    block = CholeskyBlock(
        size,
        num_classes,
        num_components=config.num_components,
        rho_ref=config.rho_ref,
        outer=config.outer,
        inverse_precision=config.inverse_precision,
        head_scale=HEAD_SCALE,
        rho_start=config.rho_start,
    )
    return MixtureNetwork(trunk, block, feature_size=size)


def build_trunk(
    config: ChoiceNetConfig, name: str, shape: tuple[int, ...], *, num_classes: int
) -> tuple[nn.Module, int]:
    """The trunk called ``name`` and the size of its features."""
    if name == RESIDUAL_TRUNK:
        channels, height, side = shape
        trunk = ResidualTrunk(channels=channels, image_size=(height, side), width=config.width or 64)
        return trunk, trunk.feature_size
    network = build_for_shape(
        name,
        shape,
        num_classes,
        weights=config.weights,
        width=config.width or None,
        image_side=config.image_side,
    )
    return network, int(network.feature_size)  # type: ignore[arg-type]
