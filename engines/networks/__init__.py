"""Classifiers behind one door: our small ones, those of torchvision, and heads on features."""

__all__ = [
    "heads",
    "small",
    "torchvision_networks",
]
