"""The folders of datasets and audits. Each holds a manifest with the UUID of what it belongs to.

Numbers alone do not tell: a catalog that was restored from a copy, or that is used with another home, knows other
datasets by the same numbers. So a folder with the manifest of something else is refused, and nothing is deleted
that does not carry the UUID in question. A folder without a manifest (a damaged one) is read
and never deleted; ``doctor`` names it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlmodel import Session, select

from auditor.catalog import db
from auditor.catalog.datasets import IS_READY
from auditor.catalog.models import AuditTable, DatasetTable
from auditor.ground.errors import MisplacedError
from auditor.ground.files import written_whole
from auditor.ground.settings import settings

MANIFEST = "manifest.json"

_CHECKED: ContextVar[set[Path] | None] = ContextVar("checked_folders", default=None)
"""Folders that were checked since ``checked_once`` was entered; None outside of it."""


@dataclass(frozen=True)
class Stray:
    """A folder of the home, or a row of the catalog, that lacks its other half."""

    folder: Path
    text: str
    """What is wrong and what to do about it."""


def write_manifest(folder: Path, uuid: str, **about: Any) -> None:
    """Say whose folder this is; ``about`` is for people."""
    with written_whole(folder / MANIFEST) as beside:
        beside.write_text(json.dumps({"uuid": uuid, **about}, indent=1, ensure_ascii=False), encoding="utf-8")


def manifest(folder: Path) -> dict[str, Any]:
    """Return what the folder's manifest says; empty where there is none that can be read."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def checked(folder: Path, uuid: str, title: str) -> Path:
    """``folder``, unless it belongs to something else than ``title``.

    Raises:
        MisplacedError: its manifest has another UUID.
    """
    found = manifest(folder)
    if found.get("uuid", uuid) != uuid:
        raise MisplacedError(
            f"{folder} holds the files of {found.get('title', 'something else')}, not those of {title}: the "
            "catalog or the folder comes from another time or home. Put together what `auditor doctor` names, or "
            "import or audit again."
        )
    return folder


def of_dataset(dataset_id: int | None) -> Path:
    """The folder of a dataset's arrays; it need not exist.

    Raises:
        MisplacedError: it belongs to another dataset.
    """
    return _of(DatasetTable, dataset_id)


def of_audit(audit_id: int | None) -> Path:
    """The folder of an audit's arrays; it need not exist.

    Raises:
        MisplacedError: it belongs to another audit.
    """
    return _of(AuditTable, audit_id)


@contextmanager
def checked_once() -> Iterator[None]:
    """Check each folder once in the block, not at every array that is read: for one answer or one page.

    A block inside another one shares what that has checked.
    """
    if _CHECKED.get() is not None:
        yield
        return
    token = _CHECKED.set(set())
    try:
        yield
    finally:
        _CHECKED.reset(token)


def delete(folder: Path, uuid: str) -> bool:
    """Remove a folder that carries this UUID; returns whether nothing of it is left."""
    if manifest(folder).get("uuid") == uuid:
        shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def strays(session: Session) -> list[Stray]:
    """Every folder and row that do not belong together, datasets before audits, in the order of their numbers."""
    found: list[Stray] = []
    for table, place, again in (
        (DatasetTable, settings().datasets, "import it again under another name"),
        (AuditTable, settings().audits, "audit again"),
    ):
        every = select(table.id, table.uuid)
        if table is DatasetTable:
            every = every.where(IS_READY)
        known = {str(row.id): row.uuid for row in session.execute(every)}
        there = sorted(place.iterdir(), key=lambda path: path.name.zfill(20)) if place.is_dir() else []
        there = [path for path in there if path.is_dir() and path.name.isdecimal()]
        kind = table.__tablename__
        homes = {manifest(path).get("uuid"): path for path in there}
        for path in there:
            found += _stray(path, kind, known)
        for number, uuid in sorted(known.items(), key=lambda item: int(item[0])):
            right = homes.get(uuid)
            if right is not None and right.name != number:
                found.append(Stray(right, f"belongs to {kind} {number}: rename it to {place / number}"))
            elif right is None and not (place / number).is_dir():
                found.append(Stray(place / number, f"is missing: put it back from a backup, or {again}"))
    return found


def _stray(path: Path, kind: str, known: dict[str, str]) -> list[Stray]:
    about = manifest(path)
    uuid, title = about.get("uuid"), about.get("title", f"another {kind}")
    if path.name not in known and uuid not in known.values():
        return [
            Stray(
                path, f"holds {title}, which is not in this catalog: delete it if no other catalog needs it"
            )
        ]
    if path.name not in known:
        return []  # told beside the row that it belongs to
    if uuid is None:
        return [Stray(path, f"has no {MANIFEST}: nothing says that it belongs to {kind} {path.name}")]
    if uuid != known[path.name]:
        return [Stray(path, f"holds {title}, which is not {kind} {path.name} of this catalog: move it away")]
    return []


def _of(table: type[DatasetTable] | type[AuditTable], number: int | None) -> Path:
    is_dataset = table is DatasetTable
    folder = settings().dataset_folder(number) if is_dataset else settings().audit_folder(number)
    known = _CHECKED.get()
    if known is not None and folder in known:
        return folder
    with db.session() as session:
        uuid = session.execute(select(table.uuid).where(table.id == number)).scalar()
    if uuid is None:
        return folder
    checked(folder, uuid, f"{table.__tablename__} {number}")
    if known is not None:
        known.add(folder)
    return folder
