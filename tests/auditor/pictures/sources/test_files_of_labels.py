"""Files and folders that other tools write: each is read as it is meant, and comes back in its own form."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from auditor.importing.imports import import_dataset
from auditor.outputs.export import export
from auditor.pictures.sources import Problem, SourceOptions, SourceRow, open_here, remarks
from tests.auditor.pictures.sources.test_layout import _picture

Meant = dict[str, tuple[str | None, str | None]]


def put(folder: Path, *paths: str) -> None:
    """A picture of its own at each path."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(_picture(path))


def found(source: Path, **options: object) -> Meant:
    """What was read: class and split by path. A problem is none of it."""
    rows = list(open_here(str(source), SourceOptions(**options)).rows())  # type: ignore[arg-type]
    assert not [str(row) for row in rows if isinstance(row, Problem)]
    return {row.location: (row.label, row.split) for row in rows if isinstance(row, SourceRow)}


def lines(folder: Path, file: str, *pairs: tuple[str, str]) -> None:
    text = "".join(json.dumps({"file_name": path, "label": label}) + "\n" for path, label in pairs)
    (folder / file).write_text(text)


def table(folder: Path, file: str, *pairs: tuple[str, str], header: str = "file_name,label") -> None:
    (folder / file).write_text("\n".join([header, *(",".join(pair) for pair in pairs)]) + "\n")


def coco(folder: Path, file: str, *pairs: tuple[str, str]) -> None:
    names = sorted({label for _, label in pairs})
    value = {
        "images": [{"id": n, "file_name": path} for n, (path, _) in enumerate(pairs)],
        "annotations": [
            {"id": n, "image_id": n, "category_id": names.index(label)} for n, (_, label) in enumerate(pairs)
        ],
        "categories": [{"id": n, "name": name} for n, name in enumerate(names)],
    }
    (folder / file).write_text(json.dumps(value))


SPLITS = {"train/0.png": ("cat", "train"), "train/1.png": ("dog", "train"), "test/0.png": ("dog", "test")}
TWO = (("0.png", "cat"), ("1.png", "dog"))
ONE = (("0.png", "dog"),)


def _with(write: Callable[..., None], file: str, **options: str) -> Callable[[Path], Meant]:
    def build(folder: Path) -> Meant:
        put(folder, *SPLITS)
        write(folder / "train", file, *TWO, **options)
        write(folder / "test", file, *ONE, **options)
        return SPLITS

    return build


def _wrapped(folder: Path) -> Meant:
    (folder / "data").mkdir(parents=True)
    meant = _with(table, "metadata.csv")(folder / "data")
    return {f"data/{path}": said for path, said in meant.items()}


def _images_below(folder: Path) -> Meant:
    meant = {path.replace("/", "/images/"): said for path, said in SPLITS.items()}
    put(folder, *meant)
    lines(folder / "train", "metadata.jsonl", *TWO)
    lines(folder / "test", "metadata.jsonl", ("images/0.png", "dog"))
    return meant


def _one_unlabeled(folder: Path) -> Meant:
    put(folder, *SPLITS)
    lines(folder / "train", "metadata.jsonl", *TWO)
    return SPLITS | {"test/0.png": (None, "test")}


def _one_for_all(folder: Path) -> Meant:
    put(folder, *SPLITS)
    table(folder, "metadata.csv", *((path, label or "") for path, (label, _) in SPLITS.items()))
    return SPLITS


def _one_hot(folder: Path) -> Meant:
    put(folder, *SPLITS)
    (folder / "train/_classes.csv").write_text("filename, cat, dog\n0.png, 1, 0\n1.png, 0, 1\n")
    (folder / "test/_classes.csv").write_text("filename, cat, dog\n0.png, 0, 1\n")
    return SPLITS


FOLDERS: dict[str, Callable[[Path], Meant]] = {
    "Hugging Face, jsonl in each split": _with(lines, "metadata.jsonl"),
    "Hugging Face, csv in each split": _with(table, "metadata.csv"),
    "in a wrapper": _wrapped,
    "images in a folder of each split": _images_below,
    "a test set without labels": _one_unlabeled,
    "one metadata.csv for all splits": _one_for_all,
    "Roboflow's COCO": _with(coco, "_annotations.coco.json"),
    "Roboflow's classes": _one_hot,
    "any table in a split": _with(table, "labels.csv", header="image,label"),
}


@pytest.mark.parametrize("name", list(FOLDERS))
def test_open_source__a_file_of_labels_in_each_split_is_one_set(tmp_path: Path, name: str) -> None:
    (tmp_path / "set").mkdir()
    meant = FOLDERS[name](tmp_path / "set")
    assert found(tmp_path / "set") == meant
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for file in sorted((tmp_path / "set").rglob("*.*")):
            archive.write(file, file.relative_to(tmp_path))
    assert found(tmp_path / "set.zip") == {f"set/{path}": said for path, said in meant.items()}


def test_open_source__what_lies_beside_splits_with_labels_is_said_to_be_left_out(tmp_path: Path) -> None:
    _with(lines, "metadata.jsonl")(tmp_path)
    put(tmp_path, "samples/9.png")
    source = open_here(str(tmp_path), SourceOptions())
    assert remarks(source) == [
        "Read as: test/ labels from metadata.jsonl; train/ labels from metadata.jsonl; samples/ left out."
    ]


def test_export__as_source_writes_the_file_of_each_split(home: Path, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    put(tmp_path / "set", "train/2.png", "test/1.png")
    _with(lines, "metadata.jsonl")(tmp_path / "set")
    lines(tmp_path / "set/train", "metadata.jsonl", *TWO, ("2.png", "cat"))
    import_dataset(tmp_path / "set", name="a")
    export("a", tmp_path / "out", as_source=True)
    for file in ("train/metadata.jsonl", "test/metadata.jsonl"):
        assert (tmp_path / "out" / file).read_text() == (tmp_path / "set" / file).read_text()
