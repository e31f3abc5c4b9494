"""Auditing sets of classes: which labels of a picture are missing, and which are too many."""

__all__ = ["judging", "kind", "results"]
