"""Class names that are probably no class of their own: said as a remark, for only a person can know."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.pictures.sources import SourceInfo, printable

MISSING_WORDS = frozenset(["nan", "na", "n/a", "none", "null"])
"""What other programs write for an empty cell, in lower case."""
MOST_REMARKS = 5
"""Sets of like names that are spelt out; the others are counted."""


def remarks(info: SourceInfo, names: Sequence[str]) -> list[str]:
    """One line for each doubt about the class names of a source."""
    found = _much_alike(names)
    more = len(found) - MOST_REMARKS
    found = found[:MOST_REMARKS] + ([f"{more:,} more such sets of class names."] if more > 0 else [])
    if info.label_column is not None and info.class_names is None:
        missing = [name for name in names if name.lower() in MISSING_WORDS]
        found += [
            f"{name!r} is taken for a class; leave the cell empty for an unlabeled sample."
            for name in missing
        ]
    joined = [name for name in names if "|" in name.strip("|")]
    if joined:
        shown = ", ".join(repr(printable(name, 60)) for name in joined[:3])
        found.append(f"{shown} is taken for one class; are these several classes of one image?")
    return found


def _much_alike(names: Sequence[str]) -> list[str]:
    """Sets of names that one person and another wrote differently; sources take the space around a name off."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.casefold(), []).append(name)
    return [_said(group) for group in groups.values() if len(group) > 1]


def _said(group: Sequence[str]) -> str:
    quoted = [repr(printable(name, 60)) for name in group]
    number = "two" if len(group) == 2 else str(len(group))
    return f"{', '.join(quoted[:-1])} and {quoted[-1]} differ only in case: {number} classes?"
