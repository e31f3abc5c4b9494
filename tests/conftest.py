"""Fixtures that every test may use: a home of its own and the real image sets where they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture()
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty AUDITOR_HOME with its own SQLite catalog."""
    folder = tmp_path / "home"
    monkeypatch.setenv("AUDITOR_HOME", str(folder))
    monkeypatch.delenv("AUDITOR_DATABASE_URL", raising=False)
    return folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with the real MNIST and CIFAR-10 Parquet files; skips where it is absent."""
    folder = Path(os.environ.get("AUDITOR_SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "mnist-train.parquet").exists():
        pytest.skip(f"real image sets are not at {folder}; set AUDITOR_SHARED_DATA to their folder")
    return folder
