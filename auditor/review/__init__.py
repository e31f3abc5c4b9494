"""What people decide: reviews of suspects, blind verdicts on random samples, decisions from files, one log."""

__all__ = [
    "blind",
    "decision_files",
    "decisions",
    "draw_files",
    "drawing",
    "log",
    "schema",
    "verifying",
]
