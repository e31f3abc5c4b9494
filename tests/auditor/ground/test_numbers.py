"""The unit that the name of a column tells."""

from __future__ import annotations

import pytest

from auditor.ground.numbers import unit_of


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("width (cm)", "cm"),
        ("weight [kg] ", "kg"),
        ("age_years", "years"),
        ("road", ""),
        ("temperature", ""),
        ("(cm) width", ""),
        ("item", ""),
    ],
)
def test_unit_of__is_what_stands_in_brackets_or_behind_the_name(name: str, unit: str) -> None:
    assert unit_of(name) == unit
