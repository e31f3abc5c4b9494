"""The notebook for people who come from cleanlab runs as it stands, and finds what its list does not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).resolve().parents[3] / "docs" / "from_cleanlab.ipynb"


def test_notebook__finds_more_than_the_list_of_the_same_probabilities(home: Path, tmp_path: Path) -> None:
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
    found = next(ast.literal_eval(text) for text in printed if text.startswith("{"))
    assert found["auditor"] > found["cleanlab"] + 20
    given, left = (float(share) for share in re.findall(r"([\d.]+)%", printed[-1]))
    assert (given, left < 2) == (10.0, True)
