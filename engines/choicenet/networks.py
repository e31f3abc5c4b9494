"""Networks of ChoiceNet: any trunk of `networks.py` or the paper's MNIST trunk, under one of three heads.

Heads: the Cholesky block (`cholesky.py`), independent component heads (the mixture density baseline) and
one linear classifier (the standard baseline). All answer with a mixture of Gaussians over the outputs, so
that the engine trains and scores them alike; the standard head is a mixture of one component without noise.

Letters: B batch, Q feature size, K components, D classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from engines.choicenet.cholesky import MAX_LOG_VARIANCE, CholeskyBlock
from engines.choicenet.config import RESIDUAL_TRUNK, ChoiceNetConfig
from engines.contract import EngineInputError
from engines.networks.heads import build_for_shape
from engines.shared.device import compiled


class OutputMixture(Protocol):
    """A Gaussian mixture over outputs for each sample of a batch."""

    @property
    def log_pi(self) -> Tensor:
        """(B, K) log mixture probabilities."""

    @property
    def rho(self) -> Tensor:
        """(B, K) correlations with the target; NaN where the head has none."""

    @property
    def target(self) -> Tensor:
        """(B, D) outputs of the component that classifies."""

    @property
    def target_index(self) -> Tensor | None:
        """(B,) which component classifies; None for component 1."""

    def means(self) -> Tensor:
        """(B, K, D) expected outputs."""

    def total_variances(self) -> Tensor:
        """(B, K, D) variances of the sampled outputs."""

    def with_fixed_correlations(self) -> OutputMixture:
        """The same without gradient to rho."""

    def at_target_correlation(self, rho_1: float) -> OutputMixture:
        """The same with another correlation of component 1, where there is one."""

    def sample(self, generator: torch.Generator | None, *, sharing: str = "independent") -> Tensor:
        """(B, K, D) sampled outputs."""


@dataclass(frozen=True)
class FreeMixture:
    """Components without coupling: free means and variances, the most likely component classifies."""

    log_pi: Tensor
    """(B, K)."""
    component_means: Tensor
    """(B, K, D)."""
    component_variances: Tensor | None
    """(B, K, D), or None: no noise."""

    @property
    def target_index(self) -> Tensor:
        """(B,) component of the largest pi."""
        return self.log_pi.argmax(dim=1)

    @property
    def target(self) -> Tensor:
        """(B, D) means of the component of the largest pi."""
        rows = torch.arange(len(self.log_pi), device=self.log_pi.device)
        return self.component_means[rows, self.target_index]

    @property
    def rho(self) -> Tensor:
        """(B, K) NaN: free components have no correlation with a target."""
        return torch.full_like(self.log_pi, float("nan"))

    def means(self) -> Tensor:
        """(B, K, D)."""
        return self.component_means

    def total_variances(self) -> Tensor:
        """(B, K, D), zero without noise."""
        if self.component_variances is None:
            return torch.zeros_like(self.component_means)
        return self.component_variances

    def with_fixed_correlations(self) -> FreeMixture:
        """Itself: there is no correlation."""
        return self

    def at_target_correlation(self, rho_1: float) -> FreeMixture:
        """Itself: there is no correlation to fix."""
        del rho_1
        return self

    def sample(self, generator: torch.Generator | None, *, sharing: str = "independent") -> Tensor:
        """(B, K, D) means plus independent noise; ``sharing`` has no meaning here."""
        del sharing
        if self.component_variances is None:
            return self.component_means
        shape, like = self.component_means.shape, self.component_means
        noise = torch.randn(shape, generator=generator, device=like.device, dtype=like.dtype)
        return like + self.component_variances.sqrt() * noise


class MixtureDensityHead(nn.Module):
    """Baseline: K independent linear heads with free variances and mixture probabilities."""

    def __init__(self, feature_size: int, num_outputs: int, *, num_components: int) -> None:
        super().__init__()
        self.shape = (num_components, num_outputs)
        self.mean_head = nn.Linear(feature_size, num_components * num_outputs)
        self.variance_head = nn.Linear(feature_size, num_components * num_outputs)
        self.pi_head = nn.Linear(feature_size, num_components)
        for head in (self.variance_head, self.pi_head):
            nn.init.normal_(head.weight, std=0.01)
            nn.init.zeros_(head.bias)

    def forward(self, features: Tensor) -> FreeMixture:
        """Map features (B, Q) to the batch's mixture."""
        log_variance = self.variance_head(features).clamp(-MAX_LOG_VARIANCE, MAX_LOG_VARIANCE)
        return FreeMixture(
            log_pi=torch.log_softmax(self.pi_head(features), dim=1),
            component_means=self.mean_head(features).unflatten(1, self.shape),
            component_variances=log_variance.exp().unflatten(1, self.shape),
        )


