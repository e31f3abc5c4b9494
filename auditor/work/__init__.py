"""Work as tasks of plain values: what one is, which wait, and who does them: processes here or a Ray cluster."""

__all__ = [
    "embedding",
    "executors",
    "kinds",
    "ray_pool",
    "tasks",
]
