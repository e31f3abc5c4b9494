"""The page of sets of classes: what its buttons record."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.server import bench, masks, verify
from auditor.api import open_dataset
from auditor.catalog import reading
from auditor.review import decisions
from tests.app.screens.opened import asked_of, open_page, press
from tests.tagged import CLASSES, EXTRA, MISSING, make_home


@pytest.fixture
def shapes(home: Path, tmp_path: Path) -> None:
    del home
    make_home(tmp_path)


def test_sets__buttons_record_what_is_marked_and_a_random_sample_tells_no_suspects(shapes: None) -> None:
    del shapes
    app = open_page("sets", "shapes")
    dataset, audit = reading.audited("shapes")
    items = asked_of(app)["items"][:4]
    doubts = {
        (item["sample"], chip["name"], chip["doubt"])
        for item in items
        for chip in item["chips"]
        if chip["doubt"]
    }
    assert doubts == {(*one, "missing") for one in MISSING} | {(*one, "extra") for one in EXTRA}

    def answer(name: str, labels: list[int] | None) -> int:
        asked = asked_of(app)
        item = asked["items"][0]
        said = {
            "dataset": dataset.id,
            "audit": asked["audit"],
            "sample": item["sample"],
            "reviewer": "ada",
            "decision": asked["takes"] if name == asked["typed"] else name,
            "labels": item["suggested"] if name == asked["takes"] else labels,
        }
        assert "error" not in bench.record({"verdicts": [said]})["results"][0]
        app.run()
        return int(item["sample"])

    first = answer("relabel", None)
    name = dict((*MISSING, *EXTRA))[first]
    taken = decisions.outcomes(dataset.id)[first]
    assert taken.decision == "relabel"
    assert taken.labels is not None
    assert (CLASSES.index(name) in taken.labels) == ((first, name) in MISSING)
    second = answer(asked_of(app)["typed"], [])
    assert decisions.outcomes(dataset.id)[second].labels == []
    assert masks.undo({"audit": audit.id, "reviewer": "ada"}) == {"sample": second}
    app.run()
    worst = open_dataset("shapes").suspects(dataset.num_samples)
    left = worst.sample_id[worst.is_label_issue & worst.decision.isna()].tolist()
    assert sorted(item["sample"] for item in asked_of(app)["items"]) == sorted(left), "suspects alone"
    for _ in left:
        answer("keep", None)
    assert asked_of(app)["items"] == []
    said = f"All {len(left) + 1} suspects are checked"
    counts = sorted(asked_of(app)["finished"].removeprefix(f"{said}: ").rstrip(".").split(", "))
    assert counts == ["1 changed", f"{len(left)} kept"]
    assert [one["id"] for one in asked_of(app)["next"]] == ["Random sample", "export"]
    for _ in left:
        masks.undo({"audit": audit.id, "reviewer": "ada"})
    app.run()
    app.radio[0].set_value("Checked").run()
    assert app.dataframe[0].value.sample_id.tolist() == [first]

    app.radio[0].set_value("Random sample").run()
    app.number_input[0].set_value(3)
    press(app, "Start")
    asked = asked_of(app)
    item = asked["items"][0]
    assert {chip["doubt"] for chip in item["chips"]} == {""}
    assert "suggested" not in item
    said = {
        "sample": item["sample"],
        "draw": item["draw"],
        "decision": asked["typed"],
        "labels": item["given"],
    }
    assert "error" not in verify.record({"verdicts": [said | {"reviewer": "ada"}]})["results"][0]
    assert decisions.outcomes(dataset.id)[item["sample"]].decision == "keep"
    open_page("audit", "shapes")
