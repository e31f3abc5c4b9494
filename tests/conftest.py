"""Fixtures that every test may use: a home of its own and the real image sets where they are at hand."""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from filelock import FileLock
from tqdm import tqdm

from tests.forker import Forker, Jobs
from tests.helpers import QUICK_OPTIONS, Digits, write_digits
from tests.world import is_world

if TYPE_CHECKING:
    from tests.masked import Audited

# What the tests audit is tiny and trains from scratch; who tests what is usual takes this away.
os.environ.setdefault("AUDITOR_BACKBONE", "none")

# Its monitor is a thread that never ends: beside it every process apart would be a new Python in place of a fork.
tqdm.monitor_interval = 0

Made = TypeVar("Made")
ROOT = Path(__file__).resolve().parent.parent
END_S = 300
"""Longest that what tests share may take to end."""
LONGEST_FIRST = (
    *("scale", "test_deploy.py"),
    *(
        "test_contract.py",
        "test_journey.py",
        "test_server.py",
        "test_axe.py",
        "test_pages.py",
        "test_six_keys.py",
    ),
    *("test_two_people.py", "test_import_faults.py", "test_executors.py", "test_offline.py", "test_app.py"),
    *(
        "test_demo.py",
        "fiftyone_bridge",
        "browser",
        "faults",
        "test_kept_trainings.py",
        "test_features_audit.py",
    ),
    *("test_jobs.py", "test_commands.py", "test_portable.py", "test_report.py", "test_readme.py", "engines"),
)
"""Folders and files that take longest: begun last, one of them would leave all but one core idle at the end."""


QUICK = (
    *("test_architecture.py", "test_docs.py", "test_world.py", "test_files.py", "test_engine_bridge.py"),
    *("statistics", "catalog", "pictures", "review", "server", "session"),
    *("test_cholesky.py", "test_equations.py", "test_rules.py", "test_schedules.py", "test_s2e.py"),
    *("test_weights.py", "meta", "neighbours", "test_small.py", "test_heads.py", "test_losses.py"),
    *("test_selection.py", "test_checkpoint.py", "test_config.py", "test_loader.py", "test_rows.py"),
    *("test_style.py", "test_install.py"),
)
"""Folders and files whose tests train nothing and end soon: what `make check` runs."""
SLOW = (
    *("backbones", "test_postgres.py", "test_fused_tangents.py", "test_remote.py"),
    *("test_apart.py", "test_schema.py", "test_strata.py", "test_promises.py", "test_splits.py"),
    *("test_annotations.py", "test_containers.py", "test_tables.py", "test_places.py"),
)
"""Among those, what takes long all the same: what starts databases or processes, many fits, whole round trips."""
TRAINING_FIXTURES = frozenset({"_audited_template", "audited_home", "copied_home", "_masked_template"})


def _is_quick(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return bool(set(QUICK) & set(parts)) and not set(SLOW) & set(parts) and not is_world(path)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """``make check`` and ``make test`` do not read what they leave out: to import it takes long."""
    if not (collection_path.name.startswith("test_") and collection_path.is_file()):
        return None
    tier = config.option.markexpr
    is_out = (tier == "not trains" and not _is_quick(collection_path)) or (
        tier == "not world" and is_world(collection_path)
    )
    return is_out or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what trains or takes long and the second tier; begin with the longest files, in a folder's order."""
    for item in items:
        if not _is_quick(item.path) or TRAINING_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("trains")
        if is_world(item.path, item.name):
            item.add_marker("world")

    def place(item: pytest.Item) -> int:
        parts = item.path.relative_to(ROOT).parts
        return next((at for at, name in enumerate(LONGEST_FIRST) if name in parts), len(LONGEST_FIRST))

    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """No garbage is looked for while all test files are imported: that took each worker 1.5 s."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """What all test files import stays to the end: no collection of garbage looks at it again.

    Every training asks for one, and each took a third of a second.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """No test's timeout is in force any more: what stands still at the end says where it is, and ends."""
    faulthandler.dump_traceback_later(END_S, exit=True, file=sys.__stderr__)


def pytest_unconfigure() -> None:
    """It ended."""
    faulthandler.cancel_dump_traceback_later()


def pytest_runtest_setup() -> None:
    """One thread, whatever the test before set (UMAP's compiler takes every core it sees).

    These networks are tiny, and threads that wait for each other on a busy machine cost minutes.
    """
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(scope="session")
def forker() -> Iterator[Forker]:
    """Starts the app and jobs; ends with the session."""
    one = Forker()
    yield one
    one.end()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forker: Forker) -> Path:
    """An empty AUDITOR_HOME with its own SQLite catalog; jobs that this process starts are forked."""
    from auditor.jobs import control

    folder = tmp_path / "home"
    monkeypatch.setattr(control, "subprocess", Jobs(forker))
    monkeypatch.setenv("AUDITOR_HOME", str(folder))
    monkeypatch.delenv("AUDITOR_DATABASE_URL", raising=False)
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL of the tests' own: the URL of its first database; skips where it is not installed."""
    from tests.on_postgres import running

    with running() as url:
        yield url


