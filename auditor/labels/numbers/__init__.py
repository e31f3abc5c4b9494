"""Auditing numbers: which are wrong, and what they should be."""

__all__ = ["judging", "kind", "results"]
