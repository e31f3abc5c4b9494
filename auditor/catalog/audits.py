"""Queries on audits, their engine runs and their epochs."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlmodel import Session, select

from auditor.catalog import datasets, jobs
from auditor.catalog.models import AuditTable, EngineRunTable, EpochTable
from auditor.catalog.records import (
    Audit,
    Dataset,
    EngineRun,
    Epoch,
    NewAudit,
    NewEngineRun,
    read,
    values_of,
)
from auditor.ground.errors import NotFoundError


def create(session: Session, audit: NewAudit, runs: Sequence[NewEngineRun]) -> int:
    """Add an audit with its engine runs; returns its id.

    Raises:
        NotFoundError: its dataset was removed.
    """
    datasets.lock(session, audit.dataset_id)
    if not datasets.has(session, audit.dataset_id):
        raise NotFoundError("The dataset was removed meanwhile; import it again to audit it.")
    row = AuditTable(**values_of(audit))
    session.add(row)
    session.flush()
    audit_id = int(row.id)
    for position, run in enumerate(runs):
        session.add(EngineRunTable(audit_id=audit_id, position=position, **values_of(run)))
    return audit_id


def get(session: Session, audit_id: int) -> Audit:
    """The audit of that number.

    Raises:
        NotFoundError: there is none.
    """
    return read(Audit, _row(session, audit_id))


def _row(session: Session, audit_id: int) -> AuditTable:
    found = session.get(AuditTable, audit_id)
    if found is None:
        raise NotFoundError(f"There is no audit {audit_id}; `auditor status NAME` lists a dataset's audits.")
    return found


def of_dataset(session: Session, dataset_id: int) -> list[Audit]:
    """All audits of a dataset, the newest first."""
    statement = select(AuditTable).where(AuditTable.dataset_id == dataset_id)
    return [read(Audit, row) for row in session.exec(statement.order_by(AuditTable.id.desc()))]


def numbers(session: Session, dataset_id: int) -> dict[int, int]:
    """By its id, which audit of its dataset it is, counted from 1: what people call it."""
    return {one.id: place for place, one in enumerate(reversed(of_dataset(session, dataset_id)), start=1)}


def finished(found: Iterable[Audit]) -> list[Audit]:
    """Those of the audits that have scores, in the same order; also one that runs, once an engine is done."""
    return [audit for audit in found if audit.status == "finished" or audit.summary.settled_at is not None]


def latest_finished(session: Session, dataset_id: int) -> Audit | None:
    """The newest audit that has scores, or None."""
    return next(iter(finished(of_dataset(session, dataset_id))), None)


def require_finished(session: Session, dataset: Dataset, audit_id: int | None = None) -> Audit:
    """The newest audit that has scores, or the one of that number.

    Raises:
        NotFoundError: no audit of this dataset has finished, or not that one; the text says how to run one, or
            which there are.
    """
    have_scores = finished(of_dataset(session, dataset.id))
    if not have_scores:
        raise NotFoundError(
            f"Dataset {dataset.name!r} has no finished audit yet; run `auditor audit {shlex.quote(dataset.name)}`."
        )
    if audit_id is None:
        return have_scores[0]
    found = next((audit for audit in have_scores if audit.id == audit_id), None)
    if found is None:
        called = numbers(session, dataset.id)
        there = ", ".join(str(called[audit.id]) for audit in reversed(have_scores))
        raise NotFoundError(
            f"Dataset {dataset.name!r} has no finished audit {called.get(audit_id, abs(audit_id))}; its finished "
            f"audits: {there}."
        )
    return found


def runs(session: Session, audit_id: int) -> list[EngineRun]:
    """The engine runs of an audit in their order."""
    statement = select(EngineRunTable).where(EngineRunTable.audit_id == audit_id)
    return [read(EngineRun, row) for row in session.exec(statement.order_by(EngineRunTable.position))]


def run(session: Session, audit_id: int, engine: str) -> EngineRun:
    """One engine run.

    Raises:
        NotFoundError: that engine is not part of the audit.
    """
    return read(EngineRun, _run(session, audit_id, engine))


def _run(session: Session, audit_id: int, engine: str) -> EngineRunTable:
    found = session.get(EngineRunTable, (audit_id, engine))
    if found is None:
        raise NotFoundError(f"Audit {audit_id} has no engine {engine!r}.")
    return found


def epochs(session: Session, audit_id: int, engine: str | None = None) -> list[Epoch]:
    """Epoch records in the order of training, of one engine or of all."""
    statement = select(EpochTable).where(EpochTable.audit_id == audit_id)
    if engine is not None:
        statement = statement.where(EpochTable.engine == engine)
    statement = statement.order_by(EpochTable.engine, EpochTable.progress, EpochTable.epoch)
    return [read(Epoch, row) for row in session.exec(statement)]


def record_epoch(session: Session, epoch: Epoch) -> None:
    """Add or replace one epoch record (a resumed run may repeat the epoch it was killed in).

    What is no finite number becomes None: PostgreSQL takes neither NaN nor infinity as JSON.
    """
    numbers = {"losses": _finite(epoch.losses), "metrics": _finite(epoch.metrics)}
    session.merge(EpochTable(**values_of(epoch) | numbers))


def state(session: Session, audit: Audit) -> str:
    """Return what a person should be told: the status, or ``dead`` where nobody works on an audit under way
    any more.

    One that was planned and not started counts as dead after a while of silence.
    """
    job = jobs.of_audit(session, audit.id)
    if job is not None and (now := jobs.state(job)) in jobs.AT_WORK:
        return "queued" if now == "waiting" else now
    is_about_to_start = job is None and audit.status == "queued" and jobs.is_recent(audit.created_at)
    return "dead" if audit.status in ("queued", "running") and not is_about_to_start else audit.status


def seconds_left(run: EngineRun) -> float | None:
    """Estimate from the share that is done; None before the first epoch."""
    if run.status == "finished":
        return 0.0
    if run.progress <= 0:
        return None
    return run.seconds * (1 - run.progress) / run.progress


def set_status(session: Session, audit_id: int, status: str, **values: Any) -> None:
    """Change the audit's status and any other column of it."""
    change(session, audit_id, status=status, **values)


def change(session: Session, audit_id: int, **values: Any) -> None:
    """Change any columns of an audit."""
    row = _row(session, audit_id)
    for name, value in values.items():
        setattr(row, name, value)
    session.add(row)


def set_run(session: Session, audit_id: int, engine: str, **values: Any) -> None:
    """Change any columns of one engine run."""
    found = _run(session, audit_id, engine)
    for name, value in values.items():
        setattr(found, name, value)
    session.add(found)


def _finite(values: Mapping[str, float | None]) -> dict[str, float | None]:
    return {
        name: value if value is not None and math.isfinite(value) else None for name, value in values.items()
    }
