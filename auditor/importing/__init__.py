"""From a source to a registered dataset, all of it or nothing."""

__all__ = [
    "class_names",
    "imports",
    "staging",
]
