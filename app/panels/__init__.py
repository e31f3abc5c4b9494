"""Parts of screens."""

__all__ = [
    "before_after",
    "charts",
    "class_changes",
    "contradicted",
    "curves",
    "demo",
    "downloads",
    "engine_settings",
    "fiftyone",
    "filters",
    "importing",
    "jobs",
    "judging",
    "other_weights",
    "own_features",
    "random_looks",
    "regions",
    "statements",
    "watching",
    "worst",
]
