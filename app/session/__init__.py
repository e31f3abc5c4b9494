"""What a session knows and may do: state, readers, choices, words, access, who signed in, failures."""

__all__ = [
    "access",
    "allowed",
    "apart",
    "choices",
    "failures",
    "navigation",
    "next_steps",
    "previews",
    "readers",
    "sign_in",
    "state",
    "words",
]
