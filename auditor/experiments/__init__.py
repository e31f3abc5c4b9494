"""Trainings that answer a question: does cleaning help, and which engine finds most here?"""

__all__ = [
    "before_after",
    "planting",
    "simulation",
    "tournament",
]
