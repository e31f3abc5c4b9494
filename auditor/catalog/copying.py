"""Every row of a catalog from one database into another, of the same kind or not.

A backup holds a catalog as a SQLite file, whatever database it came from; so a team may begin on SQLite and go on
with PostgreSQL, and back.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, create_engine, delete, func, insert, select
from sqlmodel import SQLModel

from auditor.catalog import schema
from auditor.catalog.bulk import count_for_plans, insert_rows
from auditor.catalog.ids import NUMBERED
from auditor.catalog.models import LastIdTable
from auditor.ground.settings import sqlite_url

ROWS = 5_000
"""Read and written at a time."""


def to_file(source: Connection, file: Path) -> None:
    """Make ``file`` a SQLite catalog with all rows of ``source``, which shows one moment while it is read.

    Raises:
        SQLAlchemyError: the file cannot be written, or a row not be read.
    """
    engine = create_engine(sqlite_url(file))
    try:
        schema.prepare(engine)
        with engine.begin() as target:
            _copy(source, target)
            target.execute(delete(LastIdTable))
            for name, last in _last_numbers(source).items():
                target.execute(insert(LastIdTable).values(name=name, last_id=last))
    finally:
        engine.dispose()


def from_file(file: Path, target: Connection) -> None:
    """Put all rows of a SQLite catalog into PostgreSQL's tables, which are there and empty.

    Raises:
        AuditorError: the file's layout is newer than this code.
        SQLAlchemyError: a row cannot be read, or the database does not take it.
    """
    engine = create_engine(sqlite_url(file))
    try:
        schema.prepare(engine)
        with engine.connect() as source:
            _copy(source, target)
            for name, last in _last_numbers(source).items():
                target.execute(select(func.setval(func.pg_get_serial_sequence(name, "id"), last)))
    finally:
        engine.dispose()


def _copy(source: Connection, target: Connection) -> None:
    for table in SQLModel.metadata.sorted_tables:  # what others point to comes first
        if table.name == LastIdTable.__tablename__:
            continue
        # In the order of the key: the log is read in the order of its numbers.
        rows = source.execution_options(yield_per=ROWS).execute(select(table).order_by(*table.primary_key))
        for part in rows.mappings().partitions(ROWS):
            insert_rows(target, table, part)
        count_for_plans(target, table)


def _last_numbers(source: Connection) -> dict[str, int]:
    """By table with numbers of its own: the largest that was ever given."""
    given: dict[str, int] = {}
    counted = {str(model.__tablename__) for model in NUMBERED}
    if source.dialect.name == "sqlite":
        given = {row.name: row.last_id for row in source.execute(select(LastIdTable))}
    found = {}
    for table in SQLModel.metadata.sorted_tables:
        key = table.primary_key.columns.get("id")
        if key is None or len(table.primary_key) > 1:
            continue
        if source.dialect.name == "sqlite":
            last = max(given.get(table.name, 0), source.execute(select(func.max(key))).scalar_one() or 0)
        else:
            sequence = func.pg_get_serial_sequence(table.name, "id")
            last = source.execute(select(func.pg_sequence_last_value(sequence))).scalar_one() or 0
        if last and (source.dialect.name == "sqlite" or table.name in counted):
            found[table.name] = int(last)
    return found
