"""Results of an audit: arrays, the scores and statements they are settled into, and the queues made of these."""

__all__ = [
    "arrays",
    "class_changes",
    "comparison",
    "new_classes",
    "own_models",
    "progress",
    "queues",
    "ranking",
    "settle",
    "statements",
]
