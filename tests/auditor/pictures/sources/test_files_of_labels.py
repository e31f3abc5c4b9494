"""Files and folders that other tools write: each is read as it is meant, and comes back in its own form."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from auditor.ground.errors import ImportRefusedError
from auditor.importing.imports import import_dataset
from auditor.outputs.export import export_table
from auditor.pictures.sources import (
    Problem,
    Rewritable,
    SourceOptions,
    SourceRow,
    open_here,
    read_bytes,
    remarks,
)
from tests.auditor.importing.world.cases import picture

Meant = dict[str, tuple[str | None, str | None]]


def put(folder: Path, *paths: str) -> None:
    """A picture of its own at each path."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(picture(path))


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
    export_table("a", tmp_path / "out", as_source=True)
    for file in ("train/metadata.jsonl", "test/metadata.jsonl"):
        assert (tmp_path / "out" / file).read_text() == (tmp_path / "set" / file).read_text()


def _arrays(first: str, second: str) -> dict[str, np.ndarray]:
    """Two pairs of images and labels under names such as ``{}_images``."""
    images = np.random.default_rng(0).integers(0, 255, (5, 8, 8, 3), np.uint8)
    labels = np.array([0, 1, 0, 1, 1])
    return {
        first.format("train"): images[:3],
        second.format("train"): labels[:3],
        first.format("test"): images[3:],
        second.format("test"): labels[3:],
    }


def _idx(values: np.ndarray) -> bytes:
    kind = {1: 8, 4: 12}[values.dtype.itemsize]
    sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
    return bytes([0, 0, kind, values.ndim]) + sizes + values.astype(values.dtype.newbyteorder(">")).tobytes()


def _npz(folder: Path, first: str, second: str, *, packed: bool = True, column: bool = False) -> Path:
    arrays = _arrays(first, second)
    if column:
        arrays = {name: one if one.ndim > 2 else one[:, None] for name, one in arrays.items()}
    (np.savez_compressed if packed else np.savez)(folder / "set.npz", **arrays)  # type: ignore[operator]
    return folder / "set.npz"


def _idx_files(folder: Path, *, packed: bool, dot: str = "-", wrapper: str = "") -> Path:
    place = folder / "mnist" / wrapper
    place.mkdir(parents=True)
    for split, part in (("train", slice(0, 3)), ("t10k", slice(3, 5))):
        arrays = _arrays("{}-images", "{}-labels")
        images = np.concatenate([arrays["train-images"], arrays["test-images"]])[part, :, :, 0]
        labels = np.concatenate([arrays["train-labels"], arrays["test-labels"]])[part].astype(np.uint8)
        for name, values in ((f"images{dot}idx3-ubyte", images), (f"labels{dot}idx1-ubyte", labels)):
            data = _idx(values)
            file = place / f"{split}-{name}{'.gz' if packed else ''}"
            file.write_bytes(gzip.compress(data) if packed else data)
    return folder / "mnist"


def _npy(folder: Path) -> Path:
    for name, values in _arrays("X_{}", "y_{}").items():
        np.save(folder / f"{name}.npy", values)
    return folder


ARRAYS: dict[str, Callable[[Path], Path]] = {
    "MedMNIST": lambda folder: _npz(folder, "{}_images", "{}_labels", column=True),
    "Keras": lambda folder: _npz(folder, "x_{}", "y_{}"),
    "the split first": lambda folder: _npz(folder, "{}_x", "{}_y", packed=False),
    "in capitals": lambda folder: _npz(folder, "X_{}", "Y_{}"),
    "MNIST": lambda folder: _idx_files(folder, packed=False),
    "MNIST, packed, as torchvision keeps it": lambda folder: _idx_files(folder, packed=True, wrapper="raw"),
    "MNIST of Kaggle": lambda folder: _idx_files(folder, packed=False, dot="."),
    "files of NumPy": _npy,
}


