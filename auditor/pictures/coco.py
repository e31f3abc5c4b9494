"""COCO's polygons and run lengths as masks, and the same file again with other pixels (by pycocotools).

Class 0 is what no annotation covers, the others are the categories in the file's order. Where annotations overlap
the smaller one lies above; what a crowd (``iscrowd``) covers alone is ignored.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.ground.errors import ImportRefusedError
from auditor.ground.files import open_below
from auditor.pictures.decoding import MAX_PIXELS
from auditor.pictures.masks import IGNORED, MOST_CLASSES

BACKGROUND = "background"
FARTHEST = 100_000.0
"""A point of a polygon may lie outside its image, but not in another world."""


@dataclass(frozen=True, eq=False)
class CocoFile:
    """A file of annotations, read once."""

    value: dict[str, Any]
    images: dict[int, dict[str, Any]]
    """By id, in the file's order."""
    annotations: dict[int, list[dict[str, Any]]]
    """Those with a shape, by the id of their image."""
    categories: list[int]
    """Their ids, in the file's order."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """``background`` and the categories."""
        return (BACKGROUND, *(str(one["name"]) for one in self.value["categories"]))


@dataclass(frozen=True, eq=False)
class Change:
    """Pixels of an image that get another class."""

    pixels: NDArray[np.bool_]
    """(H, W)"""
    given: int
    suggested: int


def read(file: Path, below: Path | str) -> CocoFile:
    """The file, which lies below that folder by all links (``open_below``), kept while it does not change.

    Raises:
        ImportRefusedError: it is no COCO file with shapes.
    """
    try:
        return _read(str(file), os.path.getmtime(file), str(below))
    except OSError as error:
        raise ImportRefusedError(f"{file} cannot be read ({error.strerror}); put it back.") from error


@functools.lru_cache(maxsize=2)
def _read(file: str, modified: float, below: str) -> CocoFile:  # noqa: ARG001
    remedy = "name a file of COCO with images, annotations and categories."
    try:
        with open_below(below, os.path.relpath(file, below)) as stream:
            value = json.loads(stream.read().decode("utf-8-sig"))
        images = {int(one["id"]): one for one in value["images"]}
        found: dict[int, list[dict[str, Any]]] = {}
        for one in value["annotations"]:
            image_id, _ = int(one["image_id"]), int(one.get("id", 0))  # the export counts on from them
            if one.get("segmentation"):
                found.setdefault(image_id, []).append(one)
        categories = [int(one["id"]) for one in value["categories"]]
        for image in images.values():
            height, width = int(image["height"]), int(image["width"])
            if min(height, width) < 1 or height * width > MAX_PIXELS:
                raise ValueError(f"image {image['id']} has {width} x {height} pixels")
            str(image["file_name"])
        read = CocoFile(value, images, found, categories)
        names = read.class_names
        unknown = {int(one["category_id"]) for ones in found.values() for one in ones} - set(categories)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ImportRefusedError(f"{file} is no COCO file ({what}); {remedy}") from error
    lost = [one for one in value["annotations"] if int(one["image_id"]) not in images]
    if lost:
        raise ImportRefusedError(
            f"{file}: {len(lost):,} of {len(value['annotations']):,} annotations name images that it does not list "
            f"(such as {int(lost[0]['image_id'])}; listed are {', '.join(map(str, list(images)[:3]))}); correct "
            "image_id, or remove such annotations."
        )
    if len(images) < len(value["images"]):
        raise ImportRefusedError(f"{file} has two images of one id; give each its own.")
    if not found:
        raise ImportRefusedError(f"{file} has no annotation with a segmentation; {remedy}")
    if len(set(names)) < len(names) or len(names) > MOST_CLASSES:
        raise ImportRefusedError(
            f"{file} has a category twice, one named {BACKGROUND!r}, or more than {MOST_CLASSES - 1}."
        )
    if unknown:
        raise ImportRefusedError(
            f"{file} has annotations of category {min(unknown)}, which it does not list."
        )
    return read


def mask_of(coco: CocoFile, image_id: int) -> NDArray[np.uint8]:
    """(H, W) the class of each pixel."""
    image = coco.images[image_id]
    height, width = int(image["height"]), int(image["width"])
    shapes = [(one, _pixels(one, height, width)) for one in coco.annotations.get(image_id, [])]
    mask = np.zeros((height, width), np.uint8)
    for one, pixels in shapes:
        if one.get("iscrowd"):
            mask[pixels] = IGNORED
    for one, pixels in sorted(shapes, key=lambda pair: -int(pair[1].sum())):
        if not one.get("iscrowd"):
            mask[pixels] = 1 + coco.categories.index(int(one["category_id"]))
    return mask


def _rle() -> Any:
    """pycocotools, an extra."""
    try:
        from pycocotools import mask
    except ImportError as error:
        raise ImportRefusedError(
            "COCO's masks need the package pycocotools: pip install 'label-auditor[masks]'."
        ) from error
    return mask


def _pixels(annotation: Mapping[str, Any], height: int, width: int) -> NDArray[np.bool_]:
    rle = _rle()

    shape = annotation["segmentation"]
    try:
        if isinstance(shape, list):
            runs = rle.merge(rle.frPyObjects([_points(one) for one in shape], height, width))
        else:
            counts = {"size": [height, width], "counts": _runs(shape, height, width)}
            runs = rle.frPyObjects(counts, height, width)
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"annotation {annotation.get('id')}: {what}") from error
    return np.asarray(rle.decode(runs)).astype(np.bool_)


def _points(polygon: Any) -> list[float]:
    """The numbers of a polygon that pycocotools can draw; it checks none of them itself, and crashes on some.

    Raises:
        ValueError: too few or odd, not finite, or far away.
    """
    points = np.asarray(polygon, np.float64)
    if points.ndim != 1 or len(points) < 6 or len(points) % 2:
        raise ValueError("a polygon is a list x, y, x, y, ... of three points or more")
    if not (np.abs(points) <= FARTHEST).all():
        raise ValueError(f"a polygon has a point that is no number, or beyond {FARTHEST:,}")
    return [float(one) for one in points]


def _runs(shape: Mapping[str, Any], height: int, width: int) -> list[int]:
    """Run lengths that fill the image, also from COCO's compressed text.

    Raises:
        ValueError: they are no whole numbers, or fill another image.
    """
    counts = shape["counts"]
    if [int(one) for one in shape["size"]] != [height, width]:
        raise ValueError(f"its size {shape['size']} is not that of the image, {[height, width]}")
    runs = _uncompressed(counts) if isinstance(counts, str) else list(counts)
    if not all(isinstance(one, int) and one >= 0 for one in runs):
        raise ValueError("a run length is no whole number from 0")
    if sum(runs) != height * width:
        raise ValueError(f"its run lengths fill {sum(runs):,} of {height * width:,} pixels")
    return runs


def _uncompressed(text: str) -> list[int]:
    """Run lengths from COCO's text, as ``rleFrString`` of pycocotools reads it.

    A letter holds five bits, and a sixth that says that more follow; the last one is signed. From the fourth number
    on each is the difference from the one before the last.

    Raises:
        ValueError: a letter that there is not, or the text ends inside a number.
    """
    runs: list[int] = []
    value = shift = 0
    for letter in text.encode():
        piece = letter - 48
        if not 0 <= piece < 64 or shift > 60:
            raise ValueError(f"its compressed run lengths are damaged at number {len(runs)}")
        value |= (piece & 31) << shift
        shift += 5
        if piece & 32:
            continue
        if piece & 16:
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value = shift = 0
    if shift:
        raise ValueError("its compressed run lengths are cut off")
    return runs


def rewritten(coco: CocoFile, changes: Mapping[int, Iterable[Change]], excluded: Iterable[int]) -> str:
    """The file's text after these changes by image id, without the ``excluded`` images.

    A changed pixel leaves the annotations of the class that it had, and one new annotation a region holds those of
    a category; annotations that do not change keep every field.
    """
    gone = set(excluded)
    value = dict(coco.value)
    value["images"] = [one for one in value["images"] if int(one["id"]) not in gone]
    next_id = max((int(one.get("id", 0)) for one in value["annotations"]), default=0) + 1
    kept: list[dict[str, Any]] = []
    for one in value["annotations"]:
        image_id = int(one["image_id"])
        if image_id in gone:
            continue
        after = _without(coco, one, list(changes.get(image_id, [])))
        if after is not None:
            kept.append(after)
    for image_id, regions in changes.items():
        for region in regions if image_id not in gone else []:
            if region.suggested > 0:
                category = coco.categories[region.suggested - 1]
                new = {"id": next_id, "image_id": image_id, "category_id": category, "iscrowd": 0}
                kept.append(new | _as_runs(region.pixels))
                next_id += 1
    value["annotations"] = kept
    return json.dumps(value, ensure_ascii=False)


def _without(coco: CocoFile, annotation: dict[str, Any], changes: list[Change]) -> dict[str, Any] | None:
    """The annotation without what changed of its class; None where nothing is left of it."""
    if not annotation.get("segmentation") or annotation.get("iscrowd"):
        return annotation
    own = 1 + coco.categories.index(int(annotation["category_id"]))
    lost = [one.pixels for one in changes if one.given == own]
    if not lost:
        return annotation
    image = coco.images[int(annotation["image_id"])]
    pixels = _pixels(annotation, int(image["height"]), int(image["width"]))
    left = pixels & ~np.any(lost, axis=0)
    if (left == pixels).all():
        return annotation
    return annotation | _as_runs(left) if left.any() else None


def _as_runs(pixels: NDArray[np.bool_]) -> dict[str, Any]:
    rle = _rle()

    runs = rle.encode(np.asfortranarray(pixels.astype(np.uint8)))
    box = [float(one) for one in rle.toBbox(runs)]
    counts = {"size": [int(one) for one in runs["size"]], "counts": runs["counts"].decode("ascii")}
    return {"segmentation": counts, "area": float(pixels.sum()), "bbox": box}
