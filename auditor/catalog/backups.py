"""A backup is one tar: the catalog as it was at one moment, and the folders of the datasets and audits in it.

It may be made while the app is open and audits run. The catalog is copied first, through SQLite's own backup or
``pg_dump``; the files that it speaks of are never changed afterwards but replaced as a whole. What an audit
under way had not yet written is not in it: that audit goes on from what there is.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sqlalchemy import inspect, select, text
from sqlalchemy.engine import URL, make_url

from auditor.catalog import db, folders, migrations
from auditor.catalog.models import AuditTable, DatasetTable
from auditor.ground.errors import AuditorError, DamagedError
from auditor.ground.files import TEMPORARY, written_whole
from auditor.ground.settings import settings

ABOUT, CATALOG, DUMP = "label-auditor.json", "catalog.db", "catalog.dump"
FORMAT = 1
PLACES = ("datasets", "audits", "uploads")


@dataclass(frozen=True)
class Backup:
    """What was written or read."""

    num_datasets: int
    num_audits: int
    num_bytes: int
    left_out: list[str]
    """Folders that do not belong to the catalog (``folders``), or that are missing."""


def backup(out: Path, *, with_files: bool = True, force: bool = False) -> Backup:
    """Write a backup of the catalog and, unless ``with_files`` is False, of everything it speaks of.

    Raises:
        AuditorError: the file exists, or ``pg_dump`` is missing or fails.
        OSError: it cannot be written.
    """
    if out.resolve().is_relative_to(_home().resolve()):  # --force would let it replace the catalog itself
        raise AuditorError(f"{out} lies in AUDITOR_HOME; choose a place outside.")
    if out.exists() and not force:
        raise AuditorError(f"{out} exists; choose another name, or overwrite it.", field="force")
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=_home()) as scratch:
        name, copied = _copied_catalog(Path(scratch))
        known = _known()
        left_out: list[str] = []
        with written_whole(out) as beside:
            beside.chmod(0o600)
            with beside.open("wb") as file, tarfile.open(fileobj=file, mode="w") as tar:
                about = {
                    "format": FORMAT,
                    "layout": migrations.HEAD,
                    "home": str(settings().home),
                    "datasets": len(known["datasets"]),
                    "audits": len(known["audits"]),
                }
                _add_bytes(tar, ABOUT, json.dumps(about).encode())
                tar.add(copied, name)
                if with_files:
                    left_out = _add_files(tar, known)
            size = beside.stat().st_size
    return Backup(len(known["datasets"]), len(known["audits"]), size, left_out)


def restore(source: Path) -> Backup:
    """Bring a backup back into a home and a database that are still empty.

    Raises:
        AuditorError: it is no backup, is damaged or newer than this version, or there is something already.
        OSError: it cannot be written.
    """
    if source.exists() and not source.is_file():
        raise AuditorError(f"{source} is no regular file; name a backup.")
    _refuse_full()
    home = _home()
    try:
        with (
            tarfile.open(source) as tar,
            tempfile.TemporaryDirectory(prefix=".restore-", dir=home) as scratch,
        ):
            tar.extractall(scratch, filter="data")
            about = _about(Path(scratch), source)
            _put_catalog(Path(scratch), source)
            for place in PLACES:
                if (Path(scratch) / place).is_dir():
                    (home / place).mkdir(exist_ok=True)
                    for folder in (Path(scratch) / place).iterdir():
                        folder.rename(home / place / folder.name)
    except FileNotFoundError as error:
        raise AuditorError(f"{source} does not exist.") from error
    except (tarfile.TarError, EOFError) as error:
        raise DamagedError(f"{source} is no whole backup ({error}); use another one.") from error
    _move_roots(Path(about["home"]), home)
    with db.session() as session:
        left_out = [f"{stray.folder} {stray.text}" for stray in folders.strays(session)]
    return Backup(about["datasets"], about["audits"], source.stat().st_size, left_out)


def _home() -> Path:
    settings().make_home()
    return settings().home


def _known() -> dict[str, dict[str, str]]:
    """UUIDs of datasets and audits by number."""
    with db.session() as session:
        datasets = session.execute(select(DatasetTable.id, DatasetTable.uuid)).all()
        audits = session.execute(select(AuditTable.id, AuditTable.uuid)).all()
    return {
        "datasets": {str(row.id): row.uuid for row in datasets},
        "audits": {str(row.id): row.uuid for row in audits},
    }


def _copied_catalog(scratch: Path) -> tuple[str, Path]:
    """The name in the backup and the path of a copy of the catalog as it is at one moment."""
    with db.session() as session:  # brings an older one along, and says what is wrong with a damaged one
        session.execute(text("SELECT 1"))
    url = make_url(settings().database_url)
    if url.get_backend_name() == "sqlite":
        target = scratch / CATALOG
        try:
            with (
                closing(sqlite3.connect(str(url.database))) as source,
                closing(sqlite3.connect(target)) as copy,
            ):
                source.backup(copy)
        except sqlite3.Error as error:
            raise AuditorError(
                f"The catalog cannot be copied to {scratch.parent} ({error}); free some space there."
            ) from error
        return CATALOG, target
    _postgres("pg_dump", url, "--format=custom", f"--file={scratch / DUMP}")
    return DUMP, scratch / DUMP


def _add_files(tar: tarfile.TarFile, known: dict[str, dict[str, str]]) -> list[str]:
    left_out = []
    for place, uuids in known.items():
        for number, uuid in sorted(uuids.items(), key=lambda item: int(item[0])):
            folder = settings().home / place / number
            if not folder.is_dir() or folders.manifest(folder).get("uuid", uuid) != uuid:
                left_out.append(str(folder))
                continue
            _add_folder(tar, folder, f"{place}/{number}")
    if settings().uploads.is_dir():
        _add_folder(tar, settings().uploads, "uploads")
    return left_out


def _add_folder(tar: tarfile.TarFile, folder: Path, name: str) -> None:
    for path in sorted(folder.rglob("*")):
        if TEMPORARY.fullmatch(path.name) or path.is_symlink() or not path.is_file():
            continue
        with suppress(FileNotFoundError):  # replaced or finished with in this moment
            tar.add(path, f"{name}/{path.relative_to(folder).as_posix()}", recursive=False)


def _add_bytes(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o600
    stream: IO[bytes] = io.BytesIO(data)
    tar.addfile(info, stream)


def _about(scratch: Path, source: Path) -> dict[str, Any]:
    try:
        about = json.loads((scratch / ABOUT).read_text(encoding="utf-8"))
        known = about["format"], about["layout"], about["home"], about["datasets"], about["audits"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AuditorError(
            f"{source} is no backup of Label Auditor; `auditor backup OUT` writes one."
        ) from error
    if known[0] != FORMAT or str(known[1]) > migrations.HEAD:
        raise AuditorError(f"{source} was written by a newer version; install that one to restore it.")
    return dict(about)


def _refuse_full() -> None:
    url = make_url(settings().database_url)
    remedy = "point AUDITOR_HOME (and AUDITOR_DATABASE_URL) to empty ones, or move what is there away"
    for place in PLACES:
        if any(_entries(settings().home / place)):
            raise AuditorError(f"{settings().home / place} is not empty; {remedy}.")
    if url.get_backend_name() == "sqlite":
        if not url.database or not Path(url.database).exists():
            return
        if not _is_without_datasets():
            raise AuditorError(f"{url.database} holds datasets; {remedy}.")
        db.close_all()
        for file in Path(url.database).parent.glob(f"{Path(url.database).name}*"):
            if file.name.removeprefix(Path(url.database).name) in ("", "-wal", "-shm"):
                file.unlink()
        return
    from sqlalchemy import create_engine

    engine = create_engine(url)
    try:
        if inspect(engine).get_table_names():
            raise AuditorError(f"The database {settings().catalog_name} has tables; {remedy}.")
    finally:
        engine.dispose()


def _is_without_datasets() -> bool:
    """Whether the catalog was only opened so far; a damaged one counts as one with datasets."""
    try:
        with db.session() as session:
            return session.execute(select(DatasetTable.id)).first() is None
    except AuditorError:
        return False


def _entries(folder: Path) -> Iterator[Path]:
    return folder.iterdir() if folder.is_dir() else iter(())


def _put_catalog(scratch: Path, source: Path) -> None:
    url = make_url(settings().database_url)
    is_sqlite = url.get_backend_name() == "sqlite"
    wanted = scratch / (CATALOG if is_sqlite else DUMP)
    if not wanted.exists():
        raise AuditorError(
            f"{source} holds a catalog of {'PostgreSQL' if is_sqlite else 'SQLite'}; "
            f"{'set' if is_sqlite else 'unset'} AUDITOR_DATABASE_URL to restore it."
        )
    if is_sqlite:
        with written_whole(Path(str(url.database))) as beside:
            shutil.copyfile(wanted, beside)
            beside.chmod(0o600)
    else:
        _postgres("pg_restore", url, "--no-owner", "--exit-on-error", f"--dbname={url.database}", str(wanted))


def _postgres(program: str, url: URL, *arguments: str) -> None:
    """Run one of PostgreSQL's own programs; the password stays out of the list of processes."""
    found: dict[str, Any] = {
        "PGHOST": url.host,
        "PGPORT": url.port,
        "PGUSER": url.username,
        "PGPASSWORD": url.password,
    }
    found |= {"PGDATABASE": url.database, "PGHOST": url.query.get("host", url.host)}
    env = {**os.environ, **{name: str(value) for name, value in found.items() if value}}
    try:
        done = subprocess.run(
            [program, *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise AuditorError(f"{program} is missing; install PostgreSQL's client programs.") from error
    if done.returncode:
        reason = " ".join(done.stderr.split())[:300]
        raise AuditorError(f"{program} failed: {reason}. Its version must not be older than the server's.")


def _move_roots(before: Path, now: Path) -> None:
    """Datasets that read what lies in the home itself (uploads, unpacked zips) read it in the new one."""
    if before == now:
        return
    with db.session() as session:
        for row in session.execute(select(DatasetTable)).scalars():
            for field in ("root", "source"):
                path = Path(getattr(row, field))
                if path.is_absolute() and path.is_relative_to(before):
                    setattr(row, field, str(now / path.relative_to(before)))
