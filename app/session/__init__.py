"""What a session knows and may do: state, readers, choices, words, access, failures."""

__all__ = [
    "access",
    "ahead",
    "allowed",
    "apart",
    "choices",
    "failures",
    "navigation",
    "previews",
    "readers",
    "state",
    "words",
]
