"""How a table that our export wrote is recognised, so that importing it again brings the decisions back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from auditor.ground.vocabulary import DECISIONS, EXPORT_MARKS, KINDS, MULTIPLE, RELABEL, REVIEW_COLUMNS
from auditor.pictures.sources.rows import printable


def is_own_export(columns: Iterable[str]) -> bool:
    """Return whether our export wrote the table."""
    return EXPORT_MARKS.issubset(columns)


def review_of(cells: Mapping[str, str]) -> dict[str, str] | None:
    """The cells that hold a decision; None where nobody decided.

    Raises:
        ValueError: the decision cannot be recorded; the text says what to correct.
    """
    if not cells.get("review_decision", "").strip():
        return None
    review = {column: cells.get(column, "").strip() for column in REVIEW_COLUMNS}
    decision = review["review_decision"]
    if decision not in DECISIONS:
        raise ValueError(
            f"review_decision is {printable(decision, 40)!r}; use one of {', '.join(DECISIONS)} or leave it empty"
        )
    if not review["reviewer"]:
        raise ValueError("has a decision without a reviewer; fill in the name")
    if decision == RELABEL and not review["cleaned_label"]:
        raise ValueError("is relabeled without a cleaned_label; fill in the class")
    if decision == RELABEL and review["cleaned_label"] == cells.get("given_label", "").strip():
        raise ValueError("is relabeled to its given label; correct cleaned_label, or write keep")
    if decision == MULTIPLE and len(set(several_labels(review))) < 2:
        raise ValueError("has the decision multiple; name at least two classes in review_labels, as a|b")
    if review["review_kind"] not in ("", *KINDS):
        raise ValueError(
            f"review_kind is {printable(review['review_kind'], 40)!r}; use one of {', '.join(KINDS)}"
        )
    review_time(review)
    return review


def several_labels(review: Mapping[str, str]) -> list[str]:
    """The classes of the decision ``multiple``."""
    return [name for name in review["review_labels"].split("|") if name]


def classes_named(review: Mapping[str, str] | None) -> list[str]:
    """Every class that a decision names; a class may be missing among the given labels."""
    if review is None:
        return []
    corrected = [review["cleaned_label"]] if review["review_decision"] == RELABEL else []
    return [*corrected, *several_labels(review)]


def review_time(review: Mapping[str, str]) -> datetime:
    """Return when it was decided, with its zone (UTC where none is written).

    Raises:
        ValueError: no time in ISO 8601.
    """
    text = review["reviewed_at"]
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(
            f"reviewed_at is {printable(text, 40)!r}; write a time such as 2026-01-31T12:00:00+00:00"
        ) from None
