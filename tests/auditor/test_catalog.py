"""The catalog itself on SQLite: what is stored, and what several writers at once do to each other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from auditor import reviewing, verification
from auditor.catalog import datasets, reviews, verifications
from auditor.catalog.db import session
from auditor.catalog.models import DatasetTable


def add_dataset(name: str = "few", *, num: int = 40) -> int:
    """A dataset of ``num`` samples of class 0 of two, without images."""
    dataset = DatasetTable(
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


def at_once(*works: Callable[[], object]) -> list[object]:
    """What each of the works returns, all of them begun at the same moment, each in a thread of its own."""
    barrier = threading.Barrier(len(works))

    def begin(work: Callable[[], object]) -> object:
        barrier.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(begin, works))


@pytest.mark.parametrize("zone", ["+02:00", "-05:30", "+00:00"])
def test_times__any_zone_is_stored_as_the_moment_that_it_is(home: Path, zone: str) -> None:
    dataset_id = add_dataset()
    at = datetime.fromisoformat(f"2026-01-01T12:00{zone}")
    reviewing.decide(dataset_id, 3, "exclude", reviewer="ada", at=at)
    with session() as open_session:
        stands = reviews.standing(open_session, dataset_id, 3)
    assert stands is not None
    assert stands.created_at == at
    assert stands.created_at.tzinfo == UTC


def test_draw__draws_of_the_same_moment_share_no_sample(home: Path) -> None:
    dataset_id = add_dataset()
    for _ in range(4):
        at_once(*[lambda: verification.draw("few", 2)] * 4)
    with session() as open_session:
        rows = verifications.draws(open_session, dataset_id)
    drawn = [sample for row in rows for sample in row.sample_ids]
    assert (len(rows), len(set(drawn))) == (16, 32)
