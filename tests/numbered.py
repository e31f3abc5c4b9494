"""A home with dials that have a number each, some of them wrong: imported, and audited on a feature."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from auditor.api import open_dataset
from auditor.audits import worker
from auditor.backbones import own_features
from auditor.ground.vocabulary import REGRESSION
from auditor.importing.imports import import_dataset
from auditor.labels.numbers.kind import KIND

NUM = 40
WRONG = (4, 17, 23)


def write_table(folder: Path, numbers: Sequence[str]) -> Path:
    """Dials with a number each: the pointer of the ``place``-th has gone ``place`` fortieths of the way round."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows = ["path,age,note"]
    for place, number in enumerate(numbers):
        dial = Image.new("L", (64, 64), 235)
        draw = ImageDraw.Draw(dial)
        draw.ellipse((3, 3, 60, 60), outline=90, width=2)
        draw.pieslice((6, 6, 57, 57), -90, -90 + 9 * place, fill=60)
        dial.save(folder / "images" / f"{place}.png")
        rows.append(f'images/{place}.png,"{number}",n{place}')
    path = folder / "ages.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def import_ages(folder: Path) -> None:
    """``NUM`` dials whose number is twice a feature; those of ``WRONG`` are not."""
    given = 2.0 * np.arange(NUM)
    given[list(WRONG)] += (60, 40, -40)
    table = write_table(folder / "source", [f"{one:.1f}" for one in given])
    import_dataset(table, name="ages", task=REGRESSION, label_column="age", workers=1)


def make_home(folder: Path) -> None:
    """Import and audit into the AUDITOR_HOME of this moment; the source lies in ``folder``."""
    import_ages(folder)
    features = own_features.add("ages", np.arange(NUM, dtype=np.float32)[:, None], name="place")
    options = {"cross_entropy": {"folds": 8, "batch_size": 16, "learning_rate": 0.003}}
    audit_id = KIND.plan("ages", ["cross_entropy"], options=options, features=features, device="cpu")
    worker.run_audit(audit_id)


def num_suspects(name: str) -> int:
    """How many numbers of a dataset its newest audit doubts."""
    return int(open_dataset(name).suspects(NUM).is_label_issue.sum())
