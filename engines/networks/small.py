"""Image classifiers that return what they saw and what they say: ``forward(x) -> (features, logits)``.

From a one-layer perceptron to the classifiers of timm and torchvision. ``x`` is (B, C, H, W) float32, standardised
unless an engine's paper says otherwise or the network does so itself (``is_pretrained``); features are (B, D) with
D = ``.feature_size``, logits (B, K). A network that cannot take images of the given size says so when it is built,
and names one that can.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engines.contract import EngineInputError
from engines.networks.pretrained import TIMM, is_pretrained, pretrained_network
from engines.networks.torchvision_networks import TORCHVISION, ImageSize, torchvision_network


class TrunkAndHead(nn.Module):
    """A trunk that ends in (B, D) features and a linear head."""

    def __init__(self, trunk: nn.Module, feature_size: int, num_classes: int) -> None:
        super().__init__()
        self.feature_size = feature_size
        self.trunk = trunk
        self.head = nn.Linear(feature_size, num_classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.trunk(x)
        return features, self.head(features)


class NetworkBuilder(Protocol):
    """One row of ``NETWORKS``. ``width`` None is the published width."""

    def __call__(
        self, channels: int, image_size: ImageSize, num_classes: int, width: int | None = None
    ) -> nn.Module: ...


# --- Plain networks ---------------------------------------------------------------------------------------


def _mlp(channels: int, image_size: ImageSize, num_classes: int, width: int | None = None) -> nn.Module:
    """Flatten, ``width`` (256) ReLU units, linear head."""
    hidden = width or 256
    inputs = channels * image_size[0] * image_size[1]
    trunk = nn.Sequential(nn.Flatten(), nn.Linear(inputs, hidden), nn.ReLU())
    return TrunkAndHead(trunk, hidden, num_classes)


class GlobalMax(nn.Module):
    """The largest value of each map, (B, C, H, W) -> (B, C). torch's adaptive pool is not deterministic on CUDA."""

    def forward(self, x: Tensor) -> Tensor:
        return x.amax((2, 3))


STRIDED_FROM = 24
"""Side in pixels from which `conv4` begins with a halving convolution: smaller images have no pixel to spare."""


LARGEST_MAP = 32
"""Side in pixels down to which `conv4` halves larger images."""


def _conv_block(
    channels_in: int, channels_out: int, activation: nn.Module, padding: int = 1
) -> list[nn.Module]:
    """Conv 3x3, batch norm, activation."""
    return [
        nn.Conv2d(channels_in, channels_out, 3, padding=padding),
        nn.BatchNorm2d(channels_out),
        activation,
    ]


def _pooled_convs(channels: int, side: int, widths: list[int]) -> list[nn.Module]:
    """Conv 3x3 + batch norm + max pool + ReLU, once a width.

    A pool is left out where it would leave less than 2 px of ``side``, so that 8 px digits work too.
    """
    layers: list[nn.Module] = []
    last = channels
    for width in widths:
        *convolution, activation = _conv_block(last, width, nn.ReLU())
        layers += convolution
        if side >= 4:
            # Before the ReLU: the same values, for a quarter of its work (a step takes a tenth less on a CPU).
            layers.append(nn.MaxPool2d(2))
            side //= 2
        layers.append(activation)
        last = width
    return layers


