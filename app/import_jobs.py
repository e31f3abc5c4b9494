"""Imports in processes of their own: started here, watched through a small file, untouched by a closed tab.

    home/imports/<id>/request.json    what to import
    home/imports/<id>/state.json      stage, share done, seconds left; at the end the result or the error

``python -m app.import_jobs FOLDER`` is the process.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from auditor import importing
from auditor.catalog.audits import process_lives
from auditor.errors import AuditorError
from auditor.settings import settings

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Job:
    """One import as it stands."""

    folder: Path
    name: str
    stage: str
    """A stage of the import, ``finished``, ``failed`` or ``dead``."""
    done: int = 0
    total: int | None = None
    seconds_left: float | None = None
    error: str | None = None
    problems: tuple[tuple[str, str, str], ...] = ()
    """(file, row, text) of rows that cannot be imported."""
    report: dict[str, Any] | None = None

    @property
    def is_over(self) -> bool:
        """Nothing works on it any more."""
        return self.stage in ("finished", "failed", "dead")


def start(source: str, name: str, options: dict[str, Any], upload: str | None = None) -> Path:
    """Start an import; returns its folder. ``upload`` is deleted when the import fails."""
    folder = settings().home / "imports" / f"{int(time.time())}-{secrets.token_hex(3)}"
    folder.mkdir(parents=True)
    request = {"source": source, "name": name, "options": options, "upload": upload}
    (folder / "request.json").write_text(json.dumps(request))
    with (folder / "log.txt").open("ab") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "app.import_jobs", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=ROOT,
            env=os.environ | {"AUDITOR_HOME": str(settings().home)},
        )
    (folder / "pid").write_text(str(worker.pid))
    threading.Thread(target=worker.wait, daemon=True).start()  # reaps it
    return folder


def jobs() -> list[Job]:
    """Imports that nobody dismissed, the newest first."""
    folders = sorted((settings().home / "imports").glob("*/request.json"), reverse=True)
    return [read(path.parent) for path in folders]


def read(folder: Path) -> Job:
    """One import as it stands."""
    name = str(json.loads((folder / "request.json").read_text())["name"])
    try:
        seen = json.loads((folder / "state.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        seen = {"stage": "starting"}
    pid = folder / "pid"
    is_open = seen["stage"] not in ("finished", "failed")
    if is_open and pid.exists() and not process_lives(int(pid.read_text()), None):
        return Job(
            folder, name, "dead", error="The import's process is gone; nothing was imported. Start it again."
        )
    problems = tuple(tuple(map(str, row)) for row in seen.pop("problems", ()))
    return Job(folder, name, problems=problems, **seen)  # type: ignore[arg-type]


def dismiss(job: Job) -> None:
    """Take a finished import off the list."""
    shutil.rmtree(job.folder, ignore_errors=True)


def work(folder: Path) -> None:
    """Do the import that the folder describes."""
    request = json.loads((folder / "request.json").read_text())

    def tell(progress: importing.Progress) -> None:
        _write(folder, asdict(progress))

    try:
        report = importing.import_dataset(
            request["source"], name=request["name"], progress=tell, **request["options"]
        )
    except Exception as error:  # the edge of this process: whatever it is ends as one line on the screen
        if request["upload"]:
            shutil.rmtree(Path(request["upload"]).parent, ignore_errors=True)
        if not isinstance(error, AuditorError):
            logging.exception("import failed")
        text = (
            str(error)
            if isinstance(error, AuditorError)
            else f"{type(error).__name__}; see {folder / 'log.txt'}"
        )
        rows = [(one.file, one.row, one.text) for one in getattr(error, "problems", [])]
        _write(folder, {"stage": "failed", "error": text, "problems": rows})
        return
    _write(folder, {"stage": "finished", "report": report.stored()})


def _write(folder: Path, state: dict[str, Any]) -> None:
    beside = folder / "state.writing"
    beside.write_text(json.dumps(state, default=str))
    beside.replace(folder / "state.json")


if __name__ == "__main__":
    work(Path(sys.argv[1]))
