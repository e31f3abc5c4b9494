"""The networks of UMN: a recogniser (M1 encoder and classifier) and a generator (M2 and the M1 decoder).

The recogniser is the part that the guider copies; called on images it answers (embedding, logits) at the
posterior mean, which is what every scoring pass reads. Three kinds: ``umn_mlp`` for flat grey images (one
hidden layer everywhere, as published), ``umn13`` for 32 px (13 convolutions, as published), and any network
of :mod:`engines.networks.small` with a posterior head on its features. The generator's decoder reaches every image
size exactly.

Published tables leave out widths of the flat network, the activations between convolutions and the last
layer of the image decoder; what is used here is [assumption]: 600/500/500 units and 50 latents as in the
M1+M2 literature, BatchNorm with LeakyReLU(0.1), and a last 3x3 convolution to the image's channels.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engines.networks import UMN13, build_head, build_network
from engines.umn.equations import (
    LOG_VARIANCE_RANGE,
    gaussian_log_density,
    sample_gaussian,
    standard_normal_kl,
)

FLAT_HIDDEN = 600
CLASSIFIER_HIDDEN = 500
UPPER_HIDDEN = 500
WIDTH = 128
"""First channels of ``umn13`` (published)."""
DECODER_START = 8
"""A generic decoder begins at a map of at most this many pixels a side and doubles from there."""


class Encoding(NamedTuple):
    """q(z_a | x) and what the classifier may read beside it."""

    mean: Tensor
    """(B, d_a)"""
    log_variance: Tensor
    """(B, d_a), clipped."""
    embedding: Tensor
    """(B, D) for maps and neighbours: the mean of z_a, or the trunk's features where the trunk classifies."""
    logits: Tensor | None
    """(B, K) where the classifier reads the trunk, else None."""


class PosteriorHead(nn.Module):
    """Two linear heads, mean and clipped log-variance (bias 0), on (B, D) features."""

    def __init__(self, in_features: int, latent: int) -> None:
        super().__init__()
        self.mean = nn.Linear(in_features, latent)
        self.log_variance = nn.Linear(in_features, latent)
        nn.init.zeros_(self.log_variance.bias)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        # Densities and logarithms of them need more digits than mixed precision gives.
        mean, log_variance = (_at_least_float32(head(features)) for head in (self.mean, self.log_variance))
        return mean, log_variance.clamp(*LOG_VARIANCE_RANGE)


class Recognizer(nn.Module):
    """M1 encoder q(z_a | x) and classifier q(y | z_a) over some trunk.

    Args:
        trunk: images (B, C, H, W) -> (features for the posterior head, pooled embedding, logits or None).
        posterior: head on the trunk's features.
        classifier: (B, d_a) -> (B, K), or None where the trunk's own logits are the classifier.
    """

    def __init__(self, trunk: nn.Module, posterior: PosteriorHead, classifier: nn.Module | None) -> None:
        super().__init__()
        self.trunk = trunk
        self.posterior = posterior
        self.classifier = classifier

    def encode(self, images: Tensor) -> Encoding:
        """Posterior of the lower latent for (B, C, H, W) images."""
        features, pooled, logits = self.trunk(images)
        mean, log_variance = self.posterior(features)
        if self.classifier is not None:
            return Encoding(mean, log_variance, mean, None)
        return Encoding(mean, log_variance, pooled, logits)

    def classify(self, encoding: Encoding, z_a: Tensor) -> Tensor:
        """Logits (B, K) of q(y | z_a); where the classifier reads the trunk, ``z_a`` makes no difference."""
        if self.classifier is None:
            assert encoding.logits is not None
            return encoding.logits
        logits: Tensor = self.classifier(z_a)
        return logits

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """(embedding (B, D), logits (B, K)) at the posterior mean; deterministic in eval mode."""
        encoding = self.encode(images)
        return encoding.embedding, self.classify(encoding, encoding.mean)


