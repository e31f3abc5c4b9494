"""Classifiers behind one door: our small ones, those of torchvision and timm, and heads on features."""

__all__ = [
    "heads",
    "pretrained",
    "runtime",
    "small",
    "torchvision_networks",
]
