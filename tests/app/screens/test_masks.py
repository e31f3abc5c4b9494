"""The page of masks: what its view of a random sample records."""

from __future__ import annotations

import html
import io
import json
import zipfile

import numpy as np
import pytest
from PIL import Image

from app.server import masks, verify
from app.session import next_steps, readers
from auditor.labels.masks import results
from auditor.labels.masks.kind import KIND
from auditor.review import blind, decisions, verifying
from tests.app.screens.opened import asked_of, made_by, open_page, press
from tests.masked import WRONG, Audited

NEAR = 40
"""The line travels as JPEG."""


def test_masks__a_random_sample_is_judged_without_a_suggestion(audited_masks: Audited) -> None:
    dataset = audited_masks.dataset
    app = open_page("masks", "shapes")
    links = [one.proto.label for one in app.get("page_link")]
    assert links == ["Home", "Import", "Audit", "Masks"], "no screen that is not for masks"
    app.radio[0].set_value("Random sample").run()
    app.number_input[0].set_value(2)
    press(app, "Start")
    (draw, first), (_, second) = blind.pending(dataset.id)
    asked = asked_of(app)
    item = asked["items"][0]
    assert (item["sample"], item["draw"]) == (first, draw)
    assert [layer.split("/")[-1] for layer in [*item["layers"], item["colours"]]] == [
        "outlines.png",
        "given.png",
    ]
    assert {one["name"] for one in item["legend"]} <= set(dataset.class_names)
    assert len({one["colour"] for one in item["legend"]}) == len(item["legend"]) > 0
    answers = {one["button"]: one["name"] for one in asked["actions"]}
    for sample, button in ((first, "It is wrong"), (second, "It is right")):
        said = {"draw": draw, "sample": sample, "decision": answers[button], "reviewer": "ada"}
        assert "error" not in verify.record({"verdicts": [said]})["results"][0]
    found = {i: (row.decision, row.kind, row.labels) for i, row in decisions.outcomes(dataset.id).items()}
    assert found == {first: ("relabel", "blind", None), second: ("keep", "blind", None)}
    assert verifying.rows(dataset.id).true_labels.tolist() == [-1, 0]
    assert masks.card({"audit": audited_masks.audit_id, "sample": first})["decision"] is None
    app.run()
    assert asked_of(app)["items"] == []
    assert any("** of the masks are wrong" in one.value for one in app.markdown), "what is known comes first"
    assert "Check more" in [one.value for one in app.subheader]
    last = asked_of(app)["last"]
    app.radio[0].set_value("Suspects").run()
    shown = {one["sample"]: one["decision"] for one in asked_of(app, "auditor_masks")["items"]}
    assert shown[first] is None, "it waits for its right regions"
    assert {i for i, decision in shown.items() if decision} <= {second}
    verify.undo({"draw": last["draw"], "sample": last["sample"], "reviewer": "ada"})
    assert blind.pending(dataset.id) == [(draw, second)]


def test_masks__a_job_packs_the_cleaned_masks(audited_masks: Audited) -> None:
    made = made_by("masks", "shapes", "Export the cleaned masks")
    assert made.name == "shapes-masks.zip"
    with zipfile.ZipFile(made) as packed:
        assert sorted(packed.namelist()) == ["masks.csv", *(f"masks/{i:03d}.png" for i in range(12))]
        assert packed.read("masks/000.png") == (audited_masks.source / "masks/000.png").read_bytes()


def test_outlined__shows_the_given_mask_alone(audited_masks: Audited) -> None:
    shown = np.asarray(Image.open(io.BytesIO(masks.outlined_picture(audited_masks.dataset, WRONG[0], 96))))
    given = np.asarray(results.given_masks(audited_masks.dataset)[WRONG[0]])
    orange = (np.abs(shown.astype(int) - masks.COLOURS[masks.GIVEN]) < NEAR).all(-1)
    assert orange.shape == (96, 96)
    borders = masks._outline(given.repeat(3, 0).repeat(3, 1))
    np.testing.assert_array_equal(orange, borders)


def test_lit__shows_a_line_around_the_region_and_a_part_of_the_picture(audited_masks: Audited) -> None:
    dataset = audited_masks.dataset
    region = np.zeros((dataset.height, dataset.width), np.bool_)
    region[4:9, 20:26] = True
    shown = np.asarray(Image.open(io.BytesIO(masks.lit_picture(dataset, WRONG[0], 96, region)))).astype(int)
    assert shown.shape == (96, 96, 3)
    white = (shown > 255 - NEAR).all(-1)
    rows, columns = np.flatnonzero(white.any(1)), np.flatnonzero(white.any(0))
    # Six pixels of twelve, so that the region is half as wide as what is shown; the line is just outside of it.
    assert columns[-1] - columns[0] == pytest.approx(48 + 3, abs=4)
    assert rows[-1] - rows[0] == pytest.approx(40 + 3, abs=4)


def test_lit__has_a_dark_edge_on_a_white_sky(audited_masks: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = audited_masks.dataset
    _, sample = masks._sized(dataset, WRONG[0], 96)
    monkeypatch.setattr(masks, "_sized", lambda *_: (Image.new("RGB", (96, 96), "white"), sample))
    region = np.zeros((dataset.height, dataset.width), np.bool_)
    region[4:9, 20:26] = True
    shown = np.asarray(Image.open(io.BytesIO(masks.lit_picture(dataset, WRONG[0], 96, region))))
    assert shown.min() < 255 - 2 * NEAR


@pytest.mark.usefixtures("audited_masks")
def test_audit__of_masks_says_about_how_long_it_takes() -> None:
    app = open_page("audit", "shapes")
    assert any("**About 1 minute.** The engine trains" in one.value for one in app.markdown)


def test_masks__home_counts_what_still_waits(audited_masks: Audited) -> None:
    def sentence() -> str:
        return next_steps.of(readers.status(audited_masks.dataset)).sentence

    many = int(
        KIND.suspects(
            audited_masks.dataset, readers.audits_of(audited_masks.dataset.id)[0], top=12
        ).page.is_label_issue.sum()
    )
    assert sentence() == f"{many} masks with a suspect region wait to be checked."
    excluded = {"sample": WRONG[0], "decision": "exclude", "labels": None, "reviewer": "ada"}
    masks.record({"dataset": audited_masks.dataset.id, "audit": audited_masks.audit_id, **excluded})
    left = (
        f"{many - 1} masks with a suspect region wait" if many > 2 else "1 mask with a suspect region waits"
    )
    assert sentence() == f"{left} to be checked."


def test_masks__the_address_names_the_sample_to_begin_with(audited_masks: Audited) -> None:
    app = open_page("masks", "shapes")
    (known,) = [one.proto.body for one in app.get("html") if 'id="palette"' in one.proto.body]
    assert json.loads(html.unescape(known.split('data-known="')[1].split('"')[0]))["sample"] == [
        "masks",
        "sample",
        "",
    ]
    assert asked_of(app, "auditor_masks")["first"] is None
    app.query_params["sample"] = "7"
    assert asked_of(app.run(), "auditor_masks")["first"] == 7
    app.query_params["sample"] = "12"
    assert asked_of(app.run(), "auditor_masks")["first"] is None, "there are twelve, from 0"
    del audited_masks
