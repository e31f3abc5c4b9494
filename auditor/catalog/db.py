"""One database engine per URL, sessions, and the schema."""

from __future__ import annotations

import functools
import json
import logging
import os
import shutil
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import JSON, URL, Boolean, Column, Engine, Float, Integer, event
from sqlalchemy.exc import ArgumentError, DatabaseError, DataError, NoSuchModuleError, OperationalError
from sqlmodel import Session, SQLModel, create_engine

from auditor.catalog import ids, models, schema
from auditor.ground.errors import AuditorError, CatalogBusyError, CatalogError
from auditor.ground.settings import Settings, settings

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")

WRITE_WAIT_S = 30
"""How long a writer waits for another one before it gives up."""
MOST_HOME_BYTES = 450
"""SQLite takes no path of more than 512 bytes, with what it and we add to a name."""
LEAST_FREE = 2**18
"""With less, SQLite fails in ways that do not name the disk."""
DAMAGED = (
    "the file is damaged; put a backup in its place, or move it away together with its -wal and -shm files, "
    "and the next command starts an empty catalog"
)
OTHER_LAYOUT = (
    "its tables are not those of the layout that it says it has, as after a version that was never released; put a "
    "backup or the copy catalog.db.before-NUMBER in its place, or point AUDITOR_HOME elsewhere"
)

# What its pool logs of a connection that a server ended we say in one line; `auditor -v` shows the log too.
logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())
# Importing them registers every table, and counts the numbers that are given.
assert models.SQLModel is SQLModel
assert ids.NUMBERED


@contextmanager
def session() -> Iterator[Session]:
    """A session on the catalog of the current settings; commits on success, rolls back on any error.

    Raises:
        CatalogBusyError: another process kept it locked for ``WRITE_WAIT_S``.
        CatalogError: the database cannot be opened, read or written (full disk, no rights, damage).
        AuditorError: a text or number that no database takes (NUL, half a pair of surrogates, 30 digits).
    """
    try:
        with Session(_engine(settings()), expire_on_commit=False) as open_session:
            try:
                yield open_session
                open_session.commit()
            except BaseException:
                open_session.rollback()
                raise
    except (UnicodeEncodeError, OverflowError, DataError) as error:
        said = " ".join(str(getattr(error, "orig", None) or error).split())[:120]
        raise AuditorError(
            f"The catalog {settings().catalog_name} takes no such text or number ({said!a}); nothing was written."
        ) from error
    except ValueError as error:
        if not _is_damaged_value(error):
            raise
        raise CatalogError(
            f"The catalog {settings().catalog_name} holds a damaged value ({' '.join(str(error).split())[:120]}): "
            "put a backup in its place (`auditor restore`), or remove the dataset that `auditor status` names."
        ) from error
    except DatabaseError as error:
        # Its other kinds (a broken constraint, wrong SQL) are the caller's; damage comes as the plain one.
        if type(error) not in (OperationalError, DatabaseError):
            raise
        is_busy = "locked" in str(error.orig)
        raise (CatalogBusyError if is_busy else CatalogError)(_explained(error)) from error


def ask(
    query: Callable[Concatenate[Session, Asked], Answer], *args: Asked.args, **kwargs: Asked.kwargs
) -> Answer:
    """Return what one query of the catalog answers, in a session of its own: ``ask(audits.get, audit_id)``.

    Raises:
        AuditorError: what the query raises, or ``session``.
    """
    with session() as open_session:
        return query(open_session, *args, **kwargs)


def _is_damaged_value(error: ValueError) -> bool:
    """Return whether a cell of the catalog does not hold what its column promises."""
    if isinstance(error, json.JSONDecodeError):
        return True
    return "isoformat" in str(error) or "datetime" in str(error)


def damaged_value() -> str | None:
    """Return where a SQLite catalog holds a value of another kind than its column's, with the remedy; None
    where nowhere.

    SQLite stores any value in any column. To be asked after an error, for it reads everything.
    """
    if not str(settings().database_url).startswith("sqlite"):
        return None
    with session() as open_session:
        connection = open_session.connection()
        for table in SQLModel.metadata.sorted_tables:
            for column in table.columns:
                wrong = _wrong_value(column)
                query = f'SELECT 1 FROM "{table.name}" WHERE "{column.name}" IS NOT NULL AND {wrong} LIMIT 1'
                if wrong and connection.exec_driver_sql(query).first() is not None:
                    where = f"{table.name}.{column.name}"
                    return (
                        f"The catalog {settings().catalog_name} holds a damaged value in {where}: put a backup in "
                        "its place, or remove the dataset (`auditor remove NAME`)."
                    )
    return None


