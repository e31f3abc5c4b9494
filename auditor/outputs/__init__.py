"""What people take home: cleaned tables and folders, and a report."""

__all__ = [
    "annotated",
    "export",
    "found_again",
    "report",
]
