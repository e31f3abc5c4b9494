"""Samples that somebody is looking at: for that time nobody else is asked about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, insert
from sqlmodel import Session, select

from auditor.catalog.models import ClaimTable
from auditor.catalog.records import now
from auditor.catalog.reviews import AT_ONCE

CLAIM_S = 180.0
"""Seconds that a lease lasts. A window that is looked at renews its own long before."""


def take(session: Session, dataset_id: int, sample_ids: Sequence[int], reviewer: str) -> dict[int, str]:
    """Lease the samples that are free to the reviewer; returns who holds the others, by sample_id.

    The caller holds ``datasets.lock``: of two who ask at once, the second would find every sample free.
    """
    others = holders(session, dataset_id, sample_ids, apart_from=reviewer)
    free = [one for one in dict.fromkeys(sample_ids) if one not in others]
    for start in range(0, len(free), AT_ONCE):
        part = free[start : start + AT_ONCE]
        session.execute(
            delete(ClaimTable).where(ClaimTable.dataset_id == dataset_id, ClaimTable.sample_id.in_(part))
        )
    until = now() + timedelta(seconds=CLAIM_S)
    if free:
        rows = [
            {"dataset_id": dataset_id, "sample_id": one, "reviewer": reviewer, "until": until} for one in free
        ]
        session.execute(insert(ClaimTable), rows)
    return others


def give_up(session: Session, dataset_id: int | None, reviewer: str) -> None:
    """End the reviewer's leases, of one dataset or (None) of all, and all that ran out."""
    ended = (ClaimTable.reviewer == reviewer) | (ClaimTable.until < now())
    of_one = () if dataset_id is None else (ClaimTable.dataset_id == dataset_id,)
    session.execute(delete(ClaimTable).where(ended, *of_one))


def holders(
    session: Session, dataset_id: int, sample_ids: Sequence[int], *, apart_from: str
) -> dict[int, str]:
    """Return who else looks at these samples at this moment, by sample_id."""
    found: dict[int, str] = {}
    for start in range(0, len(sample_ids), AT_ONCE):
        part = list(sample_ids[start : start + AT_ONCE])
        statement = select(ClaimTable.sample_id, ClaimTable.reviewer)
        statement = statement.where(*_of_others(dataset_id, apart_from), ClaimTable.sample_id.in_(part))
        found |= {int(one): str(name) for one, name in session.execute(statement)}
    return found


def held_by_others(dataset_id: int, reviewer: str) -> Any:
    """A subquery of the sample_ids that others look at, for a filter."""
    return select(ClaimTable.sample_id).where(*_of_others(dataset_id, reviewer))


def _of_others(dataset_id: int, reviewer: str) -> tuple[Any, ...]:
    return (
        ClaimTable.dataset_id == dataset_id,
        ClaimTable.reviewer != reviewer,
        ClaimTable.until > now(),
    )
