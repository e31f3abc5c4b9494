"""The tables in the database: created on first opening, and extended where an earlier version left them.

A column that came later is added to a catalog that lacks it, so every new one must be nullable or have a
plain default. Nothing is ever dropped: an earlier version still reads what a later one extended.
"""

from __future__ import annotations

from sqlalchemy import Column, Connection, Engine, Table, inspect, literal, text
from sqlalchemy.schema import CreateColumn, DefaultClause
from sqlmodel import SQLModel

from auditor.catalog import ids
from auditor.errors import AuditorError
from auditor.settings import settings

LOCK = 0x61756469746F72
"""Number of PostgreSQL's advisory lock on the schema; any will do that no other program takes."""


def prepare(engine: Engine) -> None:
    """Create the tables and columns that the database lacks; one that lacks none is only read.

    Raises:
        AuditorError: a column is missing that cannot be filled in.
    """
    with engine.connect() as connection:
        if not _missing(connection):
            return
    with engine.connect() as connection:
        _lock(connection)
        SQLModel.metadata.create_all(connection)
        for column in _missing(connection):
            _add(connection, column)
        ids.begin(connection)
        connection.commit()


def _missing(connection: Connection) -> list[Column[object]]:
    there = inspect(connection).get_multi_columns()
    names = {table: {column["name"] for column in columns} for (_, table), columns in there.items()}
    return [
        column
        for table in SQLModel.metadata.sorted_tables
        for column in table.columns
        if column.name not in names.get(table.name, ())
    ]


def _add(connection: Connection, column: Column[object]) -> None:
    """With its index. What stands already gets the default, or NULL where there is none."""
    table = column.table
    assert isinstance(table, Table)
    default = column.default.arg if column.default is not None and column.default.is_scalar else None
    if default is None and not column.nullable:
        raise AuditorError(
            f"The catalog {settings().catalog_name} is of another version: it lacks "
            f"{table.name}.{column.name}, which cannot be filled in. Export your decisions with the version "
            "that wrote it, point AUDITOR_HOME or AUDITOR_DATABASE_URL elsewhere and import the export."
        )
    added = Column(column.name, column.type, nullable=column.nullable)
    if not column.nullable:
        value = literal(default, column.type).compile(
            dialect=connection.dialect, compile_kwargs={"literal_binds": True}
        )
        added.server_default = DefaultClause(text(str(value)))
    words = CreateColumn(added).compile(dialect=connection.dialect)
    connection.exec_driver_sql(f'ALTER TABLE "{table.name}" ADD COLUMN {words}')
    for index in table.indexes:
        if column.name in index.columns:
            index.create(connection, checkfirst=True)


def _lock(connection: Connection) -> None:
    """Until the transaction ends. Whoever waited finds what the other one created."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
