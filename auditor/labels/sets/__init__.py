"""Auditing sets of classes: which labels of a picture are missing, and which are too many."""

from auditor.labels.sets.kind import KIND

__all__ = ["KIND"]
