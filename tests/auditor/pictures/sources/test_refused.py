"""Labels that a column beside them refuses: they count for nothing, until somebody decides."""

from __future__ import annotations

import json
from pathlib import Path

from auditor.pictures.sources import Rewritable, SourceOptions, SourceRow, open_here, remarks
from tests.auditor.sample_pictures import write_csv, write_images

ANSWERS = ["accept", "reject", "ignore"]


def labels_of(file: Path) -> list[str | None]:
    """The labels that are read, in the order of the file."""
    rows = list(open_here(str(file), SourceOptions()).rows())
    assert all(isinstance(row, SourceRow) for row in rows), rows
    return [row.label for row in rows if isinstance(row, SourceRow)]


def test_rewritten__a_refused_label_that_was_decided_counts(tmp_path: Path) -> None:
    names = [path for path, _ in write_images(tmp_path, 3)]
    lines = [
        {"image": name, "label": "cat", "answer": answer} for name, answer in zip(names, ANSWERS, strict=True)
    ]
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    source = open_here(str(file), SourceOptions())
    assert labels_of(file) == ["cat", None, None]
    assert isinstance(source, Rewritable)
    source.write_again(tmp_path / "b.jsonl", ["", "dog", ""], ["cat", "dog"])
    assert labels_of(tmp_path / "b.jsonl") == ["cat", "dog", None]


def test_write_again__of_a_table_says_that_a_decided_label_counts(tmp_path: Path) -> None:
    names = [path for path, _ in write_images(tmp_path, 3)]
    rows = [(name, "cat", answer) for name, answer in zip(names, ANSWERS, strict=True)]
    file = write_csv(tmp_path / "a.csv", ("path", "label", "answer"), rows)
    source = open_here(str(file), SourceOptions())
    assert isinstance(source, Rewritable)
    source.write_again(tmp_path / "b.csv", ["", "dog", ""], ["cat", "dog"])
    assert labels_of(tmp_path / "b.csv") == ["cat", "dog", None]
    assert (tmp_path / "b.csv").read_text().splitlines()[2:] == [
        f"{names[1]},dog,accept",
        f"{names[2]},cat,ignore",
    ]


def test_remarks__count_each_refused_row_once(tmp_path: Path) -> None:
    names = [path for path, _ in write_images(tmp_path, 3)]
    rows = [(name, "cat", answer) for name, answer in zip(names, ANSWERS, strict=True)]
    source = open_here(str(write_csv(tmp_path / "a.csv", ("path", "label", "answer"), rows)), SourceOptions())
    for _ in range(2):
        list(source.rows())
    assert remarks(source) == [
        f"1 row without a label: {word!r} in the column 'answer'." for word in ("reject", "ignore")
    ]
