"""Many rows of one table at once: by COPY into PostgreSQL, which takes a fraction of the time of INSERT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, insert
from sqlalchemy.exc import DBAPIError


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows in the caller's transaction; a column that a row does not name has its default.

    Raises:
        DBAPIError: the database does not take them, as from any statement.
    """
    if not rows:
        return
    if connection.dialect.name != "postgresql":
        connection.execute(insert(table), [dict(row) for row in rows])
        return
    columns = [
        _column(connection, column) for column in table.columns if column.name in rows[0] or _fills(column)
    ]
    names = ", ".join(f'"{name}"' for name, _, _ in columns)
    statement = f'COPY "{table.name}" ({names}) FROM STDIN'
    driver: Any = connection.dialect.loaded_dbapi
    try:
        with (
            connection.connection.cursor() as cursor,
            cursor.copy(statement) as copy,
        ):
            for row in rows:
                copy.write_row([bound(row.get(name, default)) for name, default, bound in columns])
    except driver.Error as error:
        raise DBAPIError.instance(statement, None, error, driver.Error, dialect=connection.dialect) from error


def _fills(column: Any) -> bool:
    return column.default is not None and column.default.is_scalar


def _column(connection: Connection, column: Any) -> tuple[str, Any, Callable[[Any], Any]]:
    """Its name, its default, and what makes of a value of ours one that the driver takes."""
    bound = column.type.dialect_impl(connection.dialect).bind_processor(connection.dialect)
    return column.name, column.default.arg if _fills(column) else None, bound or (lambda value: value)
