"""Folders of many files that other tools wrote, with one file damaged, replaced or gone."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from auditor.importing import imports
from qa.faults.trial import changed_bytes, command, no_litter, one_line
from tests.auditor.pictures.sources import test_containers as written
from tests.shapes import draw_shapes, write_pairs

SHAPES = draw_shapes(6, size=8)


def pairs(folder: Path) -> Path:
    """Images and masks side by side."""
    return write_pairs(folder / "set", SHAPES)


def voc(folder: Path) -> Path:
    """The layout of VOC, as CVAT writes it."""
    source = write_pairs(folder / "set", SHAPES)
    colours = np.array([[0, 0, 0], [128, 0, 0], [0, 128, 0]], np.uint8)
    for number, mask in enumerate(SHAPES.masks):
        Image.fromarray(colours[mask]).save(source / "masks" / f"{number:03d}.png")
    (source / "masks").rename(source / "SegmentationClass")
    (source / "images").rename(source / "JPEGImages")
    lists = source / "ImageSets" / "Segmentation"
    lists.mkdir(parents=True)
    (lists / "train.txt").write_text("000\n001\n002\n003\n")
    (lists / "val.txt").write_text("004\n005\n")
    (source / "labelmap.txt").write_text("# label\nground:0,0,0::\ndisc:128,0,0::\nbar:0,128,0::\n")
    return source


def coco(folder: Path) -> Path:
    """Polygons of COCO, one file beside the images."""
    source = write_pairs(folder / "set", SHAPES)
    images = [{"id": n, "file_name": f"images/{n:03d}.png", "width": 8, "height": 8} for n in range(6)]
    shape = [[1, 1, 6, 1, 6, 6, 1, 6]]
    found = [
        {"id": n, "image_id": n, "category_id": 1 + n % 2, "segmentation": shape, "bbox": [1, 1, 5, 5]}
        for n in range(6)
    ]
    categories = [{"id": 1, "name": "disc"}, {"id": 2, "name": "bar"}]
    value = {"images": images, "annotations": found, "categories": categories}
    (source / "coco.json").write_text(json.dumps(value))
    return source


MASKS: list[Callable[[Path], Path]] = [pairs, voc, coco]


def damaged(file: Path, luck: random.Random) -> None:
    """The file with other bytes, empty, gone, or a pipe, a folder, a link or another kind of file in its place."""
    way = luck.choice([*["bytes"] * 6, "empty", "gone", "pipe", "folder", "loop", "out", "text", "picture"])
    data = file.read_bytes()
    if way == "bytes":
        file.write_bytes(changed_bytes(data or b"x", luck))
        return
    file.unlink()
    if way == "pipe":
        os.mkfifo(file)
    elif way == "folder":
        file.mkdir()
    elif way in ("loop", "out"):
        file.symlink_to(file.name if way == "loop" else "/etc/passwd")
    elif way != "gone":
        odd = {"empty": b"", "text": b"\xff\xfe{[\n0:0", "picture": written.picture(9)}
        file.write_bytes(odd[way])


def layouts(luck: random.Random, place: Path) -> None:
    """A source of several files, one or two of them damaged: shown, imported and written again, or refused."""
    from auditor.ground.settings import settings

    write = luck.choice([*written.WRITERS, *MASKS, *MASKS])
    source = write(place)
    more: dict[str, Any] = {}
    if write in (written.write_tar, written.write_tar_gz, written.write_shards):
        more["class_names"] = place / "names.txt"
        more["class_names"].write_text("cat\ndog")
    elif write in MASKS and luck.random() < 0.9:
        more["task"] = "segmentation"
        if write is pairs and luck.random() < 0.5:
            more |= {"class_names": source / "classes.txt", "masks": source / "masks"}
            source = luck.choice([source, source / "images"])
        elif write is coco:
            source = source / "coco.json"
        more["ignore_index"] = luck.choice([None, 0, 255, 65_535])
    folder = source.parent if source.is_file() or source.name == "images" else source
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.suffix != ".db")
    files = [file for file in files if "home" not in file.relative_to(place).parts]
    if folder == place:
        files = [source]
    texts = [file for file in files if file.suffix not in (".png", ".arrow", ".parquet")]
    for _ in range(luck.randrange(1, 3)):
        victim = luck.choice(luck.choice([files, texts or files]))
        if victim.is_file() and not victim.is_symlink():
            damaged(victim, luck)
    with one_line():
        imports.preview_source(source, **more)
    with one_line():
        imports.import_dataset(source, name="x", workers=1, skip_bad=luck.random() < 0.4, **more)
        command("status", "x")
        command("suspects", "x")
        command("export", "x", "--out", str(place / f"out{source.suffix}"), "--as-source")
        command("export", "x", "--out", str(place / "out"))
        command("remove", "x", "--yes")
    no_litter(settings().datasets)
