"""What an import says of a whole source at once: a wrong root, and class names that are probably none."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.importing.imports import BadRowsError, import_dataset, preview
from tests.auditor.sample_pictures import write_csv, write_images, write_parquet

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize("prefix", ["", "/elsewhere/"])
def test_import_dataset__a_wrong_root_is_one_problem(tmp_path: Path, prefix: str) -> None:
    rows = [(f"{prefix}{path}", label) for path, label in write_images(tmp_path / "pictures", 24)]
    source = write_csv(tmp_path / "l.csv", ("path", "label"), rows)
    text = {
        "": f"exists below {tmp_path}; set the folder that their paths start from, the root",
        "/elsewhere/": f"lies below {tmp_path}: its paths are whole ones (/elsewhere/images/0000.png); set the "
        "root to a folder that holds all of them",
    }[prefix]
    text = f"none of its 24 images {text}"
    with pytest.raises(BadRowsError, match="No image is left") as caught:
        import_dataset(source, name="lost", skip_bad=True)
    assert str(caught.value).startswith(f"l.csv: {text}. ")
    assert [problem.text for problem in caught.value.problems] == [text]
    seen = preview(source)
    assert ([problem.text for problem in seen.problems], seen.num_problems) == ([text], 1)


def test_import_dataset__some_missing_images_are_named_one_by_one(tmp_path: Path) -> None:
    rows = write_images(tmp_path, 3)
    (tmp_path / rows[0][0]).unlink()
    (tmp_path / rows[2][0]).unlink()
    seen = preview(write_csv(tmp_path / "l.csv", ("path", "label"), rows))
    assert [problem.row for problem in seen.problems] == [2, 4]


ALIKE = ["'Cat' and 'cat' differ only in case: two classes?"]
EMPTY = [
    "'NA' is taken for a class; leave the cell empty for an unlabeled sample.",
    "'nan' is taken for a class; leave the cell empty for an unlabeled sample.",
]


@pytest.mark.parametrize(
    ("labels", "remarks"),
    [
        (
            ["a|b", "cat", "|"],
            ["'a|b' is taken for one class; are these several classes of one image?"],
        ),
        (["cat", "Cat", "dog"], ALIKE),
        (["cat", "nan", "NA", ""], EMPTY),
        (["cat", "CAT", "Cat"], ["'CAT', 'Cat' and 'cat' differ only in case: 3 classes?"]),
        (["cat", "dog", "not"], []),
        (["cat", "cat ", "dog"], []),
    ],
)
def test_import_dataset__remarks_on_class_names_that_may_be_none(
    tmp_path: Path, labels: list[str], remarks: list[str]
) -> None:
    paths = [path for path, _ in write_images(tmp_path, len(labels))]
    source = write_csv(tmp_path / "l.csv", ("path", "label"), zip(paths, labels, strict=True))
    assert preview(source).notes == remarks
    assert import_dataset(source, name="remarks", workers=1).notes[1:] == remarks


def test_preview__remarks_on_declared_classes_only_where_they_are_much_alike(tmp_path: Path) -> None:
    names = ["none", "cat", "Cat", "d", "e", "f", "g", "h", "i", "j"]
    source = write_parquet(tmp_path / "p.parquet", names=names, hugging_face=True)
    assert preview(source).notes == ["'cat' and 'Cat' differ only in case: two classes?"]
