"""The notebook of the docs runs as it stands, against a real MongoDB."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from tests.notebooks import printed_by


def test_notebook__ends_with_fewer_wrong_labels(database: Any, home: Path, tmp_path: Path) -> None:
    right = ast.literal_eval(printed_by("fiftyone_to_training.ipynb", tmp_path)[-1])
    assert right["given"] == 0.9
    assert right["cleaned"] >= right["given"] + 0.02
    mine = database.load_dataset("my-digits")
    assert {"audit_map", "audit_similarity", "mistakenness", "hardness"} <= set(mine.list_brain_runs())
    assert mine.count_values("review.decision")["relabel"] == 20
