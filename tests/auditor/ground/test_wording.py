"""Numbers with their nouns and verbs."""

from __future__ import annotations

import pytest

from auditor.ground.wording import plural


@pytest.mark.parametrize(
    ("number", "noun", "verb", "text"),
    [
        (1, "sample", "", "1 sample"),
        (2_000, "sample", "", "2,000 samples"),
        (0, "class", "", "0 classes"),
        (1, "mask", "have", "1 mask has"),
        (2, "mask", "have", "2 masks have"),
        (1, "label", "are", "1 label is"),
        (1, "row", "differ", "1 row differs"),
        (3, "row", "differ", "3 rows differ"),
    ],
)
def test_plural__one_is_no_many(number: int, noun: str, verb: str, text: str) -> None:
    assert plural(number, noun, verb) == text
