"""What an import says of a whole source at once: a wrong root, and class names that are probably none."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.catalog import datasets, db
from auditor.ground.errors import ImportRefusedError
from auditor.importing.imports import BadRowsError, import_dataset, preview_source
from tests.auditor.sample_pictures import write_csv, write_images, write_parquet

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize("prefix", ["", "/elsewhere/"])
def test_import_dataset__a_wrong_root_is_one_problem(tmp_path: Path, prefix: str) -> None:
    rows = [(f"{prefix}{path}", label) for path, label in write_images(tmp_path / "pictures", 24)]
    root = tmp_path / "tables"
    root.mkdir()
    source = write_csv(root / "l.csv", ("path", "label"), rows)
    text = {
        "": f"exists below {root}; set the folder that their paths start from, the root",
        "/elsewhere/": f"lies below {root}: its paths are whole ones (/elsewhere/images/0000.png); set the "
        "root to a folder that holds all of them",
    }[prefix]
    text = f"none of its 24 images {text}"
    with pytest.raises(BadRowsError, match="No image is left") as caught:
        import_dataset(source, name="lost", skip_bad=True)
    assert str(caught.value).startswith(f"l.csv: {text}. ")
    assert [problem.text for problem in caught.value.problems] == [text]
    seen = preview_source(source)
    assert ([problem.text for problem in seen.problems], seen.num_problems) == ([text], 1)


def test_import_dataset__some_missing_images_are_named_one_by_one(tmp_path: Path) -> None:
    rows = write_images(tmp_path, 3)
    (tmp_path / rows[0][0]).unlink()
    (tmp_path / rows[2][0]).unlink()
    seen = preview_source(write_csv(tmp_path / "l.csv", ("path", "label"), rows))
    assert [problem.row for problem in seen.problems] == [2, 4]


EMPTY = [
    f"{name!r} is no label (1 sample unlabeled); if it is a class, list all classes in a file of class names."
    for name in ("nan", "NA")
]


def labelled(tmp_path: Path, labels: list[str]) -> Path:
    paths = [path for path, _ in write_images(tmp_path, len(labels))]
    return write_csv(tmp_path / "l.csv", ("path", "label"), zip(paths, labels, strict=True))


@pytest.mark.parametrize(
    ("labels", "remarks", "classes"),
    [
        (["cat", "nan", "NA", "", "dog"], EMPTY, ["cat", "dog"]),
        (["1.0", "nan", "0.0"], EMPTY[:1], ["0", "1"]),
        (["cat", "dog", "not"], [], ["cat", "dog", "not"]),
        (["cat", "cat ", "dog\u00a0"], [], ["cat", "dog"]),
        (["Ka\u0308se", "K\u00e4se", "dog"], [], ["K\u00e4se", "dog"]),
        (
            ["['cat']", "[]", "dog"],
            ["Lists of one label are that label: \"['cat']\" and '[]'."],
            ["cat", "dog"],
        ),
        (["0.0", "1.0", "", "1"], [], ["0", "1"]),
        (
            ["0.0", "1.5", ""],
            [
                "Labels are numbers with fractions ('0.0' and '1.5'); "
                "amounts are imported with the task regression."
            ],
            ["0.0", "1.5"],
        ),
        (["hot dog", "dog", "cat"], [], ["cat", "dog", "hot dog"]),
        (["tench, Tinca tinca", "dog"], [], ["dog", "tench, Tinca tinca"]),
    ],
)
def test_import_dataset__what_names_of_classes_mean(
    tmp_path: Path, labels: list[str], remarks: list[str], classes: list[str]
) -> None:
    source = labelled(tmp_path, labels)
    assert preview_source(source).notes == remarks
    found = import_dataset(source, name="remarks", workers=1)
    assert found.notes[1:] == remarks
    with db.session() as session:
        assert datasets.get(session, "remarks").class_names == classes


@pytest.mark.parametrize("several", ["cat|dog", "cat;dog", "dog, cat", "dog cat", "cat_dog", "cat & dog"])
def test_import_dataset__several_labels_of_an_image_are_no_class(tmp_path: Path, several: str) -> None:
    source = labelled(tmp_path, ["cat", "dog", several, several])
    with pytest.raises(BadRowsError, match=r"has several labels \((cat, dog|dog, cat)\)"):
        import_dataset(source, name="a")
    assert preview_source(source).num_problems == 2
    found = import_dataset(source, name="a", skip_bad=True)
    assert (found.num_samples, found.num_classes, found.num_skipped) == (2, 2, 2)
    assert import_dataset(source, name="b", joined_classes=True).num_classes == 3


@pytest.mark.parametrize(
    "several", ["{cat,dog}", '["cat", "dog"]', "['cat', 'dog']", "('cat', 'dog')", "['cat' 'dog']"]
)
def test_import_dataset__a_list_is_never_one_class(tmp_path: Path, several: str) -> None:
    source = labelled(tmp_path, ["cat", "dog", several])
    for joined in (False, True):
        with pytest.raises(BadRowsError, match=r"has several labels \(cat, dog\)"):
            import_dataset(source, name="a", joined_classes=joined)


@pytest.mark.parametrize("other", ["Cat", "c\u200bat", "cat\u00a0 "])
def test_import_dataset__names_that_look_alike_are_asked_about(tmp_path: Path, other: str) -> None:
    source = labelled(tmp_path, ["cat", "cat", other, "dog"])
    if other.strip() == "cat":
        assert import_dataset(source, name="a").num_classes == 2
        return
    with pytest.raises(ImportRefusedError, match=r"look alike: 'cat' \(2\)") as caught:
        import_dataset(source, name="a")
    assert caught.value.field == "merge_classes"
    assert "look alike" in str(preview_source(source).question)
    assert import_dataset(source, name="a", merge_classes=True).num_classes == 2
    assert import_dataset(source, name="b", merge_classes=False).num_classes == 3


def test_preview__declared_classes_are_believed(tmp_path: Path) -> None:
    names = ["none", "cat", "Cat", "d", "e", "f", "g", "h", "i", "j"]
    source = write_parquet(tmp_path / "p.parquet", names=names, hugging_face=True)
    assert preview_source(source).notes == ["'cat' and 'Cat' look alike: two classes?"]


def test_import_dataset__one_class_is_refused_at_once(tmp_path: Path) -> None:
    source = labelled(tmp_path, ["cat", "cat", ""])
    with pytest.raises(ImportRefusedError, match=r"has one class only, 'cat' \(2 images\)") as caught:
        import_dataset(source, name="a")
    assert preview_source(source).question == str(caught.value)
