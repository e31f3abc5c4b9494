"""Random draws and the blind verdicts on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import func
from sqlmodel import Session, select

from auditor.catalog.models import DrawTable, ReviewTable, VerdictTable
from auditor.errors import NotFoundError


def add_draw(session: Session, draw: DrawTable) -> int:
    """Store a draw; returns its id."""
    session.add(draw)
    session.flush()
    assert draw.id is not None
    return draw.id


def get_draw(session: Session, draw_id: int) -> DrawTable:
    """The draw of that number.

    Raises:
        NotFoundError: there is none.
    """
    found = session.get(DrawTable, draw_id)
    if found is None:
        raise NotFoundError(f"There is no draw {draw_id}; `auditor verify NAME --draw 200` makes one.")
    return found


def draws(session: Session, dataset_id: int) -> list[DrawTable]:
    """All draws of a dataset, the oldest first."""
    return list(
        session.exec(select(DrawTable).where(DrawTable.dataset_id == dataset_id).order_by(DrawTable.id))
    )


def add_verdict(session: Session, verdict: VerdictTable) -> None:
    """Append one verdict."""
    session.add(verdict)
    session.flush()


def newest(session: Session, dataset_id: int) -> tuple[int, int, int]:
    """Ids of the newest verdict, draw and review of a judged sample, 0 without one.

    One of them grows with everything that is said about the random samples.
    """
    found = [
        select(func.max(table.id)).where(table.dataset_id == dataset_id)
        for table in (VerdictTable, DrawTable, ReviewTable)
    ]
    found[2] = found[2].where(ReviewTable.sample_id.in_(judged_samples(dataset_id)))
    verdict, drawn, reviewed = (int(session.exec(one).one() or 0) for one in found)
    return verdict, drawn, reviewed


def judged_samples(dataset_id: int) -> Any:
    """A query for the sample_ids that have a verdict."""
    newest = select(func.max(VerdictTable.id)).where(VerdictTable.dataset_id == dataset_id)
    newest = newest.group_by(VerdictTable.draw_id, VerdictTable.sample_id)
    return select(VerdictTable.sample_id).where(VerdictTable.id.in_(newest), VerdictTable.decision != "undo")


def log(session: Session, dataset_id: int) -> list[VerdictTable]:
    """Every verdict and undo in the order it was written."""
    statement = select(VerdictTable).where(VerdictTable.dataset_id == dataset_id)
    return list(session.exec(statement.order_by(VerdictTable.id)))


def verdicts(session: Session, dataset_id: int) -> dict[tuple[int, int], VerdictTable]:
    """What stands for each (draw_id, sample_id): the latest verdict, where that is not an ``undo``."""
    return standing(log(session, dataset_id))


def standing(rows: Iterable[VerdictTable]) -> dict[tuple[int, int], VerdictTable]:
    """``verdicts`` of a log that was read already."""
    latest = {(row.draw_id, row.sample_id): row for row in rows}
    return {key: row for key, row in latest.items() if row.decision != "undo"}