class PlainHead(nn.Module):
    """Baseline: one linear classifier, as a mixture of one component without noise."""

    def __init__(self, feature_size: int, num_outputs: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(feature_size, num_outputs)

    def forward(self, features: Tensor) -> FreeMixture:
        """Map features (B, Q) to the batch's mixture."""
        logits = self.classifier(features)
        return FreeMixture(
            log_pi=torch.zeros_like(logits[:, :1]),
            component_means=logits[:, None, :],
            component_variances=None,
        )


class MixtureNetwork(nn.Module):
    """Trunk and head; in the house's form (features, logits).

    Args:
        trunk: module that returns (features, logits); only its features are used.
        feature_size: size of those features.
        head: maps the block's features to an ``OutputMixture``.
    """

    def __init__(self, trunk: nn.Module, head: nn.Module, *, feature_size: int) -> None:
        super().__init__()
        self.trunk = trunk
        self.head = head
        self.feature_size = feature_size
        # In a list, so that the compiled twin is not registered a second time in the state_dict.
        self._run_trunk = [trunk]

    def compile_trunk(self, device: torch.device) -> None:
        """Compile the trunk on CUDA; parameters and state_dict stay as they are."""
        self._run_trunk = [compiled(self.trunk, enabled=True, device=device)]

    def mixture(self, images: Tensor) -> tuple[Tensor, OutputMixture]:
        """Images (B, C, H, W) to (h (B, Q), mixture); the head computes in float32."""
        features, _ = self._run_trunk[0](images)
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

    ``baseline`` builds the compared ConvNet instead: 1 x 1 identity convolutions, no batch norm after the
    fully connected layer, dropout of 5 %.

    Args:
        channels: C.
        image_size: (H, W), at least 4 x 4.
        width: channels of the convolutions, 64 in the paper.
        feature_size: Q, 256 in the paper.
        baseline: the ConvNet that ChoiceNet is compared with.
    """

    def __init__(
        self,
        *,
        channels: int,
        image_size: tuple[int, int],
        width: int = 64,
        feature_size: int = 256,
        baseline: bool = False,
    ) -> None:
        super().__init__()
        if min(image_size) < 4:
            raise EngineInputError(f"{RESIDUAL_TRUNK} needs images of at least 4 x 4 px, got {image_size}.")
        self.feature_size = feature_size
        kernel = 1 if baseline else 3
        self.blocks = nn.Sequential(
            _ResidualBlock(channels, width, identity_kernel=kernel),
            _ResidualBlock(width, width, identity_kernel=kernel),
        )
        sides = [side // 4 for side in image_size]
        self.window = (-(-sides[0] // LARGEST_MAP), -(-sides[1] // LARGEST_MAP))
        flat = width * math.prod(-(-side // size) for side, size in zip(sides, self.window, strict=True))
        tail = [nn.ReLU(), nn.Dropout(0.05)] if baseline else [nn.BatchNorm1d(feature_size), nn.ReLU()]
        self.tail = nn.Sequential(nn.Flatten(), nn.Linear(flat, feature_size), *tail)
        self.apply(_initialize)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Images (B, C, H, W) to (features (B, Q), the same); heads sit on top."""
        maps = self.blocks(images)
        if self.window != (1, 1):
            maps = nn.functional.avg_pool2d(maps, self.window, ceil_mode=True)
        features = self.tail(maps)
        return features, features


class _ResidualBlock(nn.Module):
    def __init__(self, channels: int, width: int, *, identity_kernel: int) -> None:
        super().__init__()
        self.identity: nn.Module = nn.Identity()
        if channels != width:
            pad = identity_kernel // 2
            self.identity = nn.Sequential(
                nn.Conv2d(channels, width, identity_kernel, padding=pad), nn.BatchNorm2d(width)
            )
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


def _initialize(module: nn.Module) -> None:
    """The authors' initialisation: standard deviation 0.01 everywhere, batch norm gains N(1, 0.01²)."""
    if isinstance(module, nn.Conv2d):
        nn.init.trunc_normal_(module.weight, std=0.01, a=-0.02, b=0.02)
    elif isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.01)
    elif isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
        nn.init.normal_(module.weight, mean=1.0, std=0.01)
    if isinstance(module, (nn.Conv2d, nn.Linear)) and module.bias is not None:
        nn.init.zeros_(module.bias)


_BLOCK_FIELDS = (
    "num_components",
    "rho_ref",
    "rho_form",
    "pi_form",
    "variance_form",
    "outer",
    "log_weight_variance",
    "inverse_precision",
    "head_scale",
    "rho_start",
)
"""Fields of the config that are arguments of the block, under the same names."""


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
    trunk, size = _build_trunk(
        name,
        shape,
        num_classes=num_classes,
        width=config.width,
        baseline=config.variant == "standard",
        weights=config.weights,
        image_side=config.image_side,
    )
    head: nn.Module
    if config.variant == "standard":
        head = PlainHead(size, num_classes)
    elif config.variant == "mdn":
        head = MixtureDensityHead(size, num_classes, num_components=config.num_components)
    else:
        head = CholeskyBlock(size, num_classes, **{name: getattr(config, name) for name in _BLOCK_FIELDS})
    return MixtureNetwork(trunk, head, feature_size=size)


def _build_trunk(
    name: str,
    shape: tuple[int, ...],
    *,
    num_classes: int,
    width: int = 0,
    baseline: bool = False,
    weights: str | None = None,
    image_side: int | None = None,
) -> tuple[nn.Module, int]:
    """The trunk called ``name`` and the size of its features; ``width`` 0 is the trunk's own width."""
    if name == RESIDUAL_TRUNK:
        channels, height, side = shape
        trunk = ResidualTrunk(
            channels=channels, image_size=(height, side), width=width or 64, baseline=baseline
        )
        return trunk, trunk.feature_size
    network = build_for_shape(
        name, shape, num_classes, weights=weights, width=width or None, image_side=image_side
    )
    return network, int(network.feature_size)  # type: ignore[arg-type]
