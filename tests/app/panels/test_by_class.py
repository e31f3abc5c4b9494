"""Each class of a set as a row of its pictures."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from app.session import readers
from tests.app.conftest import DATASET

PAGE = """
from app.panels import by_class
from app.session import readers
by_class.draw(readers.all_datasets()[0])
"""


@pytest.mark.usefixtures("copied_home")
def test_by_class__the_largest_class_has_the_longest_row_and_every_picture_is_its_own() -> None:
    app = AppTest.from_string(PAGE).run()
    assert not app.exception
    (body,) = [one.proto.body for one in app.get("html")]
    dataset = readers.dataset(DATASET)
    given, counts = readers.given_labels(dataset), readers.class_counts(dataset)
    rows = body.split("<b>")[1:]
    assert len(rows) == len(counts)
    shown = []
    for (label, many), row in zip(sorted(counts.items(), key=lambda one: -one[1]), rows, strict=True):
        assert f"<span>{many}</span>" in row
        samples = [int(one) for one in re.findall(r"/bench/image/\d+/(\d+)\?", row)]
        assert {int(given[one]) for one in samples} == {label}
        assert len(set(samples)) == len(samples)
        shown.append(len(samples))
    assert shown == sorted(shown, reverse=True)
    assert shown[0] == 20
