"""Pictures that EXIF turns: masks and boxes follow them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from auditor.ground.errors import ImportRefusedError
from auditor.ground.vocabulary import SEGMENTATION
from auditor.importing.imports import import_dataset
from auditor.outputs.export import export_table
from auditor.pictures.decoding import ORIENTATION, probe
from auditor.pictures.masks import as_stored, upright
from auditor.pictures.sources import Problem, SourceOptions, SourceRow, open_here, read_bytes, read_mask

TURNS = range(2, 9)


def _picture(orientation: int, width: int = 24, height: int = 16) -> tuple[Image.Image, Image.Exif]:
    """A white square on black, in the upper left of the stored pixels."""
    values = np.zeros((height, width, 3), np.uint8)
    values[2:6, 3:11] = 255
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return Image.fromarray(values), exif


def _write(folder: Path, orientation: int, *, is_upright: bool, width: int = 24, height: int = 16) -> None:
    image, exif = _picture(orientation, width, height)
    mask = Image.fromarray((np.asarray(image)[..., 0] > 0).astype(np.uint8))
    image.save(folder / f"images/{orientation}.png", exif=exif)
    mask.info["exif"] = exif.tobytes()
    (ImageOps.exif_transpose(mask) if is_upright else mask).save(
        folder / f"masks/{orientation}.png", exif=b""
    )


@pytest.mark.parametrize("is_upright", [True, False])
def test_rows__masks_of_turned_pictures_lie_on_what_is_seen(tmp_path: Path, *, is_upright: bool) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "masks").mkdir()
    for orientation in TURNS:
        _write(tmp_path, orientation, is_upright=is_upright)
    source = open_here(str(tmp_path), SourceOptions(task=SEGMENTATION))
    rows = list(source.rows())
    assert [isinstance(row, SourceRow) for row in rows] == [True] * len(TURNS)
    for row in rows:
        assert isinstance(row, SourceRow)
        assert row.mask is not None
        assert source.info.masks is not None
        data = read_bytes(str(tmp_path), row.location)
        with Image.open(tmp_path / row.location) as image:
            seen = np.asarray(ImageOps.exif_transpose(image))[..., 0] > 0
        mask = read_mask(str(tmp_path), row.mask, source.info.masks)
        assert mask.shape == (probe(data).height, probe(data).width)
        assert np.array_equal(mask > 0, seen)


@pytest.mark.parametrize("masks_on", ["stored", "seen"])
def test_rows__masks_of_turned_pictures_are_asked_about_where_no_size_tells(
    tmp_path: Path, masks_on: str
) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "masks").mkdir()
    for turn in TURNS:
        _write(tmp_path, turn, is_upright=masks_on == "seen", width=16, height=16)
    with pytest.raises(ImportRefusedError, match="7 pictures such as images/2.png: EXIF turns them") as asked:
        list(open_here(str(tmp_path), SourceOptions(task=SEGMENTATION)).rows())
    assert asked.value.field == "masks_on"
    rows = list(open_here(str(tmp_path), SourceOptions(task=SEGMENTATION, masks_on=masks_on)).rows())
    ends = {str(row.mask).partition("#")[2] for row in rows if isinstance(row, SourceRow)}
    assert ends == ({f"turned={turn}" for turn in TURNS} if masks_on == "stored" else {""})


@pytest.mark.parametrize("orientation", TURNS)
def test_as_stored__takes_upright_back(orientation: int) -> None:
    values = np.arange(15).reshape(3, 5)
    image, exif = Image.fromarray(values.astype(np.uint8)), Image.Exif()
    exif[ORIENTATION] = orientation
    image.info["exif"] = exif.tobytes()
    turned = upright(values, orientation)
    assert np.array_equal(turned, np.asarray(ImageOps.exif_transpose(image)))
    assert np.array_equal(as_stored(turned, orientation), values)


def _coco(
    folder: Path,
    size: tuple[int, int] | None,
    turns: Sequence[int] = TURNS,
    box: Sequence[int] = (3, 2, 8, 4),
) -> Path:
    """One box round the white square of each picture, as it lies in the stored pixels."""
    numbers = list(enumerate(turns))
    sizes = {} if size is None else {"width": size[0], "height": size[1]}
    value = {
        "images": [{"id": at, "file_name": f"{turn}.png"} | sizes for at, turn in numbers],
        "annotations": [
            {"id": at, "image_id": at, "category_id": at % 2, "bbox": list(box)} for at, _ in numbers
        ],
        "categories": [{"id": 0, "name": "a"}, {"id": 1, "name": "b"}],
    }
    for turn in turns:
        image, exif = _picture(turn)
        image.save(folder / f"{turn}.png", exif=exif)
    (folder / "boxes.json").write_text(json.dumps(value))
    return folder / "boxes.json"


def test_rows__boxes_on_stored_pixels_follow_their_turned_pictures(tmp_path: Path) -> None:
    source = open_here(str(_coco(tmp_path, (24, 16))), SourceOptions(boxes=True))
    rows = [row for row in source.rows() if isinstance(row, SourceRow)]
    assert len(rows) == len(TURNS)
    for row in rows:
        data = read_bytes(str(tmp_path), row.location)
        is_tall = int(row.filepath[0]) >= 5  # their sizes tell it, of the others too
        assert (probe(data).height, probe(data).width) == ((8, 4) if is_tall else (4, 8))
        (tmp_path / "cut.png").write_bytes(data)
        assert np.asarray(Image.open(tmp_path / "cut.png")).min() == 255


def test_rows__boxes_of_another_size_than_their_picture_are_refused(tmp_path: Path) -> None:
    source = open_here(str(_coco(tmp_path, (48, 32))), SourceOptions(boxes=True))
    found = list(source.rows())
    assert all(isinstance(row, Problem) for row in found)
    assert "boxes are of 48 x 32" in str(found[0])


@pytest.mark.parametrize(("size", "turns"), [(None, TURNS), ((24, 16), (2, 3, 4))])
def test_rows__boxes_of_turned_pictures_are_asked_about_where_no_size_tells(
    home: Path, tmp_path: Path, size: tuple[int, int] | None, turns: Sequence[int]
) -> None:
    file = _coco(tmp_path, size, turns)
    with pytest.raises(ImportRefusedError, match=f"{len(turns)} pictures such as 2.png: EXIF turns") as asked:
        list(open_here(str(file), SourceOptions(boxes=True)).rows())
    assert asked.value.field == "masks_on"
    stored = import_dataset(file, name="a", boxes=True, masks_on="stored", workers=1)
    assert stored.num_samples == len(turns)
    images = np.load(next(home.glob("datasets/*/images_*.npy")))
    assert images.min() > 250
    export_table("a", tmp_path / "again.json")  # the answer is kept
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(file.read_text())
    seen = open_here(str(file), SourceOptions(boxes=True, masks_on="seen"))
    assert {row.location.partition("#")[2] for row in seen.rows() if isinstance(row, SourceRow)} == {
        "xywh=3,2,8,4"
    }


def test_rows__a_box_that_fits_the_other_size_alone_is_refused(tmp_path: Path) -> None:
    file = _coco(tmp_path, (24, 16), (6, 8), box=(2, 10, 8, 12))
    found = list(open_here(str(file), SourceOptions(boxes=True)).rows())
    assert [isinstance(row, Problem) for row in found] == [True, True]
    assert "its box leaves 24 x 16 pixels and lies in 16 x 24" in str(found[0])


def test_rows__annotations_that_name_no_image_are_a_problem(tmp_path: Path) -> None:
    file = _coco(tmp_path, (24, 16))
    value = json.loads(file.read_text())
    for annotation in value["annotations"]:
        annotation["image_id"] = str(annotation["image_id"])
    file.write_text(json.dumps(value))
    assert {
        row.label for row in open_here(str(file), SourceOptions()).rows() if isinstance(row, SourceRow)
    } == {
        "a",
        "b",
    }
    value["annotations"][0]["image_id"] = 1000
    file.write_text(json.dumps(value))
    problems = [row for row in open_here(str(file), SourceOptions()).rows() if isinstance(row, Problem)]
    assert "names the image 1000, which is not listed" in str(problems[0])
