"""The notebook for people who come from cleanlab runs as it stands, and finds what its list does not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.notebooks import printed_by


def test_notebook__finds_more_than_the_list_of_the_same_probabilities(home: Path, tmp_path: Path) -> None:
    printed = printed_by("from_cleanlab.ipynb", tmp_path)
    found = next(ast.literal_eval(text) for text in printed if text.startswith("{"))
    assert found["auditor"] > found["cleanlab"] + 20
    given, left = (float(share) for share in re.findall(r"([\d.]+)%", printed[-1]))
    assert (given, left < 2) == (10.0, True)