@pytest.mark.parametrize("name", list(ARRAYS))
def test_open_source__arrays_are_read_by_their_names_and_come_back_as_they_were(
    tmp_path: Path, name: str
) -> None:
    path = ARRAYS[name](tmp_path)
    source = open_here(str(path), SourceOptions())
    rows = [row for row in source.rows() if isinstance(row, SourceRow)]
    by_split = [(row.split, row.label) for row in rows]
    assert sorted(by_split, key=str) == sorted(
        [("train", "0"), ("train", "1"), ("train", "0"), ("test", "1"), ("test", "1")], key=str
    )
    pictures = [read_bytes(source.info.root, row.location) for row in rows]
    assert pictures == list(source.payloads(row.location for row in rows))
    values = [np.asarray(Image.open(io.BytesIO(data))) for data in pictures]
    images = np.concatenate(list(_arrays("{}_x", "{}_y").values())[::2])
    wanted = images if values[0].ndim == 3 else images[..., 0]
    order = [0, 1, 2, 3, 4] if rows[0].split == "train" else [3, 4, 0, 1, 2]
    assert all(np.array_equal(one, wanted[at]) for one, at in zip(values, order, strict=True))
    assert isinstance(source, Rewritable)
    out = tmp_path / "again" if path.is_dir() else tmp_path / "again.npz"
    source.write_again(out, ["1", "", None, "", ""], ["0", "1"])
    again = open_here(str(out), SourceOptions())
    kept = [row for row in again.rows() if isinstance(row, SourceRow)]
    assert [(row.split, row.label) for row in kept] == [
        (row.split, "1" if at == 0 else row.label) for at, row in enumerate(rows) if at != 2
    ]
    assert [pictures[at] for at in (0, 1, 3, 4)] == list(again.payloads(row.location for row in kept))


@pytest.mark.usefixtures("home")
def test_export__an_npz_goes_out_as_an_npz(tmp_path: Path) -> None:
    path = _npz(tmp_path, "{}_images", "{}_labels", column=True)
    import_dataset(path, name="a", workers=1)
    export_table("a", tmp_path / "again.npz")
    with np.load(path) as before, np.load(tmp_path / "again.npz") as after:
        assert before.files == after.files
        assert all(
            np.array_equal(before[name], after[name]) and before[name].dtype == after[name].dtype
            for name in before.files
        )


@pytest.mark.usefixtures("home")
def test_export__a_manifest_goes_out_as_a_manifest(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.png").write_bytes(picture(number))
    lines = [
        json.dumps(
            {
                "source-ref": f"{number}.png",
                "kind": number % 2,
                "kind-metadata": {"class-name": "ab"[number % 2], "type": "groundtruth/image-classification"},
            }
        )
        for number in range(4)
    ]
    (tmp_path / "output.manifest").write_text("\n".join(lines) + "\n")
    import_dataset(tmp_path / "output.manifest", name="a", workers=1)
    export_table("a", tmp_path / "again.manifest")
    again = [json.loads(line) for line in (tmp_path / "again.manifest").read_text().splitlines()]
    assert again == [json.loads(line) for line in lines]


def test_open_source__arrays_with_names_of_classes_and_without(tmp_path: Path) -> None:
    images = np.zeros((3, 6, 6), np.uint16)
    np.savez(tmp_path / "a.npz", images=images, labels=[1, 0, -1], class_names=np.array(["cat", "dog"]))
    assert [label for label, _ in found(tmp_path / "a.npz").values()] == ["dog", "cat", None]
    np.savez(tmp_path / "b.npz", arr_0=images, arr_1=np.eye(3, dtype=int))
    assert [label for label, _ in found(tmp_path / "b.npz").values()] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"a": np.zeros((3, 6, 6))}, "no arrays that are clearly images and labels"),
        ({"images": np.zeros((3, 6, 6)), "labels": np.zeros(2)}, "3 images and .* 2 labels"),
        ({"images": np.zeros((3, 6, 6, 6)), "labels": np.zeros(3)}, r"has the shape \(3, 6, 6, 6\)"),
        ({"images": np.zeros((3, 6, 6)), "labels": np.array([{}, 1, 2])}, "holds Python objects"),
    ],
)
def test_open_source__arrays_that_are_no_set_are_refused(
    tmp_path: Path, arrays: dict[str, np.ndarray], text: str
) -> None:
    np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(ImportRefusedError, match=text):
        open_here(str(tmp_path / "a.npz"), SourceOptions())


