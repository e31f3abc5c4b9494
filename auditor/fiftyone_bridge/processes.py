"""Processes of ours around FiftyOne, each recorded in a file, so that another process can find and stop it."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from auditor.errors import FiftyOneError
from auditor.processes import process_lives
from auditor.settings import settings

ADDRESS = "127.0.0.1"
STOP_S = 30.0
"""How long a process may take to end in order before it is killed."""


def folder() -> Path:
    """Where everything of FiftyOne lies in the home."""
    return settings().home / "fiftyone"


@contextmanager
def alone(what: str) -> Iterator[None]:
    """Let one process of this machine do it at a time.

    Raises:
        FiftyOneError: another one is at it.
    """
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    lock = FileLock(place / f"{what}.lock", blocking=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise FiftyOneError("Another push or pull of this dataset is running; wait for it.") from error
    try:
        yield
    finally:
        lock.release()


def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Whether a server could listen on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True


@contextmanager
def locked(place: Path) -> Iterator[None]:
    """Let one process at a time change the records below ``place``."""
    with FileLock(place / "lock"):
        yield


def write_record(path: Path, pid: int, **values: Any) -> None:
    """Record a process with its start time: a pid alone may be given away again."""
    started = psutil.Process(pid).create_time()
    path.write_text(json.dumps({"pid": pid, "started": started, **values}))


def recorded(path: Path) -> dict[str, Any] | None:
    """The record of a process that still lives, or None."""
    try:
        record: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return record if process_lives(record["pid"], record["started"]) else None


def living_users(place: Path) -> list[int]:
    """Processes that work with our MongoDB; records of dead ones are removed."""
    living = []
    for path in (place / "users").glob("*.json"):
        record = recorded(path)
        if record is None:
            path.unlink(missing_ok=True)
        else:
            living.append(int(record["pid"]))
    return living


def stop_recorded(path: Path, child: subprocess.Popen[bytes] | None) -> None:
    """End the recorded process in order and forget it; ``child`` is it, where this process started it."""
    record = recorded(path)
    if record is not None:
        process = psutil.Process(record["pid"])
        process.terminate()
        until = time.monotonic() + STOP_S
        while process_lives(record["pid"], record["started"]):
            if child is not None and child.pid == record["pid"] and child.poll() is not None:
                break
            if time.monotonic() > until:
                process.kill()
            time.sleep(0.02)
    if child is not None and record is not None and child.pid == record["pid"]:
        child.wait()
    path.unlink(missing_ok=True)
