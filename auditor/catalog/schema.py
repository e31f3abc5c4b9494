"""The layout of the database has a number; opening a catalog brings it to the one that this code knows.

A new catalog is made by the same revisions (``migrations``) that bring an older one along. A SQLite file is copied
beside itself before anything in it changes. All of it happens in one transaction under a lock: of several processes
that open the catalog at once one does the work, the others wait and find it done.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from auditor.catalog import migrations
from auditor.ground.errors import AuditorError
from auditor.ground.files import written_whole
from auditor.ground.settings import settings

LOCK = 0x61756469746F72
"""Number of PostgreSQL's advisory lock on the layout; any will do that no other program takes."""
VERSION_TABLE = "alembic_version"


def prepare(engine: Engine) -> None:
    """Bring the database to the layout of this code; one that has it is only read.

    Raises:
        AuditorError: its layout is newer than this code, or no layout of ours; or the copy beside it cannot be
            written.
    """
    with engine.connect() as connection:
        if version(connection) == migrations.HEAD:
            return
    with engine.connect() as connection:
        _lock(connection)
        _upgrade(connection)
        connection.commit()


def version(connection: Connection) -> str | None:
    """The number of the database's layout; None where it has none yet."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one_or_none()
    return None if found is None else str(found)


def _upgrade(connection: Connection) -> None:
    before = version(connection)
    if before == migrations.HEAD:  # another process did it meanwhile
        return
    if before is None and inspect(connection).has_table("dataset"):
        raise _other_layout("no layout that was ever released", "export your decisions with what wrote it")
    # Only where there is something to do: it takes a while to load.
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

    folder = str(Path(migrations.__file__).parent)
    scripts = ScriptDirectory(folder, version_locations=[folder])
    known = {script.revision for script in scripts.walk_revisions()}
    if before is not None and before not in known:
        raise _other_layout(f"the layout {before}", "install the version that wrote it")
    if before is not None:
        _copy_beside(connection)
    context = MigrationContext.configure(connection)
    with Operations.context(context):
        steps = list(scripts.iterate_revisions(migrations.HEAD, before or "base"))
        for step in reversed(steps):
            step.module.upgrade()
    context.stamp(scripts, migrations.HEAD)


def _other_layout(what: str, remedy: str) -> AuditorError:
    return AuditorError(
        f"The catalog {settings().catalog_name} has {what}, and this version of Label Auditor knows layouts up to "
        f"{migrations.HEAD}: {remedy}, or point AUDITOR_HOME or AUDITOR_DATABASE_URL elsewhere."
    )


def _copy_beside(connection: Connection) -> None:
    """Copy a SQLite file as it is now to ``NAME.before-LAYOUT``, whole or not at all."""
    file = connection.engine.url.database
    if connection.dialect.name != "sqlite" or not file:
        return
    copy = Path(f"{file}.before-{migrations.HEAD}")
    try:
        # A reader of its own: the lock that we hold keeps writers away, not readers.
        with (
            written_whole(copy) as beside,
            closing(sqlite3.connect(file)) as source,
            closing(sqlite3.connect(beside)) as target,
        ):
            beside.chmod(0o600)
            target.execute("PRAGMA journal_mode = MEMORY")  # a kill would leave a second file
            source.backup(target)
    except (OSError, sqlite3.Error) as error:
        raise AuditorError(
            f"The catalog {settings().catalog_name} is of an earlier version, and its copy {copy} cannot be "
            f"written ({error}); free some space or make the folder writable. Nothing was changed."
        ) from error


def _lock(connection: Connection) -> None:
    """Until the transaction ends. Whoever waited finds what the other one did."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
