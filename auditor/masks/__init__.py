"""Auditing masks: which are wrong, where, and what they should be."""

__all__ = ["auditing", "deciding", "exporting", "listing", "pixels", "results"]
