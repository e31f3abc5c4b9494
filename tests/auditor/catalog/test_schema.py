"""Opening a catalog: new, older, newer, foreign, and by several at once."""

from __future__ import annotations

import multiprocessing
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlmodel import SQLModel

from auditor.catalog import datasets, migrations, schema
from auditor.catalog.db import close_all, session
from auditor.catalog.models import Typed
from auditor.catalog.records import AuditSummary
from auditor.ground.errors import AuditorError
from tests.auditor.catalogs import add_dataset, at_once
from tests.helpers import WAIT_S

FOLDER = str(Path(migrations.__file__).parent)


def layout(file: Path) -> str | None:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT version_num FROM alembic_version").fetchone()[0]


def change(home: Path, *statements: str) -> None:
    close_all()
    with closing(sqlite3.connect(home / "catalog.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_head__is_the_end_of_one_line_of_revisions() -> None:
    assert ScriptDirectory(FOLDER, version_locations=[FOLDER]).get_heads() == [migrations.HEAD]


def test_prepare__a_new_catalog_has_the_tables_of_the_models(home: Path) -> None:
    with session() as open_session:
        context = MigrationContext.configure(open_session.connection())
        assert compare_metadata(context, SQLModel.metadata) == []
        assert schema.version(open_session.connection()) == migrations.HEAD
    assert not list(home.glob("catalog.db.before-*"))


LAST = migrations.HEAD
LATER = f"""
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9000", "{migrations.HEAD}"


def upgrade():
    op.add_column("dataset", sa.Column("later", sa.String))
"""


@pytest.fixture
def later(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalog of the first layout with one dataset, before a code that knows a second layout."""
    add_dataset("few", num=3)
    close_all()
    folder = tmp_path / "migrations"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "r9000_later.py").write_text(LATER)
    monkeypatch.setattr(migrations, "__file__", str(folder / "__init__.py"))
    monkeypatch.setattr(migrations, "HEAD", "9000")
    return home


def test_prepare__an_older_catalog_is_copied_and_brought_along(later: Path) -> None:
    with session() as open_session:
        assert [row.name for row in datasets.list_all(open_session)] == ["few"]
        assert open_session.execute(text("SELECT later FROM dataset")).all() == [(None,)]
    assert layout(later / "catalog.db") == "9000"
    copy = later / "catalog.db.before-9000"
    assert layout(copy) == LAST
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT name FROM dataset").fetchall() == [("few",)]


def test_prepare__a_newer_catalog_is_refused_and_left_as_it_is(home: Path) -> None:
    add_dataset()
    change(home, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(
        AuditorError, match=rf"catalog\.db has the layout 9999, .* up to {migrations.HEAD}: [^\n]+$"
    ):
        session().__enter__()
    assert layout(home / "catalog.db") == "9999"


def test_prepare__tables_without_a_version_are_refused_and_left_as_they_are(home: Path) -> None:
    add_dataset()
    change(home, "DROP TABLE alembic_version")
    with pytest.raises(AuditorError, match=r"no layout that was ever released, .* export your decisions"):
        session().__enter__()
    with closing(sqlite3.connect(home / "catalog.db")) as connection:
        assert connection.execute("SELECT count(*) FROM sample").fetchone() == (40,)


def test_prepare__without_a_copy_nothing_is_changed(later: Path) -> None:
    (later / "catalog.db.before-9000").mkdir()  # in the copy's place
    with pytest.raises(AuditorError, match=r"its copy .*catalog\.db\.before-.* cannot be written"):
        session().__enter__()
    assert layout(later / "catalog.db") == LAST


def _killed_in_the_copy(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    session().__enter__()


def test_prepare__a_kill_in_the_copy_leaves_nothing(later: Path) -> None:
    change(later, "CREATE TABLE much (what BLOB)", "INSERT INTO much VALUES (zeroblob(8000000))")
    child = multiprocessing.get_context("fork").Process(target=_killed_in_the_copy, args=(4_000_000,))
    child.start()
    child.join(WAIT_S)
    assert child.exitcode == -signal.SIGXFSZ
    assert list(later.glob(".*.writing"))
    with session() as open_session:
        assert [row.name for row in datasets.list_all(open_session)] == ["few"]
    assert not list(later.glob(".*writing*"))


def test_prepare__a_revision_that_fails_leaves_the_catalog_as_it_was(
    later: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("in the middle")

    with monkeypatch.context() as patch:
        patch.setattr(MigrationContext, "stamp", fail)  # after every revision ran
        with pytest.raises(RuntimeError, match="in the middle"):
            session().__enter__()
    with closing(sqlite3.connect(later / "catalog.db")) as connection:
        names = {row[1] for row in connection.execute("PRAGMA table_info(dataset)")}
    assert "later" not in names
    with session() as open_session:
        assert open_session.execute(text("SELECT later FROM dataset")).all() == [(None,)]


def test_prepare__several_threads_may_bring_one_along_at_once(later: Path) -> None:
    def look() -> int:
        with session() as open_session:
            return len(datasets.list_all(open_session))

    assert at_once(*[look] * 4) == [1] * 4


def test_prepare__several_processes_may_open_a_new_one_at_once(home: Path) -> None:
    code = (
        "from auditor.catalog import datasets\nfrom auditor.catalog.db import session\n"
        "with session() as one: print(len(datasets.list_all(one)))"
    )
    begun = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(4)]
    assert [process.communicate(timeout=WAIT_S)[0].strip() for process in begun] == [b"0"] * 4


def test_summary__of_an_earlier_version_is_read_without_what_nobody_asks_for_any_more() -> None:
    stored = {"settled_at": "2026-11-20T10:00:00", "transition": {"matrix": [[1.0]]}}
    kept = Typed(AuditSummary).process_result_value(stored, None)
    assert kept == AuditSummary(settled_at="2026-11-20T10:00:00")
