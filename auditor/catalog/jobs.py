"""Queries on jobs: work that runs in a process of its own."""

from __future__ import annotations

import functools
import os
import socket
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import delete, update
from sqlmodel import Session, select

from auditor.catalog.models import JobTable
from auditor.catalog.records import now
from auditor.ground.errors import NotFoundError
from auditor.ground.processes import process_lives

HEARTBEAT_S = 2.0
"""How often a running job says that it lives."""
SILENCE_S = 30.0
"""A job is dead when its process is gone; where that cannot be seen from here (it runs on another host, or has no
process yet), when it was silent for longer than this."""
AT_WORK = ("waiting", "running")


@dataclass(frozen=True)
class Job:
    """A job as it was when it was read; the fields are those of ``JobTable``."""

    id: int
    kind: str
    name: str
    dataset_id: int | None
    audit_id: int | None
    arguments: dict[str, Any]
    who: str | None
    status: str
    pid: int | None
    host: str | None
    process_started: float | None
    heartbeat_at: datetime | None
    cancel_requested: bool
    stage: str
    done: float
    total: float | None
    seconds_left: float | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    result: dict[str, Any] | None

    @property
    def progress(self) -> float:
        """Share of the stage that is done, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0


def create(session: Session, kind: str, name: str, **values: Any) -> int:
    """Add a job that waits for its process; returns its id."""
    row = JobTable(kind=kind, name=name, heartbeat_at=now(), **values)
    session.add(row)
    session.flush()
    return int(row.id)


def get(session: Session, job_id: int) -> Job:
    """The job of that number.

    Raises:
        NotFoundError: there is none (any more).
    """
    row = session.get(JobTable, job_id, populate_existing=True)
    if row is None:
        raise NotFoundError(f"There is no job {job_id}; it was removed, or its dataset was.")
    return _read(row)


def of_audit(session: Session, audit_id: int | None) -> Job | None:
    """The job that works on an audit, or did."""
    row = session.exec(select(JobTable).where(JobTable.audit_id == audit_id)).first()
    return None if row is None else _read(row)


def find(session: Session, *kinds: str, dataset_id: int | None = None) -> list[Job]:
    """Jobs of these kinds (of any, where none is named), of one dataset where it is named; the newest first."""
    statement = select(JobTable).order_by(JobTable.id.desc())
    if kinds:
        statement = statement.where(JobTable.kind.in_(kinds))
    if dataset_id is not None:
        statement = statement.where(JobTable.dataset_id == dataset_id)
    return [_read(row) for row in session.exec(statement)]


def lock(session: Session, job_id: int) -> None:
    """Let nobody else lock this job until the transaction ends; to be called before reading what decides."""
    change(session, job_id, kind=JobTable.kind)


def change(session: Session, job_id: int, **values: Any) -> None:
    """Change any columns of a job, if it is still there."""
    statement = update(JobTable).where(JobTable.id == job_id).values(**values)
    session.execute(statement, execution_options={"synchronize_session": False})


def beat(session: Session, job_id: int, **values: Any) -> bool:
    """Say that this process works on the job, and how far it is; returns whether it should stop: asked to, or
    removed. The row of a job that another process has by now is left alone."""
    here = (JobTable.id == job_id, JobTable.pid == os.getpid(), JobTable.host == this_host())
    statement = update(JobTable).where(*here).values(heartbeat_at=now(), **values)
    session.execute(statement, execution_options={"synchronize_session": False})
    return session.exec(select(JobTable.cancel_requested).where(JobTable.id == job_id)).first() is not False


def is_taken(session: Session, job_id: int) -> bool:
    """Return whether the job is another process's by now: this one was taken for dead, and somebody went on
    with it.
    """
    row = session.execute(select(JobTable.pid, JobTable.host).where(JobTable.id == job_id)).first()
    return row is not None and tuple(row) != (os.getpid(), this_host())


def remove(session: Session, job_id: int) -> None:
    """Forget a job."""
    session.execute(delete(JobTable).where(JobTable.id == job_id))


def state(job: Job) -> str:
    """Return what a person should be told: the status, or ``dead`` where nobody works on the job any more."""
    return "dead" if job.status in AT_WORK and not lives(job) else job.status


def lives(job: Job) -> bool:
    """Return whether somebody works on the job: its process where it can be seen, else its heartbeat tells."""
    if job.pid is not None and job.host == this_host():
        return process_lives(job.pid, job.process_started)
    return is_recent(job.heartbeat_at or job.created_at)


def is_recent(moment: datetime) -> bool:
    """Return whether a sign of life from then still counts."""
    return datetime.now(tz=UTC) - moment <= timedelta(seconds=SILENCE_S)


@functools.cache
def this_host() -> str:
    """Return where a process number means the same process: this machine, and on it the container."""
    try:
        # Containers may share the machine's name, or its home folder, but not the numbers of its processes; and
        # machines may have the same name, but not the same boot.
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')} {boot}"
    except OSError:  # no Linux
        return socket.gethostname()


def _read(row: JobTable) -> Job:
    return Job(**{field.name: getattr(row, field.name) for field in fields(Job)})
