"""Work in processes of its own: what is known of it once its process is gone."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import psutil
import pytest

from app import background, comparison_jobs
from tests.app.conftest import DATASET, verify_sixty


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


def write(folder: Path, pid: int, started: float) -> None:
    (folder / "process.json").write_text(json.dumps([pid, started]))


def test_comparison__takes_the_policy_of_the_export(copied_home: Path) -> None:
    verify_sixty()
    folder = copied_home / "comparisons" / "1"
    folder.mkdir(parents=True)
    request = {"name": DATASET, "preset": "quick", "device": "cpu", "policy": "auto", "max_fdr": None}
    (folder / "request.json").write_text(json.dumps(request))
    comparison_jobs.work(folder)
    assert background.state(folder)["error"].startswith("--policy auto needs --max-fdr")
