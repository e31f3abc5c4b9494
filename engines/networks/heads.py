"""Networks on the features of a backbone, and one door that builds a network for rows of either form.

A head takes (B, D) float32, standardised, and answers like every network: (features, logits).
"""

from __future__ import annotations

import torch
from torch import nn

from engines.contract import EngineInputError
from engines.networks.small import TrunkAndHead, build_network, choose_network

HEADS = ("mlp", "linear")
"""``network`` on features: one hidden layer of ReLU units, or none."""

HIDDEN_UNITS = 256
"""Hidden units of ``mlp`` unless a width is given, as for images."""


def build_head(name: str, num_features: int, num_classes: int, width: int | None = None) -> TrunkAndHead:
    """The head called ``name``, parameters from torch's global generator.

    ``mlp``: ``width`` (256) ReLU units, which are its features, and a linear layer. ``linear``: a linear layer on
    the input, which is its features.
    """
    if name == "linear":
        return TrunkAndHead(nn.Flatten(), num_features, num_classes)
    hidden = width or HIDDEN_UNITS
    return TrunkAndHead(nn.Sequential(nn.Linear(num_features, hidden), nn.ReLU()), hidden, num_classes)


def build_for_shape(
    name: str,
    shape: tuple[int, ...],
    num_classes: int,
    *,
    weights: str | None = None,
    width: int | None = None,
    image_side: int | None = None,
) -> nn.Module:
    """The network called ``name`` (a resolved one) for samples of ``shape``: (C, H, W) images or (D,) features.

    Raises:
        EngineInputError: the network is unknown or cannot take such samples.
    """
    if len(shape) == 1:
        return build_head(name, shape[0], num_classes, width)
    channels, height, side = shape
    return build_network(
        name,
        channels=channels,
        image_size=(height, side),
        num_classes=num_classes,
        weights=weights,
        width=width,
        side=image_side,
    )


def resolve_for_shape(name: str, shape: tuple[int, ...], *, device: torch.device | str) -> str:
    """Return what ``name`` means for samples of ``shape``: ``"auto"`` is ``"mlp"`` on features, else
    ``choose_network``.

    Raises:
        EngineInputError: ``name`` is a network of images and these are features.
    """
    if len(shape) == 1:
        if name not in ("auto", *HEADS):
            raise EngineInputError(
                f"network {name!r} takes images and these are features; use {', '.join(HEADS)} or auto."
            )
        return "mlp" if name == "auto" else name
    channels, height, width = shape
    return choose_network(channels, (height, width), device) if name == "auto" else name
