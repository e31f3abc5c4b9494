"""A home with a few shapes, some of whose masks are wrong, imported and audited."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from auditor.audits import worker
from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.catalog.records import Dataset
from auditor.ground.vocabulary import SEGMENTATION
from auditor.importing.imports import import_dataset
from auditor.labels.masks.kind import KIND
from tests.shapes import Shapes, draw_shapes, write_pairs

SHAPES = draw_shapes(12, size=32)
BY_DISC = [int(row) for row in np.argsort((SHAPES.masks == 1).sum(axis=(1, 2)))]
WRONG = tuple(sorted(BY_DISC[-2:]))
"""In these the disc, a large one, is drawn as ground."""
RIGHT = BY_DISC[0]
OPTIONS = {"cross_entropy": {"epochs": 10, "batch_size": 4, "learning_rate": 3e-3, "folds": 1}}


@dataclass(frozen=True)
class Audited:
    """Shapes whose masks were audited."""

    source: Path
    shapes: Shapes
    audit_id: int

    @property
    def dataset(self) -> Dataset:
        with session() as open_session:
            return datasets.get(open_session, "shapes")


def write_source(folder: Path) -> Path:
    """The shapes with their masks, some of them wrong, as ``folder``."""
    given = SHAPES.masks.copy()
    for number in WRONG:
        given[number][given[number] == 1] = 0
    return write_pairs(folder, SHAPES, given)


def make_home(folder: Path) -> Audited:
    """Import and audit into the AUDITOR_HOME of this moment; the source lies in ``folder``."""
    source = write_source(folder / "source")
    names = source / "classes.txt"
    import_dataset(source, name="shapes", task=SEGMENTATION, class_names=names, workers=1)
    audit_id = KIND.plan("shapes", ["cross_entropy"], options=OPTIONS, device="cpu")
    worker.run_audit(audit_id)
    return Audited(source, SHAPES, audit_id)


def disc_in(mask: np.ndarray) -> int:
    """Pixels of the disc."""
    return int((mask == 1).sum())
