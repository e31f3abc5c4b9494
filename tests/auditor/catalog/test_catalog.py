"""The catalog itself on SQLite: what is stored, and what several writers at once do to each other."""

from __future__ import annotations

import dataclasses
import logging
import math
import os
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from sqlalchemy import text
from sqlmodel import Session

from auditor import api
from auditor.audits import worker
from auditor.catalog import audits, datasets, db, draws, jobs, leases, removal, reviews
from auditor.catalog.db import close_all, session
from auditor.catalog.records import now
from auditor.cli import doctor
from auditor.ground.errors import AuditorError, CatalogBusyError, JobRefusedError, NotFoundError, ReviewError
from auditor.review import blind, decisions, drawing
from tests.auditor.catalogs import add_dataset, at_once, first_epoch, queued_audit

NO_PROCESS = 4_194_303
"""The largest number that Linux can give to a process: nobody has it here."""


@pytest.mark.parametrize("zone", ["+02:00", "-05:30", "+00:00"])
def test_times__any_zone_is_stored_as_the_moment_that_it_is(home: Path, zone: str) -> None:
    dataset_id = add_dataset()
    at = datetime.fromisoformat(f"2026-01-01T12:00{zone}")
    decisions.decide(dataset_id, 3, "exclude", reviewer="ada", at=at)
    with session() as open_session:
        stands = reviews.standing(open_session, dataset_id, 3)
    assert stands is not None
    assert stands.created_at == at
    assert stands.created_at.tzinfo == UTC


def test_draw__draws_of_the_same_moment_share_no_sample(home: Path) -> None:
    dataset_id = add_dataset()
    for _ in range(4):
        at_once(*[lambda: drawing.draw("few", 2)] * 4)
    with session() as open_session:
        rows = draws.of_dataset(open_session, dataset_id)
    drawn = [sample for row in rows for sample in row.sample_ids]
    assert (len(rows), len(set(drawn))) == (16, 32)


def test_decide__of_two_reviewers_at_the_same_moment_one_learns_of_the_conflict(home: Path) -> None:
    dataset_id = add_dataset()
    for sample_id in range(10):
        first, second = at_once(
            lambda i=sample_id: decisions.decide(dataset_id, i, "keep", reviewer="ada"),
            lambda i=sample_id: decisions.decide(dataset_id, i, "exclude", reviewer="bob"),
        )
        earlier, later = sorted((first, second), key=lambda decided: decided.review_id)
        assert earlier.conflict is None
        assert later.conflict is not None
        assert later.conflict.id == earlier.review_id
        with session() as open_session:
            assert reviews.standing(open_session, dataset_id, sample_id).id == later.review_id
            assert len(reviews.log(open_session, dataset_id, sample_id)) == 2


def test_record_epoch__what_is_no_number_is_none(home: Path) -> None:
    add_dataset()
    epoch = first_epoch({"kept": math.nan, "train_accuracy": 0.5})
    epoch = dataclasses.replace(epoch, losses={"train": math.inf})
    with session() as open_session:
        audits.create(open_session, queued_audit(), [])
        audits.record_epoch(open_session, epoch)
    with session() as open_session:
        (stored,) = audits.epochs(open_session, 1)
    assert (stored.losses, stored.metrics) == ({"train": None}, {"kept": None, "train_accuracy": 0.5})


def test_session__an_empty_folder_may_be_opened_by_several_at_once(home: Path) -> None:
    def look() -> int:
        with session() as open_session:
            return len(datasets.list_all(open_session))

    assert at_once(*[look] * 6) == [0] * 6


@pytest.mark.parametrize(
    ("pid", "host", "silent_s", "state"),
    [
        (NO_PROCESS, "elsewhere", 5, "running"),  # its number means nothing here
        (os.getpid(), "elsewhere", 60, "dead"),
        (NO_PROCESS, jobs.this_host(), 5, "dead"),
        (os.getpid(), jobs.this_host(), 60, "running"),  # a locked catalog kept it from speaking
        (None, None, 60, "dead"),
    ],
    ids=["elsewhere", "elsewhere-silent", "here-gone", "here-silent", "no-process"],
)
def test_state__of_another_host_the_heartbeat_tells(
    home: Path, pid: int | None, host: str | None, silent_s: int, state: str
) -> None:
    running_audit(pid=pid, host=host, heartbeat_at=now() - timedelta(seconds=silent_s))
    with session() as open_session:
        assert audits.state(open_session, audits.get(open_session, 1)) == state
        assert jobs.state(jobs.get(open_session, 1)) == state


def test_run__an_audit_that_runs_on_another_host_is_left_alone(home: Path) -> None:
    running_audit(pid=os.getpid(), host="box pid:[7]", heartbeat_at=now())
    with pytest.raises(JobRefusedError, match=rf"already running as process {os.getpid()} on box\."):
        worker.run_audit(1)


