"""A sheet of Excel is read wherever a table is; one that cannot be read says what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from auditor.ground.errors import ExportRefusedError, ImportRefusedError
from auditor.ground.tables import read_table
from auditor.importing.imports import import_dataset
from auditor.outputs import export
from auditor.pictures.sources import SourceOptions, SourceRow, open_source
from auditor.statistics.trust.predictions import read_predictions
from tests.auditor.sample_pictures import encoded, photo

pytest.importorskip("openpyxl")


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    for number in range(4):
        (tmp_path / f"0{number}.png").write_bytes(encoded(photo(number)))
    rows = [
        ["path", "label"],
        ["00.png", "cat; small"],
        ["01.png", "dog"],
        ["02.png", "cat; small"],
        ["03.png", "Ä"],
    ]
    pd.DataFrame(rows).to_excel(tmp_path / "labels.xlsx", header=False, index=False)
    return tmp_path / "labels.xlsx"


def test_import__a_sheet_of_excel_as_a_table(home: Path, labels: Path, tmp_path: Path) -> None:
    rows = [row for row in open_source(labels, SourceOptions()).rows() if isinstance(row, SourceRow)]
    assert [(row.row, row.filepath, row.label) for row in rows] == [
        (2, "00.png", "cat; small"),
        (3, "01.png", "dog"),
        (4, "02.png", "cat; small"),
        (5, "03.png", "Ä"),
    ]
    import_dataset(labels, name="it", workers=1)
    export.export_table("it", tmp_path / "out" / "cleaned.csv")
    assert pd.read_csv(tmp_path / "out" / "cleaned.csv").cleaned_label.tolist() == [row.label for row in rows]
    with pytest.raises(ExportRefusedError, match=r"use \.csv"):
        export.export_table("it", tmp_path / "out" / "cleaned.xlsx", as_source=True)


def test_tables__numbers_of_a_sheet_are_the_ones_of_its_cells(tmp_path: Path) -> None:
    table = pd.DataFrame({"sample_id": [0, 1], "cat": [0.25, 1.0], "dog": [0.75, 0.0]})
    table.to_excel(tmp_path / "probs.xlsx", index=False)
    found = read_predictions(tmp_path / "probs.xlsx")
    assert isinstance(found, pd.DataFrame)
    np.testing.assert_array_equal(found[["cat", "dog"]].astype(float), table[["cat", "dog"]])
    assert read_table(tmp_path / "probs.xlsx").sample_id.tolist() == ["0", "1"]


def test_tables__a_sheet_that_cannot_be_read_says_what_to_do(labels: Path, tmp_path: Path) -> None:
    several, empty, damaged = (tmp_path / f"{name}.xlsx" for name in ("several", "empty", "damaged"))
    with pd.ExcelWriter(several) as writer:
        for name in ("train", "test", "notes"):
            frame = pd.DataFrame([["path", "label"]] if name != "notes" else [])
            frame.to_excel(writer, sheet_name=name, header=False, index=False)
    pd.DataFrame().to_excel(empty)
    damaged.write_bytes(labels.read_bytes()[:-300])
    for path, text in (
        (several, r"sheets with content \(train, test\); save the one that is meant as CSV"),
        (empty, "nothing in its sheets"),
        (damaged, r"cannot be read as \.xlsx \(.*\); save it again"),
    ):
        with pytest.raises(ImportRefusedError, match=text):
            open_source(path, SourceOptions())