@pytest.fixture
def empty_postgres(postgres: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty database of its own in PostgreSQL, set as the catalog's."""
    from auditor.catalog.db import close_all
    from tests.on_postgres import new_database

    url = new_database(postgres)
    monkeypatch.setenv("AUDITOR_DATABASE_URL", url)
    yield url
    close_all()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with the real MNIST and CIFAR-10 Parquet files; skips where it is absent."""
    folder = Path(os.environ.get("AUDITOR_SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "mnist-train.parquet").exists():
        pytest.skip(f"real image sets are not at {folder}; set AUDITOR_SHARED_DATA to their folder")
    return folder


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Made]) -> tuple[Path, Made]:
    """A home that ``make`` fills, below a folder of that name, and what it returned: once for all workers."""
    from auditor.catalog.db import close_all

    base = factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, kept = base / name, base / f"{name}.pickle"
    with FileLock(base / f"{name}.lock"):
        if not kept.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("AUDITOR_HOME", str(folder / "home"))
                patch.delenv("AUDITOR_DATABASE_URL", raising=False)
                made = make(folder)
                close_all()
            kept.write_bytes(pickle.dumps(made))
    return folder / "home", pickle.loads(kept.read_bytes())


@pytest.fixture(scope="session")
def _audited_template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Digits, int]]:
    """One home with 300 digits imported and audited."""
    from auditor import api
    from auditor.importing import imports

    def make(folder: Path) -> tuple[Digits, int]:
        digits = write_digits(folder / "source")
        imports.import_dataset(digits.table, name="digits", image_size=16, workers=1)
        return digits, api.Dataset("digits").audit(["cross_entropy"], options=QUICK_OPTIONS, map_method="pca")

    return made_once(tmp_path_factory, "of-digits", make)


@pytest.fixture
def audited(_audited_template: tuple[Path, tuple[Digits, int]], home: Path) -> tuple[Digits, int]:
    """A fresh copy of the audited home as AUDITOR_HOME: the digits and the audit's id."""
    return _copied(_audited_template, home)


@pytest.fixture(scope="session")
def _masked_template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Audited]:
    """One home with a few masks imported and audited."""
    from tests.masked import make_home

    return made_once(tmp_path_factory, "of-masks", make_home)


@pytest.fixture
def audited_masks(_masked_template: tuple[Path, Audited], home: Path) -> Audited:
    """A fresh copy of the home with audited masks as AUDITOR_HOME."""
    return _copied(_masked_template, home)


@pytest.fixture(scope="session")
def audited_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which one dataset was imported and audited by two engines; to be copied."""
    from tests.app.conftest import make_home

    return made_once(tmp_path_factory, "of-tiny-digits", make_home)[0]


@pytest.fixture
def copied_home(audited_home: Path, home: Path) -> Path:
    """A copy of the audited home, for a test to write into."""
    _copied((audited_home, None), home)
    return home


def _copied(template: tuple[Path, Made], home: Path) -> Made:
    from auditor.catalog.db import close_all

    close_all()
    shutil.copytree(template[0], home)
    return template[1]
