"""Every command with PostgreSQL as its catalog, on classes, masks and numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets

from auditor.__main__ import cli
from auditor.catalog import datasets
from auditor.cli import demo
from tests import numbered
from tests.auditor.conftest import Run
from tests.helpers import Digits
from tests.masked import Audited
from tests.on_postgres import move_catalog, new_database

ELSEWHERE = {
    "app": "tests/app/screens/test_postgres.py",
    "fiftyone": "tests/auditor/fiftyone_bridge/test_postgres.py",
    "job": "started by others",
}
"""Commands that are not in ``tried``."""
FAST = ("--set", "cross_entropy.epochs=1", "--set", "cross_entropy.network=mlp", "--device", "cpu")


@pytest.fixture
def told(run: Run) -> Callable[..., str]:
    """Run a command that must end well; what it printed."""

    def call(*args: str | Path) -> str:
        code, out, err = run(*args)
        assert code == 0, (args, out, err)
        tried.add(str(args[0]))
        return out

    return call


tried: set[str] = set()


def judge(file: Path, verdict: Callable[[str], str]) -> None:
    """Fill in what ``verify --draw`` wrote, by the path of each image."""
    table = pd.read_csv(file, dtype=str, keep_default_na=False)
    table["verdict_label"] = [verdict(path) for path in table.filepath]
    table.to_csv(file, index=False)


def test_commands__on_classes(
    audited: tuple[Digits, int],
    empty_postgres: str,
    postgres: str,
    home: Path,
    told: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digits, _ = audited
    move_catalog(home)
    assert "digits" in told("status")
    assert "300" in told("status", "digits")
    assert len(told("suspects", "digits").splitlines()) > 3

    told("verify", "digits", "--draw", "60", "--for", "rate", "--out", tmp_path / "draw.csv")
    given = pd.read_csv(tmp_path / "draw.csv", dtype=str).set_index("filepath").given_label
    judge(tmp_path / "draw.csv", lambda path: given[path])
    assert "60" in told("verify", "digits", "--apply", tmp_path / "draw.csv", "--reviewer", "ada")
    told("verify", "digits", "--draw-id", "1", "--out", tmp_path / "again.csv")

    told("export", "digits", "--out", tmp_path / "out.csv")
    table = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    table.loc[[3, 4], "review_decision"] = ["exclude", "keep"]
    table.to_csv(tmp_path / "decided.csv", index=False)
    told("review", "digits", "--apply", tmp_path / "decided.csv", "--reviewer", "ben")
    told("export", "digits", "--out", tmp_path / "tree")
    told("report", "digits", "--out", tmp_path / "page.html")
    short = [word.removeprefix("cross_entropy.") for word in FAST]
    told("compare", "digits", "--seeds", "1", *short)

    assert "cross_entropy" in told("runs", "digits", "--alone")
    numbers = np.random.default_rng(0).normal(size=(len(digits.true_labels), 8)).astype(np.float32)
    np.save(tmp_path / "seen.npy", numbers)
    told("audit", "digits", "--features", tmp_path / "seen.npy", "--engines", "neighbours", "--map", "pca")
    told("import", digits.table, "--name", "again", "--image-size", "8", "--workers", "1")
    told("move", "again", digits.table.parent)
    told("classes", "again", "--add", "10")
    told("weights", "list")
    assert "postgresql" in told("doctor")
    told("remove", "again", "--yes")
    table = pd.read_csv(digits.table, dtype=str)
    several = pd.DataFrame({"filepath": table["filepath"], "ada": table["label"], "bo": table["label"]})
    several.to_csv(digits.table.with_name("several.csv"), index=False)
    place = digits.table.with_name("several.csv")
    told(
        "import", place, "--name", "several", "--annotators", "ada,bo", "--image-size", "8", "--workers", "1"
    )
    assert "ada" in told("annotators", "several")
    told("remove", "several", "--yes")
    told("backup", tmp_path / "all.tar")

    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path / "second"))
    monkeypatch.setenv("AUDITOR_DATABASE_URL", new_database(postgres))
    assert "1 dataset and 2 audits" in told("restore", tmp_path / "all.tar")
    monkeypatch.setattr(datasets, "ROWS_A_STATEMENT", 100)  # in parts, with scores and decisions
    told("remove", "digits", "--yes")
    assert json.loads(told("status", "--json")) == []
    monkeypatch.setattr(demo, "NUM_VERIFIED", 20)
    few = [part[:200] for part in sklearn.datasets.load_digits(return_X_y=True)]
    monkeypatch.setattr(sklearn.datasets, "load_digits", lambda **_: few)
    told("demo", "--no-app", "--engines", "cross_entropy")
    assert tried == set(cli.commands) - set(ELSEWHERE)


def test_commands__on_masks(
    audited_masks: Audited, empty_postgres: str, home: Path, told: Callable[..., str], tmp_path: Path
) -> None:
    move_catalog(home)
    told("status", "shapes")
    told("suspects", "shapes")
    told("verify", "shapes", "--draw", "3", "--out", tmp_path / "draw.csv")
    judge(tmp_path / "draw.csv", lambda _: "right")
    told("verify", "shapes", "--apply", tmp_path / "draw.csv", "--reviewer", "ada")
    told("export", "shapes", "--out", tmp_path / "out.csv")
    told(
        "audit", "shapes", "--engines", "cross_entropy", "--set", "cross_entropy.epochs=1", "--device", "cpu"
    )
    told("remove", "shapes", "--yes")


def test_commands__on_numbers(
    home: Path, empty_postgres: str, told: Callable[..., str], tmp_path: Path
) -> None:
    numbered.make_home(tmp_path)
    told("status", "ages")
    told("suspects", "ages")
    told("verify", "ages", "--draw", "3", "--tolerance", "1", "--out", tmp_path / "draw.csv")
    judge(tmp_path / "draw.csv", lambda _: "7.5")
    told("verify", "ages", "--apply", tmp_path / "draw.csv", "--reviewer", "ada")
    told("export", "ages", "--out", tmp_path / "out.csv")
    told("remove", "ages", "--yes")
