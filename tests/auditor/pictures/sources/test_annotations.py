"""Files of annotations: read as rows, and written back as they came in with cleaned labels."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
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
from auditor.ground.errors import AuditorError, ExportRefusedError, ImportRefusedError
from auditor.importing.imports import BadRowsError, import_dataset, preview_source
from auditor.outputs import export
from auditor.pictures import cache
from auditor.pictures.sources.labelbox import Labelbox
from auditor.pictures.sources.rows import SourceOptions
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


def write_labelbox(folder: Path, images: list[str]) -> Path:
    rows = []
    for n, (path, label) in enumerate(zip(images, LABELS, strict=True)):
        answer = {"feature_id": f"f{n}", "name": label, "value": label, "classifications": []}
        said = [{"name": "kind", "value": "kind", "radio_answer": answer}]
        label_of_ours = {"id": f"l{n}", "annotations": {"objects": [], "classifications": said}}
        older = {"id": f"o{n}", "annotations": {"classifications": []}}
        rows.append(
            {
                "data_row": {"id": f"d{n}", "external_id": path, "row_data": f"https://host/{path}"},
                "projects": {"p": {"name": "pets", "labels": [older, label_of_ours]}},
            }
        )
    (folder / "export.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "export.ndjson"


WRITERS = [write_jsonl, write_coco, write_label_studio, write_cvat, write_image_list, write_labelbox]


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
    export.export_table("set", unchanged)
    again = import_dataset(unchanged, name="same", class_names=names)
    assert again.num_samples == len(LABELS)
    if source.suffix != ".xml":  # the parser does not keep its white space
        assert json_or_text(unchanged) == json_or_text(source)

    decided("set")
    cleaned = tmp_path / f"cleaned{source.suffix}"
    summary = export.export_table("set", cleaned)
    assert (summary.num_relabel, summary.num_exclude) == (1, 1)
    found = preview_source(cleaned, class_names=names)
    assert [row.label for row in found.first_rows] == ["dog", "dog", "cat", "cat", "dog"]
    assert images[3] not in cleaned.read_text()


def json_or_text(path: Path) -> Any:
    text = path.read_text()
    return json.loads(text) if path.suffix == ".json" else text


def test_label_studio__csv_with_the_paths_of_its_server(
    home: Path, tmp_path: Path, images: list[str]
) -> None:
    lines = [
        f"{n},/data/local-files/?d={path.replace('/', '%2F')},{label},ada"
        for n, (path, label) in enumerate(zip(images, LABELS, strict=True))
    ]
    (tmp_path / "project.csv").write_text("\n".join(["id,image,choice,annotator", *lines]) + "\n")
    import_dataset(tmp_path / "project.csv", name="set")
    decided("set")
    export.export_table("set", tmp_path / "cleaned.csv", as_source=True)
    wanted = [lines[0].replace("cat", "dog"), *lines[1:3], *lines[4:]]
    assert (tmp_path / "cleaned.csv").read_text().splitlines()[1:] == wanted

    lines[2] = lines[2].replace(",cat,", ',"{""choices"": [""cat"", ""dog""]}",')
    (tmp_path / "several.csv").write_text("\n".join(["id,image,choice,annotator", *lines]) + "\n")
    with pytest.raises(BadRowsError, match=r"several\.csv, row 4: has several choices"):
        import_dataset(tmp_path / "several.csv", name="several")


def studio_task(number: int, path: str, answers: list[tuple[str, str]]) -> dict[str, Any]:
    """A task as label-studio-sdk 2.1's converter writes it."""
    results = [
        {
            "value": {"choices": [answer]},
            "id": f"r{number}",
            "from_name": question,
            "to_name": "photo",
            "type": "choices",
            "origin": "manual",
        }
        for question, answer in answers
    ]
    annotation = {"id": 500 + number, "was_cancelled": False, "result": results, "lead_time": 3.5}
    return {
        "id": 40 + number,
        "annotations": [annotation] if answers else [],
        "data": {"image": f"/data/upload/{path}", "weight": number},
        "meta": {"k": number},
    }


