"""The log of decisions and what stands now."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from sqlmodel import Session, select

from auditor.catalog.models import DecisionTable, ReviewTable


def append(session: Session, review: ReviewTable) -> ReviewTable:
    """Add one row to the log and let what stands now follow it. The row's id is set on return.

    The caller holds ``datasets.lock``: of two first decisions on a sample each would find none standing.
    """
    session.add(review)
    session.flush()
    if review.decision == "undo":
        _refresh(session, review.dataset_id, review.sample_id)
    else:
        _stand(session, review)
    return review


def standing(session: Session, dataset_id: int, sample_id: int) -> DecisionTable | None:
    """What stands decided for a sample, or None."""
    return session.get(DecisionTable, (dataset_id, sample_id))


def decisions(session: Session, dataset_id: int) -> dict[int, DecisionTable]:
    """What stands decided, by sample_id."""
    rows = session.exec(select(DecisionTable).where(DecisionTable.dataset_id == dataset_id))
    return {row.sample_id: row for row in rows}


def log(session: Session, dataset_id: int, sample_id: int | None = None) -> list[ReviewTable]:
    """The log in the order it was written, of one sample or of the whole dataset."""
    statement = select(ReviewTable).where(ReviewTable.dataset_id == dataset_id)
    if sample_id is not None:
        statement = statement.where(ReviewTable.sample_id == sample_id)
    return list(session.exec(statement.order_by(ReviewTable.id)))


def of_batch(session: Session, dataset_id: int, batch: str) -> list[ReviewTable]:
    """The decisions that were taken in one step."""
    statement = select(ReviewTable).where(ReviewTable.dataset_id == dataset_id, ReviewTable.batch == batch)
    return list(session.exec(statement.order_by(ReviewTable.id)))


def latest_of(session: Session, dataset_id: int, reviewer: str) -> ReviewTable | None:
    """The reviewer's newest decision that is not undone, or None."""
    undone = select(ReviewTable.reverts).where(
        ReviewTable.dataset_id == dataset_id,
        ReviewTable.reverts.is_not(None),
    )
    statement = (
        select(ReviewTable)
        .where(ReviewTable.dataset_id == dataset_id, ReviewTable.reviewer == reviewer)
        .where(ReviewTable.decision != "undo", ReviewTable.id.not_in(undone))
        .order_by(ReviewTable.id.desc())
        .limit(1)
    )
    return session.exec(statement).first()


def frame(rows: Sequence[ReviewTable]) -> pd.DataFrame:
    """The log as a table, one row a decision."""
    columns = [column.key for column in ReviewTable.__table__.columns]
    return pd.DataFrame([{name: getattr(row, name) for name in columns} for row in rows], columns=columns)


def _refresh(session: Session, dataset_id: int, sample_id: int) -> None:
    rows = log(session, dataset_id, sample_id)
    undone = {row.reverts for row in rows if row.decision == "undo"}
    left = [row for row in rows if row.decision != "undo" and row.id not in undone]
    if left:
        _stand(session, left[-1])
        return
    current = standing(session, dataset_id, sample_id)
    if current is not None:
        session.delete(current)
        session.flush()


def _stand(session: Session, review: ReviewTable) -> None:
    assert review.id is not None
    session.merge(
        DecisionTable(
            dataset_id=review.dataset_id,
            sample_id=review.sample_id,
            review_id=review.id,
            decision=review.decision,
            label=review.label,
            labels=review.labels,
            reviewer=review.reviewer,
            created_at=review.created_at,
        )
    )
    session.flush()
