"""A small home with a real import and a real audit of digits."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from auditor.audits import plan, worker
from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.importing import imports
from auditor.pictures import cache
from auditor.review import blind, drawing

NUM_SAMPLES = 240
NUM_WRONG = 24
NUM_TEST = 60
"""The last samples are of the split "test", those before them of "train"."""
NAMES = ["zero", "one", "two", "<b>three</b>", "*four*", "five", "six", "seven", "eight", "nine"]
"""Two of the names would be markup if anybody took them for it."""
DATASET = "tiny [digits](x)"


def write_digits(folder: Path, *, num_samples: int = NUM_SAMPLES, num_wrong: int = NUM_WRONG) -> Path:
    """PNG files and a CSV with planted errors and the truth beside them; returns the CSV."""
    pixels, truth = load_digits(return_X_y=True)
    given = truth.copy()
    wrong = np.random.default_rng(0).choice(num_samples, num_wrong, replace=False)
    given[wrong] = (given[wrong] + 3) % 10
    (folder / "images").mkdir(parents=True)
    with (folder / "labels.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["filepath", "label", "true_label", "split", "note"])
        for i in range(num_samples):
            grey = np.clip(pixels[i].reshape(8, 8) * 16, 0, 255).astype(np.uint8)
            Image.fromarray(grey).save(folder / "images" / f"{i:04d}.png")
            split, note = "train" if i < num_samples - NUM_TEST else "test", "=1+1" if i == 0 else ""
            rows.writerow([f"images/{i:04d}.png", NAMES[given[i]], NAMES[truth[i]], split, note])
    return folder / "labels.csv"


def verify_sixty() -> None:
    """Draw sixty samples and judge each by its true label."""
    with session() as open_session:
        truth = cache.true_labels(datasets.get(open_session, DATASET))
    assert truth is not None
    draw = drawing.draw(DATASET, 60)
    for sample in draw.sample_ids:
        blind.record(draw.id, sample, "label", label=int(truth[sample]), reviewer="Ada")


def make_home(folder: Path) -> None:
    """Import and audit into the AUDITOR_HOME of this moment; the source lies in ``folder``."""
    table = write_digits(folder / "source")
    imports.import_dataset(table, name=DATASET, true_label_column="true_label", workers=1)
    quick = {
        "cross_entropy": {"epochs": 15, "batch_size": 32, "views": 1},
        "choicenet": {"epochs": 2, "views": 1},
    }
    worker.run_audit(plan.plan_audit(DATASET, list(quick), device="cpu", options=quick, map_method="pca"))
