"""Trainings that answer a question: does cleaning help?"""

from auditor.experiments.before_after import BeforeAfter, train_before_and_after

__all__ = ["BeforeAfter", "train_before_and_after"]
