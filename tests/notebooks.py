"""Notebooks of the docs, run as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


def printed_by(name: str, folder: Path) -> list[str]:
    """Run the notebook of that name in the folder; what each of its cells printed."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(DOCS / name, as_version=4)
    nbformat.validate(notebook)
    done = nbclient.NotebookClient(notebook, timeout=240, kernel_name="python3").execute(cwd=str(folder))
    outputs = (output for cell in done.cells for output in cell.get("outputs", []))
    return [output["text"] for output in outputs if output.get("name") == "stdout"]
