"""A kill in the middle of a removal: the dataset is gone for everybody, and the rest of it goes later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sqlmodel import select

import auditor
from auditor import api
from auditor.catalog import datasets, db
from auditor.catalog.models import SQLModel
from auditor.ground.errors import NotFoundError
from auditor.importing import imports
from tests.auditor.sample_pictures import write_folder
from tests.helpers import Digits, decide_some

ROOT = Path(__file__).resolve().parents[2]
REMOVER = """
import sys
from auditor import api
from auditor.catalog import datasets, leases
datasets.ROWS_A_STATEMENT = 100
beat, parts = leases.beat, []

def stop_before_the_third(session, name):
    parts.append(name)
    if len(parts) == 3:
        print("here", flush=True)
        sys.stdin.readline()
    return beat(session, name)

leases.beat = stop_before_the_third
api.remove("digits")
"""


def counts() -> dict[str, int]:
    """Rows by table, where there are any that belong to a dataset."""
    with db.session() as session:
        found = {
            table.name: len(session.execute(select(*table.primary_key)).all())
            for table in SQLModel.metadata.sorted_tables
        }
    return {name: count for name, count in found.items() if count and name != "last_id"}


@pytest.mark.parametrize("is_killed", [False, True], ids=["whole", "killed"])
def test_remove__in_parts_between_which_others_write_and_goes_on_after_a_kill(
    audited: tuple[Digits, int], home: Path, tmp_path: Path, is_killed: bool
) -> None:
    decide_some(audited[0])
    whole = counts()
    process = subprocess.Popen(
        [sys.executable, "-c", REMOVER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    left = counts()
    assert (left["sample"], left["score"], left["lease"]) == (100, 100, 1)
    assert left["review"] < whole["review"]
    assert left["decision"] < whole["decision"]
    assert auditor.datasets().empty
    with pytest.raises(NotFoundError):
        auditor.open("digits")
    with pytest.raises(NotFoundError), db.session() as session:
        datasets.by_id(session, 1)
    if is_killed:
        process.kill()
        process.communicate()
    imports.import_dataset(write_folder(tmp_path / "set", 10), name="digits")  # the name is free
    if is_killed:
        assert counts() == {"dataset": 1, "sample": 10}
    else:
        assert counts()["sample"] == 110  # somebody lives who removes it
        process.communicate("\n")
        assert process.returncode == 0
    assert counts() == {"dataset": 1, "sample": 10}
    assert [path.name for path in (home / "datasets").iterdir()] == ["2"]
    assert not list((home / "audits").iterdir())
    api.remove("digits")
    assert counts() == {}
