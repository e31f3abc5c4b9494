"""The ``auditor`` command: each command parses, calls one function and prints."""

__all__ = [
    "commands",
    "demo",
    "kinds",
]