PATHS = ("images/0.png", "images/1.png", "images/2.png")
CLASSES = ("cat", "dog", "cat")
RECORDS = [{"image": path, "label": label} for path, label in zip(PATHS, CLASSES, strict=True)]
FILES: dict[str, tuple[str, object]] = {
    "a list of records": ("a.json", RECORDS),
    "records in an object": ("a.json", {"version": 1, "data": RECORDS}),
    "records with a list of one label": ("a.json", [one | {"label": [one["label"]]} for one in RECORDS]),
    "records with other names": (
        "a.json",
        [{"my picture": one["image"], "category": one["label"], "n": 1} for one in RECORDS],
    ),
    "FiftyOne, numbers": (
        "labels.json",
        {"classes": ["cat", "dog"], "labels": {"0": 0, "images/1": 1, "2": 0}},
    ),
    "FiftyOne, names": ("labels.json", {"classes": None, "labels": {"0": "cat", "1": "dog", "2": "cat"}}),
    "FiftyOne, with confidence": (
        "labels.json",
        {
            "classes": ["cat", "dog"],
            "labels": {str(n): {"label": n % 2, "confidence": 0.5} for n in range(3)},
        },
    ),
    "names of files": ("a.json", dict(zip(PATHS, CLASSES, strict=True))),
    "Ground Truth": (
        "output.manifest",
        [
            {
                "source-ref": f"s3://bucket/{path}",
                "animal": CLASSES.index(label),
                "animal-metadata": {"class-name": label, "confidence": 0.9},
            }
            for path, label in zip(PATHS, CLASSES, strict=True)
        ],
    ),
    "Azure": (
        "a.jsonl",
        [
            {"image_url": f"AmlDatastore://store/{path}", "label": label}
            for path, label in zip(PATHS, CLASSES, strict=True)
        ],
    ),
}


@pytest.mark.parametrize("name", list(FILES))
def test_open_source__json_of_other_tools_is_read_and_written_again(tmp_path: Path, name: str) -> None:
    put(tmp_path, *PATHS)
    file, value = FILES[name]
    is_lines = not file.endswith(".json")
    assert isinstance(value, (list, dict))
    text = "".join(json.dumps(one) + "\n" for one in value) if is_lines else json.dumps(value)
    (tmp_path / file).write_text(text)
    assert found(tmp_path / file) == {path: (label, None) for path, label in zip(PATHS, CLASSES, strict=True)}
    source = open_here(str(tmp_path / file), SourceOptions())
    assert isinstance(source, Rewritable)
    source.write_again(tmp_path / f"b{file}", ["", "", ""], ["cat", "dog"])
    assert (tmp_path / f"b{file}").read_text() == text
    source.write_again(tmp_path / f"b{file}", ["dog", "", None], ["cat", "dog"])
    assert found(tmp_path / f"b{file}") == {PATHS[0]: ("dog", None), PATHS[1]: ("dog", None)}


def _task(number: int, *said: tuple[int | None, str, bool], key: str = "annotations") -> dict[str, Any]:
    annotations = [
        {
            "completed_by": by,
            "ground_truth": is_truth,
            "result": [{"type": "choices", "from_name": "c", "value": {"choices": [name]}}],
        }
        for by, name, is_truth in said
    ]
    return {"id": number, "data": {"image": f"images/{number}.png"}, key: annotations}


