"""Image classifiers behind one door: our small ones and those of torchvision."""

__all__ = [
    "small",
    "torchvision_networks",
]
