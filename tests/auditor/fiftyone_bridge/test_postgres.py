"""FiftyOne beside a catalog in PostgreSQL: an audit goes there, and a person's words come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from auditor.review import decisions
from tests.auditor.conftest import Run
from tests.helpers import Digits
from tests.on_postgres import move_catalog


def test_push_and_pull__on_postgresql(
    database: Any, audited: tuple[Digits, int], empty_postgres: str, home: Path, run: Run
) -> None:
    move_catalog(home)
    code, _, err = run("fiftyone", "digits", "push")
    assert code == 0, err
    there = database.load_dataset("digits")
    sample = there.first()
    sample.tags.append("exclude")
    sample.save()
    code, out, err = run("fiftyone", "digits", "pull", "--reviewer", "ada")
    assert code == 0, err
    assert [row.decision for row in decisions.outcomes(1).values()] == ["exclude"], out