class ClassConditional(nn.Module):
    """[z ; onehot(y)] -> hidden ReLU layer -> Gaussian, for many classes of one batch at once.

    The first layer's product with z is taken once a row and not once a (row, class); adding the column of
    the one-hot input is exact.
    """

    def __init__(self, latent_in: int, num_classes: int, latent_out: int, hidden: int) -> None:
        super().__init__()
        self.latent_in = latent_in
        self.first = nn.Linear(latent_in + num_classes, hidden)
        nn.init.kaiming_uniform_(self.first.weight, nonlinearity="relu")
        self.head = PosteriorHead(hidden, latent_out)

    def forward(self, z: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """(B, 1 or c, latent_in), (c,) or (B, c) -> mean, log-variance (B, c, latent_out)."""
        weight_z = self.first.weight[:, : self.latent_in]
        weight_y = F.embedding(classes, self.first.weight[:, self.latent_in :].t())  # (c or B, c, hidden)
        hidden = F.relu(F.linear(z, weight_z, self.first.bias) + weight_y)
        mean, log_variance = self.head(hidden)
        return mean, log_variance


class Generator(nn.Module):
    """M2 (q(z_b | z_a, y) and p(z_a | z_b, y)) and the M1 decoder p(x | z_a)."""

    def __init__(
        self,
        decoder: nn.Module,
        *,
        num_classes: int,
        latent_a: int,
        latent_b: int,
        hidden: int = UPPER_HIDDEN,
    ) -> None:
        super().__init__()
        self.decoder = decoder
        self.latent_b = latent_b
        self.upper_encoder = ClassConditional(latent_a, num_classes, latent_b, hidden)
        self.upper_decoder = ClassConditional(latent_b, num_classes, latent_a, hidden)

    def class_terms(self, z_a: Tensor, noise: Tensor, classes: Tensor) -> Tensor:
        """log p(z_a | z_b, y) - KL(q(z_b | z_a, y) || N(0, I)) for every given class (inside U3).

        (B, d_a), (B, c, d_b), (c,) or (B, c) -> (B, c), with one draw of z_b for each (row, class).
        """
        rows = z_a.unsqueeze(1)
        mean_b, log_variance_b = self.upper_encoder(rows, classes)
        z_b = sample_gaussian(mean_b, log_variance_b, noise)
        mean_a, log_variance_a = self.upper_decoder(z_b, classes)
        return gaussian_log_density(rows, mean_a, log_variance_a) - standard_normal_kl(mean_b, log_variance_b)


class StackedVAE(nn.Module):
    """Recogniser and generator; what one optimiser trains."""

    def __init__(self, recognizer: Recognizer, generator: Generator) -> None:
        super().__init__()
        self.recognizer = recognizer
        self.generator = generator


def build_stacked_vae(
    name: str,
    *,
    channels: int,
    image_size: tuple[int, int],
    num_classes: int,
    latent_a: int,
    latent_b: int,
    upper_hidden: int | None = None,
    decoded_size: tuple[int, int] | None = None,
    width: int = WIDTH,
    weights: str | None = None,
    side: int | None = None,
) -> StackedVAE:
    """Build the whole model. The classifier of ``umn_mlp`` reads z_a, others read the trunk.

    Args:
        name: ``"umn_mlp"``, ``"umn13"`` or a name that :func:`engines.networks.small.build_network` knows.
        channels: 1 or 3.
        image_size: (H, W) of what the recogniser sees.
        num_classes: K, at least 2.
        latent_a: d_a, size of the lower latent.
        latent_b: d_b, size of the upper latent.
        upper_hidden: hidden units of the M2 networks; None is ``UPPER_HIDDEN``.
        decoded_size: (H, W) of what the decoder reconstructs; None means ``image_size``.
        width: channels of ``umn13``'s first two blocks (published: 128); the others follow in proportion.
        weights: state_dict file for networks of timm and torchvision.
        side: how large such a network gets its images; None: as its weights want it.

    Raises:
        EngineInputError: the network is unknown or cannot take images of this size.
    """
    trunk, trunk_features = build_trunk(
        name,
        channels=channels,
        image_size=image_size,
        num_classes=num_classes,
        width=width,
        weights=weights,
        side=side,
    )
    classifier = _one_hidden(latent_a, CLASSIFIER_HIDDEN, num_classes) if name == "umn_mlp" else None
    recognizer = Recognizer(trunk, PosteriorHead(trunk_features, latent_a), classifier)
    target_size = decoded_size or image_size
    decoder: nn.Module
    if name == "umn_mlp":
        decoder = _FlatDecoder(latent_a, channels, target_size)
    elif name == "umn13":
        decoder = _Decoder13(latent_a, channels, target_size, width=width)
    else:
        decoder = ImageDecoder(latent_a, channels, target_size)
    generator = Generator(
        decoder,
        num_classes=num_classes,
        latent_a=latent_a,
        latent_b=latent_b,
        hidden=upper_hidden or UPPER_HIDDEN,
    )
    return StackedVAE(recognizer, generator)


def build_feature_vae(
    name: str,
    num_features: int,
    num_classes: int,
    *,
    latent_a: int,
    latent_b: int,
    hidden: int,
    upper_hidden: int | None = None,
) -> StackedVAE:
    """The whole model on (B, D) features: a head that classifies as trunk, a decoder with ``hidden`` ReLU units.

    Args:
        name: ``"mlp"`` or ``"linear"``, see :mod:`engines.networks.heads`.
        num_features: D.
        num_classes: K, at least 2.
        latent_a: d_a, size of the lower latent.
        latent_b: d_b, size of the upper latent.
        hidden: units of the decoder.
        upper_hidden: hidden units of the M2 networks; None is ``UPPER_HIDDEN``.
    """
    head = build_head(name, num_features, num_classes)
    recognizer = Recognizer(_BackboneTrunk(head), PosteriorHead(head.feature_size, latent_a), None)
    generator = Generator(
        FeatureDecoder(latent_a, num_features, hidden),
        num_classes=num_classes,
        latent_a=latent_a,
        latent_b=latent_b,
        hidden=upper_hidden or UPPER_HIDDEN,
    )
    return StackedVAE(recognizer, generator)


def build_trunk(
    name: str,
    *,
    channels: int,
    image_size: tuple[int, int],
    num_classes: int,
    width: int = WIDTH,
    weights: str | None = None,
    side: int | None = None,
) -> tuple[nn.Module, int]:
    """The trunk and the number of features that its posterior head reads."""
    if name == "umn_mlp":
        return _FlatTrunk(channels, image_size, FLAT_HIDDEN), FLAT_HIDDEN
    backbone = build_network(
        name,
        channels=channels,
        image_size=image_size,
        num_classes=num_classes,
        weights=weights,
        width=width if name == "umn13" else None,
        side=side,
    )
    if name == "umn13":
        trunk = _Trunk13(backbone, image_size, width=width)
        return trunk, trunk.posterior_features
    feature_size = backbone.feature_size
    assert isinstance(feature_size, int)
    return _BackboneTrunk(backbone), feature_size


class _FlatTrunk(nn.Module):
    """Flattened image -> one hidden ReLU layer."""

    def __init__(self, channels: int, image_size: tuple[int, int], hidden: int) -> None:
        super().__init__()
        self.first = nn.Linear(channels * math.prod(image_size), hidden)
        nn.init.kaiming_uniform_(self.first.weight, nonlinearity="relu")

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, None]:
        hidden = F.relu(self.first(images.flatten(1)))
        return hidden, hidden, None


