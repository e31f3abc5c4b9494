"""Classes that are renamed, merged and split: what engines, people and sources said follows."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import auditor
from auditor.catalog import datasets, jobs, reading
from auditor.catalog.db import ask, session
from auditor.ground.errors import ReviewError
from auditor.outputs import export
from auditor.results import arrays, class_changes, settle, statements
from auditor.review import blind, decisions, drawing
from tests.auditor.conftest import Run
from tests.helpers import Digits
from tests.masked import Audited

ANN = {"reviewer": "ann"}
PETS = ["cat", "cat", "kitten", "kitten", "dog", "dog", "fox"]


def table_of(folder: Path) -> Path:
    write_pictures(folder)
    rows = [f"{i}.png,{label}\n" for i, label in enumerate(PETS)]
    (folder / "pets.csv").write_text("filepath,label\n" + "".join(rows))
    return folder / "pets.csv"


def coco_of(folder: Path) -> Path:
    write_pictures(folder)
    names = ["cat", "kitten", "dog", "fox"]
    value = {
        "images": [{"id": i, "file_name": f"{i}.png"} for i in range(len(PETS))],
        "annotations": [
            {"id": i, "image_id": i, "category_id": 10 + names.index(name)} for i, name in enumerate(PETS)
        ],
        "categories": [{"id": 10 + i, "name": name, "supercategory": "pet"} for i, name in enumerate(names)],
    }
    (folder / "pets.json").write_text(json.dumps(value))
    return folder / "pets.json"


def coco_splits_of(folder: Path) -> Path:
    """What Roboflow writes: a folder a split, in each a file of its own, whose numbers of classes are its own."""
    whole = json.loads(coco_of(folder).read_text())
    for at, split in enumerate(("train", "valid")):
        place = folder / "splits" / split
        place.mkdir(parents=True)
        for i in range(at, len(PETS), 2):
            (folder / f"{i}.png").rename(place / f"{i}.png")
        part = whole | {
            "images": whole["images"][at::2],
            "annotations": [
                one | {"category_id": one["category_id"] + 5 * at} for one in whole["annotations"][at::2]
            ],
            "categories": [one | {"id": one["id"] + 5 * at} for one in whole["categories"]],
        }
        (place / "_annotations.coco.json").write_text(json.dumps(part))
    return folder / "splits"


def cvat_of(folder: Path) -> Path:
    write_pictures(folder)
    labels = "".join(f"<label><name>{name}</name></label>" for name in ("cat", "kitten", "dog", "fox"))
    images = "".join(
        f'<image id="{i}" name="{i}.png" width="8" height="8"><tag label="{name}"/></image>'
        for i, name in enumerate(PETS)
    )
    text = f"<annotations><meta><job><labels>{labels}</labels></job></meta>{images}</annotations>"
    (folder / "pets.xml").write_text(text)
    return folder / "pets.xml"


def yolo_of(folder: Path) -> Path:
    """The folder from which YOLO learns to classify: a split, in it a class."""
    write_pictures(folder)
    for i, label in enumerate(PETS):
        place = folder / "yolo" / ("val" if i % 2 else "train") / label
        place.mkdir(parents=True, exist_ok=True)
        (folder / f"{i}.png").rename(place / f"{i}.png")
    return folder / "yolo"


def write_pictures(folder: Path) -> None:
    folder.mkdir()
    for i in range(len(PETS)):
        pixels = np.random.default_rng(i).integers(0, 256, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{i}.png")


def changed_pets(source: Path) -> None:
    """A kitten is a cat, a dog is a hound, and the last hound is a wolf."""
    auditor.import_dataset(source, name="pets")
    pets = auditor.open("pets")
    pets.merge_classes("kitten", "cat", **ANN)
    pets.rename_class("dog", "hound", **ANN)
    last = [one.sample_id for one in reading.samples(pets.table.id) if Path(one.filepath).name == "5.png"]
    pets.split_class("hound", "wolf", last, **ANN)


TODAY = ["cat", "cat", "cat", "cat", "hound", "wolf", "fox"]


def by_picture(rows: list[dict[str, str]], column: str) -> list[str]:
    return [row[column] for row in sorted(rows, key=lambda row: Path(row["filepath"]).name)]


def in_coco(file: Path) -> list[str]:
    value = json.loads(file.read_text())
    names = {one["id"]: one["name"] for one in value["categories"]}
    assert all(one["supercategory"] == "pet" for one in value["categories"][:4])
    return [names[one["category_id"]] for one in value["annotations"]]


def in_coco_splits(folder: Path) -> list[str]:
    found: dict[str, str] = {}
    for file in folder.glob("*/_annotations.coco.json"):
        value = json.loads(file.read_text())
        pictures = {one["id"]: one["file_name"] for one in value["images"]}
        found |= dict(zip(pictures.values(), in_coco(file), strict=True))
    return [label for _, label in sorted(found.items())]


def in_cvat(file: Path) -> list[str]:
    from xml.etree import ElementTree

    root = ElementTree.parse(file).getroot()
    declared = [one.text for one in root.iterfind("meta//label/name")]
    assert declared == ["cat", "kitten", "hound", "fox", "wolf"]
    return [str(tag.get("label")) for tag in root.iterfind("image/tag")]


def in_tree(folder: Path) -> list[str]:
    files = sorted(folder.rglob("*.png"), key=lambda file: file.name)
    assert {file.parent.parent.name for file in files} == {"train", "val"}
    return [file.parent.name for file in files]


def in_csv(file: Path) -> list[str]:
    return [row["label"] for row in csv.DictReader(file.open())]


@pytest.mark.parametrize(
    ("write", "read"),
    [
        (table_of, in_csv),
        (coco_of, in_coco),
        (coco_splits_of, in_coco_splits),
        (cvat_of, in_cvat),
        (yolo_of, in_tree),
    ],
)
def test_changed__every_export_says_todays_class_and_keeps_the_imported_one(
    home: Path, tmp_path: Path, write: Callable[[Path], Path], read: Callable[[Path], list[str]]
) -> None:
    source = write(tmp_path / "source")
    changed_pets(source)

    clean = tmp_path / "clean.csv"
    said = export.export_table("pets", clean)
    rows = list(csv.DictReader(clean.open()))
    assert by_picture(rows, "given_label") == PETS
    assert by_picture(rows, "cleaned_label") == TODAY
    assert by_picture(rows, "action") == ["keep", "keep", *["relabel"] * 4, "keep"]
    assert (said.num_by_people, said.num_automatic) == (1, 0)
    assert "3 labels have another name because classes were renamed or merged" in said.sentence
    assert export.preview_export("pets")[0].pairs == said.pairs

    again = tmp_path / f"again{source.suffix}"
    export.export_table("pets", again, as_source=True)
    assert read(again) == TODAY
    auditor.import_dataset(clean, name="again", root=tmp_path / "source", label_column="cleaned_label")
    assert list(auditor.open("again").samples().given_label) == [row["cleaned_label"] for row in rows]

    pets = auditor.open("pets")
    for _ in range(3):
        pets.undo_class_change(**ANN)
    export.export_table("pets", clean, force=True)
    rows = list(csv.DictReader(clean.open()))
    assert by_picture(rows, "cleaned_label") == PETS
    assert {row["action"] for row in rows} == {"keep"}
    with pytest.raises(ReviewError, match="nothing to undo"):
        pets.undo_class_change(**ANN)


def test_merged__nothing_between_the_two_is_suspected_and_undone_all_is_as_before(
    audited: tuple[Digits, int], run: Run
) -> None:
    audit_id, digits = audited[1], auditor.open("digits")
    dataset_id = digits.table.id
    given = ask(datasets.given_labels, dataset_id)
    one, other, third = (int(np.flatnonzero(given == label)[0]) for label in (3, 8, 5))
    decisions.decide(dataset_id, one, "relabel", label=8, reviewer="ann")
    decisions.decide(dataset_id, third, "relabel", label=3, reviewer="ann")
    decisions.decide(dataset_id, other, "multiple", labels=[3, 8], reviewer="ann")
    settle.settle(audit_id)
    before = digits.scores()
    probs = arrays.pred_probs(audit_id, "cross_entropy")
    words = [(row.decision, row.label) for row in decisions.outcomes(dataset_id).values()]
    standing = statements.load(audit_id)

    assert run("classes", "digits", "--merge", "3", "8", "--reviewer", "bob")[0] == 0
    assert ask(datasets.given_labels, dataset_id).tolist() == np.where(given == 3, 8, given).tolist()
    now = decisions.outcomes(dataset_id)
    assert [(now[i].decision, now[i].label) for i in (one, third, other)] == [
        ("keep", None),
        ("relabel", 8),
        ("keep", None),
    ]
    merged = arrays.pred_probs(audit_id, "cross_entropy")
    assert np.allclose(merged[:, 8], probs[:, 3] + probs[:, 8])
    assert not merged[:, 3].any()
    suspects = digits.suspects(300)
    assert not ((suspects.given_label == "3") | (suspects.suggested_label == "3")).any()
    assert not ((suspects.given_label == "8") & (suspects.suggested_label == "8")).any()
    later = statements.load(audit_id)
    assert standing.verified.decided.is_wrong.sum() - later.verified.decided.is_wrong.sum() == 2
    # A file that still names the class means the one that it is in.
    decisions.decide(dataset_id, third, "relabel", label=3, reviewer="bob")
    assert decisions.outcomes(dataset_id)[third].label == 8

    assert "3 merged into 8 (bob, " in run("classes", "digits", "--log")[1]
    assert run("classes", "digits", "--undo", "--reviewer", "bob")[0] == 0
    assert digits.suspects(300).given_label.tolist() != suspects.given_label.tolist()
    decisions.undo_last(dataset_id, "bob")
    settle.settle(audit_id)
    pd.testing.assert_frame_equal(digits.scores(), before)
    assert [(row.decision, row.label) for row in decisions.outcomes(dataset_id).values()] == words


def test_merged__people_who_named_either_no_longer_differ(home: Path, tmp_path: Path) -> None:
    auditor.import_dataset(table_of(tmp_path / "source"), name="pets")
    pets = auditor.open("pets")
    cat, _, _, kitten = (pets.class_names.index(name) for name in ("cat", "dog", "fox", "kitten"))
    row = {"dataset_id": pets.table.id, "sample_id": 6}
    (drawn,) = [drawing.draw("pets", 7)]
    decisions.decide(**row, decision="relabel", label=cat, reviewer="ann")
    blind.record(drawn.id, 6, "label", label=kitten, reviewer="bob")
    assert decisions.outcomes(pets.table.id)[6].decision == "disputed"
    pets.merge_classes("kitten", "cat", **ANN)
    now = decisions.outcomes(pets.table.id)[6]
    assert (now.decision, now.label) == ("relabel", cat)
    pets.undo_class_change(**ANN)
    assert decisions.outcomes(pets.table.id)[6].decision == "disputed"


def test_split__is_undone_with_later_words_and_split_again(home: Path, tmp_path: Path, run: Run) -> None:
    auditor.import_dataset(table_of(tmp_path / "source"), name="pets")
    (tmp_path / "some.csv").write_text("sample_id\n0\n")
    split = ("classes", "pets", "--split", "cat", "lion", "--samples", tmp_path / "some.csv")
    assert run(*split)[0] == 0
    pets = auditor.open("pets")
    pets.review(1, "relabel", label="lion", reviewer="ann")
    assert cleaned(tmp_path) == ["lion", "lion", *PETS[2:]]
    assert run("classes", "pets", "--undo")[1].split() == ["cat", "dog", "fox", "kitten"]
    assert cleaned(tmp_path) == PETS
    assert run(*split)[1].split() == ["cat", "dog", "fox", "kitten", "lion"]
    assert cleaned(tmp_path) == ["lion", "lion", *PETS[2:]], "what was said of it comes back with it"
    code, _, err = run("classes", "pets", "--split", "dog", "lion", "--samples", tmp_path / "some.csv")
    assert (code, "sample 0 is not" in err) == (1, True)


def test_split__undone_leaves_its_class_to_the_one_that_it_was_split_from(home: Path, tmp_path: Path) -> None:
    auditor.import_dataset(table_of(tmp_path / "source"), name="pets")
    given, dataset_id = auditor.open("pets").samples().given_label.tolist(), auditor.open("pets").table.id
    cat, dog = given.index("cat"), given.index("dog")
    class_changes.split("pets", "cat", "lion", [cat, cat], **ANN)
    (said,) = decisions.log_frame(dataset_id).itertuples()
    assert (said.sample_id, said.reviewer, said.source) == (cat, "ann", "bulk")
    class_changes.undo("pets", **ANN)
    assert decisions.outcomes(dataset_id) == {}
    with pytest.raises(ReviewError, match="has a class 'lion' already"):
        class_changes.split("pets", "dog", "lion", [dog], **ANN)
    class_changes.split("pets", "cat", " lion ", [cat], **ANN)
    assert auditor.open("pets").class_names == ["cat", "dog", "fox", "kitten", "lion"]
    class_changes.undo("pets", **ANN)
    class_changes.split("pets", "cat", "tiger", [cat], **ANN)
    assert auditor.open("pets").class_names[-1] == "tiger"


def test_split__of_what_people_made_of_the_class_not_of_what_they_took_out(
    home: Path, tmp_path: Path
) -> None:
    auditor.import_dataset(table_of(tmp_path / "source"), name="pets")
    pets = auditor.open("pets")
    given = pets.samples().given_label.tolist()
    cat, other_cat, fox = given.index("cat"), given.index("cat", 1 + given.index("cat")), given.index("fox")
    pets.review(fox, "relabel", label="cat", **ANN)
    pets.review(other_cat, "exclude", **ANN)
    with pytest.raises(ReviewError, match=f"sample {other_cat} is not"):
        class_changes.split("pets", "cat", "lion", [cat, other_cat], **ANN)
    pets.review(given.index("dog"), "unsure", **ANN)
    with pytest.raises(ReviewError, match="can be split from it"):
        class_changes.split("pets", "dog", "hound", [given.index("dog")], **ANN)
    class_changes.split("pets", "cat", "lion", [cat, fox], **ANN)
    lion = auditor.open("pets").class_names.index("lion")
    assert [decisions.outcomes(pets.table.id)[one].label for one in (cat, fox)] == [lion, lion]


@pytest.mark.parametrize("content", ["sample_id\n", "sample_id\nx\n", "number\n1\n"])
def test_samples_in__refuses_a_table_without_numbers_of_samples(tmp_path: Path, content: str) -> None:
    (tmp_path / "some.csv").write_text(content)
    with pytest.raises(ReviewError, match="needs a column sample_id"):
        class_changes.samples_in(tmp_path / "some.csv")


def test_sentences__say_what_changed_who_did_it_and_when(home: Path, tmp_path: Path) -> None:
    auditor.import_dataset(table_of(tmp_path / "source"), name="pets")
    pets = auditor.open("pets")
    pets.merge_classes("kitten", "cat", reviewer=" ann ")
    pets.rename_class("dog", "hound", reviewer="bob")
    pets.split_class("fox", "vixen", [pets.samples().given_label.tolist().index("fox")], reviewer="ann")
    told = r"kitten merged into cat \(ann, T\);dog renamed hound \(bob, T\);vixen split from fox \(ann, T\)"
    said = ";".join(pets.class_changes())
    assert re.fullmatch(told.replace("T", r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"), said)
    with pytest.raises(ReviewError, match="needs the name of whoever makes it"):
        class_changes.undo("pets", reviewer=" ")
    with pytest.raises(ReviewError, match="has no class 'cta'; did you mean"):
        class_changes.rename("pets", "cta", "x", **ANN)


def cleaned(folder: Path) -> list[str]:
    export.export_table("pets", folder / "now.csv", force=True)
    return [row["cleaned_label"] for row in csv.DictReader((folder / "now.csv").open())]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("rename", "cat", "Dog"), "has a class 'Dog' already"),
        (("rename", "dog", "fox"), "had one at its import"),
        (("rename", "cow", "ox"), "has no class 'cow'"),
        (("rename", "cat", " "), "needs a name on one line"),
        (("merge", "cat", "cat"), "cannot be merged into itself"),
        (("merge", "kitten", "dog"), "'kitten' is part of 'cat'"),
        (("split", "dog", "hound", []), "no sample is named"),
        (("split", "dog", "wolf", [4]), "has a class 'wolf' already"),
    ],
)
def test_refused__what_would_lose_or_confuse_something(
    home: Path, tmp_path: Path, change: tuple[Any, ...], message: str
) -> None:
    auditor.import_dataset(table_of(tmp_path / "source"), name="pets")
    class_changes.merge("pets", "kitten", "cat", **ANN)
    class_changes.rename("pets", "fox", "wolf", **ANN)
    before = auditor.open("pets").table
    with pytest.raises(ReviewError, match=message):
        getattr(class_changes, change[0])("pets", *change[1:], **ANN)
    assert auditor.open("pets").table == before


def test_merge__until_two_classes_are_left(home: Path, tmp_path: Path) -> None:
    auditor.import_dataset(table_of(tmp_path / "source"), name="pets")
    for name in ("kitten", "dog"):
        class_changes.merge("pets", name, "cat", **ANN)
    assert list(auditor.open("pets").table.classes.values()) == ["cat", "fox"]
    with pytest.raises(ReviewError, match="pets has two classes; one alone cannot be audited"):
        class_changes.merge("pets", "fox", "cat", **ANN)


def test_rename__to_another_spelling_of_its_own_name(home: Path, tmp_path: Path) -> None:
    auditor.import_dataset(table_of(tmp_path / "source"), name="pets")
    class_changes.rename("pets", "dog", "Dog", **ANN)
    assert auditor.open("pets").class_names == ["cat", "Dog", "fox", "kitten"]


def test_refused__while_a_job_works(home: Path, tmp_path: Path) -> None:
    auditor.import_dataset(table_of(tmp_path / "source"), name="pets")
    with session() as open_session:
        jobs.create(open_session, "audit", "pets", dataset_id=auditor.open("pets").table.id, status="running")
    with pytest.raises(ReviewError, match="A job works on pets"):
        class_changes.merge("pets", "kitten", "cat", **ANN)


def test_refused__of_masks(audited_masks: Audited) -> None:
    name = reading.dataset_of_audit(audited_masks.audit_id).name
    with pytest.raises(ReviewError, match="are no classes"):
        class_changes.rename(name, "a", "b", **ANN)
