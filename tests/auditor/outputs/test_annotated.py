"""A table of several answers becomes one with a consensus, with every answer kept."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from auditor.cli.commands import cli
from auditor.ground.errors import ExportRefusedError
from auditor.outputs.annotated import ADDED, read_annotated, write_annotated

NAMES = ("anna", "ben", "cora", "dan")


@pytest.fixture
def told(tmp_path: Path) -> tuple[Path, np.ndarray]:
    """A table of 300 pictures, three answers each, by annotators from good to bad; and the truth."""
    rng = np.random.default_rng(0)
    truth = rng.choice(["cat", "dog", "owl"], 300)
    wrong = rng.random((300, 4)) > np.array([0.95, 0.85, 0.75, 0.6])
    cells = np.where(wrong, rng.choice(["cat", "dog", "owl"], (300, 4)), truth[:, None]).astype(object)
    for row in cells:
        row[rng.integers(4)] = ""
    table = pd.DataFrame(cells, columns=NAMES)
    table.insert(0, "filepath", [f"{at}.png" for at in range(300)])
    table["notes"] = "=1+1"
    table.to_csv(tmp_path / "answers.csv", index=False)
    return tmp_path / "answers.csv", truth


def test_annotated__keeps_every_answer_and_adds_the_consensus(told: tuple[Path, np.ndarray]) -> None:
    path, truth = told
    found = read_annotated(path, annotators=NAMES)
    before = pd.read_csv(path, dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(found.table[list(before)].astype(str), before.astype(str))
    assert list(found.table)[-4:] == list(ADDED)
    assert (found.table["consensus"] == truth).mean() > 0.9
    people = found.summary["annotators"]
    assert people[0]["quality"] > people[1]["quality"] > people[2]["quality"] > people[3]["quality"]
    first = found.summary["ask_first"][0]
    assert first["gain"] == found.table["gain_of_one_more"].max()
    assert before[first["ask"]][first["row"]] == ""


def test_annotated__reads_one_row_an_answer_as_it_reads_columns(told: tuple[Path, np.ndarray]) -> None:
    path, _ = told
    wide = pd.read_csv(path, dtype=str, keep_default_na=False)
    rows = wide.melt("filepath", list(NAMES), "who", "said").query("said != ''")
    rows.to_csv(path.with_name("long.csv"), index=False)
    found = read_annotated(
        path.with_name("long.csv"), annotator_column="who", label_column="said", path_column="filepath"
    )
    one = found.table.set_index("filepath").sort_index()
    other = read_annotated(path, annotators=NAMES).table.set_index("filepath").sort_index()
    pd.testing.assert_frame_equal(one[[*NAMES, "consensus"]], other[[*NAMES, "consensus"]], check_dtype=False)


def test_annotated__says_which_column_is_wrong(told: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    path, _ = told
    with pytest.raises(
        ExportRefusedError, match=r"answers\.csv has no column 'eve'\. Its columns are: filepath"
    ):
        read_annotated(path, annotators=["anna", "eve"])
    with pytest.raises(ExportRefusedError, match="needs the names of its annotators' columns"):
        read_annotated(path)
    with pytest.raises(ExportRefusedError, match="one row an answer"):
        read_annotated(path, annotator_column="anna")
    found = read_annotated(path, annotators=NAMES)
    write_annotated(found, tmp_path / "out.csv")
    with pytest.raises(ExportRefusedError, match="exists already"):
        write_annotated(found, tmp_path / "out.csv")
    before = path.read_bytes()
    (tmp_path / "link.csv").symlink_to(path)
    for place in (path, tmp_path / "link.csv"):
        with pytest.raises(ExportRefusedError, match="holds the answers themselves"):
            write_annotated(found, place, force=True)
    assert path.read_bytes() == before
    with pytest.raises(ExportRefusedError, match="has a column 'consensus' already"):
        read_annotated(tmp_path / "out.csv", annotators=NAMES)


def test_command__says_and_writes_it(told: tuple[Path, np.ndarray]) -> None:
    path, _ = told
    run = CliRunner().invoke
    out, names = path.with_name("told.csv"), ",".join(NAMES)
    said = run(cli, ["annotators", str(path), "--annotators", names, "--out", str(out)])
    assert said.exit_code == 0, said.output
    assert "900 answers on 300 pictures" in said.output
    assert f"Next: auditor import {out} --name NAME --label-column consensus" in said.output
    assert pd.read_csv(out, dtype=str)["consensus"].notna().all()
    found = json.loads(run(cli, ["annotators", str(path), "--annotators", "anna,ben", "--json"]).output)
    assert [one["annotator"] for one in found["annotators"]] == ["anna", "ben"]
