"""Fixtures that every test may use: a home of its own and the real image sets where they are at hand."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.helpers import QUICK_OPTIONS, Digits, write_digits

ROOT = Path(__file__).resolve().parent.parent
LONGEST_FIRST = ("browser", "test_readme.py", "fiftyone_bridge", "faults", "app", "engines")
"""Folders whose files take minutes each: begun last, one of them would leave all but one core idle at the end."""


TRAINS = (
    "browser",
    "faults",
    "experiments",
    "test_readme.py",
    "test_training.py",
    "test_population_training.py",
)
"""Folders and files whose tests train networks or drive the whole product; `make check` leaves them out."""
TRAINING_FIXTURES = frozenset({"_audited_template"})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what trains, and begin with the longest files; the order within a folder stays."""
    for item in items:
        parts = item.path.relative_to(ROOT / "tests").parts
        if TRAINING_FIXTURES & set(getattr(item, "fixturenames", ())) or set(TRAINS) & set(parts):
            item.add_marker("trains")

    def place(item: pytest.Item) -> int:
        parts = item.path.relative_to(ROOT / "tests").parts
        return next((at for at, name in enumerate(LONGEST_FIRST) if name in parts), len(LONGEST_FIRST))

    items.sort(key=place)


def pytest_runtest_setup() -> None:
    """One thread, whatever the test before set (UMAP's compiler takes every core it sees).

    These networks are tiny, and threads that wait for each other on a busy machine cost minutes.
    """
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture
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


@pytest.fixture(scope="session")
def _audited_template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Digits, int]:
    """One home with 300 digits imported and audited, made once a session."""
    from auditor import api
    from auditor.catalog.db import close_all
    from auditor.importing import imports

    folder = tmp_path_factory.mktemp("audited")
    digits = write_digits(folder / "source")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUDITOR_HOME", str(folder / "home"))
        patch.delenv("AUDITOR_DATABASE_URL", raising=False)
        imports.import_dataset(digits.table, name="digits", image_size=16, workers=1)
        audit_id = api.Dataset("digits").audit(["cross_entropy"], options=QUICK_OPTIONS, map_method="pca")
        close_all()
    return folder / "home", digits, audit_id


@pytest.fixture
def audited(_audited_template: tuple[Path, Digits, int], home: Path) -> tuple[Digits, int]:
    """A fresh copy of the audited home as AUDITOR_HOME: the digits and the audit's id."""
    from auditor.catalog.db import close_all

    template, digits, audit_id = _audited_template
    close_all()
    shutil.copytree(template, home)
    return digits, audit_id
