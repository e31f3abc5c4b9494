"""A team's catalog: import, audit, verify, review, undo, export and removal on a real PostgreSQL."""

from __future__ import annotations

import math
import tarfile
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import create_engine, select, text

from auditor import api
from auditor.audits import plan, worker
from auditor.catalog import audits, backups, datasets, db, draws, reviews, scores
from auditor.cli import doctor
from auditor.ground.errors import AuditorError
from auditor.importing.imports import import_dataset
from auditor.outputs import export
from auditor.pictures import cache
from auditor.review import decision_files, decisions, drawing
from tests.auditor.catalog import many_rows
from tests.auditor.catalogs import add_dataset, at_once, first_epoch, queued_audit
from tests.helpers import suggestions, write_digits
from tests.on_postgres import new_database


def test_postgres__import_to_export(
    postgres: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_DATABASE_URL", postgres)
    source = write_digits(tmp_path / "source", num=120, num_wrong=12)
    dataset_id = import_dataset(source.table, name="digits", workers=1).dataset_id
    options = {"cross_entropy": {"epochs": 2, "views": 1}}
    audit_id = plan.plan_audit("digits", list(options), device="cpu", options=options, map_method="pca")
    worker.run_audit(audit_id)
    decisions.decide(dataset_id, 3, "relabel", label=7, reviewer="ada", audit_id=audit_id)
    decisions.decide(dataset_id, 4, "exclude", reviewer="ada", audit_id=audit_id)
    decisions.undo_last(dataset_id, "ada")
    with db.session() as open_session:
        page = scores.page(
            open_session,
            audits.get(open_session, audit_id),
            scores.SuspectFilter(only_undecided=True),
            limit=5,
        )
    changes = [(sample_id, "relabel", label) for sample_id, label in suggestions(page)]
    batch = decisions.decide_many(dataset_id, changes, reviewer="ada", audit_id=audit_id)
    decisions.undo_batch(dataset_id, batch, "ada")
    export.export_table("digits", tmp_path / "out.csv", policy="reviewed")
    written = pd.read_csv(tmp_path / "out.csv", dtype=str)
    assert written.action.value_counts().to_dict() == {"keep": 119, "relabel": 1}
    assert written.cleaned_label[3] == "7"
    with db.session() as session:
        standing = reviews.decisions(session, dataset_id).values()
        assert [row.decision for row in standing] == ["relabel"]
        assert audits.get(session, audit_id).summary.num_label_issues >= 0
    assert decision_files.apply_file("digits", tmp_path / "out.csv")["unchanged"] == 1
    assert not (home / "catalog.db").exists()
    api.remove("digits")
    with db.session() as session:
        assert not datasets.exists(session, "digits")


def test_doctor__never_shows_the_password(postgres: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDITOR_DATABASE_URL", postgres)
    texts = [check.text for check in doctor.checks() if check.name == "catalog"]
    assert "postgresql+psycopg://postgres:***@/postgres" in texts[0]
    assert "secret" not in texts[0]


def test_session__an_empty_database_may_be_opened_by_several_at_once(empty_postgres: str) -> None:
    def look() -> int:
        with db.session() as open_session:
            return len(datasets.list_all(open_session))

    assert at_once(*[look] * 6) == [0] * 6


def test_decide__both_first_decisions_of_the_same_moment_are_kept(empty_postgres: str) -> None:
    dataset_id = add_dataset()
    for sample_id in range(10):
        both = at_once(
            lambda i=sample_id: decisions.decide(dataset_id, i, "keep", reviewer="ada"),
            lambda i=sample_id: decisions.decide(dataset_id, i, "exclude", reviewer="bob"),
        )
        earlier, later = sorted(both, key=lambda decided: decided.review_id)
        assert (earlier.conflict, later.conflict.id) == (None, earlier.review_id)
        with db.session() as open_session:
            assert reviews.standing(open_session, dataset_id, sample_id).id == later.review_id


def test_draw__draws_of_the_same_moment_share_no_sample(empty_postgres: str) -> None:
    dataset_id = add_dataset()
    at_once(*[lambda: drawing.draw("few", 5)] * 6)
    with db.session() as open_session:
        rows = draws.of_dataset(open_session, dataset_id)
    assert len({sample for row in rows for sample in row.sample_ids}) == 30


def test_read_columns__is_the_same_on_postgresql(
    empty_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_rows.check_columns(monkeypatch)


def test_scores__parts_of_a_ranking_are_the_same_on_postgresql(
    empty_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_rows.check_ranking(monkeypatch)


def test_samples_and_scores__are_counted_at_once_for_the_plans_of_queries(empty_postgres: str) -> None:
    many_rows.rank_them(many_rows.fill())
    with db.session() as open_session:
        known = "SELECT relname, reltuples FROM pg_class WHERE relname IN ('sample', 'score')"
        assert dict(open_session.connection().exec_driver_sql(known).all()) == {
            "sample": many_rows.NUM + 2,
            "score": many_rows.NUM,
        }


def test_duplicates__that_differ_are_the_same_on_postgresql(empty_postgres: str) -> None:
    many_rows.check_copies()


def test_record_epoch__what_is_no_number_is_none(empty_postgres: str) -> None:
    add_dataset()
    with db.session() as open_session:
        audits.create(open_session, queued_audit(), [])
        audits.record_epoch(open_session, first_epoch({"kept": math.nan, "train_accuracy": 0.5}))
    with db.session() as open_session:
        (stored,) = audits.epochs(open_session, 1)
    assert stored.metrics == {"kept": None, "train_accuracy": 0.5}


def test_session__several_may_open_a_new_catalog_at_once(empty_postgres: str) -> None:
    def look() -> int:
        with db.session() as open_session:
            return len(datasets.list_all(open_session))

    assert at_once(*[look] * 4) == [0] * 4


def test_session__a_user_who_may_not_extend_the_tables_is_told_why(
    empty_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create_engine(empty_postgres).begin() as connection:
        connection.execute(text("CREATE ROLE guest LOGIN"))
    monkeypatch.setenv("AUDITOR_DATABASE_URL", empty_postgres.replace("postgres:secret", "guest:secret"))
    with (
        pytest.raises(
            AuditorError,
            match="permission denied for schema public.: let this user create tables",
        ),
        db.session(),
    ):
        pass


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


def everything() -> dict[str, list[tuple[object, ...]]]:
    """All rows of the catalog, by table."""
    with db.session() as session:
        return {
            table.name: [tuple(row) for row in session.execute(select(table).order_by(*table.primary_key))]
            for table in db.SQLModel.metadata.sorted_tables
            if table.name != "last_id"
        }


def test_backup__goes_from_sqlite_to_postgresql_and_back(
    postgres: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = write_digits(tmp_path / "source")
    import_dataset(digits.table, name="digits", image_size=8, workers=1)
    import_dataset(digits.table, name="gone", image_size=8, workers=1)
    api.remove("gone")
    decisions.decide(1, 4, "multiple", labels=[1, 7], reviewer="ann", note="=both")
    decisions.decide(1, 5, "relabel", label=3, reviewer="ben")
    decisions.undo_last(1, "ben")
    before = everything()
    backups.backup(tmp_path / "sqlite.tar")
    with tarfile.open(tmp_path / "sqlite.tar") as tar:
        words = pd.read_csv(tar.extractfile("decisions.csv"), keep_default_na=False)  # type: ignore[arg-type]
    assert words["decision"].tolist() == ["multiple", "relabel", "undo"]
    assert words["label"].tolist() == ["", "3", ""]
    assert words["filepath"].tolist()[0] == before["sample"][4][2]

    monkeypatch.setenv("AUDITOR_DATABASE_URL", new_database(postgres))
    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path / "team"))
    assert backups.restore(tmp_path / "sqlite.tar").left_out == []
    assert everything() == before
    assert add_dataset() == 3  # the number of a set that is gone is not given again
    with db.session() as session:
        datasets.remove(session, 3)
    with pytest.raises(AuditorError, match="is not empty"):
        backups.restore(tmp_path / "sqlite.tar")
    backups.backup(tmp_path / "team.tar")
    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path / "other"))
    with pytest.raises(AuditorError, match=r"The database .* has tables"):
        backups.restore(tmp_path / "team.tar")

    monkeypatch.delenv("AUDITOR_DATABASE_URL")
    assert backups.restore(tmp_path / "team.tar").left_out == []
    assert everything() == before
    with db.session() as session:
        dataset = datasets.get(session, "digits")
    assert len(cache.image_cache(dataset)) == dataset.num_samples
    assert add_dataset() == 4


def test_create__after_a_restored_catalog_passes_over_numbers_with_folders(
    empty_postgres: str, home: Path
) -> None:
    (home / "datasets" / "1").mkdir(parents=True)
    assert add_dataset() == 2
