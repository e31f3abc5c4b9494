"""A PostgreSQL of the tests' own, databases in it, and a home whose catalog moves there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from auditor.catalog import copying, db

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
# PostgreSQL refuses to run as root; Debian's package brings this user.
AS_POSTGRES = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []


@contextmanager
def running() -> Iterator[str]:
    """A cluster of its own, reached by a socket in its folder; the URL of its database."""
    if not PROGRAMS:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    if AS_POSTGRES:
        shutil.chown(folder, "postgres")
    data, control = folder / "data", [*AS_POSTGRES, str(PROGRAMS[-1] / "pg_ctl"), "-D", str(folder / "data")]
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    make = [*AS_POSTGRES, str(PROGRAMS[-1] / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust"]
    subprocess.run(make, **quiet)  # type: ignore[call-overload]
    options = f"-c listen_addresses='' -k {folder}"
    start = [*control, "-w", "-o", options, "-l", str(folder / "log"), "start"]
    subprocess.run(start, **quiet)  # type: ignore[call-overload]
    yield f"postgresql+psycopg://postgres:secret@/postgres?host={folder}"
    db.close_all()
    subprocess.run([*control, "-m", "immediate", "stop"], **quiet)  # type: ignore[call-overload]
    shutil.rmtree(folder)


def new_database(server: str) -> str:
    """The URL of an empty database of its own in the cluster."""
    name = f"empty_{uuid.uuid4().hex}"
    administration = create_engine(server, isolation_level="AUTOCOMMIT")
    with administration.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    administration.dispose()
    return server.replace("/postgres?", f"/{name}?")


def move_catalog(home: Path) -> None:
    """Bring the rows of a home's SQLite file into the empty database of the settings; the file is gone then."""
    with db.session() as session:
        copying.from_file(home / "catalog.db", session.connection())
    for file in home.glob("catalog.db*"):
        file.unlink()
