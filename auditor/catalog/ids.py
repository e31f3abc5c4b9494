"""Numbers that are never given again, whatever was removed since.

An open page and a running process know a dataset, an audit or a draw by its number alone: were it given again,
what they write would land in the data of somebody else. PostgreSQL's sequences never repeat one; SQLite starts
again below the largest number that is left, so there the largest one ever given is kept beside the tables.
A catalog that was restored from a copy has forgotten numbers, but their folders are still there: a number whose
folder exists is passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, event, func, insert, select, update
from sqlalchemy.orm import Mapper

from auditor.catalog.models import AuditTable, DatasetTable, DrawTable, JobTable, LastIdTable
from auditor.ground.settings import settings

NUMBERED = (DatasetTable, AuditTable, DrawTable, JobTable)


def _give(mapper: Mapper[Any], connection: Connection, row: Any) -> None:
    if row.id is not None:
        return
    folder_of = _folder_of(mapper.class_)
    row.id = _next(mapper, connection)
    while folder_of is not None and folder_of(row.id).exists():
        row.id = _next(mapper, connection)


def _folder_of(table: Any) -> Callable[[int], Path] | None:
    known = settings()
    folders = {DatasetTable: known.dataset_folder, AuditTable: known.audit_folder, JobTable: known.job_folder}
    return folders.get(table)


def _next(mapper: Mapper[Any], connection: Connection) -> int:
    if connection.dialect.name != "sqlite":
        sequence = func.pg_get_serial_sequence(mapper.class_.__tablename__, "id")
        return int(connection.execute(select(func.nextval(sequence))).scalar_one())
    this = LastIdTable.name == mapper.class_.__tablename__
    counted = connection.execute(update(LastIdTable).where(this).values(last_id=LastIdTable.last_id + 1))
    if not counted.rowcount:  # its first row
        connection.execute(insert(LastIdTable).values(name=mapper.class_.__tablename__, last_id=1))
    return int(connection.execute(select(LastIdTable.last_id).where(this)).scalar_one())


for _table in NUMBERED:
    event.listen(_table, "before_insert", _give)
