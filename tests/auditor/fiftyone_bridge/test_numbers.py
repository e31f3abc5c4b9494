"""Numbers in the real FiftyOne: pushed as Regression fields, decided there, pulled, and imported from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.api import open_dataset
from auditor.catalog import datasets, reading
from auditor.catalog.db import session
from auditor.fiftyone_bridge import actions, sync
from auditor.importing.imports import import_dataset
from auditor.review import decisions
from tests.numbered import NUM, WRONG, make_home


@pytest.fixture
def ages(database: Any, home: Path, tmp_path: Path) -> Any:
    """The 40 audited numbers as a FiftyOne dataset."""
    del home
    make_home(tmp_path)
    sync.push_audit("ages")
    return database.load_dataset("ages")


def said(dataset_id: int) -> dict[int, tuple[str, float | None]]:
    return {i: (row.decision, row.number) for i, row in decisions.outcomes(dataset_id).items()}


def one(target: Any, sample_id: int) -> Any:
    return target.one({"sample_index": sample_id})


def test_sync__numbers_go_to_fiftyone_and_decisions_on_them_come_back_once(ages: Any) -> None:
    dataset, _ = reading.audited("ages")
    page = open_dataset("ages").suspects(NUM).set_index("sample_id").loc[range(NUM)]
    shown = dict(zip(*ages.values(["sample_index", "suggested.value"]), strict=True))
    np.testing.assert_allclose([shown[i] for i in range(NUM)], page.suggested, rtol=1e-3)
    assert (
        dict(zip(*ages.values(["sample_index", "ground_truth.value"]), strict=True)) == page.given.to_dict()
    )
    assert ages.count_values("pred_cross_entropy.value") != {}
    assert set(ages.match_tags("label_issue").values("sample_index")) == set(page.index[page.is_label_issue])

    for tag, sample in (("keep", 1), ("exclude", 2), ("relabel", WRONG[0])):
        ages.match({"sample_index": sample}).tag_samples(tag)
    edited = one(ages, WRONG[1])
    edited.cleaned.value = 34.5
    edited.save()
    assert sync.pull_decisions("ages", reviewer="ann").counts == {"keep": 1, "exclude": 1, "relabel": 2}
    expected = {
        1: ("keep", None),
        2: ("exclude", None),
        WRONG[0]: ("relabel", shown[WRONG[0]]),
        WRONG[1]: ("relabel", 34.5),
    }
    assert said(dataset.id) == expected
    assert one(ages, WRONG[0]).cleaned.value == shown[WRONG[0]]
    assert one(ages, 2).cleaned is None
    again = sync.pull_decisions("ages", reviewer="bob")
    assert (again.counts, again.num_same) == ({}, 0)

    own = one(ages, WRONG[2])
    assert "took the suggestion for 1 sample" in actions.act(ages, [own.id], "relabel", reviewer="ann")
    assert said(dataset.id)[WRONG[2]] == ("relabel", shown[WRONG[2]])
    actions.act(ages, [own.id], "undo", reviewer="ann")
    assert said(dataset.id) == expected


def test_import__numbers_of_a_fiftyone_field(ages: Any) -> None:
    found = import_dataset("fiftyone:ages", name="again", task="regression", workers=1)
    with session() as open_session:
        numbers = datasets.given_numbers(open_session, found.dataset_id)
        first = datasets.given_numbers(open_session, 1)
    np.testing.assert_array_equal(numbers, first)
