"""What the screen of masks asks for: layers to lay over a picture, the doubtful regions of a mask, and verdicts."""

from __future__ import annotations

import colorsys
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageEnhance

from app.server import bodies, pictures
from auditor.catalog import datasets, reading
from auditor.catalog.db import ask
from auditor.catalog.records import Dataset, Sample
from auditor.ground.errors import NotFoundError
from auditor.ground.vocabulary import RELABEL, SEGMENTATION
from auditor.labels.masks import (
    Region,
    changed,
    classes_of,
    decide,
    given_masks,
    is_only_wrong,
    mask_verdicts,
    masks_of_engines,
    region_sentences,
    regions_of,
)
from auditor.pictures import cache
from auditor.pictures.decoding import placed
from auditor.pictures.masks import IGNORED
from auditor.review import decisions, schema

OUTLINES, GIVEN, SUGGESTED, DOUBT = "outlines", "given", "suggested", "doubt"
LAYERS = (OUTLINES, GIVEN, SUGGESTED, DOUBT)
COLOURS = {GIVEN: (255, 140, 0), SUGGESTED: (0, 170, 255), DOUBT: (230, 0, 60)}
"""Given is orange and suggested is blue, as on every screen; doubt is red."""
LIGHTS = (0.5, 0.34, 0.68)
OF_CLASSES = np.array(
    [
        [
            255 * part
            for part in colorsys.hls_to_rgb(0.07 + 0.84 * (0.618 * label % 1), LIGHTS[label % 3], 0.75)
        ]
        for label in range(256)
    ],
    np.uint8,
)
"""(256, 3) a colour for each class of a mask: hues a golden section apart, so that neighbours differ most, in three
lights, so that like hues differ too; none is the red of doubt."""
CLOSE, CLOSE_SIDE = "close-", 192
"""Before the number of a region: that part of the picture, so many pixels square."""
REGION = "region-"
"""Before the number of a region: a veil lies over all but that one."""
VEIL, EDGE, SHADE = (40, 46, 56, 64), (255, 255, 255, 255), (0, 0, 0, 150)
"""Colours (RGBA) beyond the region, of its border and around that, for a bright sky; the veil is grey, for photos
may be dark themselves."""
GREY_SIDE, DARK, MOST_LIGHT = 256, 96, 4.0
"""Pixels of the picture that says how dark a region is, below which mean of 255 its close-up is brighter, and
how many times at most."""
CROPPED_SIDE, AROUND = 1024, 2.0
"""Pixels of the picture that a region is cut out of, and how many times as wide as the region that part is."""
DRAWN_SIDE = 720
"""Pixels that an outline is drawn at, at least."""
MOST_ALPHA = 102
"""Of what lies over the photo as a surface: 40 %, so that the photo stays what one sees."""


