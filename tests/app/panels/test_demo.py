"""The card of an empty machine shows labels that the demo really changes."""

from __future__ import annotations

import csv
from pathlib import Path

from app.panels import demo
from auditor.cli.demo import _write_digits


def test_card__is_of_digits_that_the_demo_mislabels_so(tmp_path: Path) -> None:
    digits = _write_digits(tmp_path / "digits")
    with digits.source.open(newline="") as stream:
        given = [int(row["label"]) for row in csv.DictReader(stream)]
    told = {(given[row], int(digits.true_labels[row])) for row in demo.WRONG}
    assert told == {(demo.GIVEN, demo.SUGGESTED)}
    assert (given[demo.STAYS], digits.true_labels[demo.STAYS]) == (demo.GIVEN, demo.GIVEN)
    assert demo.card().count("<img") == len(demo.WRONG) + 1 + 2 * demo.EXAMPLES
