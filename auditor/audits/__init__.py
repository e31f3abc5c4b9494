"""Audits: planned, run in a process of their own, kept as arrays, settled into scores and statements."""

__all__ = [
    "arrays",
    "budgets",
    "comparison",
    "durations",
    "executors",
    "new_classes",
    "own_models",
    "plan",
    "progress",
    "queues",
    "ranking",
    "ray_pool",
    "settle",
    "statements",
    "tasks",
    "usual_features",
    "worker",
]
