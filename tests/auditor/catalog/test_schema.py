"""Opening a catalog: new, older, newer, and by several processes at once."""

from __future__ import annotations

import os
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

from auditor.catalog import audits, datasets, jobs, migrations, schema
from auditor.catalog.db import close_all, session
from auditor.ground.errors import AuditorError
from tests.auditor.catalogs import TO_THE_FIRST_LAYOUT, add_dataset, queued_audit
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


def test_prepare__a_catalog_without_a_version_is_copied_and_brought_along(home: Path) -> None:
    add_dataset("few", num=3)
    change(home, *TO_THE_FIRST_LAYOUT)
    with session() as open_session:
        assert [row.name for row in datasets.list_all(open_session)] == ["few"]
    assert layout(home / "catalog.db") == migrations.HEAD
    with closing(sqlite3.connect(home / f"catalog.db.before-{migrations.HEAD}")) as copy:
        names = {name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert copy.execute("SELECT name FROM dataset").fetchall() == [("few",)]
    assert "alembic_version" not in names


def test_prepare__unfinished_audits_of_the_first_layout_get_their_jobs(home: Path) -> None:
    add_dataset("few", num=3)
    with session() as open_session:
        for status in ("finished", "cancelled", "running", "queued"):
            audits.create(open_session, queued_audit(), [])
            audits.set_status(open_session, audits.of_dataset(open_session, 1)[0].id or 0, status)
    running = f"pid = {os.getpid()}, host = '{jobs.this_host()}', cancel_requested = TRUE"
    change(home, *TO_THE_FIRST_LAYOUT, f"UPDATE audit SET {running} WHERE status = 'running'")
    with session() as open_session:
        found = {job.audit_id: (job.name, job.status) for job in jobs.find(open_session, "audit")}
        states = [audits.state(open_session, audit) for audit in audits.of_dataset(open_session, 1)]
        assert found == {2: ("few", "cancelled"), 3: ("few", "running"), 4: ("few", "waiting")}
        assert states == ["queued", "running", "cancelled", "finished"]
        assert jobs.beat(open_session, 2)  # the request to cancel it came along
        assert jobs.create(open_session, "export", "few", dataset_id=1) == 4


def test_prepare__a_newer_catalog_is_refused_and_left_as_it_is(home: Path) -> None:
    add_dataset()
    change(home, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(
        AuditorError, match=rf"catalog\.db has the layout 9999, .* up to {migrations.HEAD}: [^\n]+$"
    ):
        session().__enter__()
    assert layout(home / "catalog.db") == "9999"


def test_prepare__a_catalog_that_is_older_than_the_first_layout_is_named(home: Path) -> None:
    add_dataset()
    change(home, *TO_THE_FIRST_LAYOUT, "ALTER TABLE sample DROP COLUMN location")
    with pytest.raises(AuditorError, match=r"older than layout 0001: it lacks sample\.location\. Export"):
        session().__enter__()
    assert not list(home.glob("catalog.db.before-*"))


def test_prepare__without_a_copy_nothing_is_changed(home: Path) -> None:
    add_dataset()
    change(home, *TO_THE_FIRST_LAYOUT)
    (home / f"catalog.db.before-{migrations.HEAD}").mkdir()  # in the copy's place
    with pytest.raises(AuditorError, match=r"its copy .*catalog\.db\.before-.* cannot be written"):
        session().__enter__()
    with closing(sqlite3.connect(home / "catalog.db")) as connection:
        found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchall()
    assert found == []


def test_prepare__a_revision_that_fails_leaves_the_catalog_as_it_was(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset()
    change(home, *TO_THE_FIRST_LAYOUT, "DROP TABLE last_id")

    def fail(*_: object) -> None:
        raise RuntimeError("in the middle")

    with monkeypatch.context() as patch:
        patch.setattr(MigrationContext, "stamp", fail)  # after every revision ran
        with pytest.raises(RuntimeError, match="in the middle"):
            session().__enter__()
    with closing(sqlite3.connect(home / "catalog.db")) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert not names & {"alembic_version", "last_id"}
    with session() as open_session:
        assert open_session.scalar(text("SELECT count(*) FROM last_id")) == 4


@pytest.mark.parametrize("before", ["nothing", "a catalog without a version"])
def test_prepare__several_processes_may_open_it_at_once(home: Path, before: str) -> None:
    if before != "nothing":
        add_dataset()
        change(home, *TO_THE_FIRST_LAYOUT)
    code = (
        "from auditor.catalog import datasets\nfrom auditor.catalog.db import session\n"
        "with session() as one: print(len(datasets.list_all(one)))"
    )
    begun = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(4)]
    said = [process.communicate(timeout=WAIT_S)[0].strip() for process in begun]
    assert said == [b"0" if before == "nothing" else b"1"] * 4
