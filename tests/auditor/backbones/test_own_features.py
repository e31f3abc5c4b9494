"""A user's own features from tables: matched by sample id or path, refused in one line where they do not fit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from auditor.backbones import features, own_features
from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.catalog.records import NewDataset
from auditor.ground.errors import ImportRefusedError

NUM, SIZE = 6, 12
VALUES = np.random.default_rng(0).normal(size=(NUM, SIZE)).astype(np.float32)
SHUFFLED = [3, 0, 5, 1, 4, 2]


@pytest.fixture(autouse=True)
def six(home: Path) -> None:
    """Six samples that were imported with a column of lists, and with three columns of numbers."""
    dataset = NewDataset(
        name="six",
        source="nowhere",
        source_kind="table",
        root="/nowhere",
        num_samples=NUM,
        channels=1,
        height=8,
        width=8,
        class_names=["cat", "dog"],
        user_columns=["emb", "v_0", "v_1", "v_10", "note"],
    )
    rows = [
        {
            "sample_id": i,
            "filepath": f"pictures/{i}.png",
            "location": f"{i}.png",
            "given_label": 0,
            "extra": {
                "emb": str(VALUES[i].tolist()),
                **{f"v_{k}": str(VALUES[i, n]) for n, k in enumerate((0, 1, 10))},
                "note": "a, b" if i == 2 else "1.5",
            },
        }
        for i in range(NUM)
    ]
    with session() as open_session:
        datasets.create(open_session, dataset, rows)


def kept(source: features.FeatureSource) -> np.ndarray:
    with session() as open_session:
        dataset = datasets.get(open_session, "six")
    return np.asarray(features.load(dataset.id, source))


def table(*, key: str = "sample_id") -> pd.DataFrame:
    """Rows in another order than the dataset's, the features both as lists and as columns."""
    keys = SHUFFLED if key == "sample_id" else [f"pictures/{i}.png" for i in SHUFFLED]
    frame = pd.DataFrame({key: keys, "lists": list(VALUES[SHUFFLED])})
    columns = pd.DataFrame(VALUES[SHUFFLED], columns=[f"emb_{k}" for k in range(SIZE)])
    # As text they would be sorted emb_0, emb_1, emb_10, emb_11, emb_2.
    return pd.concat([frame, columns[sorted(columns)]], axis=1)


