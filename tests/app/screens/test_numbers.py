"""The page of numbers: what its buttons record."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from app.server import bench, masks, verify
from app.session import readers
from auditor.api import open_dataset
from auditor.audits import plan
from auditor.backbones import features
from auditor.catalog import reading
from auditor.review import blind, decisions, drawing
from tests.app.screens.opened import asked_of, made_by, open_page, press
from tests.numbered import NUM, WRONG, make_home, num_suspects


@pytest.fixture
def ages(home: Path, tmp_path: Path) -> None:
    del home
    make_home(tmp_path)


def test_numbers__buttons_record_what_is_shown_and_a_random_sample_its_tolerance(ages: None) -> None:
    del ages
    app = open_page("numbers", "ages")
    dataset, audit = reading.audited("ages")
    worst = open_dataset("ages").suspects(3)
    total = num_suspects("ages")
    others = total - len(WRONG)  # one or several, by the rounding of the machine that trains
    app.radio[0].set_value("Checked").run()
    assert not app.dataframe
    assert "Nobody has checked a number yet." in [one.value for one in app.markdown]
    app.radio[0].set_value("Suspects").run()

    def answer(button: str, number: float | None = None) -> None:
        asked = asked_of(app)
        item, takes = asked["items"][0], asked["takes"]
        name = {one["button"]: one["name"] for one in asked["actions"]}.get(button, button)
        said = {
            "dataset": dataset.id,
            "audit": asked["audit"],
            "sample": item["sample"],
            "reviewer": "ada",
            "decision": takes if name == asked["typed"] else name,
            "number": item["suggested"] if name == takes else number,
        }
        assert "error" not in bench.record({"verdicts": [said]})["results"][0]
        app.run()

    item = asked_of(app)["items"][0]
    given, suggested = (side["value"] for side in item["sides"])
    assert item["question"] == f"age: {given.split()[0]} or {suggested}?"
    low, high = (f"{worst.iloc[0][bound]:.10g}" for bound in ("suggested_low", "suggested_high"))
    assert item["sides"][1]["note"] == f"likely {low} to {high}"
    assert [one["id"] for one in asked_of(app)["next"]] == ["Random sample", "export", "others"]
    assert (asked_of(app)["left"], asked_of(app)["total"], len(asked_of(app)["items"])) == (total,) * 3
    assert item["alike"][1]["title"] == f"Not in doubt, nearest to {suggested}"
    far = {one["alike"][0]["title"] for one in asked_of(app)["items"] if one["number"] > 2 * NUM}
    assert all(title.startswith("None as high as ") for title in far)
    drawn = asked_of(app)["chart"]["points"]
    assert len(drawn) == NUM
    assert {sample for sample, *_, is_suspect in drawn if is_suspect} >= set(WRONG)
    assert asked_of(app)["chart"]["answers"] == []

    answer("Change as suggested")
    taken = decisions.outcomes(dataset.id)[int(worst.sample_id[0])]
    assert (taken.decision, taken.number) == ("relabel", worst.suggested[0])
    assert asked_of(app)["chart"]["answers"] == [[int(worst.sample_id[0]), float(worst.suggested[0])]]
    answer(asked_of(app)["typed"], 12.5)
    assert decisions.outcomes(dataset.id)[int(worst.sample_id[1])].number == 12.5
    answer("Exclude")
    assert set(decisions.outcomes(dataset.id)) == set(WRONG)
    for _ in range(others):
        answer("keep")
    assert asked_of(app)["items"] == [], "nobody goes on beyond the suspects without choosing it"
    said, counts = asked_of(app)["finished"].rstrip(".").split(": ")
    assert said == f"All {total} suspects are checked"
    assert set(counts.split(", ")) == {"2 changed", "1 excluded"} | ({f"{others} kept"} if others else set())
    app.session_state["numbers_goes_on"] = audit.id
    app.run()
    assert {item["other"] for item in asked_of(app)["items"]} == {True}
    for _ in range(others):
        masks.undo({"audit": audit.id, "reviewer": "ada"})
    assert masks.undo({"audit": audit.id, "reviewer": "ada"}) == {"sample": int(worst.sample_id[2])}
    app.run()
    assert asked_of(app)["items"][0]["sample"] == int(worst.sample_id[2])
    assert set(decisions.outcomes(dataset.id)) == set(worst.sample_id[:2].tolist())
    app.radio[0].set_value("Checked").run()
    assert "**2** of 2 checked numbers change" in [one.value for one in app.markdown]
    captions = [one.caption.replace("\\", "") for image in app.get("image") for one in image.proto.imgs]
    assert captions[1].endswith("→ :blue[12.5]")

    app.radio[0].set_value("Random sample").run()
    app.number_input[0].set_value(3)
    assert app.number_input[1].value == audit.summary.half_width
    app.number_input[1].set_value(0.5)
    assert [one.value for one in app.header] == ["How many numbers are wrong?"]
    press(app, "Start")
    (draw_id, first), *_ = blind.pending(dataset.id)
    asked = asked_of(app)
    item = asked["items"][0]
    assert (item["sample"], item["draw"], asked["left"]) == (first, draw_id, 3)
    assert set(item) == {"sample", "draw", "question", "number", "alike"}, "nothing is told"
    (scale,) = item["alike"]
    seen = [float(number) for _, number in scale["samples"]]
    assert seen == sorted(seen)
    assert not {sample for sample, _ in scale["samples"]} & {
        sample for _, sample in blind.pending(dataset.id)
    }
    assert (item["number"], asked["takes"]) == (None, None)
    said = {"sample": first, "draw": draw_id, "decision": asked["typed"], "number": 2.0 * first}
    assert "error" not in verify.record({"verdicts": [said | {"reviewer": "ada"}]})["results"][0]
    verdict = decisions.outcomes(dataset.id)[first]
    assert (verdict.draw_id, verdict.number) == (draw_id, 2.0 * first)
    assert blind.num_judged(dataset.id) == 1
    assert np.isclose(drawing.tolerance_of(dataset.id), 0.5)
    assert NUM > len(blind.pending(dataset.id)) == 2


def test_verify__of_numbers_leads_to_their_random_sample(ages: None) -> None:
    del ages
    app = open_page("verify", "ages")
    assert [one.value for one in app.title] == ["Numbers"]
    assert app.radio[0].value == "Random sample"


def test_numbers__a_job_writes_the_cleaned_table(ages: None) -> None:
    del ages
    made = made_by("numbers", "ages", "Export the cleaned numbers")
    assert made.name == "ages-cleaned.csv"
    with made.open(newline="") as stream:
        assert [int(row["sample_id"]) for row in csv.DictReader(stream)] == list(range(NUM))


def test_audit__numbers_are_audited_on_features_of_ones_own(ages: None) -> None:
    del ages
    app = open_page("audit", "ages")
    (kept,) = features.own(1)
    app.selectbox(key="audit_backbone").set_value(kept.key).run()
    app.button(key="audit_mask_start").click().run()
    assert not app.exception
    newest = readers.audits_of(1)[0]
    plan.cancel_audit(newest.id)
    assert features.FeatureSource.of_dict(newest.options.features or {}) == kept
    assert newest.engines == ["cross_entropy", "choicenet"]
