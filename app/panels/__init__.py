"""Parts of screens."""

__all__ = [
    "before_after",
    "bulk",
    "charts",
    "curves",
    "demo",
    "downloads",
    "fiftyone",
    "filters",
    "importing",
    "jobs",
    "regions",
    "statements",
    "watching",
]
