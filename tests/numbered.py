"""A home with grey squares that have a number each, some of them wrong: imported, and audited on a feature."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from auditor.audits import worker
from auditor.backbones import own_features
from auditor.ground.vocabulary import REGRESSION
from auditor.importing.imports import import_dataset
from auditor.numbers import auditing

NUM = 40
WRONG = (4, 17, 23)


def write_table(folder: Path, numbers: Sequence[str]) -> Path:
    """Grey squares with a number each."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows = ["path,age,note"]
    for place, number in enumerate(numbers):
        Image.new("L", (8, 8), 3 * place).save(folder / "images" / f"{place}.png")
        rows.append(f'images/{place}.png,"{number}",n{place}')
    path = folder / "ages.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def import_ages(folder: Path) -> None:
    """``NUM`` squares whose number is twice a feature; those of ``WRONG`` are not."""
    given = 2.0 * np.arange(NUM)
    given[list(WRONG)] += (60, 40, -40)
    table = write_table(folder / "source", [f"{one:.1f}" for one in given])
    import_dataset(table, name="ages", task=REGRESSION, label_column="age", workers=1)


def make_home(folder: Path) -> None:
    """Import and audit into the AUDITOR_HOME of this moment; the source lies in ``folder``."""
    import_ages(folder)
    features = own_features.add("ages", np.arange(NUM, dtype=np.float32)[:, None], name="place")
    options = {"cross_entropy": {"folds": 2, "batch_size": 16, "learning_rate": 0.01}}
    audit_id = auditing.plan_audit(
        "ages", ["cross_entropy"], options=options, features=features, device="cpu"
    )
    worker.run(audit_id, auditing.steps)
