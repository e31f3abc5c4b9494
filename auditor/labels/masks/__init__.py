"""Auditing masks: which are wrong, where, and what they should be."""

__all__ = ["deciding", "kind", "pixels", "results", "why"]
