"""What people decide: reviews of suspects, blind verdicts on random samples, decisions from files, one log."""

__all__ = [
    "decision_files",
    "decisions",
    "head_order",
    "log",
    "people",
    "random_sample",
    "schema",
]
