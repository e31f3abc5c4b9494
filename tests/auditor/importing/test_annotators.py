"""Several people's answers from the files that hold them, through an audit, to what comes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from app.server import bench
from auditor.catalog import audits, datasets, reading
from auditor.catalog.db import ask, session
from auditor.cli.commands import cli
from auditor.ground.errors import ExportRefusedError, ImportRefusedError
from auditor.importing.imports import import_dataset, preview_source
from auditor.outputs import export, report
from auditor.pictures import cache
from auditor.results import settle
from auditor.review import decisions
from tests.auditor.sample_pictures import write_images
from tests.helpers import Digits

NAMES = ("anna", "ben", "cora")
NUM = 40


@pytest.fixture
def said(tmp_path: Path) -> pd.DataFrame:
    """Digits, three answers each of people of whom cora errs most; some cells are empty."""
    rows = write_images(tmp_path, NUM)
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rows, columns=["filepath", "truth"])
    for name, share in zip(NAMES, (0.0, 0.1, 0.4), strict=True):
        given = np.where(rng.random(NUM) < share, rng.integers(0, 10, NUM).astype(str), table.truth)
        given[rng.random(NUM) < 0.1] = ""
        table[name] = given
    table.loc[0, list(NAMES)] = ["0", "0", "5"]
    return table


def labels(name: str, by: dict[str, str] | None = None) -> list[dict[str, str]]:
    """Each picture's answers by name, and its label as ``consensus``."""
    dataset = reading.dataset(name)
    found = cache.answers(dataset)
    assert found is not None
    people, classes = dataset.annotators or [], dataset.class_names
    called = by or {one: one for one in people}
    given = ask(datasets.given_labels, dataset.id)
    return [
        {called[people[who]]: classes[label] for who, label in found.of_row(row)}
        | {"consensus": classes[given[row]]}
        for row in range(dataset.num_samples)
    ]


def write_label_studio(path: Path, table: pd.DataFrame) -> Path:
    def answer(who: str, label: str) -> dict[str, Any]:
        result = {"type": "choices", "from_name": "q", "to_name": "image", "value": {"choices": [label]}}
        return {"completed_by": who, "result": [result]}

    tasks = [
        {
            "data": {"image": row.filepath},
            "annotations": [answer(who, getattr(row, who)) for who in NAMES if getattr(row, who)],
        }
        for row in table.itertuples()
    ]
    path.write_text(json.dumps(tasks))
    return path


def test_import__reads_the_same_answers_from_every_kind_of_file(
    said: pd.DataFrame, home: Path, tmp_path: Path
) -> None:
    said.to_csv(tmp_path / "wide.csv", index=False)
    import_dataset(tmp_path / "wide.csv", name="wide", annotators=NAMES)
    wide = labels("wide")
    assert [{who: row[who] for who in NAMES if row[who]} for row in said.to_dict("records")] == [
        {who: one for who, one in row.items() if who != "consensus"} for row in wide
    ]
    assert np.mean([row["consensus"] == truth for row, truth in zip(wide, said.truth, strict=True)]) > 0.9

    long = said.melt(["filepath", "truth"], NAMES, "who", "said").query("said != ''")
    long.sort_values("filepath", kind="stable").to_csv(tmp_path / "long.csv", index=False)
    import_dataset(tmp_path / "long.csv", name="long", label_column="said", annotator_column="who")
    assert labels("long") == wide

    import_dataset(write_label_studio(tmp_path / "tasks.json", said), name="studio", annotators=["all"])
    assert labels("studio") == wide

    cells = [[int(one or -1) for one in row] for row in said[list(NAMES)].to_numpy()]
    images = [{"bytes": (tmp_path / path).read_bytes(), "path": path} for path in said.filepath]
    pq.write_table(pa.table({"image": images, "answers": cells}), tmp_path / "lists.parquet")
    import_dataset(tmp_path / "lists.parquet", name="lists", annotators=["answers"])
    assert labels("lists", {f"answers {at}": who for at, who in enumerate(NAMES, start=1)}) == wide
    assert (
        preview_source(tmp_path / "wide.csv", annotators=NAMES).counts["0"]
        == (said[list(NAMES)] == "0").sum().sum()
    )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"annotators": ["anna", "bne"]}, "no column 'bne'; did you mean 'ben'"),
        ({"annotator_column": "anna"}, "name its columns of annotators and of labels"),
        ({"annotator_column": "anna", "label_column": "nobody"}, "no column 'nobody'"),
    ],
)
def test_import__says_what_is_wrong_about_the_columns(
    said: pd.DataFrame, options: dict[str, Any], why: str, home: Path, tmp_path: Path
) -> None:
    said.to_csv(tmp_path / "wide.csv", index=False)
    with pytest.raises(ImportRefusedError, match=why):
        import_dataset(tmp_path / "wide.csv", name="set", **options)


