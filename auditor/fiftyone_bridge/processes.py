"""Where FiftyOne's things lie in the home, ports, and one push or pull at a time."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from auditor.ground.errors import FiftyOneError
from auditor.ground.settings import settings

ADDRESS = "127.0.0.1"


def folder() -> Path:
    """Return where everything of FiftyOne lies in the home."""
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


def is_free(port: int) -> bool:
    """Return whether a server could listen on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True
