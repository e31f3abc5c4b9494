"""Leases: who works in a folder of the home, for processes that may be in other containers or on other hosts.

A process number says nothing there. A lease has a host, a boot and a heartbeat; who finds one whose holder is gone
takes it over in one transaction, so that only one process cleans up, and never while its holder registers its work.
"""

from __future__ import annotations

import os

from sqlalchemy import delete, update
from sqlmodel import Session, select

from auditor.catalog.jobs import this_host
from auditor.catalog.models import LeaseTable
from auditor.catalog.records import now
from auditor.ground.processes import process_lives, started

SETTLING = ".settling-"
"""What the lease is called of whoever stores an audit's scores; then comes the audit's number."""
HEARTBEAT_S = 5.0
SILENCE_S = 120.0
"""A holder that cannot be seen from here is gone when it was silent for longer; clocks of hosts differ a little."""


def take(session: Session, name: str, uuid: str) -> None:
    """Say that this process works in the folder ``name``, on what will have this UUID."""
    session.add(
        LeaseTable(
            name=name,
            uuid=uuid,
            pid=os.getpid(),
            host=this_host(),
            process_started=started(),
            heartbeat_at=now(),
        )
    )


def beat(session: Session, name: str) -> bool:
    """Say that the holder lives; returns whether it still holds the lease. Locks it until the transaction ends."""
    this = update(LeaseTable).where(LeaseTable.name == name).values(heartbeat_at=now())
    return bool(session.execute(this, execution_options={"synchronize_session": False}).rowcount)


def end(session: Session, name: str) -> None:
    """The work is done, or was cleaned up."""
    session.execute(delete(LeaseTable).where(LeaseTable.name == name))


def names(session: Session) -> list[str]:
    """Every lease."""
    return list(session.exec(select(LeaseTable.name)))


def is_gone(session: Session, name: str) -> bool:
    """Return whether the lease has a holder that is gone; cheap and without a lock."""
    row = session.get(LeaseTable, name, populate_existing=True)
    return row is not None and not _lives(row)


def take_over(session: Session, name: str) -> str | None:
    """Lock the lease and return the UUID that its holder worked on; None where somebody lives who holds it.

    Whoever ends the lease in this transaction cleans up alone.
    """
    unchanged = update(LeaseTable).where(LeaseTable.name == name).values(uuid=LeaseTable.uuid)
    session.execute(unchanged, execution_options={"synchronize_session": False})
    row = session.get(LeaseTable, name, populate_existing=True)
    return None if row is None or _lives(row) else row.uuid


def adopt(session: Session, name: str) -> str | None:
    """Hold the lease of a holder that is gone; returns the UUID, None where somebody lives who holds it."""
    uuid = take_over(session, name)
    if uuid is not None:
        end(session, name)
        take(session, name, uuid)
    return uuid


def _lives(row: LeaseTable) -> bool:
    if row.host == this_host():
        return process_lives(row.pid, row.process_started)
    return (now() - row.heartbeat_at).total_seconds() <= SILENCE_S