def _conv3(channels: int, image_size: ImageSize, num_classes: int, width: int | None = None) -> nn.Module:
    """Three convolutions of 24, 40 and 64 channels, pooled to 2x2: the small net of our measurements on the CPU."""
    base = width or 24
    layers = _pooled_convs(channels, min(image_size), [base, base * 5 // 3, base * 8 // 3])
    layers += [nn.AdaptiveAvgPool2d(2), nn.Flatten()]
    return TrunkAndHead(nn.Sequential(*layers), 4 * (base * 8 // 3), num_classes)


def _conv4(channels: int, image_size: ImageSize, num_classes: int, width: int | None = None) -> nn.Module:
    """Four convolutions of 32, 64, 128 and 128 channels, about 240,000 weights: what a CPU can train well.

    From 24 px on the first one is 4x4 with stride 2, because on a CPU full-size maps cost more than all that is
    computed from them; above 64 px more of them follow, until a map has 32 px or less. The features are the 128
    maxima of the last map: few, and a map of the set needs no more.
    """
    base = width or 32
    side, last = min(image_size), channels
    layers: list[nn.Module] = []
    while side > LARGEST_MAP or (side >= STRIDED_FROM and not layers):
        layers += [nn.Conv2d(last, base, 4, stride=2, padding=1), nn.BatchNorm2d(base), nn.ReLU()]
        side, last = side // 2, base
    widths = [base * 2, base * 4, base * 4] if layers else [base, base * 2, base * 4, base * 4]
    layers += [*_pooled_convs(last, side, widths), GlobalMax()]
    return TrunkAndHead(nn.Sequential(*layers), base * 4, num_classes)


def _cnn_small(channels: int, image_size: ImageSize, num_classes: int, width: int | None = None) -> nn.Module:
    """LeNet of S2E and Co-teaching+ on CIFAR-10; features are the 84 units before the head."""
    del width
    _require_side(image_size, 16, "cnn_small")
    height, width_left = (((side - 4) // 2 - 4) // 2 for side in image_size)
    trunk = nn.Sequential(
        *(nn.Conv2d(channels, 6, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(16 * height * width_left, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()),
    )
    return TrunkAndHead(trunk, 84, num_classes)


def _cnn6(channels: int, image_size: ImageSize, num_classes: int, width: int | None = None) -> nn.Module:
    """Six convolutions of Co-teaching+ on CIFAR-100; features are the flattened last map (256 at 32 px)."""
    del width
    _require_side(image_size, 8, "cnn6")
    layers: list[nn.Module] = []
    last = channels
    for widths in ((64, 64), (128, 128), (196, 16)):
        for each in widths:
            layers += _conv_block(last, each, nn.ReLU())
            last = each
        layers.append(nn.MaxPool2d(2))
    layers.append(nn.Flatten())
    size = 16 * (image_size[0] // 8) * (image_size[1] // 8)
    return TrunkAndHead(nn.Sequential(*layers), size, num_classes)


def _cnn9(channels: int, image_size: ImageSize, num_classes: int, width: int | None = None) -> nn.Module:
    """Nine convolutions of the original Co-teaching, with dropout 0.25; 128 pooled features."""
    _require_side(image_size, 28, "cnn9")
    base = width or 128
    layers: list[nn.Module] = []
    last = channels
    for each in (base, 2 * base):
        for _ in range(3):
            layers += _conv_block(last, each, nn.LeakyReLU(0.01))
            last = each
        layers += [nn.MaxPool2d(2), nn.Dropout2d(0.25)]
    for each in (4 * base, 2 * base, base):
        layers += _conv_block(last, each, nn.LeakyReLU(0.01), padding=0)
        last = each
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return TrunkAndHead(nn.Sequential(*layers), base, num_classes)


# --- UMN's 13-layer network -------------------------------------------------------------------------------


class UMN13(nn.Module):
    """Shared trunk (B, 512, H/4 - 2, W/4 - 2) and convolutional classifier of UMN's table 4b.

    ``trunk`` and ``classifier`` are separate so that UMN's generative part can read the trunk. Input noise
    and shift belong to the engine. Features are the 128 pooled values before the head.
    """

    def __init__(self, channels: int, num_classes: int, base: int = 128) -> None:
        super().__init__()
        self.feature_size = base
        self.trunk_size = 4 * base
        layers: list[nn.Module] = []
        last = channels
        for _ in range(2):
            for _ in range(3):
                layers += _conv_block(last, base, nn.LeakyReLU(0.1))
                last = base
            layers += [nn.MaxPool2d(2), nn.Dropout(0.5)]
        layers += _conv_block(last, 4 * base, nn.LeakyReLU(0.1), padding=0)
        self.trunk = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            *(nn.Conv2d(4 * base, 2 * base, 1), nn.BatchNorm2d(2 * base), nn.LeakyReLU(0.1)),
            *(nn.Conv2d(2 * base, base, 1), nn.BatchNorm2d(base), nn.LeakyReLU(0.1)),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        )
        self.head = nn.Linear(base, num_classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.classifier(self.trunk(x))
        return features, self.head(features)


def _umn13(channels: int, image_size: ImageSize, num_classes: int, width: int | None = None) -> nn.Module:
    _require_side(image_size, 12, "umn13")
    return UMN13(channels, num_classes, width or 128)


# --- Residual networks ------------------------------------------------------------------------------------


class PreActBlock(nn.Module):
    """o = ReLU(BN(x)); conv(ReLU(BN(conv(o)))) + shortcut, a 1x1 conv of o where shapes change."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels_in)
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.shortcut: nn.Conv2d | None = None
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Conv2d(channels_in, channels_out, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        active = F.relu(self.norm1(x))
        skip = x if self.shortcut is None else self.shortcut(active)
        main: Tensor = self.conv2(F.relu(self.norm2(self.conv1(active))))
        return main + skip


def _preact_trunk(channels: int, stem: int, widths: list[int], blocks: int) -> list[nn.Module]:
    """Stem convolution and stages of pre-activation blocks, strides 1, 2, 2, ..."""
    layers: list[nn.Module] = [nn.Conv2d(channels, stem, 3, 1, 1, bias=False)]
    last = stem
    for stage, width in enumerate(widths):
        for block in range(blocks):
            layers.append(PreActBlock(last, width, 2 if stage > 0 and block == 0 else 1))
            last = width
    return layers


def _preact_resnet18(
    channels: int, image_size: ImageSize, num_classes: int, width: int | None = None
) -> nn.Module:
    """PreActResNet-18 of L2B and DivideMix: no norm or ReLU before the pooling; ``width`` 64."""
    del image_size
    base = width or 64
    layers = _preact_trunk(channels, base, [base, 2 * base, 4 * base, 8 * base], blocks=2)
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return TrunkAndHead(nn.Sequential(*layers), 8 * base, num_classes)


def _wrn22_4(channels: int, image_size: ImageSize, num_classes: int, width: int | None = None) -> nn.Module:
    """WideResNet-22-4 of ChoiceNet: stem 16, three stages of three blocks; ``width`` is the factor 4."""
    del image_size
    factor = width or 4
    layers = _preact_trunk(channels, 16, [16 * factor, 32 * factor, 64 * factor], blocks=3)
    layers += [nn.BatchNorm2d(64 * factor), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return TrunkAndHead(nn.Sequential(*layers), 64 * factor, num_classes)


NETWORKS: dict[str, NetworkBuilder] = {
    "mlp": _mlp,
    "conv3": _conv3,
    "conv4": _conv4,
    "cnn_small": _cnn_small,
    "cnn6": _cnn6,
    "cnn9": _cnn9,
    "umn13": _umn13,
    "preact_resnet18": _preact_resnet18,
    "wrn22_4": _wrn22_4,
}


# --- Choosing and building --------------------------------------------------------------------------------


def _require_side(image_size: ImageSize, smallest: int, name: str) -> None:
    if min(image_size) < smallest:
        raise EngineInputError(
            f"network {name} needs images of at least {smallest} px, these are "
            f"{image_size[0]} x {image_size[1]}; use conv3 (any size), or import them larger."
        )


def build_network(
    name: str,
    *,
    channels: int,
    image_size: ImageSize,
    num_classes: int,
    weights: str | None = None,
    width: int | None = None,
    side: int | None = None,
) -> nn.Module:
    """The network called ``name``, parameters drawn from torch's global generator (see ``seeded_init``).

    ``width`` scales a network where it has a width (hidden units of ``mlp``, first channels of the
    convolutional nets, the factor of ``wrn22_4``). ``weights`` is a state_dict file for networks of timm and
    torchvision; ``side`` is how large they get their images then (default: as their weights want it).

    Raises:
        EngineInputError: unknown name, images too small for it, or weights that do not fit.
    """
    if is_pretrained(name, weights):
        return _channels_last(pretrained_network(name, weights, num_classes, side=side))
    if name.startswith(TORCHVISION):
        return _channels_last(
            torchvision_network(name.removeprefix(TORCHVISION), channels, image_size, num_classes)
        )
    if name not in NETWORKS:
        raise EngineInputError(
            f"there is no network {name!r}; use one of {', '.join(NETWORKS)}, {TIMM}<name> or {TORCHVISION}<name>."
        )
    if weights is not None:
        raise EngineInputError(f"weights need a network {TIMM}<name> or {TORCHVISION}<name>, not {name!r}.")
    return _channels_last(NETWORKS[name](channels, image_size, num_classes, width))


def _channels_last(network: nn.Module) -> nn.Module:
    """Store convolutions channels last: 1.4 to 1.7 times faster on the CPU, and what tensor cores want."""
    return network.to(memory_format=torch.channels_last)


def choose_network(channels: int, image_size: ImageSize, device: torch.device | str) -> str:
    """Return what ``network="auto"`` means: what this device can train on these images in reasonable time.

    On the CPU conv3 below 24 px (conv4 finds no more there) and conv4 above; on CUDA PreActResNet-18 up to 64 px
    (but conv4 for grey images up to 32 px) and conv4 above, where ResNet-18 from scratch takes eight times as long
    and finds less.

    Measured on one CPU thread (benchmarks/results/cpu_networks.json and detection.md).
    """
    if torch.device(device).type != "cuda":
        return "conv4" if min(image_size) >= STRIDED_FROM else "conv3"
    if max(image_size) > 64 or (channels == 1 and max(image_size) <= 32):
        return "conv4"
    return "preact_resnet18"