def layer(audit_id: int, sample_id: int, name: str) -> bytes:
    """A transparent PNG of the shape of the picture: outlines of the given classes, the given or the suggested
    classes in their colours, doubt in red, or, of ``region-3``, a veil over all but that region. ``close-3`` is
    that region and what is around it in the picture.

    Raises:
        NotFoundError: no such audit, sample or layer.
    """
    dataset, sample = _sample(audit_id, sample_id)
    if name.startswith(REGION):
        return _png(_spotlight(dataset, audit_id, sample, name.removeprefix(REGION)))
    if name.startswith(CLOSE):
        region = _region(dataset, audit_id, sample, name.removeprefix(CLOSE))
        return _png(np.asarray(_lit(dataset, sample_id, CLOSE_SIDE, region.pixels)))
    found = mask_verdicts(audit_id)
    given = _inner(np.asarray(given_masks(dataset)[sample_id]), sample)
    if name == DOUBT:
        heat = _inner(np.asarray(found.doubt[sample_id]), sample)
        alpha = np.where(given == IGNORED, 0, heat.astype(np.float32) / 255 * MOST_ALPHA)
        colours = COLOURS[DOUBT]
    elif name in (GIVEN, SUGGESTED):
        alpha = np.where(given == IGNORED, 0, MOST_ALPHA)
        colours = OF_CLASSES[
            given if name == GIVEN else _inner(np.asarray(found.suggested[sample_id]), sample)
        ]
    elif name == OUTLINES:
        lines = _near(_outline(_larger(given, max(1, -(-DRAWN_SIDE // max(given.shape))))), 1)
        alpha, colours = np.where(lines, 255, 0), COLOURS[GIVEN]
    else:
        raise NotFoundError(f"There is no layer {name!r}; there are {', '.join(LAYERS)}.")
    pixels = np.zeros((*alpha.shape, 4), np.uint8)
    pixels[..., :3], pixels[..., 3] = colours, alpha
    return _png(pixels)


def _png(pixels: NDArray[np.uint8]) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def _spotlight(dataset: Dataset, audit_id: int, sample: Sample, number: str) -> NDArray[np.uint8]:
    """(H, W, 4) a white line around one region and a veil beyond it."""
    inside = _inner(_region(dataset, audit_id, sample, number).pixels, sample)
    inside = _larger(inside, max(1, -(-DRAWN_SIDE // max(inside.shape))))
    wide = _near(inside, 2)
    pixels = np.zeros((*inside.shape, 4), np.uint8)
    pixels[~inside] = VEIL
    pixels[_near(wide, 1) & ~wide] = SHADE
    pixels[wide & ~inside] = EDGE
    return pixels


def _region(dataset: Dataset, audit_id: int, sample: Sample, number: str) -> Region:
    regions = {str(one.number): one for one in regions_of(dataset, audit_id, sample.sample_id)}
    if number not in regions:
        raise NotFoundError(f"Sample {sample.sample_id} has no region {number!r}; it has {len(regions)}.")
    return regions[number]


def outlined_picture(dataset: Dataset, sample_id: int, side: int) -> bytes:
    """The picture, ``side`` pixels large, with the outline of its given mask alone, for who judges it blind.

    Raises:
        NotFoundError: no such sample.
    """
    picture, sample = _sized(dataset, sample_id, side)
    given = _at(_inner(np.asarray(given_masks(dataset)[sample_id]), sample), picture.size)
    picture.paste(COLOURS[GIVEN], (0, 0), Image.fromarray((_outline(given) * 255).astype(np.uint8)))
    return cache.encoded(picture, cache.CLOSE)  # thin lines need the better quality


def lit_picture(dataset: Dataset, sample_id: int, side: int, region: NDArray[np.bool_]) -> bytes:
    """One region (S, S) and what is around it in the picture, ``side`` pixels square, brighter where it is dark.

    Raises:
        NotFoundError: no such sample.
    """
    return cache.encoded(_lit(dataset, sample_id, side, region), cache.CLOSE)


def _lit(dataset: Dataset, sample_id: int, side: int, region: NDArray[np.bool_]) -> Image.Image:
    picture, sample = _sized(dataset, sample_id, CROPPED_SIDE)
    inside = Image.fromarray(_inner(region, sample)).resize(picture.size, Image.Resampling.NEAREST)
    left, top, right, bottom = inside.getbbox() or (0, 0, *picture.size)
    shorter = min(picture.size)
    length = int(np.clip(AROUND * max(right - left, bottom - top), shorter / 3, shorter))
    x, y = (
        int(np.clip((first + last - length) / 2, 0, whole - length))
        for first, last, whole in zip((left, top), (right, bottom), picture.size, strict=True)
    )
    box = (x, y, x + length, y + length)
    square = picture.crop(box).resize((side, side))
    square = ImageEnhance.Brightness(square).enhance(lights(square.convert("L"), (0, 0, 1, 1)))
    lit = np.asarray(inside.crop(box).resize((side, side), Image.Resampling.NEAREST))
    wide = _near(lit, 2)
    for tone, there in ((SHADE, _near(wide, 1) & ~wide), (EDGE, wide & ~lit)):
        square.paste(tone[:3], (0, 0), Image.fromarray((there * tone[3]).astype(np.uint8)))
    return square


def _sized(dataset: Dataset, sample_id: int, side: int) -> tuple[Image.Image, Sample]:
    sample = ask(datasets.sample, dataset.id, sample_id)
    picture = Image.open(io.BytesIO(pictures.encoded_picture(dataset.id, sample_id, side))).convert("RGB")
    return picture.resize([round(side * one / max(picture.size)) for one in picture.size]), sample


def _at(mask: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """A mask at (width, height)."""
    return np.asarray(Image.fromarray(mask).resize(size, Image.Resampling.NEAREST))


def card(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The doubtful regions of one mask, those of most doubt first, with their boxes as shares of the picture, the
    reason in words, the classes that it was given, and the decision that counts.
    """
    body = schema.read(bodies.Card, payload)
    dataset, sample = _sample(body.audit, body.sample)
    regions = strongest_first(regions_of(dataset, body.audit, body.sample))
    given = np.asarray(given_masks(dataset)[body.sample])
    judged = int((given != IGNORED).sum())
    left, top, width, height = placed(sample.original_width, sample.original_height, dataset.height)
    of_models = masks_of_engines(reading.audit(body.audit))
    said = [{name: np.asarray(values[body.sample]) for name, values in one.items()} for one in of_models]
    grey = Image.open(io.BytesIO(pictures.encoded_picture(dataset.id, body.sample, GREY_SIDE))).convert("L")
    rows = []
    for one in regions:
        x1, y1, x2, y2 = one.box
        box = [(x1 - left) / width, (y1 - top) / height, (x2 - left) / width, (y2 - top) / height]
        about = {"number": one.number, "given": one.given, "suggested": one.suggested, "doubt": one.doubt}
        reason = region_sentences(one, given, said, dataset.class_names)
        seen = {"box": box, "light": lights(grey, box)}
        rows.append(about | seen | {"share": one.area / max(1, judged), "why": reason})
    row = decisions.outcomes(dataset.id).get(body.sample)
    if row is not None and is_only_wrong(row):
        row = None  # it still waits for its right regions
    is_of_this = row is not None and row.audit_id == body.audit
    return {
        "sample": body.sample,
        "width": sample.original_width,
        "height": sample.original_height,
        "light": lights(grey, (0, 0, 1, 1)),
        "regions": rows,
        "classes": [label for label, _ in colours_of(dataset, body.sample)],
        "decision": None if row is None else row.decision,
        "reviewer": None if row is None else row.reviewer,
        "taken": classes_of(row.labels or []) if row is not None and is_of_this else None,
    }


def done(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The regions that the decisions on an audit's masks change: sample, number, class before and class after."""
    body = schema.read(bodies.Done, payload)
    dataset = reading.dataset_of_audit(body.audit)
    rows = [
        {"sample": sample, "number": one.number, "given": one.given, "becomes": one.suggested}
        for sample, row in decisions.outcomes(dataset.id).items()
        if row.audit_id == body.audit and row.decision == RELABEL
        for one in changed(dataset, body.audit, sample, row.labels or [])
    ]
    return {"regions": rows}


def lights(grey: Image.Image, box: Sequence[float]) -> float:
    """Return how much brighter a part of a picture has to be to be seen: 1 where it is not dark.

    ``box``: left, top, right and bottom as shares of the picture.
    """
    left, top, right, bottom = (
        round(share * side) for share, side in zip(box, (*grey.size, *grey.size), strict=True)
    )
    part = np.asarray(grey)[top : max(bottom, top + 1), left : max(right, left + 1)]
    mean = float(part.mean()) if part.size else DARK
    return float(np.clip(DARK / max(mean, 1.0), 1.0, MOST_LIGHT))


def colours_of(dataset: Dataset, sample_id: int) -> list[tuple[int, str]]:
    """(class, its colour as ``#rrggbb``) of the classes that a mask was given."""
    given = np.asarray(given_masks(dataset)[sample_id])
    found = np.unique(given[given != IGNORED]).tolist()
    return [(label, colour(label)) for label in found]


def colour(label: int) -> str:
    """The colour of a class as ``#rrggbb``."""
    return "#" + OF_CLASSES[label].tobytes().hex()


def strongest_first(regions: Sequence[Region]) -> list[Region]:
    """Regions in the order of what the engines doubt most; their numbers, by which they are taken, stay."""
    return sorted(regions, key=lambda one: -one.doubt)


def record(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Keep a decision on a mask; ``labels`` are the numbers of the regions that change, None = all."""
    said = schema.read(bodies.MaskVerdict, payload)
    decision, taken = decide(
        said.dataset,
        said.sample,
        said.decision,
        regions=said.labels,
        classes=said.classes,
        audit_id=said.audit,
        reviewer=said.reviewer,
    )
    return {"decision": decision, "taken": taken}


def undo(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Take back the reviewer's newest decision, on a mask or a number; the sample to decide again, or None."""
    body = schema.read(bodies.Undo, payload)
    audit = reading.audit(body.audit)
    undone = decisions.undo_last(audit.dataset_id, body.reviewer)
    return {"sample": undone[0].sample_id if undone else None}


def _sample(audit_id: int, sample_id: int) -> tuple[Dataset, Sample]:
    dataset = reading.dataset_of_audit(audit_id)
    if dataset.task != SEGMENTATION:
        raise NotFoundError(f"The labels of {dataset.name} are no masks.")
    return dataset, ask(datasets.sample, dataset.id, sample_id)


def _inner(square: NDArray[Any], sample: Sample) -> NDArray[Any]:
    """Return what the picture itself covers of the cache's square."""
    left, top, width, height = placed(sample.original_width, sample.original_height, len(square))
    return square[top : top + height, left : left + width]


def _larger(values: NDArray[Any], times: int) -> NDArray[Any]:
    return values.repeat(times, 0).repeat(times, 1)


def _outline(classes: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """The pixels on both sides of every border between classes."""
    found = np.zeros(classes.shape, np.bool_)
    down, right = classes[1:] != classes[:-1], classes[:, 1:] != classes[:, :-1]
    found[1:] |= down
    found[:-1] |= down
    found[:, 1:] |= right
    found[:, :-1] |= right
    return found


def _near(there: NDArray[np.bool_], pixels: int) -> NDArray[np.bool_]:
    """``there`` and all that is at most so many pixels beside it."""
    found = there.copy()
    for _ in range(pixels):
        wide = found.copy()
        wide[1:] |= found[:-1]
        wide[:-1] |= found[1:]
        found = wide.copy()
        found[:, 1:] |= wide[:, :-1]
        found[:, :-1] |= wide[:, 1:]
    return found
