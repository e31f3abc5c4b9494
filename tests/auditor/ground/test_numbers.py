"""The unit that the name of a column tells."""

from __future__ import annotations

import pytest

from auditor.ground.numbers import unit_of, without_unit


@pytest.mark.parametrize(
    ("name", "unit", "bare"),
    [
        ("width (cm)", "cm", "width"),
        ("weight [kg] ", "kg", "weight"),
        ("age_years", "years", "age"),
        ("road", "", "road"),
        ("temperature", "", "temperature"),
        ("(cm) width", "", "(cm) width"),
        ("item", "", "item"),
        ("(cm)", "cm", "(cm)"),
    ],
)
def test_unit_of__is_what_stands_in_brackets_or_behind_the_name(name: str, unit: str, bare: str) -> None:
    assert (unit_of(name), without_unit(name)) == (unit, bare)
