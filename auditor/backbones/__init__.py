"""Pretrained networks for a user's images: which there are, where their weights lie, and the features they give."""

__all__ = [
    "features",
    "own_features",
    "shelf",
    "weights",
]
