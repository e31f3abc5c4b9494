"""Parts of screens."""

__all__ = [
    "before_after",
    "bulk",
    "charts",
    "curves",
    "downloads",
    "engine_settings",
    "fiftyone",
    "filters",
    "importing",
    "regions",
    "statements",
    "watching",
]
