"""All or nothing: an import works in a folder of its own and leaves either a whole dataset or nothing.

A lease in the catalog says who works there (``leases``). Whoever starts the next import removes the rows that those
who are gone wrote and nobody saw (``datasets.begin``), and their folders, so that even SIGKILL and a power cut
leave no stray file for long: a day, where the same import can go on from there (``journal``), else none at all.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sqlmodel import Session

from auditor.catalog import datasets, db, folders, leases, records, removal
from auditor.ground.errors import AuditorError, ImportRefusedError
from auditor.ground.processes import BETWEEN_FORKS, between_forks
from auditor.ground.settings import settings
from auditor.importing import journal

PREFIX = ".importing-"
PREVIEW_PREFIX = ".previewing-"
TAKEN = (
    "another process took this import for dead and removed its files (did this machine sleep, or do the clocks of "
    "two machines differ by minutes?); nothing was imported. Import again."
)
OLD_S = 86_400
"""A folder without a lease in this catalog (a preview) is litter after a day."""


@dataclass(frozen=True)
class Workplace:
    """The folder of one import and the UUID of the dataset that it becomes."""

    folder: Path
    uuid: str
    is_continued: bool = False
    """Whether it holds what an import like this had done when it was killed."""

    def publish(self, session: Session, dataset_id: int) -> Path:
        """Move the folder to its final name and end the lease, just before the caller commits.

        Raises:
            ImportRefusedError: another process took this one for dead meanwhile.
        """
        if not leases.beat(session, self.folder.name):
            raise ImportRefusedError(TAKEN)
        target = settings().dataset_folder(dataset_id)
        os.rename(self.folder, target)  # never onto the files of another one: its number was free
        leases.end(session, self.folder.name)
        return target

    def is_taken(self) -> bool:
        """Return whether another process took this one for dead; not where the catalog cannot be asked."""
        with suppress(AuditorError), db.session() as session:
            return not leases.beat(session, self.folder.name) and not datasets.has_uuid(session, self.uuid)
        return False

    def withdraw(self, target: Path) -> None:
        """The transaction failed: remove the published folder, unless the rows were committed after all."""
        if not db.ask(datasets.has_uuid, self.uuid):
            folders.delete(target, self.uuid)


@contextmanager
def workplace(name: str, request: str) -> Iterator[Workplace]:
    """A folder for the import of ``name``; removed on leaving unless it was moved to its final place.

    It is the one that an import with the same ``request`` left when it was killed, or a fresh one.

    Raises:
        ImportRefusedError: another process took this one for dead meanwhile.
    """
    sweep()
    place = _left(request)
    if place is not None:
        _forget_rows(place.uuid)
    else:
        own = records.new_uuid()
        place = Workplace(settings().datasets / f"{PREFIX}{own[:16]}", own)
        db.ask(leases.take, place.folder.name, own)
    heart = _Heart(place.folder.name)
    try:
        if not place.is_continued:
            _make(place.folder)
            journal.begin(place.folder, request)
        folders.write_manifest(place.folder, place.uuid, title=f"dataset {name}")
        heart.start()
        yield place
    except Exception as error:
        if place.is_taken():  # what failed is that its files are gone
            raise ImportRefusedError(TAKEN) from error
        raise
    finally:
        heart.stop()
        shutil.rmtree(place.folder, ignore_errors=True)
        with suppress(AuditorError):
            _forget_rows(place.uuid)
            db.ask(leases.end, place.folder.name)


def _forget_rows(own: str) -> None:
    """Remove what this process, or one whose work it goes on with, wrote and nobody saw."""
    while db.ask(datasets.forget_part, own):
        pass


def _left(request: str) -> Workplace | None:
    """Take over what an import with the same request left when it was killed."""
    for name in db.ask(leases.names):
        is_left = journal.is_left(settings().datasets / name, request)
        if is_left and (own := db.ask(leases.adopt, name)) is not None:
            return Workplace(settings().datasets / name, own, is_continued=True)
    return None


@contextmanager
def preview_folder() -> Iterator[Path]:
    """A fresh folder for a look at a source, which must not wait for the catalog; removed on leaving."""
    folder = settings().datasets / f"{PREVIEW_PREFIX}{uuid.uuid4().hex[:16]}"
    try:
        _make(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Remove what imports left behind whose process is gone, but not yet what the same import can go on with."""
    removal.sweep()
    with db.session() as session:
        held = set(leases.names(session))
        imports = [name for name in held if name.startswith(PREFIX)]
        gone = [name for name in imports if leases.is_gone(session, name)]
    for name in gone:
        is_left = True
        while is_left:  # in parts, each only while nobody goes on with that import
            with db.session() as session:
                left = leases.take_over(session, name)
                is_left = left is not None and datasets.forget_part(session, left)
        if journal.is_left(settings().datasets / name):
            continue
        with db.session() as session:
            left = leases.take_over(session, name)
            if left is None:
                continue
            # The folder has its own name until just before the rows are committed, with which the lease ends.
            if not datasets.has_uuid(session, left):
                for folder in (settings().datasets / name, *_numbered(left)):
                    shutil.rmtree(folder, ignore_errors=True)
            leases.end(session, name)
    _sweep_old(held)


def _numbered(wanted: str) -> list[Path]:
    """Numbered folders whose manifest has that UUID."""
    place = settings().datasets
    numbered = [path for path in place.iterdir() if path.name.isdecimal()] if place.is_dir() else []
    return [path for path in numbered if folders.manifest(path).get("uuid") == wanted]


def _sweep_old(held: set[str]) -> None:
    place = settings().datasets
    for folder in list(place.iterdir()) if place.is_dir() else []:
        if not folder.name.startswith((PREFIX, PREVIEW_PREFIX)) or folder.name in held:
            continue
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > OLD_S:
                shutil.rmtree(folder, ignore_errors=True)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise ImportRefusedError(
            f"{folder.parent} cannot be written ({error.strerror}); set AUDITOR_HOME to a folder that you "
            "may write."
        ) from error


class _Heart:
    """A thread that says again and again that the holder of a lease lives."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=BETWEEN_FORKS, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def _beat(self) -> None:
        while not self._end.wait(leases.HEARTBEAT_S):
            # A catalog that is locked for a while; this process is still seen on its own machine.
            with suppress(AuditorError), between_forks(), db.session() as session:
                leases.beat(session, self._name)


class RowFile:
    """Rows on disk, one JSON list a line: what is known of each sample until it is registered."""

    def __init__(self, path: Path) -> None:
        """Open for writing."""
        self.path = path
        self._stream: IO[str] = open(path, "w", encoding="utf-8")  # noqa: SIM115 - closed by `close`

    def append(self, values: list[Any]) -> None:
        """Add one row."""
        self._stream.write(json.dumps(values, ensure_ascii=True, separators=(",", ":")))
        self._stream.write("\n")

    def close(self) -> None:
        """No more rows."""
        self._stream.close()

    def __iter__(self) -> Iterator[list[Any]]:
        """All rows in order."""
        with open(self.path, encoding="utf-8") as stream:
            for line in stream:
                yield json.loads(line)
