"""What the screen of masks asks for, without a browser."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.server import bench, masks
from auditor.ground.errors import NotFoundError, ReviewError
from auditor.labels.masks import deciding, pixels
from auditor.review import decisions
from tests.masked import WRONG, Audited


def verdict(
    audited: Audited, decision: str, labels: list[int] | None = None, classes: dict[int, int] | None = None
) -> dict[str, object]:
    return masks.record(
        {
            "dataset": audited.dataset.id,
            "audit": audited.audit_id,
            "sample": WRONG[0],
            "decision": decision,
            "labels": labels,
            "classes": classes,
            "reviewer": "ada",
        }
    )


def test_card__names_regions_with_boxes_and_what_was_taken(audited_masks: Audited) -> None:
    asked = {"audit": audited_masks.audit_id, "sample": WRONG[0]}
    card = masks.card(asked)
    assert (card["width"], card["height"], card["decision"], card["taken"]) == (32, 32, None, None)
    first = card["regions"][0]
    assert (first["number"], first["given"], first["suggested"]) == (1, 0, 1)
    assert first["why"].startswith("The engine sees 'disc' here.")
    left, top, right, bottom = first["box"]
    assert 0 <= left < right <= 1
    assert 0 <= top < bottom <= 1
    assert verdict(audited_masks, "relabel", [1]) == {"decision": "relabel", "taken": [1]}
    assert masks.card(asked)["taken"] == {1: None}
    assert verdict(audited_masks, "relabel", []) == {"decision": "keep", "taken": None}
    assert masks.undo({"audit": audited_masks.audit_id, "reviewer": "ada"}) == {"sample": WRONG[0]}
    assert decisions.outcomes(audited_masks.dataset.id)[WRONG[0]].labels == [1]


def test_record__a_region_is_another_class_than_the_suggested_one(audited_masks: Audited) -> None:
    asked = {"audit": audited_masks.audit_id, "sample": WRONG[0]}
    assert verdict(audited_masks, "relabel", [1], {1: 2})["decision"] == "relabel"
    assert masks.card(asked)["taken"] == {1: 2}
    assert verdict(audited_masks, "relabel", [1], {1: 1})["taken"] == [1], "the suggested one"
    masks.undo({"audit": audited_masks.audit_id, "reviewer": "ada"})
    assert masks.card(asked)["taken"] == {1: 2}
    with pytest.raises(ReviewError, match=f"Region 1 of sample {WRONG[0]}: there is no class 3"):
        verdict(audited_masks, "relabel", [1], {1: 3})


def test_layer__shows_doubt_where_the_mask_is_wrong_and_both_masks_in_the_colours_of_their_classes(
    audited_masks: Audited,
) -> None:
    audit_id, sample = audited_masks.audit_id, WRONG[0]
    regions = deciding.regions_of(audited_masks.dataset, audit_id, sample)
    wrong = np.any([one.pixels for one in regions], axis=0)

    def alpha(name: str) -> np.ndarray:
        return np.asarray(Image.open(io.BytesIO(masks.layer(audit_id, sample, name))))[..., 3]

    doubt = alpha("doubt").astype(float)
    assert doubt.shape == (32, 32)
    assert doubt[wrong].mean() > 3 * doubt[~wrong].mean()
    lines = alpha("outlines")
    assert lines.shape[0] >= 700
    assert lines.any()
    given, suggested = (
        np.asarray(Image.open(io.BytesIO(masks.layer(audit_id, sample, name))))
        for name in ("given", "suggested")
    )
    assert ((given != suggested).any(-1) == wrong).all()
    for one in regions:
        for layer, label in ((given, one.given), (suggested, one.suggested)):
            assert {f"#{bytes(pixel[:3]).hex()}" for pixel in layer[one.pixels]} == {masks.colour(label)}
    for one in regions:
        veil = alpha(f"region-{one.number}")
        times = veil.shape[0] // 32
        assert ((veil == 0) == one.pixels.repeat(times, 0).repeat(times, 1)).all(), (
            "the region alone is clear"
        )


def test_layer_and_record__refuse_what_they_do_not_know(audited_masks: Audited) -> None:
    with pytest.raises(
        NotFoundError, match="There is no layer 'x'; there are outlines, given, suggested, doubt"
    ):
        masks.layer(audited_masks.audit_id, 0, "x")
    with pytest.raises(NotFoundError, match="Sample 0 has no region '99'; it has "):
        masks.layer(audited_masks.audit_id, 0, "region-99")
    with pytest.raises(ReviewError, match="'none' is no decision"):
        verdict(audited_masks, "none")


def test_bench__refuses_masks_in_one_line(audited_masks: Audited) -> None:
    one = {"audit": audited_masks.audit_id, "reviewer": "ada"}
    asked = {
        bench.queue: one,
        bench.queue_size: one,
        bench.card: {"audit": audited_masks.audit_id, "sample": 0},
        bench.progress: one,
        bench.undo: one,
    }
    for function, body in asked.items():
        with pytest.raises(ReviewError, match="The labels of shapes are no classes"):
            function(body)
    said = {"dataset": audited_masks.dataset.id, "sample": 3, "decision": "relabel", "label": 1}
    answer = bench.record({"verdicts": [said | {"reviewer": "ada", "token": "t"}]})
    assert "needs regions that an audit doubts" in answer["results"][0]["error"]
    assert decisions.outcomes(audited_masks.dataset.id) == {}


def test_lease__of_a_dataset_that_was_removed(home: Path) -> None:
    with pytest.raises(NotFoundError, match="There is no dataset 99"):
        bench.lease({"dataset": 99, "reviewer": "ada", "samples": [1]})


def test_strongest_first__a_small_region_of_more_doubt_comes_first() -> None:
    suggested, trust = np.zeros((2, 8), np.uint8), np.ones((2, 8))
    suggested[:, :4], trust[:, :4] = 1, 0.4  # the larger one
    suggested[:, 6:], trust[:, 6:] = 2, 0.1
    regions = pixels.regions(np.zeros((2, 8), np.uint8), suggested, trust)
    assert [one.number for one in regions] == [1, 2]
    assert [one.number for one in masks.strongest_first(regions)] == [2, 1]


def test_lights__a_dark_part_is_made_brighter_and_no_other() -> None:
    pixels = np.full((40, 80), 200, np.uint8)
    pixels[:, :40] = masks.DARK // 2
    pixels[:20, :20] = 0
    picture = Image.fromarray(pixels)
    assert masks.lights(picture, (0.5, 0, 1, 1)) == 1
    assert masks.lights(picture, (0.25, 0, 0.5, 1)) == 2
    assert masks.lights(picture, (0, 0, 0.25, 0.5)) == masks.MOST_LIGHT
    assert masks.lights(picture, (0, 0, 0, 0)) == masks.MOST_LIGHT, "the smallest part is a pixel"


def test_done__lists_the_regions_that_decisions_change_and_close_shows_one(audited_masks: Audited) -> None:
    audit = {"audit": audited_masks.audit_id}
    assert masks.done(audit) == {"regions": []}
    assert verdict(audited_masks, "relabel", [1])["decision"] == "relabel"
    (found,) = masks.done(audit)["regions"]
    assert (found["number"], found["given"], found["becomes"]) == (1, 0, 1)
    shown = Image.open(io.BytesIO(masks.layer(audited_masks.audit_id, found["sample"], "close-1")))
    assert shown.size == (masks.CLOSE_SIDE, masks.CLOSE_SIDE)
    with pytest.raises(NotFoundError, match="has no region '7'"):
        masks.layer(audited_masks.audit_id, found["sample"], "close-7")
