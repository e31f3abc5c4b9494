"""A PostgreSQL server of one's own for a measurement, from the programs that Debian's package installs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = Path("/usr/lib/postgresql")
SETTINGS = {"listen_addresses": "", "shared_buffers": "512MB", "max_wal_size": "2GB"}
"""No port, and the memory that a server of ten million rows would at least be given."""


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """A server whose rows lie in ``folder``, made where there is none yet; the URL of its database.

    Raises:
        FileNotFoundError: PostgreSQL is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    installed = sorted(PROGRAMS.glob("*/bin"))
    if not installed:
        raise FileNotFoundError(f"No PostgreSQL below {PROGRAMS}; on Debian: apt-get install postgresql.")
    # It refuses to run as root.
    owner = "postgres" if os.geteuid() == 0 else None
    if owner is not None:
        shutil.chown(folder, owner)

    def call(program: str, *arguments: str) -> None:
        command = [str(installed[-1] / program), "-D", str(folder / "rows"), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, user=owner)

    if not (folder / "rows").exists():
        call("initdb", "-U", "postgres", "-A", "trust")
    settings = " ".join(f"-c {name}='{value}'" for name, value in SETTINGS.items())
    call("pg_ctl", "-w", "-o", f"{settings} -k {folder}", "-l", str(folder / "log"), "start")
    try:
        yield f"postgresql+psycopg://postgres@/postgres?host={folder}"
    finally:
        call("pg_ctl", "-m", "fast", "stop")