def _wrong_value(column: Column[Any]) -> str:
    """The condition, in SQLite's words, under which a value is none of the column's; empty where all are."""
    name, kind = f'"{column.name}"', column.type
    if isinstance(kind, JSON):
        return f"NOT json_valid({name})"
    if isinstance(kind, models.UtcDateTime):
        return f"julianday({name}) IS NULL"
    if isinstance(kind, Integer | Float | Boolean):
        return f"typeof({name}) NOT IN ('integer', 'real')"
    return ""


def close_all() -> None:
    """Close every pooled connection, for example before a fork or when a catalog's files are replaced.

    SQLite's locks are those of a process, and whoever closes a file late removes what lies beside the new one.
    """
    _engine_cached.cache_clear()
    for engine in list(_ENGINES):
        engine.dispose()


def _engine(now: Settings) -> Engine:
    try:
        now.make_home()
    except OSError as error:
        raise AuditorError(
            f"{now.home} cannot be created ({error.strerror}); set AUDITOR_HOME to a folder that you can write to."
        ) from error
    return _engine_cached(now.database_url)


_ENGINES: weakref.WeakSet[Engine] = weakref.WeakSet()
"""Every one that somebody may still hold."""


@functools.lru_cache(maxsize=8)
def _engine_cached(url: str | URL) -> Engine:
    sqlite = str(url).startswith("sqlite")
    try:
        engine = create_engine(url, connect_args={"timeout": WRITE_WAIT_S} if sqlite else {})
    except (
        ArgumentError,
        NoSuchModuleError,
        ValueError,
    ) as error:  # a port that is no number is a ValueError
        raise AuditorError(
            "AUDITOR_DATABASE_URL is no database URL; write postgresql+psycopg://user:password@host/name or "
            "unset it."
        ) from error
    except ModuleNotFoundError as error:
        raise AuditorError(
            f"The catalog {settings().catalog_name} needs the package {error.name}; for PostgreSQL "
            "pip install 'label-auditor[team]' and write postgresql+psycopg://user:password@host/name."
        ) from error
    _ENGINES.add(engine)
    if sqlite:
        _create_private(engine.url.database)
        event.listen(engine, "connect", _sqlite_pragmas)
    try:
        schema.prepare(engine)
    except DatabaseError as error:  # of any kind: damage, no right to create or alter a table
        raise AuditorError(_explained(error)) from error
    return engine


def _create_private(file: str | None) -> None:
    """An empty file that only its owner reads; SQLite gives the files beside it the same rights."""
    if file and file != ":memory:":
        with suppress(OSError):  # SQLite says better what is wrong
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _sqlite_pragmas(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    # WAL: readers (the app) never wait for the writer (an audit), and a kill leaves a whole file.
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _explained(error: DatabaseError) -> str:
    text = str(error.orig).splitlines()[0]
    remedies = {
        "locked": "another process is busy writing; try again in a minute",
        "full": "free some space or point AUDITOR_HOME to another disk",
        "I/O": "free some space, or check the disk and the limit on file sizes",
        "readonly": "make the file writable or point AUDITOR_HOME elsewhere",
        "permission denied": "let this user create tables, or name another in AUDITOR_DATABASE_URL",
        "must be owner": "open it once as the user who owns its tables, so that what is missing can be added",
        "not a database": DAMAGED,
        "malformed": DAMAGED,
        "no such column": OTHER_LAYOUT,
        "no such table": OTHER_LAYOUT,
        "unable to open": "check the rights on the folder or set AUDITOR_HOME",
    }
    if len(os.fsencode(settings().home)) > MOST_HOME_BYTES:
        remedies["unable to open"] = (
            f"its path is too long for SQLite; set AUDITOR_HOME to one of at most {MOST_HOME_BYTES} bytes"
        )
    with suppress(OSError):
        if shutil.disk_usage(settings().home).free < LEAST_FREE:
            name, remedy = settings().catalog_name, remedies["full"]
            return f"The catalog {name} cannot be used: the disk is full ({text}); {remedy}."
    remedy = next((way for word, way in remedies.items() if word in text), "see `auditor doctor`")
    return f"The catalog {settings().catalog_name} cannot be used ({text}): {remedy}."
