"""What people have said about labels, reviews and blind verdicts together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session, select

from auditor.catalog import datasets, verifications
from auditor.catalog.models import DecisionTable, ReviewTable, VerdictTable
from auditor.vocabulary import UNSEEN

AT_ONCE = 900
"""Parameters that every SQLite takes in one statement."""


@dataclass(frozen=True)
class Outcome:
    """What stands for one label, as a review of a suspect or as a blind verdict."""

    decision: str
    """One of ``vocabulary.DECISIONS``."""
    label: int | None
    labels: list[int] | None
    reviewer: str
    created_at: datetime
    kind: str = "suspect"
    """One of ``vocabulary.KINDS``."""

    @property
    def is_seen(self) -> bool:
        """A person looked at the sample."""
        return self.kind != UNSEEN


def outcomes(
    session: Session, dataset_id: int, sample_ids: Sequence[int] | None = None
) -> dict[int, Outcome]:
    """What stands by sample_id, of the named samples or of all.

    The later of a review and a blind verdict counts; being unsure overrules nobody, and a suggestion that
    nobody looked at overrules no verdict. A verdict is the class that a person sees: the given label is then
    kept, another one is a correction.
    """
    found = _reviewed(session, dataset_id, sample_ids)
    wanted = None if sample_ids is None else set(sample_ids)
    verdicts = {
        sample_id: row
        for (_, sample_id), row in verifications.verdicts(session, dataset_id).items()
        if wanted is None or sample_id in wanted
    }
    for sample in datasets.samples(session, dataset_id, list(verdicts)):
        row, before = verdicts[sample.sample_id], found.get(sample.sample_id)
        is_later = before is None or not before.is_seen or before.created_at < row.created_at
        if is_later and (before is None or row.decision != "unsure"):
            found[sample.sample_id] = _of_verdict(row, sample.given_label)
    return found


def _reviewed(session: Session, dataset_id: int, sample_ids: Sequence[int] | None) -> dict[int, Outcome]:
    """What stands reviewed, by sample_id; bare columns: whole objects take several times as long."""
    stands = DecisionTable
    columns = (stands.decision, stands.label, stands.labels, stands.reviewer, stands.created_at)
    statement = select(stands.sample_id, ReviewTable.source, *columns)
    statement = statement.join(ReviewTable, ReviewTable.id == stands.review_id)
    statement = statement.where(stands.dataset_id == dataset_id)
    parts = [statement]
    if sample_ids is not None:
        starts = range(0, len(sample_ids), AT_ONCE)
        parts = [
            statement.where(stands.sample_id.in_(list(sample_ids[start : start + AT_ONCE])))
            for start in starts
        ]
    return {
        sample_id: Outcome(decision, label, labels, name, at, source if source == UNSEEN else "suspect")
        for part in parts
        for sample_id, source, decision, label, labels, name, at in session.execute(part)
    }


def _of_verdict(row: VerdictTable, given_label: int) -> Outcome:
    decision, label = row.decision, row.label
    if decision == "label":
        decision, label = ("keep", None) if label == given_label else ("relabel", label)
    return Outcome(decision, label, None, row.reviewer, row.created_at, "blind")
