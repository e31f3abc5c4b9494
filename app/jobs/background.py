"""Long work in processes of its own: started here, watched through a small file, untouched by a closed tab.

    home/<kind>/<id>/request.json    what to do
    home/<kind>/<id>/state.json      how far it is; at the end the result or the error
    home/<kind>/<id>/process.json    its number and when it began
    home/<kind>/<id>/log.txt         what it printed

The process is ``python -m MODULE FOLDER``.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from auditor.errors import AuditorError
from auditor.processes import process_lives
from auditor.settings import settings

ROOT = Path(__file__).resolve().parents[2]
PROCESS, CANCELLED = "process.json", "cancelled"
OVER = ("finished", "failed", "cancelled", "dead")


def start(kind: str, module: str, request: dict[str, Any]) -> Path:
    """Start the work; returns its folder."""
    folder = settings().home / kind / f"{int(time.time())}-{secrets.token_hex(3)}"
    folder.mkdir(parents=True)
    with (folder / "log.txt").open("ab") as log:
        (folder / "request.json").write_text(json.dumps(request))
        worker = subprocess.Popen(
            [sys.executable, "-m", module, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=ROOT,
            env=os.environ | {"AUDITOR_HOME": str(settings().home)},
        )
    # A number alone may belong to another process tomorrow.
    (folder / PROCESS).write_text(json.dumps([worker.pid, psutil.Process(worker.pid).create_time()]))
    threading.Thread(target=worker.wait, daemon=True).start()  # reaps it
    return folder


def folders(kind: str) -> list[Path]:
    """Work of a kind that nobody dismissed, the newest first."""
    return [path.parent for path in sorted((settings().home / kind).glob("*/request.json"), reverse=True)]


def request(folder: Path) -> dict[str, Any]:
    """What the work was asked to do."""
    asked: dict[str, Any] = json.loads((folder / "request.json").read_text())
    return asked


def state(folder: Path) -> dict[str, Any]:
    """How far the work is; ``stage`` is ``dead`` where its process is gone without an end."""
    try:
        seen: dict[str, Any] = json.loads((folder / "state.json").read_text())
    except FileNotFoundError:
        seen = {"stage": "starting"}
    if seen["stage"] in OVER or not (folder / PROCESS).exists() or _lives(folder):
        return seen
    if (folder / CANCELLED).exists():  # before the process could say so itself
        return {"stage": "cancelled", "error": "Cancelled."}
    return {"stage": "dead", "error": "Its process is gone; start it again."}


def cancel(folder: Path) -> None:
    """Ask the work to stop; it leaves nothing half done."""
    with suppress(psutil.NoSuchProcess, FileNotFoundError):
        if _lives(folder):
            (folder / CANCELLED).touch()
            psutil.Process(_process(folder)[0]).terminate()


def dismiss(folder: Path) -> None:
    """Take ended work off the list."""
    shutil.rmtree(folder, ignore_errors=True)


def tell(folder: Path, seen: dict[str, Any]) -> None:
    """Say how far the work is; the file is whole at every moment."""
    beside = folder / "state.writing"
    beside.write_text(json.dumps(seen, default=str))
    beside.replace(folder / "state.json")


def as_process(work: Callable[[Path], None]) -> None:
    """Do the work of the folder that the command line names; ``cancel`` then ends it as Ctrl-C would."""
    signal.signal(signal.SIGTERM, _interrupt)
    work(Path(sys.argv[1]))


def _interrupt(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second click does not interrupt the clearing up
    raise KeyboardInterrupt


def run(folder: Path, work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Do the work in this process and leave its result, or its error as one line."""
    try:
        result = work(request(folder))
    except KeyboardInterrupt:
        tell(folder, {"stage": "cancelled", "error": "Cancelled."})
        return
    except Exception as error:  # the edge of this process: whatever it is ends as one line on the screen
        text = str(error)
        if not isinstance(error, AuditorError):
            logging.exception("%s failed", folder)
            text = f"{type(error).__name__}: {error}; see {folder / 'log.txt'}"
        rows = [(one.file, one.row, one.text) for one in getattr(error, "problems", [])]
        stage = "cancelled" if isinstance(error.__cause__, KeyboardInterrupt) else "failed"
        tell(folder, {"stage": stage, "error": text, "problems": rows})
        return
    tell(folder, {"stage": "finished", **result})


def _process(folder: Path) -> tuple[int, float]:
    number, began = json.loads((folder / PROCESS).read_text())
    return number, began


def _lives(folder: Path) -> bool:
    return (folder / PROCESS).exists() and process_lives(*_process(folder))
