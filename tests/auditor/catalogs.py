"""Datasets without images, for tests of the catalog alone, and several of its users at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.catalog.models import SampleTable
from auditor.catalog.records import Epoch, NewAudit, NewDataset


def add_dataset(name: str = "few", *, num: int = 40) -> int:
    """A dataset of ``num`` samples of class 0 of two, without images."""
    dataset = NewDataset(
        name=name,
        source="nowhere",
        source_kind="folder",
        root="/nowhere",
        num_samples=num,
        channels=1,
        height=8,
        width=8,
        class_names=["cat", "dog"],
    )
    rows = [
        {"sample_id": i, "filepath": f"{i}.png", "location": f"{i}.png", "given_label": 0} for i in range(num)
    ]
    with session() as open_session:
        return datasets.create(open_session, dataset, rows)


def queued_audit(dataset_id: int = 1, **values: Any) -> NewAudit:
    """An audit that nothing works on; ``values`` are other fields of it."""
    plain: dict[str, Any] = {"preset": "quick", "device": "cpu", "seed": 0, "engines": ["umn"]}
    return NewAudit(dataset_id=dataset_id, **plain | values)


def first_epoch(metrics: dict[str, float | None]) -> Epoch:
    """The first epoch of UMN in audit 1."""
    return Epoch(
        audit_id=1,
        engine="umn",
        stage="train",
        epoch=1,
        num_epochs=2,
        progress=0.5,
        seconds=1.0,
        metrics=metrics,
    )


def change_sample(sample_id: int, **values: Any) -> None:
    """Change columns of a sample of dataset 1, which nothing in the product ever does."""
    with session() as open_session:
        row = open_session.get(SampleTable, (1, sample_id))
        for name, value in values.items():
            setattr(row, name, value)


def at_once(*works: Callable[[], object]) -> list[object]:
    """What each of the works returns, all of them begun at the same moment, each in a thread of its own."""
    barrier = threading.Barrier(len(works))

    def begin(work: Callable[[], object]) -> object:
        barrier.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(begin, works))
