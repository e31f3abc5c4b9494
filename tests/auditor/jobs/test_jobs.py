"""Work in processes of its own: what is known of it once its process is gone."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import psutil
import pytest
from app.jobs import background, comparisons, imports
from PIL import Image

from auditor.catalog import datasets, db
from auditor.review import decisions, random_sample
from tests.app.conftest import DATASET, NUM_SAMPLES, verify_sixty


@pytest.mark.usefixtures("home")
def test_state__work_whose_number_went_to_another_process_is_dead() -> None:
    folder = background.start("jobs", "platform", {})  # a module that ends at once and tells nothing
    for _ in range(200):
        if background.state(folder)["stage"] == "dead":
            break
        time.sleep(0.05)
    assert background.state(folder)["stage"] == "dead"
    ours = psutil.Process(os.getpid())
    write(folder, ours.pid, ours.create_time())
    assert background.state(folder)["stage"] == "starting"
    write(folder, ours.pid, ours.create_time() - 3600)
    assert background.state(folder)["stage"] == "dead"


def wait_for_stage(folder: Path, *stages: str) -> None:
    for _ in range(1200):
        if background.state(folder)["stage"] in stages:
            return
        time.sleep(0.05)
    raise AssertionError(background.state(folder))


def test_cancel__ends_a_comparison_that_goes_on_later(copied_home: Path) -> None:
    verify_sixty()
    held = set(random_sample.standing(1).sample_ids.tolist())
    outside = next(i for i in range(NUM_SAMPLES) if i not in held)
    decisions.decide(1, outside, "exclude", reviewer="Ada")
    with db.session() as open_session:
        dataset = datasets.get(open_session, DATASET)
    folder = comparisons.start(dataset, "standard", "cpu", "reviewed", None, audit_id=1)
    wait_for_stage(folder, "training cross_entropy")
    background.cancel(folder)
    wait_for_stage(folder, "cancelled")
    assert background.state(folder)["error"].startswith(
        "Stopped after 0 of 6 trainings; start the same again"
    )


def test_cancel__an_import_leaves_no_trace(home: Path, tmp_path: Path) -> None:
    photos = tmp_path / "photos" / "cat"
    photos.mkdir(parents=True)
    Image.effect_noise((900, 900), 60).save(photos / "0.jpg")
    for i in range(1, 2000):
        os.link(photos / "0.jpg", photos / f"{i}.jpg")
    folder = imports.start(str(photos.parent), "cancelled", {})
    wait_for_stage(folder, "decoding")
    background.cancel(folder)
    wait_for_stage(folder, "cancelled")
    with db.session() as open_session:
        assert not datasets.exists(open_session, "cancelled")
    assert list((home / "datasets").glob("*")) == []


def write(folder: Path, pid: int, started: float) -> None:
    (folder / "process.json").write_text(json.dumps([pid, started]))


def test_comparison__takes_the_policy_of_the_export(copied_home: Path) -> None:
    verify_sixty()
    folder = copied_home / "comparisons" / "1"
    folder.mkdir(parents=True)
    request = {
        "name": DATASET,
        "preset": "quick",
        "device": "cpu",
        "policy": "auto",
        "max_fdr": None,
        "audit_id": 1,
    }
    (folder / "request.json").write_text(json.dumps(request))
    comparisons.work(folder)
    assert background.state(folder)["error"].startswith("--policy auto needs --max-fdr")