@pytest.mark.parametrize("key", ["sample_id", "filepath", "my picture"])
@pytest.mark.parametrize("column", ["lists", "emb_", "emb"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_add__a_table_in_any_order(tmp_path: Path, key: str, column: str, suffix: str) -> None:
    frame, path = table(key=key), tmp_path / f"mine{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame["lists"] = [json.dumps(each.tolist()) for each in frame["lists"]]
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    source = own_features.add("six", path, column=column)
    assert (source.name, source.weights) == ("own:mine", None)
    np.testing.assert_allclose(kept(source)[:, 0], VALUES, rtol=1e-6)


def test_add__the_only_column_with_lists_needs_no_name(tmp_path: Path) -> None:
    table().to_parquet(tmp_path / "mine.parquet")
    np.testing.assert_array_equal(kept(own_features.add("six", tmp_path / "mine.parquet"))[:, 0], VALUES)


@pytest.mark.parametrize(
    ("wanted", "expected"), [("emb", VALUES), ("v_", VALUES[:, :3]), ("v", VALUES[:, :3])]
)
def test_add__columns_of_the_dataset(wanted: str, expected: np.ndarray) -> None:
    source = own_features.add("six", f"column:{wanted}")
    assert source.name == f"own:{wanted}"
    np.testing.assert_allclose(kept(source)[:, 0], expected, rtol=1e-6)


def test_add__an_array_with_views(tmp_path: Path) -> None:
    views = np.stack([VALUES, -VALUES], axis=1)
    assert own_features.add("six", views).views == 2
    np.save(tmp_path / "mine.npy", views)
    np.testing.assert_array_equal(kept(own_features.add("six", tmp_path / "mine.npy")), views)


def refused(path: Path, frame: pd.DataFrame, column: str | None = "lists") -> str:
    frame.to_parquet(path)
    with pytest.raises(ImportRefusedError) as refusal:
        own_features.add("six", path, column=column)
    text = str(refusal.value)
    assert text.startswith(f"{path}")
    assert "\n" not in text
    return text.removeprefix(f"{path}")


def with_cell(cell: object) -> pd.DataFrame:
    """The table with something else in row 2, which is about sample 5."""
    frame = table()[["sample_id", "lists"]]
    frame["lists"] = [cell if row == 2 else list(each) for row, each in enumerate(frame["lists"])]
    return frame


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ([0.5] * 11, "has 11 values and row 0 (pictures/3.png) has 12; every sample needs equally many"),
        ([0.5] * 11 + [float("nan")], "has nan as value 11 (counted from 0); features must be finite"),
        ([float("inf")] + [0.5] * 11, "has inf as value 0"),
        (None, "has no features; features must be finite numbers: embed that image again"),
        ([], "holds values of the shape (0,); give one list of numbers"),
    ],
)
def test_add__a_row_that_does_not_fit_is_named(tmp_path: Path, cell: object, text: str) -> None:
    found = refused(tmp_path / "mine.parquet", with_cell(cell))
    assert found.startswith(": row 2 (pictures/5.png) ")
    assert text in found


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("[0.1, 0.2, ..., 0.9]", "was cut short where it was written"),
        ("[0.1, x]", "holds something that is not a number (could not convert string to float: 'x')"),
        ("", "has no features"),
    ],
)
def test_add__text_that_is_no_list_is_named(tmp_path: Path, cell: str, text: str) -> None:
    frame = with_cell(cell)
    frame["lists"] = [
        each if isinstance(each, str) else str([float(x) for x in each]) for each in frame["lists"]
    ]
    frame.to_csv(tmp_path / "mine.csv", index=False)
    with pytest.raises(ImportRefusedError, match=re.escape(f"row 2 (pictures/5.png) {text}")):
        own_features.add("six", tmp_path / "mine.csv", column="lists")


def test_add__keys_that_do_not_fit_are_named(tmp_path: Path) -> None:
    path, whole = tmp_path / "mine.parquet", table()
    assert refused(path, whole[whole.sample_id != 4]) == (
        " has no row for sample 4 (pictures/4.png; 1 such sample); features are needed for every sample: add the "
        "rows that are missing."
    )
    assert "row 0 is for 9, which is not in the data set" in refused(
        path, whole.assign(sample_id=[9, *SHUFFLED[1:]])
    )
    assert "row 1 repeats 3" in refused(path, whole.assign(sample_id=[3, 3, *SHUFFLED[2:]]))
    assert "no column says which row is about which sample" in refused(path, whole.drop(columns="sample_id"))
    both = whole.assign(filepath=[f"pictures/{i}.png" for i in sorted(SHUFFLED)])
    assert "row 0 has sample_id 3, which is 'pictures/3.png', and the path 'pictures/0.png'" in refused(
        path, both
    )


def test_add__a_column_that_is_not_there_is_answered_with_a_near_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    assert (
        refused(path, table(), "list")
        == " has no column 'list' and none list0, list1, ...; did you mean 'lists'?"
    )
    unclear = refused(path, table().drop(columns="lists"), None)
    assert "it is not clear which column holds the features; name it as the column of features." in unclear
    with pytest.raises(ImportRefusedError, match=r"six has no column 'nothing'.* Its columns are emb, v_0"):
        own_features.add("six", "column:nothing")
    with pytest.raises(ImportRefusedError, match=r"column:note: sample 2 \(pictures/2.png\) holds something"):
        own_features.add("six", "column:note")


def test_add__a_file_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(ImportRefusedError, match=r"does not exist; give a \.csv, .* or \.npy of features"):
        own_features.add("six", tmp_path / "none.csv")
    np.save(tmp_path / "mine.npy", VALUES)
    with pytest.raises(ImportRefusedError, match="is an array and has no columns"):
        own_features.add("six", tmp_path / "mine.npy", column="emb")
