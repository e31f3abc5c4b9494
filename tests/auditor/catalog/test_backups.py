"""A backup brings back what was there, from a catalog in use, into another home."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import numpy as np
import pytest

from auditor.catalog import backups, datasets, db, folders, reviews
from auditor.ground.errors import AuditorError, DamagedError
from auditor.importing.imports import import_dataset
from auditor.pictures import cache
from auditor.review import decisions
from tests.auditor.catalogs import add_dataset
from tests.auditor.sample_pictures import write_folder


def move_to(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db.close_all()
    monkeypatch.setenv("AUDITOR_HOME", str(home))


def test_restore__brings_back_pictures_and_decisions_in_another_home(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_dataset(write_folder(tmp_path / "set", 12), name="set", image_size=8)
    decisions.decide(1, 3, "exclude", reviewer="ann")
    with db.session() as session:
        pictures = np.array(cache.image_cache(datasets.get(session, "set")))
    done = backups.backup(tmp_path / "all.tar")
    assert (done.num_datasets, done.left_out) == (1, [])
    assert stat.S_IMODE((tmp_path / "all.tar").stat().st_mode) == 0o600
    move_to(tmp_path / "other", monkeypatch)
    with db.session() as session:  # a catalog that was opened, and is empty
        assert datasets.names(session) == []
    assert backups.restore(tmp_path / "all.tar").left_out == []
    with db.session() as session:
        assert np.array_equal(cache.image_cache(datasets.get(session, "set")), pictures)
        assert [row.decision for row in reviews.log(session, 1)] == ["exclude"]
    assert not list((tmp_path / "other").glob(".restore-*"))
    with pytest.raises(AuditorError, match=r"datasets is not empty; point AUDITOR_HOME"):
        backups.restore(tmp_path / "all.tar")


def test_backup__while_somebody_decides_holds_whole_decisions(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(num=400)
    stop = threading.Event()

    def decide() -> None:
        for sample in range(400):
            if stop.is_set():
                return
            decisions.decide(1, sample, "exclude", reviewer="ann")

    writer = threading.Thread(target=decide)
    writer.start()
    try:
        for number in range(3):
            backups.backup(tmp_path / f"{number}.tar", with_files=False)
    finally:
        stop.set()
        writer.join()
    for number in range(3):
        move_to(tmp_path / f"home {number}", monkeypatch)
        backups.restore(tmp_path / f"{number}.tar")
        with db.session() as session:
            assert session.connection().exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
            assert len(reviews.outcomes(session, 1)) == len(reviews.log(session, 1))


def test_backup__leaves_out_what_belongs_to_another_catalog(home: Path, tmp_path: Path) -> None:
    import_dataset(write_folder(tmp_path / "set", 12), name="set", image_size=8)
    folders.write_manifest(home / "datasets" / "1", "0" * 32, title="dataset theirs")
    assert backups.backup(tmp_path / "all.tar").left_out == [str(home / "datasets" / "1")]
    with pytest.raises(AuditorError, match="exists; choose another name, or overwrite it"):
        backups.backup(tmp_path / "all.tar")


@pytest.mark.parametrize("content", [b"", b"no tar", None])
def test_restore__what_is_no_whole_backup_is_refused_and_leaves_the_home_empty(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    add_dataset(num=2_000)
    backups.backup(tmp_path / "all.tar")
    broken = tmp_path / "broken.tar"
    whole = (tmp_path / "all.tar").read_bytes()
    broken.write_bytes(whole[: len(whole) // 2] if content is None else content)
    move_to(tmp_path / "other", monkeypatch)
    with pytest.raises((DamagedError, AuditorError), match=r"broken\.tar is no (whole )?backup"):
        backups.restore(broken)
    assert list((tmp_path / "other").iterdir()) == []
