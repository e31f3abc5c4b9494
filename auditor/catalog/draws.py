"""Random draws: samples to be judged blind, fixed before anybody looks. The verdicts on them are in the log."""

from __future__ import annotations

from sqlmodel import Session, select

from auditor.catalog.models import DrawTable
from auditor.catalog.records import Draw, NewDraw, read, values_of
from auditor.ground.errors import NotFoundError
from auditor.ground.vocabulary import HEAD_ORDER


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
    """All draws of a dataset, the oldest first; orders of a review are none."""
    statement = select(DrawTable).where(DrawTable.dataset_id == dataset_id, DrawTable.purpose != HEAD_ORDER)
    return [read(Draw, row) for row in session.exec(statement.order_by(DrawTable.id))]


def order_of(session: Session, audit_id: int) -> Draw | None:
    """The random order in which the head of the audit's ranking is reviewed; None where nobody asked for one."""
    statement = select(DrawTable).where(DrawTable.audit_id == audit_id, DrawTable.purpose == HEAD_ORDER)
    found = session.exec(statement.order_by(DrawTable.id)).first()
    return None if found is None else read(Draw, found)
