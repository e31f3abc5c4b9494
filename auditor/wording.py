"""Numbers with their nouns, as people read them."""

from __future__ import annotations


def plural(number: int, noun: str) -> str:
    """``1 sample``, ``2,000 samples``, ``3 classes``."""
    ending = "" if number == 1 else "es" if noun.endswith(("s", "ch")) else "s"
    return f"{number:,} {noun}{ending}"