def test_import__of_one_label_a_picture_takes_no_annotators(
    said: pd.DataFrame, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "val.txt").write_text(
        "".join(f"{path} {label}\n" for path, label in said[["filepath", "truth"]].values)
    )
    with pytest.raises(ImportRefusedError, match="read with one label a picture"):
        import_dataset(tmp_path / "val.txt", name="set", annotators=["all"])


def test_export__keeps_every_answer_and_adds_the_decision(
    said: pd.DataFrame, home: Path, tmp_path: Path
) -> None:
    said.to_csv(tmp_path / "wide.csv", index=False)
    import_dataset(tmp_path / "wide.csv", name="wide", annotators=NAMES)
    file = write_label_studio(tmp_path / "tasks.json", said)
    import_dataset(file, name="studio", annotators=["all"])
    for name in ("wide", "studio"):
        decisions.decide(reading.dataset(name).id, 0, "relabel", label=5, reviewer="ada")
        export.export_table(name, tmp_path / f"{name}-out.csv")
        found = pd.read_csv(tmp_path / f"{name}-out.csv", dtype=str, keep_default_na=False)
        pd.testing.assert_frame_equal(found[list(NAMES)], said[list(NAMES)])
        assert found.cleaned_label[0] == "5"
        assert (found.cleaned_label[1:] == found.given_label[1:]).all()
    export.export_table("studio", tmp_path / "out.json")
    before, after = json.loads(file.read_text()), json.loads((tmp_path / "out.json").read_text())
    assert after[1:] == before[1:]
    *answers, truth = after[0]["annotations"]
    assert answers == before[0]["annotations"]
    assert truth["ground_truth"]
    assert truth["result"][0]["value"] == {"choices": ["5"]}
    with pytest.raises(ExportRefusedError, match="no place for a decision; export a table"):
        export.export_table("wide", tmp_path / "again.csv", as_source=True)


def test_audit__judges_the_consensus_by_the_answers_and_the_picture(
    audited: tuple[Digits, int], home: Path
) -> None:
    digits, audit_id = audited
    dataset = reading.dataset("digits")
    rng, num = np.random.default_rng(0), dataset.num_samples
    wrong = rng.random((num, 2)) < 0.2
    others = np.where(wrong, rng.integers(0, 10, (num, 2)), digits.true_labels[:, None])
    table = np.column_stack([digits.given_labels, others])
    told = np.stack([np.repeat(np.arange(num), 3), np.tile(np.arange(3), num), table.ravel()]).astype(
        np.int32
    )
    np.save(cache.folder(dataset) / cache.ANSWERS, told)
    trust = settle.settle(audit_id).reading.trust_score
    with session() as open_session:
        datasets.change(open_session, dataset.id, annotators=list(NAMES))
    found = settle.settle(audit_id)
    # Two more people's answers find more of the first one's errors than the picture does.
    assert mean_rank(found.reading.trust_score, digits.is_wrong) < mean_rank(trust, digits.is_wrong)
    summary = ask(audits.get, audit_id).summary.annotators
    assert summary is not None
    assert summary["annotators"][0]["quality"] > summary["annotators"][1]["quality"]
    assert summary["ask_first"]

    text = report.report("digits")
    assert "Each label is their consensus" in text
    assert all(name in text for name in NAMES)
    card = bench.card({"audit": audit_id, "sample": 3})
    assert card["answers"] == [
        {"annotator": who, "label": int(one)} for who, one in zip(NAMES, table[3], strict=True)
    ]
    line = CliRunner().invoke(cli, ["annotators", "digits", "--json"])
    assert json.loads(line.output)["annotators"] == summary["annotators"]


def mean_rank(trust: np.ndarray, is_wrong: np.ndarray) -> float:
    return float(np.argsort(np.argsort(trust))[is_wrong].mean())
