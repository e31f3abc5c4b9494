"""Catalogs and homes that do not belong together: nothing of another set is shown, nothing is deleted by number."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import numpy as np
import psutil
import pytest
from sqlmodel import select

from auditor import api
from auditor.catalog import datasets, db, folders, jobs, leases
from auditor.catalog.models import LeaseTable
from auditor.catalog.records import new_uuid, now
from auditor.cli import doctor
from auditor.ground.errors import ImportRefusedError, MisplacedError
from auditor.ground.settings import settings
from auditor.importing import staging
from auditor.importing.imports import import_dataset
from auditor.pictures import cache
from auditor.results import arrays
from tests.auditor.sample_pictures import write_folder
from tests.faults.test_import_faults import left_behind, start, wait_until_here

pytestmark = pytest.mark.usefixtures("home")


def dataset(name: str):
    with db.session() as session:
        return datasets.get(session, name)


def copy_catalog(home: Path, to: Path) -> None:
    db.close_all()
    with closing(sqlite3.connect(home / "catalog.db")) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)


def restore_catalog(home: Path, copy: Path) -> None:
    db.close_all()
    for file in home.glob("catalog.db*"):
        file.unlink()
    shutil.copyfile(copy, home / "catalog.db")


def test_import_dataset__after_a_catalog_was_restored_takes_no_folder_of_another_set(
    home: Path, tmp_path: Path
) -> None:
    import_dataset(write_folder(tmp_path / "one", 10), name="one", image_size=8)
    copy_catalog(home, tmp_path / "before.db")
    second = import_dataset(write_folder(tmp_path / "two", 12), name="two", image_size=8)
    copy_catalog(home, tmp_path / "after.db")
    pictures = np.array(cache.image_cache(dataset("two")))
    restore_catalog(home, tmp_path / "before.db")
    third = import_dataset(write_folder(tmp_path / "three", 12), name="three", image_size=8)
    assert third.dataset_id != second.dataset_id
    assert len(cache.image_cache(dataset("three"))) == 12
    restore_catalog(home, tmp_path / "after.db")
    assert np.array_equal(cache.image_cache(dataset("two")), pictures)


def test_image_cache__of_another_dataset_is_refused_and_named_by_the_doctor(
    home: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        import_dataset(write_folder(tmp_path / name, 10), name=name, image_size=8)
    place = home / "datasets"
    (place / "1").rename(place / "0")
    (place / "2").rename(place / "1")
    (place / "0").rename(place / "2")
    with pytest.raises(MisplacedError, match=r"holds the files of dataset two, not those of dataset one"):
        cache.image_cache(dataset("one"))
    (check,) = (one for one in doctor.checks() if one.name == "folders")
    assert f"{place / '2'} belongs to dataset 1: rename it to {place / '1'}" in check.text
    assert check.state == "missing"


def test_checked_once__a_folder_is_checked_once_in_the_block_and_anew_after_it(
    home: Path, tmp_path: Path
) -> None:
    import_dataset(write_folder(tmp_path / "one", 10), name="one", image_size=8)
    with folders.checked_once():
        folder = folders.of_dataset(1)
        folders.write_manifest(folder, new_uuid(), title="dataset theirs")
        with folders.checked_once():
            assert folders.of_dataset(1) == folder
    with pytest.raises(MisplacedError, match=r"dataset theirs"):
        folders.of_dataset(1)


def test_remove__leaves_a_folder_of_another_dataset_alone(home: Path, tmp_path: Path) -> None:
    import_dataset(write_folder(tmp_path / "one", 10), name="one", image_size=8)
    folders.write_manifest(home / "datasets" / "1", new_uuid(), title="dataset theirs")
    assert api.remove("one") == [home / "datasets" / "1"]
    assert left_behind() == ["1"]


def test_arrays__of_another_audit_are_refused(audited: tuple[object, int], home: Path) -> None:
    _, audit_id = audited
    assert len(arrays.pred_probs(audit_id, "cross_entropy")) == 300
    folders.write_manifest(settings().audit_folder(audit_id), new_uuid(), title="audit 1 of theirs")
    with pytest.raises(MisplacedError, match=r"audit 1 of theirs, not those of audit 1"):
        arrays.pred_probs(audit_id, "cross_entropy")
    api.remove("digits")
    assert [path.name for path in (home / "audits").iterdir()] == ["1"]


def test_strays__names_what_lacks_its_other_half(home: Path, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        import_dataset(write_folder(tmp_path / name, 10), name=name, image_size=8)
    place = home / "datasets"
    shutil.rmtree(place / "1")
    (place / "2" / folders.MANIFEST).write_text("{")
    shutil.copytree(place / "3", place / "7")
    folders.write_manifest(place / "7", new_uuid(), title="dataset of old")
    with db.session() as session:
        found = {stray.folder.name: stray.text for stray in folders.strays(session)}
    assert set(found) == {"1", "2", "7"}
    assert found["1"].startswith("is missing: put it back from a backup")
    assert "has no manifest.json" in found["2"]
    assert found["7"].startswith("holds dataset of old, which is not in this catalog")


ELSEWHERE = {"host": "other pid:[1] boot", "pid": 1, "process_started": 1.0}


def pretend_elsewhere(**values: object) -> None:
    with db.session() as session:
        for row in session.exec(select(LeaseTable)):
            for name, value in (ELSEWHERE | values).items():
                setattr(row, name, value)


def test_sweep__leaves_an_import_in_another_container_alone(tmp_path: Path) -> None:
    process = start(write_folder(tmp_path / "set", 20), stop="decoding")
    wait_until_here(process)
    before = left_behind()
    psutil.Process(process.pid).suspend()  # no heartbeat from here on: what is seen is the row alone
    pretend_elsewhere(heartbeat_at=now())
    import_dataset(write_folder(tmp_path / "other", 10), name="other", image_size=8)
    assert set(before) <= set(left_behind())
    pretend_elsewhere(heartbeat_at=now() - timedelta(seconds=leases.SILENCE_S + 1))
    staging.sweep()
    assert left_behind() == ["1"]
    process.kill()
    process.wait()


def test_workplace__whatever_fails_once_another_took_it_for_dead_is_that_line() -> None:
    def work(*, is_taken: bool) -> None:
        with staging.workplace("set", "") as place:
            if is_taken:
                shutil.rmtree(place.folder)
                with db.session() as session:
                    leases.end(session, place.folder.name)
            (place.folder / "rows.jsonl").read_text()

    with pytest.raises(ImportRefusedError, match="took this import for dead"):
        work(is_taken=True)
    with pytest.raises(FileNotFoundError):
        work(is_taken=False)


def test_publish__of_an_import_that_was_taken_for_dead_registers_nothing() -> None:
    with staging.workplace("set", "") as place, db.session() as session:
        leases.end(session, place.folder.name)
        with pytest.raises(ImportRefusedError, match="took this import for dead"):
            place.publish(session, 5)
    assert left_behind() == []


def test_sweep__killed_between_the_renaming_and_the_commit_leaves_no_folder() -> None:
    code = (
        "import os\nfrom auditor.importing import staging\nfrom auditor.catalog import db\n"
        "with staging.workplace('x', '') as place, db.session() as session:\n"
        "    place.publish(session, 5)\n    os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], env=os.environ.copy(), check=False).returncode == -9
    assert left_behind() == ["5"]
    staging.sweep()
    assert left_behind() == []


def test_this_host__differs_between_boots() -> None:
    boot = Path("/proc/sys/kernel/random/boot_id")
    if not boot.exists():
        pytest.skip("only Linux names its boots there")
    assert jobs.this_host().endswith(boot.read_text().strip())
