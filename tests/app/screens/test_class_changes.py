"""Classes changed from the page Classes, and the pickers that then offer those of today alone."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.panels.class_changes import numbers_in
from app.session import readers
from auditor.catalog import datasets
from auditor.catalog.db import ask
from auditor.ground.errors import ReviewError
from auditor.results import arrays, class_changes
from auditor.review import decisions, drawing
from tests.app.conftest import DATASET, NAMES
from tests.app.screens.opened import asked_of, open_page, press

pytestmark = pytest.mark.usefixtures("copied_home")
WHERE_IT_IS_OFFERED = ("suspects", "verify", "map")


def of(name: str) -> int:
    return readers.dataset(DATASET).class_names.index(name)


def listed(app: AppTest) -> list[str]:
    return list(app.dataframe[0].value["class"])


def choose(app: AppTest, title: str, name: str) -> None:
    box = next(one for one in app.selectbox if one.label == title)
    box.select(of(name)).run()


def fill(app: AppTest, title: str, text: str) -> None:
    next(one for one in app.text_input if one.label == title).set_value(text).run()


def in_palette(app: AppTest) -> dict[int, str]:
    (button,) = [one.proto.body for one in app.get("html") if 'id="palette"' in one.proto.body]
    known = json.loads(html.unescape(re.search('data-known="(.*?)"', button)[1]))
    return dict(known["classes"])


def test_rename__by_whoever_is_here_and_back() -> None:
    app = open_page("classes", DATASET)
    before = listed(app)
    choose(app, "Class", "*four*")
    fill(app, "New name", "quatre")
    press(app, "Rename")
    assert listed(app) == ["quatre" if one == "*four*" else one for one in before]
    (said,) = [one.value.replace("\\", "") for one in app.caption if "renamed" in one.value]
    assert re.fullmatch(r"\*four\* renamed quatre \(ada, [-\d]+ [\d:]+ UTC\)", said)
    assert not next(one for one in app.text_input if one.label == "New name").value
    press(app, "Undo the newest")
    assert listed(app) == before
    assert not [one for one in app.button if one.label == "Undo the newest"]


def test_merge__nothing_offers_the_class_any_more_until_it_is_undone() -> None:
    drawing.draw(DATASET, 5)
    app = open_page("classes", DATASET)
    before, num_given = listed(app), app.dataframe[0].value.set_index("class")["given"]
    app.segmented_control(key="classes_way").set_value("Merge").run()
    choose(app, "Class", "*four*")
    choose(app, "Becomes part of", "nine")
    assert any(f"{num_given['*four*']} samples of " in one.value for one in app.caption), (
        "said before it is done"
    )
    press(app, "Merge")
    assert listed(app) == [one for one in before if one != "*four*"]
    assert app.dataframe[0].value.set_index("class")["given"]["nine"] == num_given[["*four*", "nine"]].sum()
    assert "**9** classes" in "\n".join(one.value for one in app.markdown)
    assert "*four*" not in {option for box in app.selectbox for option in box.options}

    expected = [None if name == "*four*" else name for name in readers.dataset(DATASET).class_names]
    for screen in WHERE_IT_IS_OFFERED:
        page = open_page(screen, DATASET)
        component = "auditor_verify" if screen == "verify" else "auditor_bench"
        assert asked_of(page, component)["classNames"] == expected
        assert in_palette(page) == {i: name for i, name in enumerate(expected) if name is not None}
    assert asked_of(page, "auditor_map")["classNames"] == expected
    offered = {option for box in open_page("suspects", DATASET).selectbox for option in box.options}
    assert not [one for one in offered if "four" in one]
    assert "9 classes" in "\n".join(one.value for one in open_page("home", DATASET).markdown)
    story = arrays.evidence(1, 0)
    assert of("*four*") not in [label for label, _ in story.top_classes]

    press(app, "Undo the newest")
    assert listed(app) == before
    assert asked_of(open_page("suspects", DATASET), "auditor_bench")["classNames"] == [
        *map(str, sorted(NAMES))
    ]


def test_merge__the_region_of_the_map_offers_the_classes_of_today() -> None:
    class_changes.merge(DATASET, "*four*", "nine", reviewer="ada")
    whole = [[-1e3, -1e3], [1e3, -1e3], [1e3, 1e3], [-1e3, 1e3]]
    app = open_page("home", DATASET)
    app.session_state["map_region"] = {"audit": 1, "engine": arrays.maps_of(1)[0], "polygon": whole}
    app.session_state["map_tag"] = "relabel"
    app.switch_page("screens/map.py").run()
    assert not app.exception
    box = app.selectbox(key="map_tag_class")
    assert box.options == [name for name in sorted(NAMES) if name != "*four*"]


def test_split__of_samples_by_number_and_of_those_circled_on_the_map() -> None:
    given = ask(datasets.given_labels, 1)
    nines = np.flatnonzero(given == of("nine")).tolist()
    app = open_page("classes", DATASET)
    app.segmented_control(key="classes_way").set_value("Split").run()
    choose(app, "Class", "nine")
    fill(app, "Name of the new class", "elongated nine")
    fill(app, "Samples that go there", f"{nines[0]}, {nines[0]}-x")
    press(app, "Split")
    assert "is no number of a sample (0 to 239)" in app.error[0].value.replace("\\", "")
    fill(app, "Samples that go there", "")
    press(app, "Split")
    assert "no sample is named" in app.error[0].value
    assert decisions.outcomes(1) == {}

    points = np.asarray(arrays.map_points(1, arrays.maps_of(1)[0]))
    (x, y), near = points[nines[2]], 1e-4
    square = [[x - near, y - near], [x + near, y - near], [x + near, y + near], [x - near, y + near]]
    app.session_state["map_region"] = {"audit": 1, "engine": arrays.maps_of(1)[0], "polygon": square}
    fill(app, "Samples that go there", f"#{nines[0]}, {nines[1]}")
    next(one for one in app.checkbox if one.label == "Also the 1 in the region of the Map").check().run()
    press(app, "Split")
    assert not app.error
    found = {i: (row.decision, row.label, row.reviewer) for i, row in decisions.outcomes(1).items()}
    assert found == dict.fromkeys(nines[:3], ("relabel", of("elongated nine"), "ada"))
    assert "elongated nine" in listed(app)
    press(app, "Undo the newest")
    assert decisions.outcomes(1) == {}


def test_add__and_take_back() -> None:
    app = open_page("classes", DATASET)
    before = listed(app)
    app.segmented_control(key="classes_way").set_value("Add").run()
    fill(app, "Name", "none of these")
    press(app, "Add")
    assert listed(app) == [*before, "none of these"]
    press(app, "Take none of these back")
    assert listed(app) == before


def test_refused__is_one_line_above_the_log_that_stays() -> None:
    class_changes.rename(DATASET, "nine", "neuf", reviewer="bob")
    app = open_page("classes", DATASET)
    choose(app, "Class", "*four*")
    fill(app, "New name", "two")
    press(app, "Rename")
    assert "has a class 'two' already" in app.error[0].value.replace("\\", "")
    assert any("nine renamed neuf (bob" in one.value.replace("\\", "") for one in app.caption)


@pytest.mark.parametrize(
    ("text", "numbers"), [("", []), (" 3 ", [3]), ("3, #5;7 9", [3, 5, 7, 9]), ("2 - 4,1", [2, 3, 4, 1])]
)
def test_numbers_in(text: str, numbers: list[int]) -> None:
    assert numbers_in(text, 10) == numbers


@pytest.mark.parametrize("text", ["x", "3-", "4-2", "10", "5-10"])
def test_numbers_in__refuses_what_is_no_sample(text: str) -> None:
    with pytest.raises(ReviewError, match="is no number of a sample"):
        numbers_in(text, 10)
