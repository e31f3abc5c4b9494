"""Masks in the real FiftyOne: pushed as Segmentation fields, decided there, pulled, and imported from there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from auditor.audits import worker
from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.fiftyone_bridge import actions, sync
from auditor.ground.errors import ImportRefusedError
from auditor.importing.imports import import_dataset
from auditor.labels.masks import deciding, results
from auditor.labels.masks.kind import KIND
from auditor.review import decisions
from tests.masked import OPTIONS, RIGHT, WRONG, Audited


@pytest.fixture
def shapes(database: Any, audited_masks: Audited) -> Any:
    """The 12 audited shapes as a FiftyOne dataset."""
    del audited_masks
    sync.push_audit("shapes")
    return database.load_dataset("shapes")


def one(target: Any, sample_id: int) -> Any:
    return target.one({"sample_index": sample_id})


def said(audited: Audited) -> dict[int, tuple[str, list[int] | None]]:
    return {i: (row.decision, row.labels) for i, row in decisions.outcomes(audited.dataset.id).items()}


def numbers(audited: Audited, sample_id: int) -> list[int]:
    regions = deciding.regions_of(audited.dataset, audited.audit_id, sample_id)
    return [region.number for region in regions]


def test_sync__masks_go_to_fiftyone_and_decisions_on_them_come_back_once(
    shapes: Any, audited_masks: Audited
) -> None:
    given = results.given_masks(audited_masks.dataset)
    found = results.mask_verdicts(audited_masks.audit_id)
    sample = one(shapes, WRONG[0])
    np.testing.assert_array_equal(sample.ground_truth.mask, given[WRONG[0]] + 1)
    np.testing.assert_array_equal(sample.suggested.mask, found.suggested[WRONG[0]] + 1)
    np.testing.assert_array_equal(sample.doubt.map, found.doubt[WRONG[0]])
    assert shapes.mask_targets["cleaned"] == dict(enumerate(audited_masks.dataset.class_names, start=1))
    assert sample.pred_cross_entropy.mask.shape == sample.ground_truth.mask.shape
    assert one(shapes, RIGHT).suggested is None
    assert set(shapes.match_tags("label_issue").values("sample_index")) == set(WRONG)

    for tag, number in (("keep", RIGHT), ("relabel", WRONG[0]), ("exclude", WRONG[1])):
        shapes.match({"sample_index": number}).tag_samples(tag)
    assert sync.pull_decisions("shapes", reviewer="ann").counts == {"keep": 1, "relabel": 1, "exclude": 1}
    taken = numbers(audited_masks, WRONG[0])
    expected = {RIGHT: ("keep", None), WRONG[0]: ("relabel", taken), WRONG[1]: ("exclude", None)}
    assert said(audited_masks) == expected
    np.testing.assert_array_equal(one(shapes, WRONG[0]).cleaned.mask, sample.suggested.mask)
    assert one(shapes, WRONG[1]).cleaned is None
    assert one(shapes, WRONG[0]).review.label == f"mask {WRONG[0]}, audit 1: {', '.join(map(str, taken))}"
    again = sync.pull_decisions("shapes", reviewer="bob")
    assert (again.counts, again.num_same, again.listed) == ({}, 0, [])
    assert sync.push_audit("shapes").num_waiting == 0

    shapes.match({"sample_index": RIGHT}).tag_samples("relabel")
    assert "no other label" in sync.pull_decisions("shapes", reviewer="ann").listed[0].text
    assert said(audited_masks) == expected


def test_act__takes_the_suggested_regions_and_leaves_what_has_none(
    shapes: Any, audited_masks: Audited
) -> None:
    own = [one(shapes, number).id for number in (WRONG[1], RIGHT)]
    text = actions.act(shapes, own, "relabel", reviewer="ann")
    assert (
        text == "ann took the suggestion for 1 sample. 1 sample without another suggestion left as they are."
    )
    assert said(audited_masks) == {WRONG[1]: ("relabel", numbers(audited_masks, WRONG[1]))}
    deciding.decide(
        audited_masks.dataset.id, WRONG[1], "keep", audit_id=audited_masks.audit_id, reviewer="bob"
    )
    sync.push_audit("shapes")
    assert one(shapes, WRONG[1]).tags == ["label_issue", "keep"]


def test_import__masks_of_a_fiftyone_field_get_the_audit_on_their_own_samples(
    database: Any, audited_masks: Audited
) -> None:
    source = audited_masks.source
    theirs = database.Dataset("theirs", persistent=True)
    theirs.add_samples(
        [
            database.Sample(
                filepath=str(source / "images" / path.name),
                ground_truth=database.Segmentation(mask_path=str(path)),
            )
            for path in sorted((source / "masks").iterdir())
        ]
    )
    names = audited_masks.dataset.class_names
    theirs.default_mask_targets = dict(enumerate(names))
    found = import_dataset("fiftyone:theirs", name="again", task="segmentation", workers=1)
    with session() as open_session:
        again = datasets.by_id(open_session, found.dataset_id)
    assert again.class_names == names
    np.testing.assert_array_equal(results.given_masks(again), results.given_masks(audited_masks.dataset))

    options = {"cross_entropy": OPTIONS["cross_entropy"] | {"epochs": 1}}
    worker.run_audit(KIND.plan("again", ["cross_entropy"], options=options, device="cpu"))
    assert (pushed := sync.push_audit("again")).num_added == pushed.num_waiting == 0
    assert theirs.name == pushed.name
    theirs.reload()
    assert one(theirs, 3).ground_truth.mask_path == str(source / "masks" / "003.png")
    np.testing.assert_array_equal(one(theirs, 3).cleaned.mask, results.given_masks(again)[3] + 1)
    theirs.match({"sample_index": 3}).tag_samples("exclude")
    assert sync.pull_decisions("again", reviewer="ann").counts == {"exclude": 1}

    theirs.add_sample_field("drawn", database.EmbeddedDocumentField, embedded_doc_type=database.Segmentation)
    theirs.set_values("drawn", [database.Segmentation(mask=np.ones((4, 4), np.uint8))] * 12)
    with pytest.raises(ImportRefusedError, match="lie in FiftyOne's database; write them to files with"):
        import_dataset("fiftyone:theirs", name="b", task="segmentation", label_column="drawn", workers=1)
    with pytest.raises(
        ImportRefusedError, match="has no mask field 'tags'.*: ground_truth, cleaned, .*drawn"
    ):
        import_dataset("fiftyone:theirs", name="c", task="segmentation", label_column="tags", workers=1)
