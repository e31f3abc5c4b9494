"""A class that is added after the import, from the command line and from Python."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import auditor
from auditor.catalog import audits
from auditor.catalog.db import ask
from auditor.ground.errors import ReviewError
from auditor.results import arrays
from auditor.review import decisions
from tests.auditor.conftest import Run
from tests.helpers import Digits


def test_added__labels_are_changed_to_it_exported_and_taken_back(
    audited: tuple[Digits, int], run: Run, tmp_path: Path
) -> None:
    before = auditor.open("digits").class_names
    code, _, err = run("classes", "digits", "--add", before[0])
    assert (code, f"has a class '{before[0]}' already" in err) == (1, True)
    assert run("classes", "digits", "--add", "99")[1].splitlines() == [*before, "99"]

    told = tmp_path / "told.csv"
    told.write_text("sample_id,review_decision,cleaned_label\n7,relabel,99\n8,relabel,99\n")
    assert run("review", "digits", "--apply", told, "--reviewer", "ann")[0] == 0
    assert run("export", "digits", "--out", tmp_path / "clean.csv")[0] == 0
    rows = list(csv.DictReader((tmp_path / "clean.csv").open()))
    assert [row["cleaned_label"] for row in rows].count("99") == 2
    assert run("export", "digits", "--out", tmp_path / "tree")[0] == 0
    assert len(list((tmp_path / "tree").rglob("99/*"))) == 2

    digits = auditor.open("digits")
    probs = digits.pred_probs()
    assert list(probs.columns) == [*before, "99"]
    assert np.allclose(probs["99"], 0)
    fits = arrays.pools(ask(audits.get, audited[1]))
    assert fits is not None
    assert fits.transition.shape == (11, 11), "the settled pools know the new class"

    code, _, err = run("classes", "digits", "--remove", "99")
    assert (code, "so it stays" in err) == (1, True)
    (batch,) = decisions.batches(digits.table.id).batch
    assert decisions.undo_batch(digits.table.id, batch, "ann") == 2
    assert run("export", "digits", "--out", tmp_path / "before.csv")[0] == 0
    assert "99" not in {row["cleaned_label"] for row in csv.DictReader((tmp_path / "before.csv").open())}


def test_taken_back__while_nothing_names_it(audited: tuple[Digits, int]) -> None:
    digits = auditor.open("digits")
    before, suspects = digits.class_names, digits.suspects(20)
    digits.add_class("99")
    with pytest.raises(ReviewError, match="only that can be taken back"):
        digits.remove_class(before[0])
    digits.remove_class("99")
    assert digits.class_names == before
    again = digits.suspects(20)
    assert again.sample_id.tolist() == suspects.sample_id.tolist()
    assert again.trust_score.tolist() == pytest.approx(suspects.trust_score.tolist())
