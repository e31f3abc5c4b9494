"""The layout of the database has a number; opening a catalog brings it to the one that this code knows.

A new catalog is made by the same revisions (``migrations``) that bring an older one along. A SQLite file is copied
beside itself before anything in it changes. All of it happens in one transaction under a lock: of several processes
that open the catalog at once one does the work, the others wait and find it done.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from auditor.catalog import migrations
from auditor.ground.errors import AuditorError
from auditor.ground.files import written_whole
from auditor.ground.settings import settings

if TYPE_CHECKING:
    from alembic.script import Script

LOCK = 0x61756469746F72
"""Number of PostgreSQL's advisory lock on the layout; any will do that no other program takes."""
VERSION_TABLE = "alembic_version"


def prepare(engine: Engine) -> None:
    """Bring the database to the layout of this code; one that has it is only read.

    Raises:
        AuditorError: its layout is newer than this code, or older than the first one with a number; or the copy
            beside it cannot be written.
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
    # Only where there is something to do: it takes a while to load.
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

    folder = str(Path(migrations.__file__).parent)
    scripts = ScriptDirectory(folder, version_locations=[folder])
    known = {script.revision for script in scripts.walk_revisions()}
    if before is not None and before not in known:
        raise AuditorError(
            f"The catalog {settings().catalog_name} has the layout {before}, and this version of Label Auditor "
            f"knows layouts up to {migrations.HEAD}: install the version that wrote it, or point AUDITOR_HOME or "
            "AUDITOR_DATABASE_URL elsewhere."
        )
    if before is not None or inspect(connection).has_table("dataset"):
        if before is None:
            _refuse_older(scripts.get_revision(str(scripts.get_base())), connection)
        _copy_beside(connection)
    context = MigrationContext.configure(connection)
    with Operations.context(context):
        steps = list(scripts.iterate_revisions(migrations.HEAD, before or "base"))
        for step in reversed(steps):
            step.module.upgrade()
    context.stamp(scripts, migrations.HEAD)


def _refuse_older(first: Script, connection: Connection) -> None:
    """Refuse what is older than the first layout with a number."""
    lacking = first.module.missing(connection)
    if lacking:
        raise AuditorError(
            f"The catalog {settings().catalog_name} is older than layout {first.revision}: it lacks {lacking[0]}. "
            "Export your decisions with the version that wrote it, point AUDITOR_HOME or AUDITOR_DATABASE_URL "
            "elsewhere and import the export."
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
