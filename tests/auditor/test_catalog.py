"""The catalog itself on SQLite: what is stored, and what several writers at once do to each other."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from auditor import reviewing
from auditor.catalog import datasets, reviews
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
