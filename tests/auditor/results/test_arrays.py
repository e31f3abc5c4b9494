"""One sample's story: its neighbours and copies are looked up, not searched for."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy import event, text

from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.catalog.records import NewDataset
from auditor.results import arrays
from auditor.work import embedding
from tests.auditor.catalogs import change_sample
from tests.helpers import Digits

ENGINE = "cross_entropy"


def all_neighbours(audit_id: int) -> list[list[int]]:
    """Every sample's nearest, searched for among all embeddings."""
    points = np.asarray(arrays.embeddings(audit_id, ENGINE))
    found, _ = embedding.nearest_neighbors(
        points, np.arange(len(points)), num_neighbors=arrays.NUM_NEIGHBOURS
    )
    return found.tolist()


def test_evidence__neighbours_are_read_from_the_table_that_the_audit_left(
    audited: tuple[Digits, int],
) -> None:
    _, audit_id = audited
    expected = all_neighbours(audit_id)
    (arrays.engine_folder(audit_id, ENGINE) / "embeddings.npy").unlink()
    for sample in (0, 7, 299):
        assert arrays.evidence(audit_id, sample).neighbours == expected[sample]


def test_evidence__an_audit_of_an_earlier_version_has_the_same_neighbours(
    audited: tuple[Digits, int],
) -> None:
    _, audit_id = audited
    expected = all_neighbours(audit_id)
    (arrays.engine_folder(audit_id, ENGINE) / "neighbours.npy").unlink()
    for sample in (0, 7, 299):
        assert arrays.evidence(audit_id, sample).neighbours == expected[sample]


def test_evidence__copies_are_those_of_the_sample_s_own_group(
    audited: tuple[Digits, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, audit_id = audited
    groups = {3: 0, 9: 0, 40: 0, 5: 1, 6: 1}
    for sample, group in groups.items():
        change_sample(sample, duplicate_group=group)
    assert arrays.evidence(audit_id, 9).duplicates == [3, 40]
    assert arrays.evidence(audit_id, 5).duplicates == [6]
    assert arrays.evidence(audit_id, 8).duplicates == []
    monkeypatch.setattr(arrays, "MOST_DUPLICATES", 1)
    assert arrays.evidence(audit_id, 3).duplicates == [9]
    assert arrays.evidence(audit_id, 9).duplicates == [3]


@pytest.mark.usefixtures("home")
def test_group_members__are_found_by_their_group_and_not_by_reading_the_dataset() -> None:
    with session() as open_session:
        dataset = NewDataset(
            name="copies", source="made", source_kind="folder", root="/", num_samples=9,
            channels=1, height=8, width=8, class_names=["a"],
        )  # fmt: skip
        rows = [
            {
                "sample_id": i,
                "filepath": f"{i}",
                "location": f"{i}",
                "given_label": 0,
                "duplicate_group": i % 3,
            }
            for i in range(9)
        ]
        dataset_id = datasets.create(open_session, dataset, rows)
        asked: list[str] = []
        event.listen(open_session.get_bind(), "before_cursor_execute", lambda *told: asked.append(told[2]))
        assert datasets.group_members(open_session, dataset_id, 1, limit=2) == [1, 4]
        statement = asked[-1].replace("?", "1")
        plan = open_session.execute(text(f"EXPLAIN QUERY PLAN {statement}")).all()
    assert "ix_sample_duplicate_group" in str(plan)
