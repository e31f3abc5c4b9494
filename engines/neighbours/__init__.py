"""Neighbours: what the nearest rows in feature space say about each label. Nothing is trained."""

from engines.neighbours.training import SPEC

__all__ = ["SPEC"]
