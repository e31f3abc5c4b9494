"""Several people's answers about one image: the marked truth, else what all say; never one of them by chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from auditor.pictures.sources.rows import printable

Place = TypeVar("Place")


class Answer(NamedTuple, Generic[Place]):
    """What one person said, in the file's order of time."""

    by: str
    """Who; empty: not known, and nobody else's."""
    names: tuple[str, ...]
    """The classes."""
    is_truth: bool
    """Whether the tool's users marked it as right."""
    place: Place
    """Where it stands in the file."""


def settled(answers: Sequence[Answer[Place]]) -> Answer[Place] | None:
    """The answer that counts: one that is marked as the truth, else the newest, where everybody's newest is alike.

    Raises:
        ValueError: they differ; the text says what to do.
    """
    newest = {answer.by or at: answer for at, answer in enumerate(answers)}
    said = [answer for answer in answers if answer.is_truth] or list(newest.values())
    counts = Counter("|".join(sorted(answer.names)) for answer in said)
    if len(counts) > 1:
        shown = printable(", ".join(f"{names} {count}" for names, count in counts.most_common()), 80)
        raise ValueError(
            f"has answers of {len(said)} people who differ ({shown}); mark the right one as ground truth, or leave "
            "such images out"
        )
    return said[-1] if said else None
