"""Parts of screens."""

__all__ = [
    "before_after",
    "bulk",
    "charts",
    "curves",
    "downloads",
    "fiftyone",
    "filters",
    "importing",
    "regions",
    "statements",
    "watching",
]
