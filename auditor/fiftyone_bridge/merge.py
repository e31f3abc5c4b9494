"""What a sample in FiftyOne says about its label, and what a person changed there since we last looked.

Three sides meet: the *base* (what stood in FiftyOne after the last push or pull, kept on the sample as text),
*theirs* (its tags, its given label and ``cleaned`` now) and *ours* (the latest decision in the catalog). Pure
functions of plain values; neither FiftyOne nor the catalog is touched here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from auditor.catalog.records import Review
from auditor.ground.vocabulary import DECISIONS, EXCLUDE, KEEP, NOT_CLEAR, RELABEL, UNDO

TAG_OF = {name: name if name in NOT_CLEAR else one.action for name, one in DECISIONS.items()}
"""Decision -> tag: what becomes of the sample; the exact decision is in the field ``review.decision``."""
DECISION_TAGS = tuple(dict.fromkeys(TAG_OF.values()))


@dataclass(frozen=True)
class Base:
    """What stood in FiftyOne when we last wrote there."""

    tags: tuple[str, ...] = ()
    label: str | None = None
    """In the field of the given label."""
    review_id: int | None = None
    """The review in the catalog that this was said by."""
    cleaned: str | None = None

    def to_text(self) -> str:
        """As it is kept on the sample."""
        return json.dumps([list(self.tags), self.label, self.review_id, self.cleaned], ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str | None, given: str | None) -> Base:
        """Read it back; a sample that we never finished writing says nothing but its given label."""
        try:
            tags, label, review_id, cleaned = json.loads(text or "")
            return cls(tuple(tags), label, review_id, cleaned)
        except (ValueError, TypeError):
            return cls(label=given)


@dataclass(frozen=True)
class Said:
    """What a person said in FiftyOne."""

    decision: str | None
    """A decision, ``undo`` (a decision's tag was taken off), or None where it cannot be understood."""
    label: Any = None
    """A ``labels.Value``: its place among the classes, the number, or what is taken of a mask's suggestion."""
    problem: str | None = None
    """What a person should know about it, in one clause."""


def decision_tags(tags: Sequence[str] | None) -> tuple[str, ...]:
    """The decisions among a sample's tags, in the order in which they were set."""
    return tuple(tag for tag in tags or () if tag in DECISION_TAGS)


def has_changed(base: Base, tags: tuple[str, ...], label: str | None, cleaned: str | None) -> bool:
    """Return whether a person changed the decision tags or one of the labels since the base."""
    return set(tags) != set(base.tags) or label != base.label or cleaned != base.cleaned


def spoken(base: Base, label: str | None, cleaned: str | None) -> tuple[Base, str | None]:
    """The label that a person may have edited, and the base to compare it with: ``cleaned`` goes first."""
    return (base, label) if cleaned == base.cleaned else (replace(base, label=base.cleaned), cleaned)


def wanted_tags(standing: Review | None) -> tuple[str, ...]:
    """The decision tags of the current decision."""
    return () if standing is None else (TAG_OF[standing.decision],)


def understand(
    base: Base,
    tags: tuple[str, ...],
    label: str | None,
    *,
    given: str | None,
    suggested: str | None,
    classes: Mapping[str, Any],
) -> Said:
    """Return what the changed tags and label of one sample mean.

    An edited label is a correction, or a confirmation where it is set back to the given one. The tag
    ``relabel`` alone takes the suggestion. Of several tags the one that was set last counts. A tag
    that was taken off takes its decision back.
    """
    by_label = _by_label(base, label, given, classes)
    if by_label is not None and by_label.decision is None:
        return by_label
    added = [tag for tag in tags if tag not in base.tags]
    if not added and by_label is None:
        # Only taken off: what is left speaks, or nothing does.
        return _by_tag(tags[-1], suggested, given, classes) if tags else Said(UNDO)
    if by_label is None:
        said = _by_tag(added[-1], suggested, given, classes)
        if len(tags) > 1 and said.decision is not None:
            return Said(said.decision, said.label, _several(tags, said.decision))
        return said
    return _label_and_tags(by_label, added, label)


def _by_label(base: Base, label: str | None, given: str | None, classes: Mapping[str, Any]) -> Said | None:
    if label == base.label:
        return None
    if not label:
        return Said(None, problem="its label was deleted; tag it exclude to leave it out")
    if label not in classes:
        return Said(None, problem=f"{label!r} is none of the classes")
    return Said(KEEP) if label == given else Said(RELABEL, classes[label])


def _by_tag(tag: str, suggested: str | None, given: str | None, classes: Mapping[str, Any]) -> Said:
    if tag != RELABEL:
        return Said(tag)
    if suggested is None or suggested not in classes or suggested == given:
        return Said(None, problem="it is tagged relabel but has no other label; edit its cleaned")
    return Said(RELABEL, classes[suggested])


def _label_and_tags(by_label: Said, added: Sequence[str], label: str | None) -> Said:
    """An edited label beside new tags: ``exclude`` goes before it, whatever else disagrees is named."""
    agreeing = {RELABEL, KEEP} if by_label.decision == KEEP else {RELABEL}
    against = [tag for tag in added if tag not in agreeing]
    if not against:
        return by_label
    if against[-1] == EXCLUDE:
        return Said(
            EXCLUDE, None, f"its label was changed to {label!r} and it is tagged exclude; exclude counts"
        )
    return Said(
        by_label.decision,
        by_label.label,
        f"its label was changed to {label!r} and it is tagged {against[-1]}; the label counts",
    )


def _several(tags: Sequence[str], decision: str) -> str:
    return f"its tags {' and '.join(tags)} contradict each other; {decision}, set last, counts"
