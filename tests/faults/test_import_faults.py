"""Kills, Ctrl-C and a full disk in the middle of an import: a whole dataset or no trace."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from auditor.catalog import backups, datasets, db
from auditor.ground.errors import AuditorError
from auditor.ground.settings import settings
from auditor.importing import staging
from auditor.importing.imports import import_dataset
from tests.auditor.sample_pictures import write_folder, write_parquet
from tests.helpers import WAIT_S

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("home")


def start(source: Path, *, workers: int = 1, stop: str = "", **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.faults.importer", str(source), str(workers), stop]
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


@pytest.mark.parametrize("stop", ["reading", "checking", "decoding", "comparing", "registering"])
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


def test_import_dataset__killed_with_workers_leaves_no_process_behind(tmp_path: Path) -> None:
    source = write_parquet(tmp_path / "p.parquet", 1_700)
    process = start(source, workers=2, stop="decoding:256")
    wait_until_here(process)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) == 2
    process.kill()
    process.wait()
    gone, alive = psutil.wait_procs(children, timeout=WAIT_S)
    assert not alive
    assert len(gone) == 2
    staging.sweep()
    assert left_behind() == []


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


def test_import_dataset__worker_that_is_ended_from_outside_is_explained(tmp_path: Path) -> None:
    source = write_parquet(tmp_path / "p.parquet", 1_700)
    process = start(source, workers=2, stop="checking:1")
    wait_until_here(process)
    children = psutil.Process(process.pid).children()
    assert len(children) == 2
    children[0].kill()
    out, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1, errors
    assert "a decoding process was stopped by the system" in out
    assert left_behind() == []


def test_pool__worker_that_dies_while_a_chunk_is_sent_to_it_holds_nobody_up() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "tests.faults.pool_breaker"],
        cwd=ROOT,
        timeout=WAIT_S,
        capture_output=True,
        text=True,
    )
    # Without the remedy three tries in five hang.
    assert process.stdout == "broken, and left\n" * 5, process.stderr
