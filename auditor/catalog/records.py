"""What the catalog hands out: frozen values with plain numbers. They live on when the session is closed.

A ``New...`` is what a caller writes; what is read back has its number too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from auditor.catalog.models import now
from auditor.vocabulary import SUSPECT, UNSEEN


@dataclass(frozen=True, kw_only=True)
class NewReview:
    """A row of the log of decisions, before it has a number."""

    dataset_id: int
    sample_id: int
    kind: str = SUSPECT
    """One of ``vocabulary.KINDS``."""
    decision: str
    """One of ``vocabulary.DECISIONS``, or ``vocabulary.UNDO``."""
    label: int | None = None
    """The corrected label of ``relabel``."""
    labels: list[int] | None = None
    """The classes of ``multiple``."""
    reviewer: str
    created_at: datetime = field(default_factory=now)
    source: str = "app"
    """Where it came from: ``app``, ``bulk``, ``unseen``, ``csv``, ``fiftyone``, ``import``, ``verify``."""
    batch: str | None = None
    audit_id: int | None = None
    draw_id: int | None = None
    """The random draw that a blind verdict belongs to."""
    reverts: int | None = None
    """The row that an ``undo`` takes back."""
    note: str | None = None

    @property
    def is_seen(self) -> bool:
        """A person looked at the sample."""
        return self.kind != UNSEEN


@dataclass(frozen=True, kw_only=True)
class Review(NewReview):
    """A row of the log of decisions."""

    id: int
