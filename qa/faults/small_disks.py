"""A home on a small disk of its own: full at any moment, or read-only. Needs the rights of root."""

from __future__ import annotations

import gc
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from qa.faults import system_calls
from qa.faults.trial import SAID, FaultError, check_home, command

SIZE_MB = 32
LEFT = (0, 0, 4_096, 8_192, 16_384, 30_000, 65_536, 131_072, 262_144, 500_000)
"""Bytes that are left."""


@contextmanager
def disk(place: Path) -> Iterator[Path]:
    """The home, copied to a small disk; ``AUDITOR_HOME`` names it, and works go to its folder ``work``."""
    mounted = place / "disk"
    mounted.mkdir()
    options = f"size={SIZE_MB}m,mode=0700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(mounted)], check=True)
    try:
        shutil.copytree(os.environ["AUDITOR_HOME"], mounted / "home")
        os.environ["AUDITOR_HOME"] = str(mounted / "home")
        (mounted / "work").mkdir()
        yield mounted
    finally:
        with suppress(Exception):
            from auditor.catalog import db

            db.close_all()
        subprocess.run(["umount", "-l", str(mounted)], check=False)


def full(luck: random.Random, place: Path) -> None:
    """A command on a disk that is full, or nearly: done, or one line that says so; afterwards all is whole."""
    with disk(place) as small:
        works = system_calls.works(small / "work")
        work = luck.choice(sorted(works))
        left = luck.choice(LEFT)
        free = shutil.disk_usage(small).free
        with (small / "filler").open("wb") as file:
            file.write(bytes(max(0, free - left)))
        code = command(*works[work])
        said = SAID[-1]
        if code == 1 and not any(word in said for word in ("space", "full", "first")):
            raise FaultError("traceback", f"{work} with {left} bytes left says: {said[-300:]}")
        status = command("status")
        if status != 0 and not any(word in SAID[-1] for word in ("space", "full")):
            raise FaultError("traceback", f"status with {left} bytes left says: {SAID[-1][-300:]}")
        (small / "filler").unlink()
        system_calls.whole(small / "work", work, ended_well=code == 0)


def read_only(luck: random.Random, place: Path) -> None:
    """A command on a home that cannot be written: done, or one line."""
    from auditor.catalog import db

    with disk(place) as small:
        works = system_calls.works(small / "work")
        work = luck.choice(sorted(works))
        _checkpoint()
        db.close_all()
        if luck.random() < 0.5:  # as one finds a backup, or another user's home
            with suppress(OSError):
                for file in (small / "home").glob("catalog.db-*"):
                    file.unlink()
        gc.collect()  # a connection that is still open for writing keeps the disk as it is
        subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
        for arguments in (works[work], ["status"], ["suspects", "first"], ["doctor"]):
            command(*arguments)
        db.close_all()
        gc.collect()  # a connection that is still open for writing keeps the disk as it is
        subprocess.run(["mount", "-o", "remount,rw", str(small)], check=True)
        if work != "remove":
            check_home()


def _checkpoint() -> None:
    """Everything is in the catalog's own file, so that those beside it may go."""
    from auditor.catalog import db

    with db.session() as session:
        session.connection().exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
