"""One piece of work as plain values: files that it reads, and the folder of the result.

A ``Task`` holds paths, numbers, a seed and a device, so that any process that sees these files can do it, and
the same task gives the same result wherever it runs: also its threads are fixed, because the number of threads
changes the order in which floats are added. A task knows no catalog. It says how far it is by ``Event``s, and its
result lies whole in its folder or not at all: arrays, and ``result.json`` with small plain values.

Its kinds are in ``auditor.work.kinds``.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from auditor.bridges import engine_bridge
from auditor.ground.files import new_folder_beside

RESULT_FILE = "result.json"
PUT_IT_BACK = "put it back from a backup, or audit again"


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """What every piece of work has. Every field is a plain value that JSON holds."""

    name: str
    """Of its own in its graph; people read it."""
    out: str
    """Folder of the result."""
    device: str = "cpu"
    """A resolved one: ``cpu``, ``cuda`` or ``cuda:<n>``."""
    threads: int | None = None
    """What one process of this task computes with; None = whatever the process has."""
    after: tuple[str, ...] = ()
    """Tasks whose results this one reads."""

    READS: ClassVar[tuple[str, ...]]
    """Fields that name files."""

    @abstractmethod
    def work(self, say: Say) -> dict[str, Any]:
        """Do it from where an attempt before stopped, ``store`` what was found; return what that says of itself."""

    @property
    def files(self) -> dict[str, str]:
        """Every file that it reads, by its field."""
        named = {field: getattr(self, field) for field in self.READS}
        return {field: path for field, path in named.items() if path is not None}

    def moved(self, place: Path, files: Mapping[str, str]) -> Self:
        """The same task with what it reads and leaves elsewhere: on another machine."""
        moved: dict[str, Any] = {"out": str(place / "out"), **files}
        return dataclasses.replace(self, **moved)

    def as_json(self) -> str:
        """Text from which ``kinds.of_json`` builds it again."""
        return json.dumps({"kind": type(self).__name__, **dataclasses.asdict(self)})


@dataclass(frozen=True)
class Event:
    """One epoch of one task."""

    task: str
    stage: str
    epoch: int
    num_epochs: int
    progress: float
    """Share of the task's whole work that is done, in (0, 1]."""
    seconds: float
    losses: Mapping[str, float]
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Outcome:
    """How one attempt at a task ended."""

    task: str
    result: Mapping[str, Any] | None = None
    """What ``result.json`` holds: ``provenance``; None where it failed."""
    error: str | None = None
    """Why it failed, in one line."""
    is_explained: bool = False
    """The line says what a person can do; another attempt would end the same way."""
    is_cancelled: bool = False
    is_lost: bool = False
    """The machine of a cluster that did it is gone."""


class Listener(Protocol):
    """Hears what happens, in the thread that called ``run``. What its methods raise stops all tasks."""

    def started(self, task: str) -> None:
        """An attempt at the task begins."""

    def heard(self, event: Event) -> None:
        """An epoch is done."""

    def ended(self, outcome: Outcome) -> None:
        """The task is done, or failed for good."""

    def tick(self) -> None:
        """Called several times a second while nothing else happens."""


Say = Callable[[Event], None]
"""Hears of each epoch; what it raises stops the task, which keeps its checkpoint."""


def attempt(task: Task, say: Say) -> Outcome:
    """Do the task; errors become an ``Outcome``. What somebody asked to stop is said as cancelled."""
    try:
        return Outcome(task.name, run(task, say))
    except BaseException as error:
        if engine_bridge.is_cancelled(error):
            return Outcome(task.name, error="Cancelled.", is_cancelled=True)
        if not isinstance(error, Exception):
            raise
        text = engine_bridge.remedy(error)
        if text is None:
            traceback.print_exc()
            return Outcome(task.name, error=f"{type(error).__name__}: {error}")
        return Outcome(task.name, error=text, is_explained=True)


def run(task: Task, say: Say) -> dict[str, Any]:
    """Do the task, or read what an attempt before left; returns what ``result.json`` holds.

    Raises:
        EngineError: the data or config cannot be trained on.
        DamagedError: a file that it reads is damaged.
        TrainingCancelled: ``say`` stopped it.
    """
    if (done := finished(task)) is not None:
        return done
    with engine_bridge.threads(task.threads):
        return task.work(say)


def finished(task: Task) -> dict[str, Any] | None:
    """The result that the task left, or None where it has none yet."""
    try:
        found = json.loads((Path(task.out) / RESULT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def store_arrays(
    folder: Path, arrays: Mapping[str, NDArray[Any]], plain: Mapping[str, Any] | None = None
) -> None:
    """Write arrays, and ``plain`` as ``result.json``, all together or not at all; an older set is replaced."""
    with new_folder_beside(folder) as building:
        for name, values in arrays.items():
            np.save(building / f"{name}.npy", values)
        if plain is not None:
            (building / RESULT_FILE).write_text(json.dumps(plain), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        building.rename(folder)
