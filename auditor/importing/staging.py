"""All or nothing: an import works in a folder of its own and leaves either a whole dataset or nothing.

The folder is named after the process that works in it. Whoever starts the next import removes the folders of
processes that are gone, so that even SIGKILL and a power cut leave no stray file for long.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import psutil

from auditor.catalog import datasets, db
from auditor.errors import ImportRefusedError
from auditor.processes import process_lives
from auditor.settings import settings

PREFIX = ".importing-"
MARKER = ".importing.json"
"""Lies in a dataset's folder until its rows are committed: names the process, so that the sweep can tell."""


@contextmanager
def work_folder() -> Iterator[Path]:
    """A fresh folder for one import; removed on leaving unless it was moved to its final place."""
    sweep()
    started = psutil.Process().create_time()
    folder = settings().datasets / f"{PREFIX}{os.getpid()}-{uuid.uuid4().hex[:8]}"
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise ImportRefusedError(
            f"{folder.parent} cannot be written ({error.strerror}); set AUDITOR_HOME to a folder that you "
            "may write."
        ) from error
    try:
        (folder / MARKER).write_text(json.dumps({"pid": os.getpid(), "started": started}))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(folder: Path, dataset_id: int) -> Path:
    """Move a finished work folder to its final name. The marker stays until ``confirm``."""
    target = settings().dataset_folder(dataset_id)
    if target.exists():
        # Ids are only given to new rows: what lies here belongs to no dataset.
        shutil.rmtree(target)
    os.rename(folder, target)
    return target


def confirm(target: Path) -> None:
    """The rows are committed: the folder is no longer provisional."""
    (target / MARKER).unlink()


def withdraw(target: Path) -> None:
    """The transaction failed: remove the published folder, unless the rows were committed after all."""
    if not is_registered(int(target.name)):
        shutil.rmtree(target, ignore_errors=True)


def sweep() -> None:
    """Remove what imports of dead processes left behind."""
    datasets = settings().datasets
    if not datasets.is_dir():
        return
    for folder in datasets.iterdir():
        owner = _owner(folder)
        if owner is None or process_lives(*owner):
            continue
        if folder.name.isdigit() and is_registered(int(folder.name)):
            # Killed between the commit and the removal of the marker: the dataset is whole.
            confirm(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _owner(folder: Path) -> tuple[int, float | None] | None:
    """(pid, its start time) of the import that works in ``folder``; None where no import does."""
    try:
        marker = json.loads((folder / MARKER).read_text())
        return int(marker["pid"]), float(marker["started"])
    except (OSError, ValueError, KeyError, TypeError):
        pid = folder.name.removeprefix(PREFIX).split("-")[0]
        return (int(pid), None) if folder.name.startswith(PREFIX) and pid.isdigit() else None


def is_registered(dataset_id: int) -> bool:
    """Whether the catalog has a dataset of that number."""
    with db.session() as session:
        return datasets.has(session, dataset_id)


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
