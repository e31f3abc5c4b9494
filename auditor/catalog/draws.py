"""Random draws: samples to be judged blind, fixed before anybody looks. The verdicts on them are in the log."""

from __future__ import annotations

from sqlmodel import Session, select

from auditor.catalog.models import DrawTable
from auditor.catalog.records import Draw, NewDraw, read, values_of
from auditor.ground.errors import NotFoundError


def add(session: Session, draw: NewDraw) -> Draw:
    """Store a draw; returns it with its number."""
    row = DrawTable(**values_of(draw))
    session.add(row)
    session.flush()
    return read(Draw, row)


def get(session: Session, draw_id: int) -> Draw:
    """The draw of that number.

    Raises:
        NotFoundError: there is none.
    """
    found = session.get(DrawTable, draw_id)
    if found is None:
        raise NotFoundError(f"There is no draw {draw_id}; draw a random sample first.")
    return read(Draw, found)


def of_dataset(session: Session, dataset_id: int) -> list[Draw]:
    """All draws of a dataset, the oldest first."""
    statement = select(DrawTable).where(DrawTable.dataset_id == dataset_id)
    return [read(Draw, row) for row in session.exec(statement.order_by(DrawTable.id))]
