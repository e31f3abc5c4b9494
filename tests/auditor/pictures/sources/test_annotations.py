"""Files of annotations: read as rows, and written back as they came in with cleaned labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.catalog.records import Dataset
from auditor.errors import AuditorError, ExportRefusedError, ImportRefusedError
from auditor.importing.imports import BadRowsError, import_dataset, preview
from auditor.outputs import export
from auditor.review import decisions

CLASSES = ("cat", "dog")
LABELS = ("cat", "dog", "cat", "dog", "cat", "dog")


@pytest.fixture
def images(tmp_path: Path) -> list[str]:
    """Six small images below ``tmp_path/images``; their names."""
    folder = tmp_path / "images"
    folder.mkdir()
    names = [f"{number}.png" for number in range(len(LABELS))]
    for number, name in enumerate(names):
        pixels = np.random.default_rng(number).integers(0, 255, (12, 12, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / name)
    return [f"images/{name}" for name in names]


def write_jsonl(folder: Path, images: list[str]) -> Path:
    rows = [
        {"file_name": path, "label": label, "note": f"n{number}"}
        for number, (path, label) in enumerate(zip(images, LABELS, strict=True))
    ]
    (folder / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "metadata.jsonl"


def write_coco(folder: Path, images: list[str]) -> Path:
    value = {
        "info": {"year": 2024},
        "images": [{"id": 10 + n, "file_name": path, "width": 12} for n, path in enumerate(images)],
        "annotations": [
            {"id": 100 + n, "image_id": 10 + n, "category_id": 7 if label == "cat" else 9, "by": "ada"}
            for n, label in enumerate(LABELS)
        ],
        "categories": [{"id": 7, "name": "cat"}, {"id": 9, "name": "dog"}],
    }
    (folder / "coco.json").write_text(json.dumps(value))
    return folder / "coco.json"


def write_label_studio(folder: Path, images: list[str]) -> Path:
    tasks: list[dict[str, Any]] = [
        {
            "id": n,
            "data": {"image": f"/data/local-files/?d={path.replace('/', '%2F')}"},
            "annotations": [
                {"was_cancelled": True, "result": []},
                {"result": [{"type": "choices", "from_name": "kind", "value": {"choices": [label]}}]},
            ],
        }
        for n, (path, label) in enumerate(zip(images, LABELS, strict=True))
    ]
    (folder / "tasks.json").write_text(json.dumps(tasks))
    return folder / "tasks.json"


def write_cvat(folder: Path, images: list[str]) -> Path:
    root = ElementTree.Element("annotations")
    labels = ElementTree.SubElement(
        ElementTree.SubElement(ElementTree.SubElement(root, "meta"), "task"), "labels"
    )
    for name in CLASSES:
        ElementTree.SubElement(ElementTree.SubElement(labels, "label"), "name").text = name
    for n, (path, label) in enumerate(zip(images, LABELS, strict=True)):
        image = ElementTree.SubElement(root, "image", {"id": str(n), "name": path, "subset": "train"})
        ElementTree.SubElement(image, "tag", {"label": label, "source": "manual"})
    ElementTree.ElementTree(root).write(folder / "annotations.xml")
    return folder / "annotations.xml"


def write_image_list(folder: Path, images: list[str]) -> Path:
    lines = [f"{path} {CLASSES.index(label)}" for path, label in zip(images, LABELS, strict=True)]
    (folder / "val.txt").write_text("\n".join(lines) + "\n")
    (folder / "names.txt").write_text("\n".join(CLASSES) + "\n")
    return folder / "val.txt"


WRITERS = [write_jsonl, write_coco, write_label_studio, write_cvat, write_image_list]


def imported(name: str) -> Dataset:
    with session() as open_session:
        return datasets.get(open_session, name)


def decided(name: str) -> None:
    """Sample 0 becomes a dog, sample 3 goes."""
    dataset = imported(name)
    number = dataset.class_names.index("dog")
    decisions.decide(dataset.id, 0, "relabel", label=number, reviewer="ada")
    decisions.decide(dataset.id, 3, "exclude", reviewer="ada")


@pytest.mark.parametrize("write", WRITERS)
def test_annotations__come_in_and_go_out_in_their_form(
    home: Path, tmp_path: Path, images: list[str], write: Any
) -> None:
    source = write(tmp_path, images)
    names = tmp_path / "names.txt" if source.suffix == ".txt" else None
    report = import_dataset(source, name="set", class_names=names)
    dataset = imported("set")
    assert report.num_samples == len(LABELS)
    assert dataset.class_names == list(CLASSES)

    unchanged = tmp_path / f"same{source.suffix}"
    export.export("set", unchanged)
    again = import_dataset(unchanged, name="same", class_names=names)
    assert again.num_samples == len(LABELS)
    if source.suffix != ".xml":  # the parser does not keep its white space
        assert json_or_text(unchanged) == json_or_text(source)

    decided("set")
    cleaned = tmp_path / f"cleaned{source.suffix}"
    summary = export.export("set", cleaned)
    assert (summary.num_relabel, summary.num_exclude) == (1, 1)
    found = preview(cleaned, class_names=names)
    assert [row.label for row in found.first_rows] == ["dog", "dog", "cat", "cat", "dog"]
    assert images[3] not in cleaned.read_text()


def json_or_text(path: Path) -> Any:
    text = path.read_text()
    return json.loads(text) if path.suffix == ".json" else text


def test_coco__other_fields_and_numbers_stay(home: Path, tmp_path: Path, images: list[str]) -> None:
    import_dataset(write_coco(tmp_path, images), name="set")
    decided("set")
    export.export("set", tmp_path / "out.json")
    value = json.loads((tmp_path / "out.json").read_text())
    assert value["info"] == {"year": 2024}
    assert value["annotations"][0] == {"id": 100, "image_id": 10, "category_id": 9, "by": "ada"}
    assert {each["image_id"] for each in value["annotations"]} == {each["id"] for each in value["images"]}


def test_export__a_form_that_the_set_did_not_come_in_is_refused(
    home: Path, tmp_path: Path, images: list[str]
) -> None:
    import_dataset(write_jsonl(tmp_path, images), name="set")
    with pytest.raises(ExportRefusedError, match=r"\.csv, \.tsv or \.parquet"):
        export.export("set", tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", "{", "a.json is no JSON"),
        ("a.json", '{"images": []}', "neither COCO"),
        ("a.xml", "<annotations>", "a.xml is no XML"),
        ("a.xml", "<other/>", "no XML of CVAT"),
        ("a.jsonl", '{"file_name": "x.png", "label": "a"}\n{', "a.jsonl, row 2: is no JSON"),
        ("a.jsonl", "[]\n", "row 1: is no JSON object"),
        ("a.jsonl", '{"label": 1}\n', "no column that is clearly the path"),
    ],
)
def test_annotations__a_damaged_file_is_one_line(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ImportRefusedError, match=says) as refused:
        preview(tmp_path / name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "row"),
    [
        ("a.jsonl", '{"file_name": "images/0.png", "label": [1]}\n', 1),
        ("a.txt", "images/0.png 0\nimages/1.png one\n", 2),
        ("a.json", '[{"data": 3}]', 0),
        ("a.json", '[{"data": {"image": "images/nine.png"}, "annotations": []}]', 0),
    ],
)
def test_annotations__a_bad_entry_names_its_row(
    home: Path, tmp_path: Path, images: list[str], name: str, text: str, row: int
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadRowsError, match=f"^{name}, row {row}: ") as refused:
        import_dataset(tmp_path / name, name="set")
    assert refused.value.problems[0].row == row


def test_coco__two_categories_for_an_image_are_refused(home: Path, tmp_path: Path, images: list[str]) -> None:
    file = write_coco(tmp_path, images)
    value = json.loads(file.read_text())
    value["annotations"].append({"id": 1, "image_id": 10, "category_id": 9})
    file.write_text(json.dumps(value))
    with pytest.raises(BadRowsError, match=r"coco\.json, row 0: has annotations of several categories"):
        import_dataset(file, name="set")


@pytest.mark.parametrize(
    ("names", "says"), [("cat\ncat\n", "row 2"), ("cat\n", "none of the 1 class names"), ("", "is empty")]
)
def test_class_names__that_do_not_fit_are_refused(
    home: Path, tmp_path: Path, images: list[str], names: str, says: str
) -> None:
    source = write_image_list(tmp_path, images)
    (tmp_path / "names.txt").write_text(names)
    with pytest.raises(AuditorError, match=says):
        import_dataset(source, name="set", class_names=tmp_path / "names.txt")


def test_parquet__a_repository_of_hugging_face_keeps_its_splits(
    home: Path, tmp_path: Path, images: list[str]
) -> None:
    (tmp_path / "hub" / "data").mkdir(parents=True)
    for split, part in (("train", images[:4]), ("validation", images[4:])):
        cells = [{"bytes": (tmp_path / path).read_bytes(), "path": f"{n}.png"} for n, path in enumerate(part)]
        table = pa.table({"image": cells, "label": [0, 1] * (len(part) // 2)})
        pq.write_table(table, tmp_path / "hub" / "data" / f"{split}-00000-of-00001.parquet")
    import_dataset(tmp_path / "hub", name="set")
    found = preview(tmp_path / "hub")
    assert [row.split for row in found.first_rows] == ["train"] * 4 + ["validation"] * 2
    assert found.num_problems == 0


def test_parquet__images_as_paths_alone_are_read_below_the_folder(
    home: Path, tmp_path: Path, images: list[str]
) -> None:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    cells = pa.array([{"bytes": None, "path": path} for path in images], kind)
    pq.write_table(pa.table({"image": cells, "label": list(LABELS)}), tmp_path / "set.parquet")
    assert import_dataset(tmp_path / "set.parquet", name="set").num_samples == len(LABELS)


def test_save_to_disk__is_refused_with_what_to_run(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "data-00000-of-00001.arrow").write_bytes(b"")
    with pytest.raises(ImportRefusedError, match=r"load_from_disk\(.*\)\.to_parquet"):
        preview(tmp_path / "kept")
