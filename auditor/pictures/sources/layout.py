"""What a folder, zip or tar of pictures means as a whole: wrappers, splits and classes, read from names alone.

``read`` asks one list of recognisers. Each looks at the folders that hold pictures and says what they mean, that it
does not know them, or that a person has to say it; none opens a file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from auditor.ground.errors import ImportRefusedError
from auditor.ground.wording import plural
from auditor.pictures.sources.rows import printable

SPLITS = frozenset(["train", "training", "trainval", "val", "valid", "validation", "test", "testing", "dev"])
"""Usual names; of folders more are known (``is_split``)."""
LAYOUTS = ("classes", "splits")
"""What ``--layout`` answers: whether the first folders are the classes, or splits with the classes below them."""
MOST_SHOWN = 5
Parts: TypeAlias = tuple[str, ...]
_SPLIT = re.compile(
    r"(?:[a-z0-9]{1,40}[_\- ]){0,4}"
    r"(train|training|trainval|val|valid|validation|test|testing|dev|eval|pred|holdout)"
    r"(?:[_\- ]?(?:set|data|images|imgs|split|ing))?(?:[_\- ]?\d{1,4})?"
)
OF_TASKS = {
    "masks": "masks beside images: import them with the task segmentation",
    "mask": "masks beside images: import them with the task segmentation",
    "segmentationclass": "masks beside images: import them with the task segmentation",
    "gt": "truth beside images: import masks with the task segmentation, and a table of labels by its file",
    "annotations": "files of boxes beside images (VOC); write them as COCO and import that file with boxes",
    "labels": "files of boxes beside images (YOLO); write them as COCO and import that file with boxes",
    "images": "images and no class folders; name the table or the file of annotations that holds their labels",
    "imgs": "images and no class folders; name the table or the file of annotations that holds their labels",
    "jpegimages": "the layout of VOC: boxes in Annotations/ (write them as COCO and import that file with boxes), "
    "or masks in SegmentationClass/ (import them with the task segmentation)",
}
"""Names of folders that are parts of a layout and no classes, and what to do then."""


@dataclass(frozen=True)
class Reading:
    """What the folders mean."""

    wrapper: Parts
    """Folders round everything, which mean nothing."""
    has_splits: bool
    inner: Mapping[str, Parts]
    """By split: folders below it, round its classes, which mean nothing."""
    unlabeled: frozenset[str]
    """Splits without class folders."""
    is_split_below: bool
    """Whether each class has a folder a split in it."""
    counts: Counter[Parts]
    """Pictures by folder."""

    def of(self, parts: list[str]) -> tuple[str | None, str | None] | None:
        """(class or None, split or None) of a file by the parts of its path; None: it lies beside the classes."""
        if tuple(parts[: len(self.wrapper)]) != self.wrapper:
            return None
        rest, split = parts[len(self.wrapper) : -1], None
        if self.has_splits:
            if not rest:
                return None
            split, inner = rest[0], self.inner.get(rest[0], ())
            rest = rest[1:]
            rest = rest[len(inner) :] if tuple(rest[: len(inner)]) == inner else rest
            if split in self.unlabeled:
                return None, split
        if not rest:
            return None
        return rest[0], rest[1] if self.is_split_below and len(rest) > 1 else split

    def lines(self) -> list[str]:
        """The reading as a person checks it: a line a split with its classes, and what was left out."""
        found: dict[str | None, Counter[str | None]] = {}
        for folder, count in self.counts.items():
            meant = self.of([*folder, ""])
            if meant is not None:
                found.setdefault(meant[1], Counter())[meant[0]] += count
        said = []
        for split, classes in found.items():
            named = [(name, count) for name, count in classes.items() if name is not None]
            shown = ", ".join(f"{printable(name, 40)} {count:,}" for name, count in named[:MOST_SHOWN])
            more = ", ..." if len(named) > MOST_SHOWN else ""
            what = f"{plural(len(named), 'class')}: {shown}{more}" if named else ""
            what = f"unlabeled: {classes[None]:,}" if not named else what
            said.append(what if split is None else f"{printable(split, 40)}, {what}")
        left = ["/".join(self.wrapper)] if self.wrapper else []
        left += [f"{split}/{'/'.join(inner)}" for split, inner in self.inner.items() if inner]
        return said + [f"wrapper {printable(one, 60)}/ left out" for one in left]

    @property
    def is_plain(self) -> bool:
        """One folder a class and nothing else: there is nothing to say."""
        return not (self.wrapper or self.has_splits or self.is_split_below)


def is_split(name: str) -> bool:
    """Whether a folder of that name is a split, in any usual spelling: ``seg_train``, ``val2017``, ``Test set``."""
    return _SPLIT.fullmatch(name.lower().strip()) is not None


def read(root: str, counts: Counter[Parts], layout: str | None) -> Reading:
    """What the folders that hold pictures (by the parts of their paths, with how many) mean as a whole.

    Raises:
        ImportRefusedError: there are no class folders, two readings are plausible and ``layout`` says neither, or
            what is there has its labels elsewhere; the text shows the reading.
    """
    if layout is not None and layout not in LAYOUTS:
        raise ImportRefusedError(f"There is no layout {layout!r}; use classes or splits.", field="layout")
    folders = Counter({parts: count for parts, count in counts.items() if parts})
    if not folders:
        raise ImportRefusedError(
            f"{root} has no sub-folder with images; put each class in a folder of its own, or import "
            "a CSV with a path and a label column."
        )
    wrapper = _wrapper(folders)
    inside = _below(folders, wrapper)
    for recognise in RECOGNISERS:
        found = recognise(root, inside, layout)
        if found is not None:
            return Reading(wrapper, *found, counts=folders)
    raise AssertionError("the last recogniser takes everything")


Found: TypeAlias = tuple[bool, Mapping[str, Parts], frozenset[str], bool]
"""(has_splits, inner, unlabeled, is_split_below) of a ``Reading``."""


def _parts_of_tasks(root: str, folders: Counter[Parts], layout: str | None) -> Found | None:
    """``images/`` and ``masks/``, ``JPEGImages/``, ``train/images/``: no folder is a class."""
    below = {folder[1:] if is_split(folder[0]) else folder for folder in folders}
    names = {rest[0] for rest in below if rest}
    known = [name for name in names if name.lower() in OF_TASKS]
    is_wrapper = len(names) == 1 and all(len(rest) > 1 for rest in below)
    if layout is not None or not known or len(known) < len(names) or is_wrapper:
        return None
    first = min(known, key=lambda name: list(OF_TASKS).index(name.lower()))
    raise ImportRefusedError(
        f"{root} ({_shown(folders)}) holds {OF_TASKS[first.lower()]}. If the first folders are classes, say so.",
        field="layout",
    )


def _splits(root: str, folders: Counter[Parts], layout: str | None) -> Found | None:
    """A folder a split, with classes below it or without."""
    tops = list(dict.fromkeys(folder[0] for folder in folders))
    called = [top for top in tops if is_split(top)]
    deep = {top for top in tops if any(len(folder) > 1 for folder in folders if folder[0] == top)}
    if layout == "classes" or not (called or layout == "splits"):
        return None
    if layout is None and len(called) < len(tops):
        if not deep & set(called):
            return None  # classes, one of which is called so: car, plane, train
        raise _asked(root, folders)
    inner = {top: _inner(_below(folders, (top,))) for top in tops}
    unlabeled = {top for top in tops if not any(_below(folders, (top, *inner[top])))}
    if unlabeled == set(tops):
        raise ImportRefusedError(
            f"{root} has splits and no class folders in them ({_shown(folders)}): not one image has a label; "
            "import the table or file of annotations that holds the labels, or say that these folders are classes.",
            field="layout",
        )
    return True, inner, frozenset(unlabeled), False


def _splits_below(root: str, folders: Counter[Parts], layout: str | None) -> Found | None:  # noqa: ARG001
    """``cat/train/1.png``: a folder a split in each class."""
    seconds = {folder[1] for folder in folders if len(folder) > 1}
    if len(seconds) < 2 or any(len(folder) < 2 for folder in folders) or not all(map(is_split, seconds)):
        return None
    return False, {}, frozenset(), True


def _classes(root: str, folders: Counter[Parts], layout: str | None) -> Found:
    """A folder a class, deeper ones belong to it; asked about where the second ones may be the classes."""
    if layout is None:
        seconds: dict[str, set[str]] = {}
        for folder in folders:
            if len(folder) > 1:
                seconds.setdefault(folder[0], set()).add(folder[1])
        tops = {folder[0] for folder in folders}
        again = any(len(names & (tops - {top})) > 1 for top, names in seconds.items())
        common = Counter(name for names in seconds.values() for name in names if name.lower() not in OF_TASKS)
        repeated = [name for name, count in common.items() if count > 1]
        if again or (len(repeated) > 1 and len(seconds) == len(tops) > 1):
            raise _asked(root, folders)
    return False, {}, frozenset(), False


RECOGNISERS: tuple[Callable[[str, Counter[Parts], str | None], Found | None], ...] = (
    _parts_of_tasks,
    _splits,
    _splits_below,
    _classes,
)
"""In the order in which they are asked: what is more special comes first."""


def _shown(folders: Counter[Parts]) -> str:
    shown = ", ".join(f"{'/'.join(folder)} {count:,}" for folder, count in list(folders.items())[:MOST_SHOWN])
    return printable(shown + (", ..." if len(folders) > MOST_SHOWN else ""), 160)


def _asked(root: str, folders: Counter[Parts]) -> ImportRefusedError:
    return ImportRefusedError(
        f"{root} can be read in two ways ({_shown(folders)}): its first folders may be the classes, or splits with "
        "the classes below them; say which: classes or splits.",
        field="layout",
    )


def _below(folders: Counter[Parts], prefix: Parts) -> Counter[Parts]:
    """The folders below that one, by the rest of their paths; itself as ``()``."""
    size = len(prefix)
    return Counter({folder[size:]: count for folder, count in folders.items() if folder[:size] == prefix})


def _wrapper(folders: Counter[Parts]) -> Parts:
    """The folders that wrap everything: each is the only one at its place, and holds no picture itself."""
    prefix: Parts = ()
    while True:
        below = _below(folders, prefix)
        tops = {folder[0] for folder in below if folder}
        if () in below or len(tops) != 1 or is_split(top := next(iter(tops))) or () in _below(below, (top,)):
            return prefix
        prefix = (*prefix, top)


def _inner(folders: Counter[Parts]) -> Parts:
    """Folders in a split that repeat its name, or are called ``images``, round all that is in it."""
    prefix: Parts = ()
    while True:
        below = _below(folders, prefix)
        tops = {folder[0] for folder in below if folder}
        if () in below or len(tops) != 1:
            return prefix
        top = next(iter(tops))
        if not (is_split(top) or top.lower() in OF_TASKS):
            return prefix
        prefix = (*prefix, top)