def _box(number: int, *said: tuple[int | None, str, bool]) -> dict[str, Any]:
    labels = [
        {
            "label_details": {"created_by": by and f"{by}@x.org", "is_benchmark_reference": is_truth},
            "annotations": {"classifications": [{"name": "c", "radio_answer": {"name": name}}]},
        }
        for by, name, is_truth in said
    ]
    data_row = {"id": str(number), "external_id": f"images/{number}.png"}
    return {"data_row": data_row, "projects": {"p": {"labels": labels}}}


ANSWERS = {
    "all alike": (((1, "cat", False), (2, "cat", False)), "cat"),
    "ground truth": (((1, "dog", True), (2, "cat", False), (3, "cat", False)), "dog"),
    "changed their mind": (((1, "dog", False), (1, "cat", False)), "cat"),
    "two against one": (((1, "dog", False), (2, "cat", False), (3, "cat", False)), None),
    "two unknown people": (((None, "dog", False), (None, "cat", False)), None),
    "two truths": (((1, "dog", True), (2, "cat", True)), None),
}


@pytest.mark.parametrize("tool", ["tasks.json", "old.json", "export.ndjson"])
@pytest.mark.parametrize("name", list(ANSWERS))
def test_open_source__of_several_people_the_truth_counts_or_what_all_say(
    tmp_path: Path, name: str, tool: str
) -> None:
    put(tmp_path, *PATHS[:2])
    said, meant = ANSWERS[name]
    if tool.endswith(".ndjson"):
        values = [_box(0, *said), _box(1, (1, "dog", False))]
        (tmp_path / tool).write_text("".join(json.dumps(one) + "\n" for one in values))
    else:
        key = "completions" if tool == "old.json" else "annotations"
        tasks = [_task(0, *said, key=key), _task(1, (1, "dog", False), key=key)]
        (tmp_path / tool).write_text(json.dumps(tasks))
    source = open_here(str(tmp_path / tool), SourceOptions())
    first, second = source.rows()
    assert isinstance(second, SourceRow)
    if meant is None:
        assert isinstance(first, Problem)
        assert "people who differ (" in first.text
        return
    assert isinstance(first, SourceRow)
    assert (first.label, second.label) == (meant, "dog")
    assert isinstance(source, Rewritable)
    other = {"cat": "dog", "dog": "cat"}[meant]
    source.write_again(tmp_path / f"b{tool}", [other, ""], ["cat", "dog"])
    text = (tmp_path / f"b{tool}").read_text()
    by_others = [one for one in said if not one[2]]
    assert all(
        text.count(f'"{one}"') >= [two[1] for two in by_others[:-1]].count(one) for one in ("cat", "dog")
    )
    if not tool.endswith(".ndjson"):
        assert found(tmp_path / f"b{tool}") == {PATHS[0]: (other, None), PATHS[1]: ("dog", None)}
        written = json.loads(text)[0]["completions" if tool == "old.json" else "annotations"]
        if len({by for by, *_ in said}) > 1:
            assert [one["result"][0]["value"]["choices"] for one in written[:-1]] == [
                [one[1]] for one in said
            ]


def test_npz__labels_of_several_numbers_are_no_class(tmp_path: Path) -> None:
    images = np.zeros((2, 8, 8), np.uint8)
    np.savez(tmp_path / "set.npz", images=images, labels=np.array([[3, 0], [5, 0]]))
    rows = list(open_here(str(tmp_path / "set.npz"), SourceOptions()).rows())
    assert ["one number an image" in str(row) for row in rows] == [True, True]


@pytest.mark.usefixtures("home")
def test_export__a_table_in_a_named_encoding_comes_back_byte_by_byte(tmp_path: Path) -> None:
    put(tmp_path, "a.png", "b.png")
    file = tmp_path / "l.csv"
    file.write_bytes('\r\npath;label;note\r\na.png;Käse;"Öl; 1"\r\nb.png;Brot;\r\n'.encode("cp1252"))
    import_dataset(file, name="a", encoding="cp1252", workers=1)
    export_table("a", tmp_path / "out.csv", as_source=True)
    assert (tmp_path / "out.csv").read_bytes() == file.read_bytes()
