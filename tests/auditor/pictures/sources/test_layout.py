"""Folders as people publish them: each is read as it is meant, or asked about; none is misread in silence."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from auditor.cli.commands import cli
from auditor.ground.errors import ImportRefusedError
from auditor.pictures.sources import SourceOptions, SourceRow, open_here, remarks
from auditor.pictures.sources.layout import is_split, read

REFUSED = "refused"
Labels = dict[str, tuple[str | None, str | None]]


def _pairs(text: str) -> tuple[list[str], Labels | str]:
    """``path -> class/split`` a line; a file without an arrow has no row; ``?`` first: it is refused."""
    lines = [line.strip() for line in text.strip().splitlines()]
    refused = lines[0] == "?"
    files, labels = [], {}
    for line in lines[refused:]:
        path, arrow, meant = line.partition(" -> ")
        files.append(path)
        if arrow:
            label, _, split = meant.partition("/")
            labels[path] = (label or None, split or None)
    return files, REFUSED if refused else labels


WORLD = {
    "class folders": "cat/1.png -> cat\ndog/1.png -> dog",
    "deeper folders belong to their class": "cat/x/1.png -> cat\ncat/2.png -> cat\ndog/1.png -> dog",
    "one wrapper": "raw-img/cat/1.png -> cat\nraw-img/dog/1.png -> dog\nreadme.txt",
    "three wrappers": "a/b/c/cat/1.png -> cat\na/b/c/dog/1.png -> dog",
    "Stanford Dogs": "images/Images/n02085620-Chihuahua/1.jpg -> n02085620-Chihuahua\n"
    "images/Images/n02085782-spaniel/2.jpg -> n02085782-spaniel\nannotations/Annotation/n02085620-Chihuahua/1",
    "Animals-10": "raw-img/cane/1.jpeg -> cane\nraw-img/gatto/2.jpeg -> gatto\ntranslate.py",
    "splits": "train/cat/1.png -> cat/train\ntrain/dog/1.png -> dog/train\ntest/cat/2.png -> cat/test",
    "cats and dogs of Kaggle": "training_set/training_set/cats/1.jpg -> cats/training_set\n"
    "training_set/training_set/dogs/2.jpg -> dogs/training_set\n"
    "test_set/test_set/cats/3.jpg -> cats/test_set\ntest_set/test_set/dogs/4.jpg -> dogs/test_set",
    "Intel scenes": "seg_train/seg_train/sea/1.jpg -> sea/seg_train\nseg_train/seg_train/street/2.jpg -> "
    "street/seg_train\nseg_test/seg_test/sea/3.jpg -> sea/seg_test\nseg_test/seg_test/street/4.jpg -> "
    "street/seg_test\nseg_pred/seg_pred/5.jpg -> /seg_pred",
    "chest X-rays": "chest_xray/train/NORMAL/1.jpeg -> NORMAL/train\nchest_xray/train/PNEUMONIA/2.jpeg -> "
    "PNEUMONIA/train\nchest_xray/val/NORMAL/3.jpeg -> NORMAL/val\n"
    "chest_xray/test/PNEUMONIA/4.jpeg -> PNEUMONIA/test",
    "test set without classes": "train/cat/1.png -> cat/train\ntrain/dog/2.png -> dog/train\ntest/3.png -> /test",
    "fruits-360": "fruits-360/Training/Apple Braeburn/1.jpg -> Apple Braeburn/Training\n"
    "fruits-360/Training/Pear/2.jpg -> Pear/Training\nfruits-360/Test/Pear/3.jpg -> Pear/Test",
    "Imagenette": "imagenette2/train/n01440764/1.JPEG -> n01440764/train\nimagenette2/train/n02102040/2.JPEG -> "
    "n02102040/train\nimagenette2/val/n01440764/3.JPEG -> n01440764/val",
    "ASL alphabet": "asl_alphabet_train/asl_alphabet_train/A/1.jpg -> A/asl_alphabet_train\n"
    "asl_alphabet_train/asl_alphabet_train/B/2.jpg -> B/asl_alphabet_train\n"
    "asl_alphabet_test/asl_alphabet_test/3.jpg -> /asl_alphabet_test",
    "splits in capitals with numbers": "Train2017/a/1.png -> a/Train2017\nTrain2017/b/2.png -> b/Train2017\n"
    "VAL 2017/a/3.png -> a/VAL 2017",
    "a split below each class": "cat/train/1.png -> cat/train\ncat/val/2.png -> cat/val\n"
    "dog/train/3.png -> dog/train",
    "images below splits": "train/images/cat/1.png -> cat/train\ntrain/images/dog/2.png -> dog/train\n"
    "val/images/cat/3.png -> cat/val",
    "a class called train": "car/1.png -> car\nplane/2.png -> plane\ntrain/3.png -> train",
    "loose files": "cat/1.png -> cat\ndog/2.png -> dog\nlogo.png",
    "cells of malaria, twice": "?\ncell_images/Parasitized/1.png\ncell_images/Uninfected/2.png\n"
    "cell_images/cell_images/Parasitized/1.png\ncell_images/cell_images/Uninfected/2.png",
    "PlantVillage": "?\nplantvillage/color/Apple/1.jpg\nplantvillage/color/Corn/2.jpg\n"
    "plantvillage/grayscale/Apple/1.jpg\n"
    "plantvillage/grayscale/Corn/2.jpg",
    "Office-31": "?\namazon/bike/1.jpg\namazon/mug/2.jpg\nwebcam/bike/3.jpg\nwebcam/mug/4.jpg",
    "splits beside classes": "?\ntrain/cat/1.png\ntrain/dog/2.png\nextra/3.png",
    "splits alone": "?\ntrain/1.png\ntest/2.png",
    "one split alone": "?\ntest/1.png\ntest/2.png",
    "VOC": "?\nJPEGImages/1.jpg\nJPEGImages/2.jpg\nAnnotations/1.xml\nImageSets/Main/train.txt",
    "VOC in its wrapper": "?\nVOCdevkit/VOC2012/JPEGImages/1.jpg\nVOCdevkit/VOC2012/SegmentationClass/1.png",
    "YOLO": "?\nimages/train/1.jpg\nimages/val/2.jpg\nlabels/train/1.txt\nlabels/val/2.txt",
    "Roboflow's YOLO": "?\ntrain/images/1.jpg\ntrain/labels/1.txt\nvalid/images/2.jpg\nvalid/labels/2.txt",
    "YOLO in one folder": "?\nimages/1.jpg\nlabels/1.txt\nclasses.txt",
    "COCO": "?\nannotations/instances_val2017.json\nval2017/1.jpg\ntrain2017/2.jpg",
    "images and masks": "?\nimages/1.png\nmasks/1.png",
    "images and masks in splits": "?\ntrain/images/1.png\ntrain/masks/1.png\nval/images/2.png\nval/masks/2.png",
    "no folder": "?\n1.png\n2.png",
}
LABELED = [name for name, text in WORLD.items() if not text.startswith("?")]


def _picture(seed: str) -> bytes:
    data = hashlib.sha256(seed.encode()).digest()
    stream = io.BytesIO()
    Image.frombytes("L", (4, 4), data[:16]).save(stream, "PNG")
    return stream.getvalue()


def _write(place: Path, files: dict[str, str]) -> Path:
    """``files`` by path and the picture that each holds, as a folder or a zip."""
    if place.suffix == ".zip":
        with zipfile.ZipFile(place, "w") as archive:
            for path, picture in files.items():
                archive.writestr(path, _picture(picture))
        return place
    for path, picture in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(_picture(picture))
    return place


def _found(place: Path, layout: str | None = None) -> tuple[Labels, str] | None:
    """(class and split of each path, what was said); None where it was refused or asked about."""
    try:
        source = open_here(str(place), SourceOptions(layout=layout))
    except ImportRefusedError:
        return None
    rows = [row for row in source.rows() if isinstance(row, SourceRow)]
    return {row.filepath: (row.label, row.split) for row in rows}, " ".join(remarks(source))


@pytest.mark.parametrize("packed", ["set", "set.zip"])
@pytest.mark.parametrize("name", list(WORLD))
def test_open_source__reads_folders_of_the_world_as_they_are_meant(
    tmp_path: Path, name: str, packed: str
) -> None:
    files, wanted = _pairs(WORLD[name])
    found = _found(_write(tmp_path / packed, {path: path for path in files}))
    if wanted == REFUSED:
        assert found is None
        return
    assert found is not None
    by_end = {path: next(meant for end, meant in wanted.items() if end.endswith(path)) for path in found[0]}
    assert len(by_end) == len(wanted)
    assert found[0] == by_end


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_read__wrapped_and_renamed_folders_keep_their_labels_or_are_asked_about(data: st.DataObject) -> None:
    files, wanted = _pairs(WORLD[data.draw(st.sampled_from(LABELED))])
    assert not isinstance(wanted, str)
    files = data.draw(st.permutations(files))
    wrappers = data.draw(st.lists(st.sampled_from(["data", "archive", "My set", "images"]), max_size=3))
    folders = {path: (*wrappers, *path.split("/")[:-1]) for path in files}
    counts = Counter(folder for path, folder in folders.items() if path in wanted)
    try:
        reading = read("set", counts, None)
    except ImportRefusedError:
        return
    assert {path: reading.of([*folders[path], "x.png"]) for path in wanted} == wanted


@pytest.mark.parametrize("layout", ["classes", "splits"])
def test_read__a_question_is_answered_by_layout(tmp_path: Path, layout: str) -> None:
    files, _ = _pairs(WORLD["Office-31"])
    found = _found(_write(tmp_path / "set", {path: path for path in files}), layout)
    assert found is not None
    label = {"classes": ("amazon", None), "splits": ("bike", "amazon")}[layout]
    assert found[0]["amazon/bike/1.jpg"] == label


def test_dry_run__shows_the_reading_and_imports_nothing(home: Path, tmp_path: Path) -> None:
    files, _ = _pairs(WORLD["test set without classes"])
    source = _write(tmp_path / "set", {f"raw/{path}": path for path in files})
    said = CliRunner().invoke(cli, ["import", str(source), "--name", "a", "--dry-run"])
    assert said.exit_code == 0, said.output
    assert "test, unlabeled: 1; train, 2 classes: cat 1, dog 1; wrapper raw/ left out" in said.output
    assert "Nothing was imported" in said.output
    assert not any((home / "datasets").glob("*"))


@pytest.mark.parametrize(
    "name", ["train", "Train", "val2017", "seg_test", "test_set", "Training Data", "dev", "TEST"]
)
def test_is_split__knows_common_spellings(name: str) -> None:
    assert is_split(name)


@pytest.mark.parametrize("name", ["trainer", "cat", "contest", "2017", "detest_a", "valley"])
def test_is_split__knows_what_is_none(name: str) -> None:
    assert not is_split(name)
