"""Trainings that answer a question: does cleaning help?"""

__all__ = ["before_after"]
