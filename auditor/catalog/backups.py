"""A backup is one tar: the catalog as it was at one moment, and the folders of the datasets and audits in it.

It may be made while the app is open and audits run. The catalog is copied first, as a SQLite file; the files that
it speaks of are never changed afterwards but replaced as a whole. What an audit under way had not yet written is
not in it: that audit goes on from what there is. The log of decisions is in it as CSV too, for whoever has no
Label Auditor at hand.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sqlalchemy import create_engine, inspect, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session, col

from auditor.catalog import copying, datasets, db, folders, migrations
from auditor.catalog.models import AuditTable, DatasetTable, ReviewTable, SampleTable
from auditor.ground.errors import AuditorError, DamagedError
from auditor.ground.files import TEMPORARY, written_whole
from auditor.ground.settings import settings, sqlite_url

ABOUT, CATALOG, DECISIONS = "label-auditor.json", "catalog.db", "decisions.csv"
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
        AuditorError: the file exists, or the catalog cannot be copied.
        OSError: it cannot be written.
    """
    if out.resolve().is_relative_to(_home().resolve()):  # --force would let it replace the catalog itself
        raise AuditorError(f"{out} lies in AUDITOR_HOME; choose a place outside.")
    if out.exists() and not force:
        raise AuditorError(f"{out} exists; choose another name, or overwrite it.", field="force")
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=_home()) as scratch:
        copied = _copied_catalog(Path(scratch))
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
                tar.add(copied, CATALOG)
                tar.add(_written_decisions(Path(scratch)), DECISIONS)
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
            _put_catalog(Path(scratch))
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
        every = select(DatasetTable.id, DatasetTable.uuid).where(datasets.IS_READY)
        imported = session.execute(every).all()
        audits = session.execute(select(AuditTable.id, AuditTable.uuid)).all()
    return {
        "datasets": {str(row.id): row.uuid for row in imported},
        "audits": {str(row.id): row.uuid for row in audits},
    }


def _copied_catalog(scratch: Path) -> Path:
    """A copy of the catalog as it is at one moment, without what imports under way have written so far."""
    with db.session() as session:  # brings an older one along, and says what is wrong with a damaged one
        session.execute(text("SELECT 1"))
    url, target = make_url(settings().database_url), scratch / CATALOG
    try:
        if url.get_backend_name() == "sqlite":
            with (
                closing(sqlite3.connect(str(url.database))) as source,
                closing(sqlite3.connect(target)) as copy,
            ):
                source.backup(copy)
        else:
            with db.session() as session:
                copying.to_file(
                    session.connection(execution_options={"isolation_level": "REPEATABLE READ"}), target
                )
        copied = create_engine(sqlite_url(target))
        with Session(copied) as of_copy:
            datasets.forget_unfinished(of_copy)
            of_copy.commit()
        copied.dispose()
    except (sqlite3.Error, SQLAlchemyError) as error:
        raise AuditorError(
            f"The catalog cannot be copied to {scratch.parent} ({error}); free some space there."
        ) from error
    return target


def _written_decisions(scratch: Path) -> Path:
    """The log of decisions as CSV, one row for every word in it, those that were taken back included."""
    words: Any = (
        select(
            col(DatasetTable.name).label("dataset"),
            col(SampleTable.filepath),
            col(DatasetTable.class_names),
            *ReviewTable.__table__.columns,
        )
        .join(DatasetTable, col(DatasetTable.id) == ReviewTable.dataset_id)
        .join(
            SampleTable,
            (col(SampleTable.dataset_id) == ReviewTable.dataset_id)
            & (col(SampleTable.sample_id) == ReviewTable.sample_id),
        )
        .order_by(col(ReviewTable.id))
    )
    with (
        db.session() as session,
        (scratch / DECISIONS).open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file)
        fields = [
            one.name for one in ReviewTable.__table__.columns if one.name not in ("dataset_id", "label")
        ]
        writer.writerow(["dataset", "filepath", "label", *fields])
        for row in session.execute(words, execution_options={"yield_per": copying.ROWS}).mappings():
            names = row["class_names"]
            label = row["label"]
            is_class = label is not None and 0 <= label < len(names)
            cells = [row["dataset"], row["filepath"], names[label] if is_class else ""]
            cells += [json.dumps(row[name]) if isinstance(row[name], list) else row[name] for name in fields]
            writer.writerow(["" if cell is None else cell for cell in cells])
    return scratch / DECISIONS


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
    engine = create_engine(url)
    try:
        if inspect(engine).get_table_names():
            raise AuditorError(f"The database {settings().catalog_name} has tables; {remedy}.")
    finally:
        engine.dispose()


def _is_without_datasets() -> bool:
    """Return whether the catalog was only opened so far; a damaged one counts as one with datasets."""
    try:
        with db.session() as session:
            return session.execute(select(DatasetTable.id)).first() is None
    except AuditorError:
        return False


def _entries(folder: Path) -> Iterator[Path]:
    return folder.iterdir() if folder.is_dir() else iter(())


def _put_catalog(scratch: Path) -> None:
    url = make_url(settings().database_url)
    if url.get_backend_name() == "sqlite":
        with written_whole(Path(str(url.database))) as beside:
            shutil.copyfile(scratch / CATALOG, beside)
            beside.chmod(0o600)
        return
    try:
        with db.session() as session:
            copying.from_file(scratch / CATALOG, session.connection())
    except SQLAlchemyError as error:
        raise AuditorError(
            f"The database {settings().catalog_name} does not take the catalog ({error}); nothing was written."
        ) from error


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
