"""Many rows of one table at once.

PostgreSQL takes them by COPY, in a fraction of the time of INSERT, and sends numbers as bytes.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sqlalchemy import (
    ARRAY,
    DOUBLE_PRECISION,
    BigInteger,
    Boolean,
    Connection,
    Float,
    Table,
    and_,
    any_,
    cast,
    func,
    insert,
    literal_column,
    select,
    text,
    true,
)
from sqlalchemy.exc import DBAPIError

ROWS_A_PART = 50_000
"""Rows that are read at a time."""


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


def count_for_plans(connection: Connection, table: Table) -> None:
    """Tell PostgreSQL what a table holds after many rows came, in the caller's transaction.

    It looks by itself a minute later. Until then it may plan badly: to read every tenth of two million scores had
    not ended after six minutes.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(f'ANALYZE "{table.name}"'))


def _fills(column: Any) -> bool:
    return column.default is not None and column.default.is_scalar


def _column(connection: Connection, column: Any) -> tuple[str, Any, Callable[[Any], Any]]:
    """Its name, its default, and what makes of a value of ours one that the driver takes."""
    bound = column.type.dialect_impl(connection.dialect).bind_processor(connection.dialect)
    return column.name, column.default.arg if _fills(column) else None, bound or (lambda value: value)


def read_columns(
    connection: Connection,
    key: Any,
    where: Any,
    columns: Mapping[str, Any],
    *,
    keys: Sequence[int] | None = None,
    dtypes: Mapping[str, DTypeLike] | None = None,
) -> dict[str, NDArray[Any]]:
    """Columns of numbers of one table as (N,) arrays in the order of ``key``, all as of one moment.

    PostgreSQL sends them as bytes, some ten thousand rows at a time: a row as a Python object takes longer to make
    than to read, and ten million of them take gigabytes.

    Args:
        connection: of the caller's transaction.
        key: an int column that orders the rows, unique among those of ``where`` and not negative.
        where: the condition that chooses the rows.
        columns: by name of the array, which is int64 or bool (never missing) or float64 (NaN where missing).
        keys: only these rows, read a part at a time; None = all of ``where``.
        dtypes: of columns that are to take less memory.
    """
    is_postgres = connection.dialect.name == "postgresql"
    parts: Iterator[Sequence[NDArray[Any]]]
    if keys is None:
        read = _parts_as_bytes if is_postgres else _parts_as_rows
        parts = read(connection, key, where, list(columns.values()))
    else:
        chosen = sorted(keys)
        wheres = [
            and_(where, among(connection, key, chosen[start : start + ROWS_A_PART]))
            for start in range(0, len(chosen), ROWS_A_PART)
        ]
        parts = itertools.chain.from_iterable(
            _parts_as_rows(connection, key, one, list(columns.values())) for one in wheres
        )
    kinds = {name: (dtypes or {}).get(name, _dtype(column)) for name, column in columns.items()}
    of_columns: list[list[NDArray[Any]]] = [[] for _ in columns]
    for part in parts:
        for values, known, kind in zip(part, of_columns, kinds.values(), strict=True):
            known.append(values.astype(kind, copy=False))
    found: dict[str, NDArray[Any]] = {}
    for (name, kind), known in zip(kinds.items(), of_columns, strict=True):
        found[name] = np.concatenate(known) if known else np.empty(0, kind)
        known.clear()  # or all of them would be held twice
    return found


def among(connection: Connection, column: Any, ids: Sequence[int]) -> Any:
    """The condition that an int column holds one of many numbers: one parameter, however many they are."""
    if connection.dialect.name == "postgresql":
        return column == any_(cast(list(ids), ARRAY(BigInteger)))
    return column.in_(select(func.json_each(json.dumps(list(ids))).table_valued("value").c.value))


def _dtype(column: Any) -> Any:
    if isinstance(column.type, Boolean):
        return np.bool_
    return np.float64 if isinstance(column.type, Float) else np.int64


def _parts_as_rows(
    connection: Connection, key: Any, where: Any, columns: Sequence[Any]
) -> Iterator[Sequence[NDArray[Any]]]:
    result = connection.execute(select(*columns).where(where).order_by(key))
    assert result.cursor is not None
    # From the driver's own cursor, one column after the other: SQLAlchemy's rows take four times as long, and
    # iterators of all rows at once set off the collector of garbage.
    while rows := result.cursor.fetchmany(ROWS_A_PART):
        # None becomes NaN in an array of floats.
        yield [np.array([row[place] for row in rows], _dtype(column)) for place, column in enumerate(columns)]
    result.close()


def _parts_as_bytes(
    connection: Connection, key: Any, where: Any, columns: Sequence[Any]
) -> Iterator[Sequence[NDArray[Any]]]:
    last = connection.execute(select(func.max(key)).where(where)).scalar_one()
    if last is None:
        return
    series = func.generate_series(0, last, ROWS_A_PART).table_valued("start").render_derived(name="series")
    start = series.c.start
    sent, kinds = zip(*map(_sent, columns), strict=True)
    rows = select(*(one.label(f"c{number}") for number, one in enumerate(sent)))
    rows = rows.where(where, key >= start, key < start + ROWS_A_PART).order_by(key).correlate(series)
    glued = (func.string_agg(one, literal_column("''::bytea")).label(one.key) for one in rows.subquery().c)
    part = select(*glued).lateral("part")
    # Not ordered: the server would keep all bytes to sort them, and it joins the series in its order anyway.
    statement = select(start, *part.c).select_from(series.join(part, true()))
    before = -1
    for at, *values in connection.execute(statement.execution_options(yield_per=1)):
        if at <= before:
            raise RuntimeError("PostgreSQL sent parts of a table out of order; please report this.")
        before = at
        if values[0] is not None:  # some row has such a key
            yield [
                np.frombuffer(bytes(one), kind).astype(_dtype(column))
                for one, kind, column in zip(values, kinds, columns, strict=True)
            ]


def _sent(column: Any) -> tuple[Any, str]:
    """A number as PostgreSQL's bytes, and the dtype that reads them."""
    if isinstance(column.type, Boolean):
        return func.boolsend(column), "?"
    if isinstance(column.type, Float):
        return func.float8send(func.coalesce(cast(column, DOUBLE_PRECISION), literal_column("'NaN'"))), ">f8"
    return func.int8send(cast(column, BigInteger)), ">i8"
