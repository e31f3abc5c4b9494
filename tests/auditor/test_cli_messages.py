"""What the command line says: never silently something else, never a traceback, always the remedy."""

from __future__ import annotations

import json

import pytest

from auditor import reviewing
from tests.auditor.conftest import Run
from tests.helpers import Digits


def test_suspects__open_ones_have_no_decision(audited: tuple[Digits, int], run: Run) -> None:
    first = json.loads(run("suspects", "digits", "--top", "1", "--json")[1])["suspects"][0]
    reviewing.decide(1, first["sample_id"], "keep", reviewer="ada")
    out = run("suspects", "digits", "--top", "2", "--json")[1]
    rows = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))["suspects"]
    assert [(row["decision"], row["reviewer"]) for row in rows] == [("keep", "ada"), (None, None)]
    lines = run("suspects", "digits", "--top", "2")[1].splitlines()
    assert lines[1].endswith("keep")
    assert "nan" not in lines[2]
