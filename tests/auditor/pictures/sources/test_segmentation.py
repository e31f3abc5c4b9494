"""Images with masks, in every layout that is known, from the files to the cache."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.catalog.records import Dataset
from auditor.ground.errors import ImportRefusedError
from auditor.ground.vocabulary import SEGMENTATION
from auditor.importing.imports import BadRowsError, import_dataset
from auditor.pictures import cache, coco, masks
from auditor.pictures.sources import remarks
from auditor.pictures.sources.rows import SourceOptions, SourceRow
from auditor.pictures.sources.segmentation import open_masks
from tests.shapes import NAMES, draw_shapes, write_pairs

COLOURS = np.array([[0, 0, 0], [128, 0, 0], [0, 128, 0]], np.uint8)
SHAPES = draw_shapes(3)


def imported(source: Path, **options: object) -> tuple[Dataset, np.ndarray]:
    import_dataset(source, name="shapes", task=SEGMENTATION, workers=1, **options)  # type: ignore[arg-type]
    with session() as open_session:
        dataset = datasets.get(open_session, "shapes")
    return dataset, np.load(cache.folder(dataset) / masks.cache_name(dataset.height))


def samples_of(dataset: Dataset) -> list[tuple[str, str | None, str | None]]:
    with session() as open_session:
        rows = datasets.iterate_samples(open_session, dataset.id)
        return [(row.filepath, row.mask, row.split) for row in rows]


def move(folder: Path, name: str, to: str) -> None:
    (folder / to).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).rename(folder / to)


def test_import__a_pair_of_folders_with_named_classes(home: Path, tmp_path: Path) -> None:
    source = write_pairs(tmp_path / "set", SHAPES)
    dataset, found = imported(source, class_names=source / "classes.txt")
    assert (dataset.task, dataset.class_names) == (SEGMENTATION, list(NAMES))
    assert samples_of(dataset)[1] == ("images/001.png", "masks/001.png", None)
    assert (found == SHAPES.masks).all()


@pytest.mark.parametrize(
    "ending", ["_Mask", "_GT", "_Segmentation", "-mask", "_seg", " Label", "_groundTruth"]
)
def test_open_masks__a_mask_is_known_by_its_ending_in_any_case(tmp_path: Path, ending: str) -> None:
    source = write_pairs(tmp_path / "set", SHAPES)
    for file in (source / "masks").iterdir():
        file.rename(file.with_stem(f"{file.stem}{ending}"))
    assert {row.image: row.mask for row in open_masks(source, SourceOptions())._pairs} == {
        f"images/{number:03d}.png": f"masks/{number:03d}{ending}.png" for number in range(3)
    }


def test_open_masks__of_names_that_differ_in_a_sign_each_finds_its_own(tmp_path: Path) -> None:
    source = write_pairs(tmp_path / "set", SHAPES)
    for folder in ("images", "masks"):
        for old, new in (("000", "a-1"), ("001", "a_1"), ("002", "A_1")):
            move(source, f"{folder}/{old}.png", f"{folder}/{new}.png")
    assert {row.image: row.mask for row in open_masks(source, SourceOptions())._pairs} == {
        f"images/{name}.png": f"masks/{name}.png" for name in ("a-1", "a_1", "A_1")
    }


def test_open_masks__masks_that_are_all_jpeg_are_named_as_such(tmp_path: Path) -> None:
    source = write_pairs(tmp_path / "set", SHAPES)
    for file in list((source / "masks").iterdir()):
        Image.open(file).convert("L").save(file.with_suffix(".jpg"))
        file.unlink()
    with pytest.raises(ImportRefusedError, match=r"not one mask can be read: masks/000\.jpg is a JPEG"):
        open_masks(source, SourceOptions())


def test_import__folders_that_are_named_apart_share_a_root(home: Path, tmp_path: Path) -> None:
    source = write_pairs(tmp_path / "set", SHAPES)
    move(source, "masks", "elsewhere/truth")
    for file in (source / "elsewhere/truth").iterdir():
        file.rename(file.with_stem(f"{file.stem}_mask"))
    dataset, found = imported(source / "images", masks=source / "elsewhere/truth")
    assert dataset.root == str(source)
    assert samples_of(dataset)[0] == ("images/000.png", "elsewhere/truth/000_mask.png", None)
    assert dataset.class_names == ["0", "1", "2"]
    assert (found == SHAPES.masks).all()


def test_import__the_voc_layout_of_cvat_has_splits_colours_and_names(home: Path, tmp_path: Path) -> None:
    source = write_pairs(tmp_path / "set", SHAPES)
    for number, mask in enumerate(SHAPES.masks):
        Image.fromarray(COLOURS[mask]).save(source / "masks" / f"{number:03d}.png")
    move(source, "masks", "SegmentationClass")
    move(source, "images", "JPEGImages")
    (source / "SegmentationClass" / "000.png").unlink()  # most images of VOC have no mask
    lists = source / "ImageSets" / "Segmentation"
    lists.mkdir(parents=True)
    (lists / "train.txt").write_text("001\n")
    (lists / "val.txt").write_text("002\n")
    lines = [f"{name}:{r},{g},{b}::" for name, (r, g, b) in zip(NAMES, COLOURS.tolist(), strict=True)]
    (source / "labelmap.txt").write_text("# label:color_rgb:parts:actions\n" + "\n".join(lines))
    dataset, found = imported(source)
    code = masks.MaskCode.from_dict(dataset.masks or {})
    assert (code.layout, code.is_colour, code.colours[1]) == ("voc", True, "#800000")
    assert [row[2] for row in samples_of(dataset)] == ["train", "val"]
    assert (found == SHAPES.masks[1:]).all()


def test_import__the_layout_of_cityscapes_keeps_its_nineteen_classes(home: Path, tmp_path: Path) -> None:
    source = write_pairs(tmp_path / "set", SHAPES)
    ids = np.array([7, 26, 4], np.uint8)  # road, car, and one that is never judged
    for number, mask in enumerate(SHAPES.masks):
        name = f"train/ulm/ulm_{number:06d}_000019"
        move(source, f"images/{number:03d}.png", f"leftImg8bit/{name}_leftImg8bit.png")
        (source / f"gtFine/{name}").parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(ids[mask]).save(source / f"gtFine/{name}_gtFine_labelIds.png")
        Image.fromarray(COLOURS[mask]).save(source / f"gtFine/{name}_gtFine_color.png")
    for name in ("images", "masks"):
        for file in (source / name).iterdir():
            file.unlink()
        (source / name).rmdir()
    dataset, found = imported(source)
    road, car = dataset.class_names.index("road"), dataset.class_names.index("car")
    assert (found == np.array([road, car, masks.IGNORED])[SHAPES.masks]).all()
    assert {row[2] for row in samples_of(dataset)} == {"train"}


def write_coco(source: Path) -> Path:
    """The shapes as polygons and run lengths: image 5 has a square disc, a run of bar, and a crowd."""
    square = [[4, 4, 12, 4, 12, 12, 4, 12]]
    runs = {"size": [32, 32], "counts": [0, 64, 960]}  # columns 0 and 1
    crowd = {"size": [32, 32], "counts": [992, 32]}  # the last column
    shapes = ((7, square, 0), (9, runs, 0), (9, crowd, 1))
    annotations = [
        {
            "id": 100 + at,
            "image_id": 5,
            "category_id": category,
            "segmentation": shape,
            "iscrowd": is_crowd,
            "by": "x",
        }
        for at, (category, shape, is_crowd) in enumerate(shapes)
    ]
    annotations += [
        {"id": 200 + number, "image_id": number, "category_id": 7, "segmentation": square, "iscrowd": 0}
        for number in (6, 7)
    ]
    value = {
        "info": {"year": 2024},
        "images": [
            {"id": 5 + number, "file_name": f"{number:03d}.png", "height": 32, "width": 32}
            for number in range(3)
        ],
        "annotations": annotations,
        "categories": [{"id": 7, "name": "disc"}, {"id": 9, "name": "bar"}],
    }
    (source / "annotations").mkdir()
    file = source / "annotations" / "instances.json"
    file.write_text(json.dumps(value))
    return file


def test_import__coco_draws_its_shapes_and_ignores_crowds(home: Path, tmp_path: Path) -> None:
    source = write_pairs(tmp_path / "set", SHAPES)
    file = write_coco(source)
    dataset, found = imported(file, root=source / "images")
    assert (dataset.class_names, dataset.root) == (["background", "disc", "bar"], str(source))
    assert samples_of(dataset)[0] == ("images/000.png", "annotations/instances.json#5", None)
    assert (found[0, 4:12, 4:12] == 1).all()
    assert (found[0, :, :2] == 2).all()
    assert (found[0, :, 31] == masks.IGNORED).all()
    assert (found[0] == 0).sum() == 32 * 32 - 64 - 64 - 32


def test_open_masks__coco_finds_an_image_by_nearly_its_name_and_says_so(tmp_path: Path) -> None:
    source = write_pairs(tmp_path / "set", SHAPES)
    file = write_coco(source)
    file.write_text(file.read_text().replace('"000.png"', json.dumps("C:\\data\\images\\000.PNG")))
    opened = open_masks(file, SourceOptions(task=SEGMENTATION, root=str(source / "images")))
    first = next(iter(opened.rows()))
    assert isinstance(first, SourceRow)
    assert (first.location, first.mask) == ("images/000.png", "annotations/instances.json#5")
    assert any("000.PNG is 000.png" in text for text in remarks(opened))


def test_rewritten__coco_moves_pixels_between_annotations_and_leaves_the_others(tmp_path: Path) -> None:
    read = coco.read(write_coco(write_pairs(tmp_path / "set", SHAPES)), tmp_path / "set")
    there = np.zeros((32, 32), np.bool_)
    there[4:12, 4:8] = True
    after = json.loads(coco.rewritten(read, {5: [coco.Change(there, 1, 2)]}, [7]))
    assert [image["id"] for image in after["images"]] == [5, 6]
    assert [one["id"] for one in after["annotations"]] == [100, 101, 102, 206, 207 + 1]
    assert after["annotations"][1:4] == [read.value["annotations"][at] for at in (1, 2, 3)]
    assert after["annotations"][0]["by"] == "x"
    (tmp_path / "after.json").write_text(json.dumps(after))
    mask = coco.mask_of(coco.read(tmp_path / "after.json", tmp_path), 5)
    assert (mask[4:12, 4:8] == 2).all()
    assert (mask[4:12, 8:12] == 1).all()
    assert (np.delete(mask, np.s_[4:8], 1) == np.delete(coco.mask_of(read, 5), np.s_[4:8], 1)).all()


def test_import__masks_of_0_and_255_have_two_classes_and_255_is_ignored_beside_others(
    home: Path, tmp_path: Path
) -> None:
    two = write_pairs(tmp_path / "two", SHAPES, (SHAPES.masks > 0).astype(np.uint8) * 255)
    dataset, found = imported(two)
    assert (dataset.class_names, np.unique(found).tolist()) == (["0", "255"], [0, 1])
    border = np.where(SHAPES.masks == 2, 255, SHAPES.masks)
    three = write_pairs(tmp_path / "three", SHAPES, border)
    report = import_dataset(three, name="border", task=SEGMENTATION, workers=1)
    assert (report.num_classes, report.num_unlabeled) == (2, 0)


def test_import__palettes_that_differ_are_read_as_colours(home: Path, tmp_path: Path) -> None:
    source = write_pairs(tmp_path / "set", SHAPES)
    for number, mask in enumerate(SHAPES.masks):
        order = np.roll(np.arange(3), number)
        image = Image.fromarray(np.argsort(order).astype(np.uint8)[mask], "P")
        image.putpalette(COLOURS[order].ravel().tolist())
        image.save(source / "masks" / f"{number:03d}.png")
    dataset, found = imported(source)
    assert dataset.class_names == ["#000000", "#008000", "#800000"]
    assert (np.array([0, 2, 1])[found] == SHAPES.masks).all()


def test_import__a_mask_is_placed_as_its_image_is(home: Path, tmp_path: Path) -> None:
    source = write_pairs(tmp_path / "set", SHAPES)
    for name in ("images", "masks"):
        for file in (source / name).iterdir():
            with Image.open(file) as image:
                image.crop((0, 0, 32, 20)).save(file)
    _, found = imported(source, image_size=32)
    assert (found[:, 6:26] == SHAPES.masks[:, :20]).all()
    assert (found[:, :6] == masks.IGNORED).all()
    assert (found[:, 26:] == masks.IGNORED).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("missing", r"^images/001\.png: has no mask; add one, or leave such images out\. Correct them"),
        (
            "size",
            r"^masks/001\.png: has 16 x 16 pixels and its image 32 x 32; save the mask at the image's size",
        ),
        ("lossy", r"^masks/001\.jpg: is a JPEG, which blurs the values of a mask; save masks as PNG"),
    ],
)
def test_import__a_bad_mask_is_named_and_may_be_left_out(
    home: Path, tmp_path: Path, change: str, said: str
) -> None:
    source = write_pairs(tmp_path / "set", SHAPES)
    mask = source / "masks" / "001.png"
    if change == "size":
        Image.fromarray(np.zeros((16, 16), np.uint8)).save(mask)
    else:
        mask.unlink()
    if change == "lossy":
        Image.fromarray(SHAPES.masks[1]).save(mask.with_suffix(".jpg"))
    with pytest.raises(BadRowsError, match=said):
        imported(source)
    dataset, found = imported(source, skip_bad=True)
    assert dataset.num_samples == len(found) == 2


@pytest.mark.parametrize(
    ("names", "options", "said"),
    [
        (
            "a\nb",
            {},
            "its masks hold the value 2 and 2 classes are named; name every class, or the value to",
        ),
        ("a\nb\na", {}, "classes.txt, row 3: 'a' is there before"),
        ("a\nb\nc", {"masks": "images"}, "is the folder of the images too; keep the masks apart"),
        (
            "a\nb\nc",
            {"label_column": "label"},
            "is no table: its labels are masks; leave the label column out",
        ),
    ],
)
def test_import__what_does_not_fit_is_refused_in_one_line(
    home: Path, tmp_path: Path, names: str, options: dict[str, str], said: str
) -> None:
    source = write_pairs(tmp_path / "set", SHAPES)
    (source / "classes.txt").write_text(names)
    where = source
    if "masks" in options:
        options, where = {"masks": str(source / "images")}, source / "images"
    with pytest.raises(ImportRefusedError, match=said):
        imported(where, class_names=source / "classes.txt", **options)


def test_rewritten__changes_some_pixels_and_keeps_mode_palette_and_the_rest() -> None:
    code = masks.MaskCode("pair", (0, 1, 2), ("#000000",) * 3)
    raw = SHAPES.masks[0].copy()
    raw[0, 0] = 9  # of no class
    image = Image.fromarray(raw, "P")
    image.putpalette(COLOURS.ravel().tolist() + [7] * 30)
    file = io_bytes(image)
    changes = np.full((32, 32), masks.IGNORED, np.uint8)
    changes[10:12] = 1
    after = Image.open(io.BytesIO(masks.rewritten(file, code, changes)))
    assert (after.mode, after.getpalette()[:9]) == ("P", COLOURS.ravel().tolist())  # type: ignore[index]
    assert (np.asarray(after)[10:12] == 1).all()
    assert (np.delete(np.asarray(after), [10, 11], 0) == np.delete(raw, [10, 11], 0)).all()


def test_enlarged__is_the_region_at_the_original_size_without_what_lies_beside_the_image() -> None:
    region = np.zeros((32, 32), np.bool_)
    region[:, 16:] = True
    large = masks.enlarged(region, 64, 40)
    assert large.shape == (40, 64)
    assert large[:, 34:].all()
    assert not large[:, :30].any()


def io_bytes(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ({"size": [32, 32], "counts": [-5, 1029]}, "no whole number"),
        ({"size": [32, 32], "counts": [1.5, 1022.5]}, "no whole number"),
        ({"size": [32, 32], "counts": [10, 20]}, "fill 30 of 1,024 pixels"),
        ({"size": [32, 32], "counts": [10, 2000]}, "fill 2,010 of 1,024 pixels"),
        ({"size": [32, 32], "counts": "garbage~~~"}, "damaged at number 0"),
        ({"size": [32, 32], "counts": "P"}, "cut off"),
        ({"size": [8, 8], "counts": [0, 64]}, "not that of the image"),
        ({"size": [32, 32]}, "lacks 'counts'"),
        ([[1, 1, 2, 2]], "three points or more"),
        ([[1, 1, float("nan"), 2, 3, 3]], "no number"),
        ([[1, 1, 1e300, 2, 3, 3]], "beyond"),
        ([["a", 1, 2, 2, 3, 3]], "annotation 100"),
        (5, "annotation 100"),
    ],
    ids=str,
)
def test_open__coco_shapes_that_are_none_name_file_image_and_annotation(
    home: Path, tmp_path: Path, shape: object, told: str
) -> None:
    file = write_coco(write_pairs(tmp_path / "set", SHAPES))
    value = json.loads(file.read_text())
    value["annotations"][0]["segmentation"] = shape
    file.write_text(json.dumps(value))
    with pytest.raises(ImportRefusedError, match=r"instances.json#5.*annotation 100") as caught:
        import_dataset(file, name="x", task=SEGMENTATION, root=str(tmp_path / "set" / "images"), workers=1)
    assert told in str(caught.value)


def test_read_mask__compressed_runs_are_those_of_pycocotools() -> None:
    library = pytest.importorskip("pycocotools.mask")
    pixels = np.random.default_rng(0).random((9, 13)) < 0.4
    runs = library.encode(np.asfortranarray(pixels.astype(np.uint8)))
    annotation = {"id": 1, "image_id": 1, "category_id": 1}
    annotation["segmentation"] = {"size": [9, 13], "counts": runs["counts"].decode()}
    image = {"id": 1, "height": 9, "width": 13, "file_name": "x"}
    file = coco.CocoFile({}, {1: image}, {1: [annotation]}, [1])
    assert (coco.mask_of(file, 1) == pixels).all()
