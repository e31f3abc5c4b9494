"""A team's catalog: import, audit, verify, review, undo, export and removal on a real PostgreSQL."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from auditor import api, auditing, diagnosis, exporting, review_files, reviewing, worker
from auditor.catalog import audits, datasets, db, reviews, scores
from auditor.errors import AuditorError
from auditor.importing import import_dataset
from tests.helpers import write_digits

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
# PostgreSQL refuses to run as root; Debian's package brings this user.
AS_POSTGRES = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A cluster of its own, reached by a socket in its folder; the URL of its database."""
    if not PROGRAMS:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    if AS_POSTGRES:
        shutil.chown(folder, "postgres")
    data, control = folder / "data", [*AS_POSTGRES, str(PROGRAMS[-1] / "pg_ctl"), "-D", str(folder / "data")]
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    make = [*AS_POSTGRES, str(PROGRAMS[-1] / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust"]
    subprocess.run(make, **quiet)  # type: ignore[call-overload]
    options = f"-c listen_addresses='' -k {folder}"
    start = [*control, "-w", "-o", options, "-l", str(folder / "log"), "start"]
    subprocess.run(start, **quiet)  # type: ignore[call-overload]
    yield f"postgresql+psycopg://postgres:secret@/postgres?host={folder}"
    db.close_all()
    subprocess.run([*control, "-m", "immediate", "stop"], **quiet)  # type: ignore[call-overload]
    shutil.rmtree(folder)


def test_postgres__import_to_export(
    server: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_DATABASE_URL", server)
    source = write_digits(tmp_path / "source", num=120, num_wrong=12)
    dataset_id = import_dataset(source.table, name="digits", workers=1).dataset_id
    options = {"cross_entropy": {"epochs": 2, "views": 1}}
    audit_id = auditing.plan("digits", list(options), device="cpu", options=options)
    worker.run(audit_id)
    reviewing.decide(dataset_id, 3, "relabel", label=7, reviewer="ada", audit_id=audit_id)
    reviewing.decide(dataset_id, 4, "exclude", reviewer="ada", audit_id=audit_id)
    reviewing.undo_last(dataset_id, "ada")
    with db.session() as open_session:
        page = scores.page(
            open_session,
            audits.get(open_session, audit_id),
            scores.SuspectFilter(only_undecided=True),
            limit=5,
        )
    batch = reviewing.accept(dataset_id, audit_id, reviewing.suggestions(page)[0], reviewer="ada")
    reviewing.undo_batch(dataset_id, batch, "ada")
    exporting.export("digits", tmp_path / "out.csv", policy="reviewed")
    written = pd.read_csv(tmp_path / "out.csv", dtype=str)
    assert written.action.value_counts().to_dict() == {"keep": 119, "relabel": 1}
    assert written.cleaned_label[3] == "7"
    with db.session() as session:
        standing = reviews.decisions(session, dataset_id).values()
        assert [row.decision for row in standing] == ["relabel"]
        assert audits.get(session, audit_id).summary["num_label_issues"] >= 0
    assert review_files.apply_file("digits", tmp_path / "out.csv")["unchanged"] == 1
    assert not (home / "catalog.db").exists()
    api.remove("digits")
    with db.session() as session:
        assert not datasets.exists(session, "digits")


def test_doctor__never_shows_the_password(server: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDITOR_DATABASE_URL", server)
    texts = [check.text for check in diagnosis.checks() if check.name == "catalog"]
    assert "postgresql+psycopg://postgres:***@/postgres" in texts[0]
    assert "secret" not in texts[0]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "AUDITOR_DATABASE_URL is no database URL; write postgresql"),
        ("nosuch://somewhere/x", "AUDITOR_DATABASE_URL is no database URL; write postgresql"),
        ("mysql+pymysql://a:secret@b/c", r"a:\*\*\*@b/c needs the package pymysql"),
        ("postgresql+psycopg://a:secret@127.0.0.1:1/x", r"a:\*\*\*@127.0.0.1:1/x cannot be used"),
    ],
)
def test_session__url_that_cannot_be_used_is_explained(
    home: Path, monkeypatch: pytest.MonkeyPatch, url: str, message: str
) -> None:
    monkeypatch.setenv("AUDITOR_DATABASE_URL", url)
    with pytest.raises(AuditorError, match=message) as caught, db.session():
        pass
    assert "secret" not in str(caught.value)
