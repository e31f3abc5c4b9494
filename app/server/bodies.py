"""What the browser may send to each route; anything else is answered with one line and the status 400."""

from __future__ import annotations

from typing import Annotated, Any, Literal

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
    disputed: StrictBool | None = None
    pictures: Literal["copies", "outliers", "dim"] | None = None
    """Whose pictures are conspicuous, whatever their label."""
    by: Text | None = None
    search: Text | None = None
    sort: Literal["files"] | None = None
    """In the order of the files; None: the most suspicious first."""
    share: tuple[Place, Annotated[int, Field(ge=1, le=1_000)]] | None = None


class OfAudit(Body):
    """An audit."""

    audit: Place


class News(OfAudit):
    """Whether somebody decided something since the log's row ``since``, perhaps on one of the samples in view."""

    since: Whole | None = None
    samples: Annotated[tuple[Place, ...], Field(max_length=1_000)] = ()


class Queue(OfAudit):
    """A queue of an audit, or a page of it behind the place ``after``."""

    where: Where | None = None
    after: Whole | None = None
    limit: Place | None = None
    reviewer: Text | None = None
    ahead: Place | None = None
    """How many samples are leased to the reviewer at once."""
    since: Whole | None = None
    """The newest row of the log that the page knows of."""

    @property
    def filters(self) -> dict[str, Any]:
        """``where`` as the mapping that ``queues.suspect_filter`` reads."""
        return {} if self.where is None else self.where.model_dump()


class Cards(Queue):
    """The next card: suspects of one pair of classes."""

    reviewer: Text
    passed: Annotated[tuple[Place, ...], Field(max_length=10_000)] = ()
    """Samples that a person left out of a card, or whose card waits until later."""


class Lease(Body):
    """Samples that a reviewer is about to look at."""

    dataset: Place
    reviewer: Text
    samples: Annotated[list[Place], Field(max_length=10_000)]


class Card(Body):
    """One sample of an audit."""

    audit: Place
    sample: Place


class NewClass(Body):
    """A class that labels can be changed to from now on."""

    dataset: Place
    name: Text


class Undo(Body):
    """The newest decision of a reviewer."""

    audit: Place
    reviewer: Text


class Done(Body):
    """What was decided on the masks of an audit."""

    audit: Place


class SeenVerdict(Verdict):
    """A verdict of the review bench."""

    seen: Whole | None = None
    """The decision that was on the screen."""
    batch: Text | None = None
    """The same for all tiles that one key decided."""
    ruling: StrictBool | None = None
    """Taken where people differed."""


class MaskVerdict(Verdict):
    """A decision on a mask; ``labels`` are numbers of regions of that audit."""

    audit: Place
    classes: dict[int, Place] | None = None
    """By number of such a region what it is, where it is not what is suggested."""


class BlindUndo(Body):
    """The verdict of a reviewer on one sample of a draw."""

    draw: Place
    sample: Place
    reviewer: Text


class Verdicts(BaseModel):
    """Verdicts in the order of sending; each is read apart, so that one that is wrong holds up no other."""

    verdicts: Annotated[list[dict[str, Any]], Field(max_length=10_000)]
