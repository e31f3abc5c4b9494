"""Classifiers behind one door: our small ones, those of torchvision and timm, and heads on features."""

from engines.networks.heads import HEADS, HIDDEN_UNITS, build_for_shape, build_head, resolve_for_shape
from engines.networks.pretrained import (
    DOORS,
    Backbone,
    InputConfig,
    cropped,
    fetch_checked,
    input_config,
    is_pretrained,
    normalized,
    open_backbone,
    weights_hash,
    weights_source,
)
from engines.networks.runtime import for_looking
from engines.networks.small import UMN13, build_network

__all__ = [
    "DOORS",
    "HEADS",
    "HIDDEN_UNITS",
    "UMN13",
    "Backbone",
    "InputConfig",
    "build_for_shape",
    "build_head",
    "build_network",
    "cropped",
    "fetch_checked",
    "for_looking",
    "input_config",
    "is_pretrained",
    "normalized",
    "open_backbone",
    "resolve_for_shape",
    "weights_hash",
    "weights_source",
]
