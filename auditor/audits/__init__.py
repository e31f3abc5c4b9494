"""Audits: what to run and in which time, and the run of it in a process of its own, from the plan to the result."""

__all__ = [
    "budgets",
    "durations",
    "plan",
    "usual_features",
    "worker",
]
