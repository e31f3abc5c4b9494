"""Random draws: samples to be judged blind, fixed before anybody looks. The verdicts on them are in the log."""

from __future__ import annotations

from sqlmodel import Session, select

from auditor.catalog.models import DrawTable
from auditor.errors import NotFoundError


def add(session: Session, draw: DrawTable) -> int:
    """Store a draw; returns its id."""
    session.add(draw)
    session.flush()
    assert draw.id is not None
    return draw.id


def get(session: Session, draw_id: int) -> DrawTable:
    """The draw of that number.

    Raises:
        NotFoundError: there is none.
    """
    found = session.get(DrawTable, draw_id)
    if found is None:
        raise NotFoundError(f"There is no draw {draw_id}; `auditor verify NAME --draw 200` makes one.")
    return found


def of_dataset(session: Session, dataset_id: int) -> list[DrawTable]:
    """All draws of a dataset, the oldest first."""
    statement = select(DrawTable).where(DrawTable.dataset_id == dataset_id)
    return list(session.exec(statement.order_by(DrawTable.id)))
