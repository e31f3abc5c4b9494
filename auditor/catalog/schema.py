"""The tables in the database: created on first opening, by one process while the others wait."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, inspect
from sqlmodel import SQLModel

LOCK = 0x61756469746F72
"""Number of PostgreSQL's advisory lock on the schema; any will do that no other program takes."""


def prepare(engine: Engine) -> None:
    """Create the tables that the database lacks; one that lacks none is only read."""
    with engine.connect() as connection:
        if not _lacks_anything(connection):
            return
    with engine.connect() as connection:
        _lock(connection)
        SQLModel.metadata.create_all(connection)
        connection.commit()


def _lacks_anything(connection: Connection) -> bool:
    return not SQLModel.metadata.tables.keys() <= set(inspect(connection).get_table_names())


def _lock(connection: Connection) -> None:
    """Until the transaction ends. Whoever waited finds what the other one created."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