def running_audit(**values: object) -> None:
    """An audit under way, with these columns of its job."""
    add_dataset()
    with session() as open_session:
        audit_id = audits.create(open_session, queued_audit(status="running"), [])
        job_id = jobs.create(open_session, "audit", "few", dataset_id=1, audit_id=audit_id)
        jobs.change(open_session, job_id, status="running", **values)


@pytest.mark.parametrize("damage", ["all", "one table"])
def test_session__a_damaged_file_is_named(home: Path, damage: str) -> None:
    add_dataset()
    with session() as open_session:
        page = open_session.scalar(text("SELECT rootpage FROM sqlite_master WHERE name = 'dataset'"))
        size = open_session.scalar(text("PRAGMA page_size"))
        engine = open_session.get_bind()
    close_all()
    engine.dispose()
    file = home / "catalog.db"
    with file.open("r+b") as stream:
        stream.seek(0 if damage == "all" else (page - 1) * size)
        stream.write(b"\xff" * (file.stat().st_size if damage == "all" else size))
    with (
        pytest.raises(AuditorError, match=r"catalog\.db cannot be used .*move it away"),
        session() as open_session,
    ):
        datasets.list_all(open_session)
    (check,) = [check for check in doctor.checks() if check.name == "catalog"]
    assert check.is_fatal
    assert "catalog.db cannot be used" in check.text


def test_session__tables_of_another_layout_than_the_number_says_are_named(home: Path) -> None:
    add_dataset()
    with session() as open_session:
        open_session.execute(text("ALTER TABLE dataset RENAME COLUMN uuid TO other"))
    with (
        pytest.raises(AuditorError, match=r"no such column: dataset\.uuid.*put a backup or the copy"),
        session() as open_session,
    ):
        datasets.list_all(open_session)


def test_close_all__no_file_of_the_catalog_stays_open(home: Path) -> None:
    add_dataset()
    with session() as open_session:
        datasets.list_all(open_session)
    close_all()
    assert not [file.path for file in psutil.Process().open_files() if Path(file.path).parent == home]


def test_remove__what_failed_goes_before_the_next_one_though_its_process_lives(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db, "WRITE_WAIT_S", 0.1)
    add_dataset()
    with session() as open_session:
        dataset = datasets.owned(open_session, "few")
        removal.begin(open_session, dataset)
    with closing(sqlite3.connect(home / "catalog.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CatalogBusyError):
            removal.finish(dataset.uuid)
    removal.sweep()
    with session() as open_session:
        assert not open_session.execute(text("SELECT name FROM dataset")).all()
        assert not leases.names(open_session)


def test_remove__who_waited_for_another_who_removes_it_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset()
    lock = datasets.lock

    def wait(open_session: Session, dataset_id: int) -> None:
        with session() as other:
            removal.begin(other, datasets.owned(other, "few"))
        lock(open_session, dataset_id)

    monkeypatch.setattr(datasets, "lock", wait)
    with pytest.raises(NotFoundError, match="There is no dataset 'few'"):
        api.remove("few")


@pytest.mark.parametrize("is_over", [False, True], ids=["under way", "done"])
def test_create__an_audit_of_what_is_being_removed_is_refused(home: Path, is_over: bool) -> None:
    add_dataset()
    with session() as open_session:
        dataset = datasets.owned(open_session, "few")
        removal.begin(open_session, dataset)
    if is_over:
        removal.finish(dataset.uuid)
    with pytest.raises(NotFoundError, match="was removed meanwhile"), session() as open_session:
        audits.create(open_session, queued_audit(dataset.id), [])


def numbers_after_removal() -> list[int]:
    """Remove dataset 1 with audit 1 and draw 1, and number anew."""
    with session() as open_session:
        datasets.remove(open_session, 1)
    return new_numbers()


def new_numbers() -> list[int]:
    """Of a new dataset, an audit of it and a draw from it."""
    dataset_id = add_dataset()
    with session() as open_session:
        audit_id = audits.create(open_session, queued_audit(dataset_id), [])
    return [dataset_id, audit_id, drawing.draw("few", 2).id or 0]


def test_create__numbers_of_what_was_removed_are_never_given_again(home: Path) -> None:
    assert new_numbers() == [1, 1, 1]
    assert numbers_after_removal() == [2, 2, 2]
    with pytest.raises(NotFoundError, match="no draw 1"):
        blind.record(1, 0, "label", label=0, reviewer="an open tab")
    with pytest.raises(ReviewError, match="no dataset 1"):
        decisions.decide(1, 0, "keep", reviewer="an open tab")


def test_session__the_pool_logs_nothing_of_a_connection_that_was_ended(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # as in a command without -v
    with session() as open_session:
        lent = open_session.get_bind().engine.raw_connection()
    lent.dbapi_connection.close()
    with suppress(sqlite3.ProgrammingError):
        lent.close()
    assert capsys.readouterr().err == ""
