"""What the browser may send to each route; anything else is answered with one line and the status 400."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field, FiniteFloat, StrictBool

from auditor.review.schema import Body, Place, Text, Verdict, Whole

Point = tuple[FiniteFloat, FiniteFloat]


class Region(Body):
    """Samples inside a polygon that was drawn on the map of an engine."""

    engine: Text
    polygon: Annotated[list[Point], Field(max_length=20_000)]


class Where(Body):
    """Which samples a queue holds; what is None or false narrows nothing."""

    given: Whole | None = None
    suggested: Whole | None = None
    split: Text | None = None
    issues: StrictBool | None = None
    undecided: StrictBool | None = None
    decided: StrictBool | None = None
    agreement: Whole | None = None
    disagreement: FiniteFloat | None = None
    max_rank: Whole | None = None
    engine: Text | None = None
    region: Region | None = None
    share: tuple[Place, Place] | None = None
    """(which, of how many) equal parts that reviewers share out."""
    search: Text | None = None
    """A part of the file name, or # and a sample's number."""
    disputed: StrictBool | None = None
    by: Text | None = None
    """A reviewer, whose decisions are looked at."""


class Queue(Body):
    """A queue of an audit, or a page of it behind the rank ``after``."""

    audit: Place
    where: Where | None = None
    after: Whole | None = None
    limit: Place | None = None
    reviewer: Text | None = None
    """Who looks: samples that others look at are left out."""
    ahead: Place = 0
    """How many samples are leased to the reviewer."""

    @property
    def filters(self) -> dict[str, Any]:
        """``where`` as the mapping that ``bench.suspect_filter`` reads."""
        return {} if self.where is None else self.where.model_dump()


class Card(Body):
    """One sample of an audit."""

    audit: Place
    sample: Place


class Undo(Body):
    """The newest decision of a reviewer."""

    audit: Place
    reviewer: Text


class Acceptable(Queue):
    """The first of a queue whose suggestions a reviewer may accept together."""

    reviewer: Text
    top: Place


class Accept(Undo):
    """Suggestions that a reviewer accepts in one step, as (sample, label)."""

    changes: Annotated[list[tuple[Place, Place]], Field(max_length=10_000)]


class Lease(Body):
    """Samples of a dataset that a reviewer looks at."""

    dataset: Place
    reviewer: Text
    samples: Annotated[list[Place], Field(max_length=10_000)]


class SeenVerdict(Verdict):
    """A verdict of the review bench."""

    seen: Whole | None = None
    """The decision that was on the screen."""
    ruling: StrictBool | None = None
    """Whether it settles a disagreement."""
    batch: Text | None = None
    """Decisions with the same are one action."""


class BlindUndo(Body):
    """The verdict of a reviewer on one sample of a draw."""

    draw: Place
    sample: Place
    reviewer: Text


class Verdicts(BaseModel):
    """Verdicts in the order of sending; each is read apart, so that one that is wrong holds up no other."""

    verdicts: Annotated[list[dict[str, Any]], Field(max_length=10_000)]
