"""Numbers that are never given again, whatever was removed since.

An open page and a running process know a dataset, an audit or a draw by its number alone: were it given again,
what they write would land in the data of somebody else. PostgreSQL's sequences never repeat one; SQLite starts
again below the largest number that is left, so there the largest one ever given is kept beside the tables.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, event, func, insert, literal, select, update
from sqlalchemy.orm import Mapper

from auditor.catalog.models import AuditTable, DatasetTable, DrawTable, JobTable, LastIdTable

NUMBERED = (DatasetTable, AuditTable, DrawTable, JobTable)


def _give(mapper: Mapper[Any], connection: Connection, row: Any) -> None:
    if row.id is not None or connection.dialect.name != "sqlite":
        return
    this = LastIdTable.name == mapper.class_.__tablename__
    # Rows count too: an earlier version that is still in use adds them without counting.
    highest = func.max(LastIdTable.last_id, _largest(mapper.class_))
    counted = connection.execute(update(LastIdTable).where(this).values(last_id=highest + literal(1)))
    if not counted.rowcount:  # the first row of a table that came later
        first = {"name": mapper.class_.__tablename__, "last_id": _largest(mapper.class_) + literal(1)}
        connection.execute(insert(LastIdTable).values(**first))
    row.id = connection.execute(select(LastIdTable.last_id).where(this)).scalar_one()


def _largest(table: Any) -> Any:
    return select(func.coalesce(func.max(table.id), 0)).scalar_subquery()


for _table in NUMBERED:
    event.listen(_table, "before_insert", _give)