def test_label_studio__an_image_without_a_label_is_answered_as_the_project_asks(
    home: Path, tmp_path: Path, images: list[str]
) -> None:
    said = [[("species", label)] for label in LABELS[:5]] + [[]]
    tasks = [
        studio_task(n, path, answers) for n, (path, answers) in enumerate(zip(images, said, strict=True))
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    import_dataset(tmp_path / "tasks.json", name="set")
    dataset = imported("set")
    assert dataset.label_column == "species"
    decisions.decide(dataset.id, 5, "relabel", label=dataset.class_names.index("dog"), reviewer="ada")
    export.export_table("set", tmp_path / "out.json")
    value = json.loads((tmp_path / "out.json").read_text())
    assert value[:5] == tasks[:5]
    answer = {"type": "choices", "from_name": "species", "to_name": "photo", "value": {"choices": ["dog"]}}
    assert value[5] == tasks[5] | {"annotations": [{"result": [answer]}]}


def test_label_studio__of_several_questions_one_is_named(
    home: Path, tmp_path: Path, images: list[str]
) -> None:
    tasks = [
        studio_task(n, path, [("quality", "good"), ("species", label)])
        for n, (path, label) in enumerate(zip(images, LABELS, strict=True))
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    with pytest.raises(ImportRefusedError, match=r"several questions \(quality, species\)") as refused:
        import_dataset(tmp_path / "tasks.json", name="set")
    assert refused.value.field == "label_column"
    import_dataset(tmp_path / "tasks.json", name="set", label_column="species")
    decided("set")
    export.export_table("set", tmp_path / "out.json")
    value = json.loads((tmp_path / "out.json").read_text())
    said = [[result["value"]["choices"][0] for result in task["annotations"][0]["result"]] for task in value]
    assert said == [["good", "dog"], ["good", "dog"], ["good", "cat"], ["good", "cat"], ["good", "dog"]]


def test_label_studio__json_min_keeps_its_fields(home: Path, tmp_path: Path, images: list[str]) -> None:
    tasks = [
        {"image": f"/data/local-files/?d={path}", "weight": n, "id": 40 + n, "annotator": "a@x.org"}
        | ({"species": label} if n != 2 else {})
        for n, (path, label) in enumerate(zip(images, LABELS, strict=True))
    ]
    (tmp_path / "min.json").write_text(json.dumps(tasks))
    import_dataset(tmp_path / "min.json", name="set", label_column="species")
    decided("set")
    export.export_table("set", tmp_path / "out.json")
    wanted = [tasks[0] | {"species": "dog"}, *tasks[1:3], *tasks[4:]]
    assert json.loads((tmp_path / "out.json").read_text()) == wanted

    tasks[4]["species"] = {"choices": ["cat", "dog"]}
    (tmp_path / "min.json").write_text(json.dumps(tasks))
    with pytest.raises(BadRowsError, match=r"min\.json, row 4: has several choices"):
        import_dataset(tmp_path / "min.json", name="several", label_column="species")


def test_label_studio__json_min_keeps_what_several_people_answered(
    home: Path, tmp_path: Path, images: list[str]
) -> None:
    said = [
        {"image": path, "choice": label, "annotator": person}
        for person in (1, 2)
        for path, label in zip(images, LABELS, strict=True)
    ]
    (tmp_path / "min.json").write_text(json.dumps(said))
    import_dataset(tmp_path / "min.json", name="set")
    decided("set")
    export.export_table("set", tmp_path / "out.json")
    written = json.loads((tmp_path / "out.json").read_text())
    assert [one["annotator"] for one in written if one["image"] == images[0]] == [1, 2, None]
    assert [one["choice"] for one in written if one["image"] == images[0]] == ["cat", "cat", "dog"]
    assert {row.filepath: row.label for row in preview_source(tmp_path / "out.json").first_rows}[
        images[0]
    ] == "dog"


def labelbox_row(number: int, path: str, answers: dict[str, str]) -> dict[str, Any]:
    """A data row that is named by its global key, as Labelbox's second export format has it."""
    said = [
        {
            "feature_id": f"q{number}",
            "feature_schema_id": f"schema-{question}",
            "name": question,
            "value": question,
            "radio_answer": {
                "feature_id": f"a{number}",
                "feature_schema_id": f"schema-{answer}",
                "name": answer.title(),
                "value": answer,
            },
        }
        for question, answer in answers.items()
    ]
    label = {"label_kind": "Default", "id": f"l{number}", "annotations": {"classifications": said}}
    data_row = {"id": f"d{number}", "global_key": path, "row_data": f"https://host/{number}?token"}
    return {"data_row": data_row, "projects": {"p": {"labels": [label]}}}


def test_labelbox__the_answer_changes_with_its_ids_in_the_ontology(
    home: Path, tmp_path: Path, images: list[str]
) -> None:
    rows = [
        labelbox_row(n, path, {"sharp": "yes", "kind": label})
        for n, (path, label) in enumerate(zip(images, LABELS, strict=True))
    ]
    file = tmp_path / "export.ndjson"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ImportRefusedError, match=r"several questions \(sharp, kind\)"):
        import_dataset(file, name="set")
    import_dataset(file, name="set", label_column="kind")
    dataset = imported("set")
    assert dataset.class_names == ["Cat", "Dog"]
    decisions.decide(dataset.id, 0, "relabel", label=1, reviewer="ada")
    export.export_table("set", tmp_path / "out.ndjson")
    found = [json.loads(line) for line in (tmp_path / "out.ndjson").read_text().splitlines()]
    assert found[1:] == rows[1:]
    sharp, kind = found[0]["projects"]["p"]["labels"][0]["annotations"]["classifications"]
    assert sharp["radio_answer"]["value"] == "yes"
    chosen = {"feature_id": "a0", "feature_schema_id": "schema-dog", "name": "Dog", "value": "dog"}
    assert kind["radio_answer"] == chosen


def test_labelbox__a_class_that_nobody_answered_gets_no_id_of_another(
    home: Path, tmp_path: Path, images: list[str]
) -> None:
    rows = [labelbox_row(n, path, {"kind": "cat"}) for n, path in enumerate(images)]
    (tmp_path / "export.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = Labelbox(tmp_path / "export.ndjson", SourceOptions())
    text = found.rewritten(lambda path: "emu" if path == images[0] else "")
    first = json.loads(text.splitlines()[0])
    answer = first["projects"]["p"]["labels"][0]["annotations"]["classifications"][0]["radio_answer"]
    assert answer == {"feature_id": "a0", "name": "emu", "value": "emu"}


def test_metadata__names_the_folder_that_it_lies_in(home: Path, tmp_path: Path, images: list[str]) -> None:
    write_jsonl(tmp_path, images)
    import_dataset(tmp_path, name="set")
    decided("set")
    export.export_table("set", tmp_path / "cleaned", as_source=True)
    rows = [json.loads(line) for line in (tmp_path / "cleaned" / "metadata.jsonl").read_text().splitlines()]
    assert [(row["label"], row["note"]) for row in rows][:2] == [("dog", "n0"), ("dog", "n1")]


def test_coco__other_fields_and_numbers_stay(home: Path, tmp_path: Path, images: list[str]) -> None:
    import_dataset(write_coco(tmp_path, images), name="set")
    decided("set")
    export.export_table("set", tmp_path / "out.json")
    value = json.loads((tmp_path / "out.json").read_text())
    assert value["info"] == {"year": 2024}
    assert value["annotations"][0] == {"id": 100, "image_id": 10, "category_id": 9, "by": "ada"}
    assert {each["image_id"] for each in value["annotations"]} == {each["id"] for each in value["images"]}


def test_export__a_form_that_the_set_did_not_come_in_is_refused(
    home: Path, tmp_path: Path, images: list[str]
) -> None:
    import_dataset(write_jsonl(tmp_path, images), name="set")
    with pytest.raises(ExportRefusedError, match=r"\.csv, \.tsv or \.parquet"):
        export.export_table("set", tmp_path / "out.json")
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
        preview_source(tmp_path / name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "row"),
    [
        ("a.jsonl", '{"file_name": "images/0.png", "label": [1, 2]}\n', 1),
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


def changed_coco(folder: Path, images: list[str], part: str, at: int, changes: dict[str, Any] | None) -> Path:
    """COCO in which one image, annotation or category has other values, or is null."""
    file = write_coco(folder, images)
    value = json.loads(file.read_text())
    value[part][at] = changes if changes is None else value[part][at] | changes
    file.write_text(json.dumps(value))
    return file


@pytest.mark.parametrize(
    ("part", "changes", "says"),
    [
        ("annotations", None, r"annotation 1 \(from 0\) needs an image_id"),
        ("annotations", {"image_id": [1]}, r"annotation 1 \(from 0\) needs an image_id"),
        ("annotations", {"category_id": [1]}, r"annotation 1 \(from 0\) needs an image_id"),
        ("categories", {"id": 7}, "two categories have the same id"),
        ("categories", {"name": " "}, "blank or no valid text"),
        ("categories", {"name": None}, "blank or no valid text"),
        ("categories", {"name": "\ud800"}, "blank or no valid text"),
    ],
)
def test_coco__what_no_image_can_be_blamed_for_is_refused(
    tmp_path: Path, images: list[str], part: str, changes: dict[str, Any] | None, says: str
) -> None:
    file = changed_coco(tmp_path, images, part, 1, changes)
    with pytest.raises(ImportRefusedError, match=rf"coco\.json: .*{says}"):
        preview_source(file)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (None, "is no image of COCO"),
        ({"id": [1]}, "has no id"),
        ({"id": 10}, "has the id of an earlier image"),
        ({"file_name": None}, "names no file"),
    ],
)
def test_coco__a_bad_image_is_left_out_and_stays_in_the_file(
    home: Path, tmp_path: Path, images: list[str], changes: dict[str, Any] | None, says: str
) -> None:
    file = changed_coco(tmp_path, images, "images", 1, changes)
    with pytest.raises(BadRowsError, match=rf"coco\.json, row 1: {says}"):
        import_dataset(file, name="set")
    import_dataset(file, name="set", skip_bad=True)
    decisions.decide(1, 0, "relabel", label=1, reviewer="ann")
    export.export_table("set", tmp_path / "out.json")
    before, after = (json.loads(path.read_text()) for path in (file, tmp_path / "out.json"))
    assert after["images"] == before["images"]
    assert after["annotations"][0]["category_id"] == 9


@pytest.mark.parametrize(
    ("write", "place"),
    [(write_jsonl, ("label",)), (write_label_studio, ("annotations", 1, "result", 0, "value", "choices", 0))],
)
def test_annotations__half_a_pair_is_no_label_and_stays_in_the_file(
    home: Path,
    tmp_path: Path,
    images: list[str],
    write: Callable[[Path, list[str]], Path],
    place: tuple[Any, ...],
) -> None:
    file = write(tmp_path, images)
    rows = json.loads(file.read_text()) if file.suffix == ".json" else [*map(json.loads, file.open())]
    inner = rows[1]
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = "\ud800"
    file.write_text(json.dumps(rows) if file.suffix == ".json" else "\n".join(map(json.dumps, rows)) + "\n")
    with pytest.raises(BadRowsError, match="has a label or a column that is not valid text"):
        import_dataset(file, name="set")
    import_dataset(file, name="set", skip_bad=True)
    export.export_table("set", tmp_path / f"out{file.suffix}")
    assert "\\ud800" in (tmp_path / f"out{file.suffix}").read_text()
    export.export_table("set", tmp_path / "out.csv")


def test_label_studio__choices_that_are_no_list_name_their_row(
    home: Path, tmp_path: Path, images: list[str]
) -> None:
    file = write_label_studio(tmp_path, images)
    tasks = json.loads(file.read_text())
    tasks[2]["annotations"][1]["result"][0]["value"]["choices"] = {"cat": 1}
    tasks[3] = None
    file.write_text(json.dumps(tasks))
    with pytest.raises(BadRowsError, match="row 2: has choices that are no list of names"):
        import_dataset(file, name="set")
    import_dataset(file, name="set", skip_bad=True)
    decisions.decide(1, 0, "relabel", label=1, reviewer="ann")
    export.export_table("set", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text())[2:4] == tasks[2:4]


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


def test_class_names__numbers_as_pandas_writes_them_beside_empty_cells_are_named(
    home: Path, tmp_path: Path, images: list[str]
) -> None:
    rows = [
        f"{path},{label}" for path, label in zip(images, ("0.0", "1.0", "1", "", "0", "1.0"), strict=True)
    ]
    (tmp_path / "labels.csv").write_text("\n".join(["path,label", *rows]) + "\n")
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    import_dataset(tmp_path / "labels.csv", name="set", class_names=tmp_path / "names.txt")
    with session() as open_session:
        assert datasets.get(open_session, "set").class_names == ["cat", "dog"]
        assert datasets.given_labels(open_session, 1).tolist() == [0, 1, 1, -1, 0, 1]


def test_parquet__a_repository_of_hugging_face_keeps_its_splits(
    home: Path, tmp_path: Path, images: list[str]
) -> None:
    (tmp_path / "hub" / "data").mkdir(parents=True)
    for split, part in (("train", images[:4]), ("validation", images[4:])):
        cells = [{"bytes": (tmp_path / path).read_bytes(), "path": f"{n}.png"} for n, path in enumerate(part)]
        table = pa.table({"image": cells, "label": [0, 1] * (len(part) // 2)})
        pq.write_table(table, tmp_path / "hub" / "data" / f"{split}-00000-of-00001.parquet")
    import_dataset(tmp_path / "hub", name="set")
    found = preview_source(tmp_path / "hub")
    assert [row.split for row in found.first_rows] == ["train"] * 4 + ["validation"] * 2
    assert found.num_problems == 0


def test_parquet__images_as_paths_alone_are_read_below_the_folder(
    home: Path, tmp_path: Path, images: list[str]
) -> None:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    cells = pa.array([{"bytes": None, "path": path} for path in images], kind)
    pq.write_table(pa.table({"image": cells, "label": list(LABELS)}), tmp_path / "set.parquet")
    assert import_dataset(tmp_path / "set.parquet", name="set").num_samples == len(LABELS)


def write_boxes(folder: Path, images: list[str]) -> Path:
    """Three boxes on the first image, one on the second."""
    boxes = [(0, [0, 0, 6, 6], 7), (0, [6, 0, 6.5, 6], 9), (0, [0, 6, 12, 6], 7), (1, [2, 3, 4, 5], 9)]
    value = {
        "images": [{"id": 10 + n, "file_name": path} for n, path in enumerate(images)],
        "annotations": [
            {"id": 100 + n, "image_id": 10 + image, "bbox": box, "category_id": category, "iscrowd": 0}
            for n, (image, box, category) in enumerate(boxes)
        ],
        "categories": [{"id": 7, "name": "cat"}, {"id": 9, "name": "dog"}],
    }
    (folder / "boxes.json").write_text(json.dumps(value))
    return folder / "boxes.json"


def test_boxes__of_coco_become_samples_and_go_out_as_boxes(
    home: Path, tmp_path: Path, images: list[str]
) -> None:
    source = write_boxes(tmp_path, images)
    import_dataset(source, name="set", boxes=True)
    dataset = imported("set")
    with session() as open_session:
        samples = list(datasets.iterate_samples(open_session, dataset.id))
    assert [dataset.class_names[sample.given_label] for sample in samples] == ["cat", "dog", "cat", "dog"]
    with Image.open(io.BytesIO(cache.original_bytes(dataset, samples[3]))) as crop:
        part = np.asarray(crop)
    assert np.array_equal(part, np.asarray(Image.open(tmp_path / images[1]))[3:8, 2:6])

    decided("set")
    export.export_table("set", tmp_path / "out.json")
    value, before = (json.loads(file.read_text()) for file in (tmp_path / "out.json", source))
    assert [(each["id"], each["category_id"]) for each in value["annotations"]] == [
        (100, 9),
        (101, 9),
        (102, 7),
    ]
    assert value["images"] == before["images"]
    assert value["annotations"][1] == before["annotations"][1]


@pytest.mark.parametrize(
    ("box", "says"),
    [([20, 20, 5, 5], "box outside the image of 12 x 12"), ([1, 2], "has no box of four numbers")],
)
def test_boxes__a_box_that_cannot_be_cut_names_its_row(
    home: Path, tmp_path: Path, images: list[str], box: list[int], says: str
) -> None:
    source = write_boxes(tmp_path, images)
    value = json.loads(source.read_text())
    value["annotations"][2]["bbox"] = box
    source.write_text(json.dumps(value))
    with pytest.raises(BadRowsError, match=rf"^boxes\.json, row 2: .*{says}"):
        import_dataset(source, name="set", boxes=True)


def test_boxes__of_another_file_are_refused(tmp_path: Path, images: list[str]) -> None:
    with pytest.raises(ImportRefusedError, match="is no COCO file with boxes"):
        preview_source(write_jsonl(tmp_path, images), boxes=True)
