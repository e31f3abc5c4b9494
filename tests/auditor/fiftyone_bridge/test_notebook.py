"""The notebook of the docs runs as it stands, against a real MongoDB."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[3] / "docs" / "fiftyone_to_training.ipynb"


def test_notebook__ends_with_fewer_wrong_labels(database: Any, home: Path, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    done = nbclient.NotebookClient(notebook, timeout=240, kernel_name="python3").execute(cwd=str(tmp_path))
    printed = [
        output["text"]
        for cell in done.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stdout"
    ]
    right = ast.literal_eval(printed[-1])
    assert right["given"] == 0.9
    assert right["cleaned"] >= right["given"] + 0.02
    mine = database.load_dataset("my-digits")
    assert {"audit_map", "audit_similarity", "mistakenness", "hardness"} <= set(mine.list_brain_runs())
    assert mine.count_values("review.decision")["relabel"] == 20