class _BackboneTrunk(nn.Module):
    """A classifier of engines.networks.small as a trunk."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features, logits = self.backbone(images)
        return features, features, logits


class _Trunk13(nn.Module):
    """The published 13-layer net and the convolutional tail of the M1 encoder, both on the shared map."""

    def __init__(self, network: nn.Module, image_size: tuple[int, int], *, width: int) -> None:
        super().__init__()
        assert isinstance(network, UMN13)
        self.network = network
        tail = max(1, width // 4)
        self.tail = _conv(network.trunk_size, tail)
        self.posterior_features = tail * math.prod(side // 4 - 2 for side in image_size)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        shared = self.network.trunk(images)
        pooled = self.network.classifier(shared)
        return self.tail(shared).flatten(1), pooled, self.network.head(pooled)


class _FlatDecoder(nn.Module):
    """d_a -> 600 ReLU -> C x H x W logits or means."""

    def __init__(self, latent: int, channels: int, size: tuple[int, int]) -> None:
        super().__init__()
        self.shape = (channels, *size)
        self.layers = _one_hidden(latent, FLAT_HIDDEN, math.prod(self.shape))

    def forward(self, z_a: Tensor) -> Tensor:
        image: Tensor = self.layers(z_a).unflatten(1, self.shape)
        return image


class FeatureDecoder(nn.Module):
    """d_a -> ``hidden`` ReLU units -> means of D features, and one log-variance for each of them."""

    def __init__(self, latent: int, num_features: int, hidden: int) -> None:
        super().__init__()
        self.layers = _one_hidden(latent, hidden, num_features)
        self.log_variance = nn.Parameter(torch.zeros(num_features))

    def forward(self, z_a: Tensor) -> Tensor:
        means: Tensor = self.layers(z_a)
        return means


class _Decoder13(nn.Module):
    """The published decoder, with sizes that follow the image instead of 32 px only."""

    def __init__(self, latent: int, channels: int, size: tuple[int, int], *, width: int) -> None:
        super().__init__()
        tail = max(1, width // 4)
        quarter = (max(3, size[0] // 4), max(3, size[1] // 4))
        self.sizes = ((max(1, size[0] // 2), max(1, size[1] // 2)), size)
        self.start = (tail, quarter[0] - 2, quarter[1] - 2)
        self.first = nn.Linear(latent, math.prod(self.start))
        self.grow = nn.ConvTranspose2d(tail, width, 3)
        self.blocks = nn.ModuleList(
            nn.Sequential(*(_conv(width, width) for _ in range(3))) for _ in self.sizes
        )
        self.last = nn.Conv2d(width, channels, 3, padding=1)

    def forward(self, z_a: Tensor) -> Tensor:
        image = F.leaky_relu(self.grow(_first_map(F.relu(self.first(z_a)), self.start)), 0.1)
        for size, block in zip(self.sizes, self.blocks, strict=True):
            image = block(F.interpolate(image, size=size))
        result: Tensor = self.last(image)
        return result


class ImageDecoder(nn.Module):
    """Decoder for any image size: doubles from at most 8 px a side, with fewer channels at each doubling.

    Each block works before its doubling, so that the largest map costs one convolution only.
    """

    def __init__(self, latent: int, channels: int, size: tuple[int, int], *, width: int = 32) -> None:
        super().__init__()
        sizes = [size]
        while max(sizes[0]) > DECODER_START:
            sizes.insert(0, (math.ceil(sizes[0][0] / 2), math.ceil(sizes[0][1] / 2)))
        self.sizes = sizes[1:]
        widths = [width, *(max(16, width >> step) for step in range(len(self.sizes)))]
        self.start = (width, *sizes[0])
        self.first = nn.Linear(latent, math.prod(self.start))
        self.blocks = nn.ModuleList(_conv(before, after) for before, after in pairwise(widths))
        self.last = nn.Conv2d(widths[-1], channels, 3, padding=1)

    def forward(self, z_a: Tensor) -> Tensor:
        image = _first_map(F.relu(self.first(z_a)), self.start)
        for size, block in zip(self.sizes, self.blocks, strict=True):
            image = F.interpolate(block(image), size=size)
        result: Tensor = self.last(image)
        return result


def _first_map(values: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """(B, C * H * W) as (B, C, H, W), stored channels last, which halves a decoder's time on a CPU."""
    return values.unflatten(1, shape).contiguous(memory_format=torch.channels_last)


def _at_least_float32(values: Tensor) -> Tensor:
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _one_hidden(features_in: int, hidden: int, features_out: int) -> nn.Sequential:
    """One hidden ReLU layer and a linear output, the shape of every flat head."""
    first = nn.Linear(features_in, hidden)
    nn.init.kaiming_uniform_(first.weight, nonlinearity="relu")
    return nn.Sequential(first, nn.ReLU(), nn.Linear(hidden, features_out))


def _conv(
    channels_in: int, channels_out: int, *, kernel: int = 3, padding: int | None = None
) -> nn.Sequential:
    """Convolution, batch norm, LeakyReLU(0.1)."""
    layer = nn.Conv2d(
        channels_in, channels_out, kernel, padding=kernel // 2 if padding is None else padding, bias=False
    )
    nn.init.kaiming_uniform_(layer.weight, a=0.1, nonlinearity="leaky_relu")
    return nn.Sequential(layer, nn.BatchNorm2d(channels_out), nn.LeakyReLU(0.1))
