"""A real MongoDB of the tests' own, and an audited home whose audit is in FiftyOne."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.bridges import fiftyone_door
from tests import mongodb
from tests.helpers import Digits


@pytest.fixture(scope="session")
def _mongodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mongodb.running(tmp_path_factory.mktemp("mongodb")) as uri:
        yield uri


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

    sync.push_audit("digits")
    return database.load_dataset("digits")
