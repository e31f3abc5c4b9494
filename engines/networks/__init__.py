"""Image classifiers behind one door: our small ones and those of torchvision."""

__all__ = [
    "pretrained",
    "small",
    "torchvision_networks",
]
