"""Kills, Ctrl-C and a full disk in the middle of an import: a whole dataset or no trace."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path

import numpy as np
import psutil
import pytest
from sqlalchemy import func
from sqlmodel import select

from auditor.catalog import backups, datasets, db, folders
from auditor.catalog.models import DatasetTable, SampleTable
from auditor.ground.errors import AuditorError, NotFoundError
from auditor.ground.settings import settings
from auditor.importing import building, journal, staging
from auditor.importing.imports import Progress, import_dataset
from auditor.pictures.cache import image_cache
from tests.auditor.sample_pictures import write_folder, write_parquet
from tests.conftest import made_once
from tests.helpers import WAIT_S

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("home")


def start(
    source: Path, *, workers: int = 1, stop: str = "", saves: float = journal.SAVE_EVERY_S, **options: object
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.faults.importer", str(source), str(workers), stop, str(saves)]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ.copy(),
        **options,
    )  # type: ignore[call-overload, no-any-return]


def wait_until_here(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.strip() == "here", line + process.communicate()[1]


def left_behind() -> list[str]:
    folder = settings().datasets
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def is_registered() -> bool:
    with db.session() as session:
        return datasets.exists(session, "digits")


@pytest.mark.parametrize(
    "stop", ["reading", "checking", "decoding", "comparing", "registering", "registering:16"]
)
def test_import_dataset__killed_at_any_stage_leaves_no_trace(tmp_path: Path, stop: str) -> None:
    source = write_folder(tmp_path / "set", 40)
    process = start(source, stop=stop)
    wait_until_here(process)
    process.kill()
    process.wait()
    assert not is_registered()
    assert len(left_behind()) == 1, "its working folder, which the next import sweeps"
    report = import_dataset(source, name="digits")
    assert report.num_samples == 40
    assert left_behind() == [str(report.dataset_id)]


def num_rows() -> int:
    with db.session() as session:
        return int(session.exec(select(func.count()).select_from(SampleTable)).one())


def test_import_dataset__others_write_between_its_rows_and_see_none(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "set", 40)
    process = start(source, stop="registering:32")
    wait_until_here(process)
    assert num_rows() == 32
    assert not is_registered()
    with db.session() as session:
        assert (datasets.list_all(session), datasets.names(session), folders.strays(session)) == ([], [], [])
        unfinished = session.exec(select(DatasetTable)).one()
        with pytest.raises(NotFoundError):
            datasets.get(session, unfinished.name)
    backup = backups.backup(tmp_path / "all.tar")
    assert (backup.num_datasets, backup.left_out) == (0, [])
    with tarfile.open(tmp_path / "all.tar") as tar:
        tar.extract("catalog.db", tmp_path, filter="data")
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as copy:
        assert copy.execute(
            "SELECT (SELECT count(*) FROM dataset), (SELECT count(*) FROM sample)"
        ).fetchone() == (
            0,
            0,
        )
    import_dataset(write_folder(tmp_path / "other", 10), name="other")
    assert num_rows() == 42, "the first import is under way: its rows are its own"
    assert process.communicate("\n")[0] == "imported 40\n"
    assert is_registered()
    assert num_rows() == 50


def test_import_dataset__killed_between_its_rows_leaves_none(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "set", 40)
    process = start(source, stop="registering:32", saves=0)
    wait_until_here(process)
    process.kill()
    process.wait()
    assert num_rows() == 32
    import_dataset(write_folder(tmp_path / "other", 10), name="other")
    assert num_rows() == 10
    assert len(left_behind()) == 2, "what was decoded is kept for a day"
    assert import_dataset(source, name="digits").num_samples == 40
    assert num_rows() == 50


def test_import_dataset__a_name_that_was_taken_meanwhile(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "set", 40)
    process = start(source, stop="registering:32")
    wait_until_here(process)
    taken = import_dataset(write_folder(tmp_path / "other", 10), name="digits")
    assert "'digits' exists already" in process.communicate("\n")[0]
    assert num_rows() == 10
    assert left_behind() == [str(taken.dataset_id)]


def test_import_dataset__killed_with_workers_leaves_no_process_behind(tmp_path: Path) -> None:
    source = write_parquet(tmp_path / "p.parquet", 1_700)
    process = start(source, workers=2, stop="decoding:256")
    wait_until_here(process)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) == 3  # two decode, one has the source
    process.kill()
    process.wait()
    gone, alive = psutil.wait_procs(children, timeout=WAIT_S)
    assert not alive
    assert len(gone) == 3
    staging.sweep()
    assert left_behind() == []


def killed_at(stop: str, source: Path, *, workers: int = 1) -> None:
    """An import that saved how far it is after every chunk."""
    process = start(source, workers=workers, stop=stop, saves=0)
    wait_until_here(process)
    process.kill()
    process.wait()
    assert len(left_behind()) == 1


def what_is_known(name: str) -> tuple[object, ...]:
    """All that an import leaves but its name, time and notes."""
    with db.session() as session:
        dataset = datasets.get(session, name)
        rows = [
            (one.filepath, one.given_label, one.content_hash, one.perceptual_hash, one.duplicate_group)
            for one in datasets.iterate_samples(session, dataset.id)
        ]
    report = {key: value for key, value in dataset.import_report.items() if key not in ("seconds", "notes")}
    return image_cache(dataset).tobytes(), rows, report


NUM = 1_700


@pytest.fixture(scope="module")
def damaged_template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[object, ...]]:
    """The folder of ``damaged``, and what an import leaves of it that nothing disturbs."""

    def make(folder: Path) -> tuple[object, ...]:
        source = write_folder(folder / "set", NUM)
        files = sorted(source.rglob("*.png"))
        for number in (3, 900):
            files[number].write_bytes(files[number].read_bytes()[:60])
        files[1_400].write_bytes(b"no image")
        import_dataset(source, name="whole", skip_bad=True)
        return what_is_known("whole")

    home, known = made_once(tmp_path_factory, "damaged", make)
    return home.parent / "set", known


@pytest.fixture
def damaged(tmp_path: Path, damaged_template: tuple[Path, tuple[object, ...]]) -> Path:
    """A folder of images of which two have a good header and no more, and one has no header."""
    return shutil.copytree(damaged_template[0], tmp_path / "set")


@pytest.mark.parametrize(
    ("stop", "workers"),
    [("checking:600", 1), ("decoding:10", 2), ("decoding:1200", 1), ("decoding:1200", 2), ("registering", 1)],
)
def test_import_dataset__goes_on_where_one_was_killed(
    damaged: Path, stop: str, workers: int, damaged_template: tuple[Path, tuple[object, ...]]
) -> None:
    killed_at(stop, damaged, workers=workers)
    import_dataset(write_folder(damaged.parent / "other", 10), name="other")  # clears nothing of it away
    told: list[Progress] = []
    found = import_dataset(damaged, name="digits", skip_bad=True, workers=1, progress=told.append)
    assert found.num_skipped == 3
    first = {
        stage: next(one.done for one in told if one.stage == stage) for stage in ("checking", "decoding")
    }
    at, _, least = stop.partition(":")
    assert first["checking"] == NUM if at != "checking" else 600 <= first["checking"] < NUM
    if at == "decoding":
        assert int(least) <= first["decoding"] < NUM
        assert f"{first['decoding']:,} images had been decoded" in " ".join(found.notes)
    assert what_is_known("digits") == damaged_template[1]
    assert sorted(left_behind()) == ["1", "2"]


def test_import_dataset__decodes_what_was_written_since_the_kill(damaged: Path) -> None:
    killed_at("decoding:1200", damaged)
    files = sorted(damaged.rglob("*.png"))
    other = files[500].read_bytes()
    files[700].write_bytes(other)
    found = import_dataset(damaged, name="digits", skip_bad=True)
    assert "700 images had been decoded" in " ".join(found.notes)
    went_on = what_is_known("digits")
    import_dataset(damaged, name="whole", skip_bad=True)
    assert went_on == what_is_known("whole")


@pytest.mark.parametrize("change", ["rows", "request", "day"])
def test_import_dataset__begins_anew_where_a_killed_one_was_about_something_else(
    damaged: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_at("decoding:1200", damaged)
    options = {"skip_bad": True}
    if change == "rows":
        min(damaged.rglob("*.png")).unlink()
    if change == "request":
        options["image_size"] = 16
    if change == "day":
        monkeypatch.setattr(journal, "KEPT_S", 0)
    found = import_dataset(damaged, name="digits", **options)
    assert "decoded" not in " ".join(found.notes)
    kept = [name for name in left_behind() if name.startswith(staging.PREFIX)]
    assert len(kept) == (change == "request")  # it can still be gone on with, for a day
    went_on = what_is_known("digits")
    import_dataset(damaged, name="whole", **options)
    assert went_on == what_is_known("whole")


def test_journal__half_a_record_and_half_a_line_are_not_counted(tmp_path: Path) -> None:
    journal.begin(tmp_path, "")
    written = journal.Journal(tmp_path, "checked", journal.HEADER)
    written.add(np.zeros(4, journal.HEADER), [(1, 1, "bad"), (3, 3, "worse")])
    written.save()
    (records,) = tmp_path.glob("*/checked.records")
    (lines,) = tmp_path.glob("*/checked.problems")
    records.write_bytes(records.read_bytes()[:-5])
    lines.write_bytes(lines.read_bytes() + b'[4, 4, "cut o')
    again = journal.Journal(tmp_path, "checked", journal.HEADER)
    assert again.done == 3
    assert again.before()[1] == [(1, 1, "bad")]
    again.add(np.zeros(2, journal.HEADER), [(4, 4, "late")])
    again.save()
    assert journal.Journal(tmp_path, "checked", journal.HEADER).before()[1] == [(1, 1, "bad"), (4, 4, "late")]


def test_journal__the_pass_before_is_saved_first(tmp_path: Path) -> None:
    journal.begin(tmp_path, "")
    checked = journal.Journal(tmp_path, "checked", journal.HEADER)
    checked.add(np.zeros(4, journal.HEADER), [])
    decoded = journal.Journal(tmp_path, "decoded", journal.PICTURE, after=checked)
    decoded.add(np.zeros(2, journal.PICTURE), [])
    assert not journal.is_left(tmp_path)
    decoded.save()
    assert journal.Journal(tmp_path, "checked", journal.HEADER).done == 4
    assert journal.Journal(tmp_path, "decoded", journal.PICTURE).done == 2


def test_import_dataset__nothing_counts_as_decoded_while_images_move(
    damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[list[Path]] = []

    def compact(cache: building.CacheFile, good: np.ndarray, shape: tuple[int, ...]) -> None:
        moved.append(list(Path(cache.path).parent.glob(f"{journal.FOLDER}/{journal.DECODED}*")))
        close_gaps(cache, good, shape)

    close_gaps = building._compact
    monkeypatch.setattr(building, "_compact", compact)
    import_dataset(damaged, name="digits", skip_bad=True)
    assert moved == [[]]


@pytest.mark.parametrize("workers", [1, 2])
def test_import_dataset__ctrl_c_leaves_nothing_at_once(tmp_path: Path, workers: int) -> None:
    source = write_parquet(tmp_path / "p.parquet", 1_700)
    process = start(source, workers=workers, stop="decoding:256", start_new_session=True)
    wait_until_here(process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the parent and its workers alike
    _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == -signal.SIGINT
    assert errors.strip().endswith("KeyboardInterrupt")
    assert left_behind() == []
    assert not is_registered()


def test_import_dataset__file_limit_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "set", 400)
    import_dataset(write_folder(tmp_path / "other", 10), name="before")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    process = start(source, preexec_fn=limit)
    out, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1, errors
    assert out.startswith("refused: "), out
    assert "Free some space" in out or "free some space" in out
    assert out.count("\n") == 1
    assert left_behind() == ["1"]
    assert not is_registered()


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """AUDITOR_HOME on a file system of 2 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs the rights of root")
    monkeypatch.setenv("AUDITOR_HOME", str(disk / "home"))
    yield disk
    db.close_all()
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("fill", [1_600_000, 1_200_000])
def test_import_dataset__full_disk_is_one_line_and_leaves_nothing(
    tmp_path: Path, small_disk: Path, fill: int
) -> None:
    """First the images do not fit; then there is room for the images but not for their rows."""
    (small_disk / "other").write_bytes(bytes(fill))
    source = write_folder(tmp_path / "set", 1_790)
    process = start(source)
    out, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1, out + errors
    assert out.startswith("refused: "), out
    assert "space" in out
    assert out.count("\n") == 1
    assert left_behind() == []


def test_backup__on_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, small_disk: Path) -> None:
    import_dataset(write_folder(tmp_path / "set", 10), name="few", image_size=8)
    (small_disk / "filler").write_bytes(bytes(shutil.disk_usage(small_disk).free - 8_192))
    with pytest.raises(AuditorError, match="free some space"):
        backups.backup(tmp_path / "x.tar")
    assert not (tmp_path / "x.tar").exists()


def test_sweep__leaves_living_imports_alone(tmp_path: Path) -> None:
    process = start(write_folder(tmp_path / "set", 20), stop="decoding")
    wait_until_here(process)
    before = left_behind()
    import_dataset(write_folder(tmp_path / "other", 10), name="other")
    assert set(before) <= set(left_behind())
    process.kill()
    process.wait()
    staging.sweep()
    assert left_behind() == ["1"]


def test_import_dataset__worker_that_is_ended_from_outside_is_replaced(tmp_path: Path) -> None:
    source = write_parquet(tmp_path / "p.parquet", 1_700)
    process = start(source, workers=2, stop="checking:1")
    wait_until_here(process)
    children = psutil.Process(process.pid).children()
    assert len(children) == 3  # two decode, one has the source
    children[0].kill()
    out, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, errors + out
