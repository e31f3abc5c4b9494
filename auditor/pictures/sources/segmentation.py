"""Images with masks: folder pairs, the layouts of Pascal VOC and Cityscapes, and what their values mean.

=============  =========================================================================================
pair           one folder of images, one of masks (``images/`` and ``masks/`` are found by themselves); a mask
               belongs to the image of the same name, or of that name and ``_mask``, ``_label`` and the like
VOC            ``JPEGImages/``, ``SegmentationClass/``; ``ImageSets/Segmentation/*.txt`` are the splits and
               ``labelmap.txt``, as CVAT writes it, names the classes
Cityscapes     ``leftImg8bit/SPLIT/CITY/*_leftImg8bit.png`` and ``gtFine/SPLIT/CITY/*_gtFine_labelIds.png``
COCO           a JSON file; its images lie beside it, or in the folder that the root names
=============  =========================================================================================

Classes are named by a file with one name a line (class 0 first), or ``R G B NAME`` a line for coloured masks; by
the layout; or by the values that occur.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.ground.errors import ImportRefusedError
from auditor.ground.names import normal
from auditor.ground.paths import Paths
from auditor.ground.wording import plural
from auditor.pictures import coco
from auditor.pictures.decoding import ImageError, Probe, probe
from auditor.pictures.masks import MOST_CLASSES, MaskCode, decode, palette, raw_values, size_of, upright
from auditor.pictures.sources.folder import is_image_name
from auditor.pictures.sources.layout import is_split
from auditor.pictures.sources.names_file import lines_in, names_in
from auditor.pictures.sources.reading import UnreadableError, read_bytes
from auditor.pictures.sources.roots import Resolved
from auditor.pictures.sources.rows import (
    Payload,
    Problem,
    SourceInfo,
    SourceOptions,
    SourceRow,
    printable,
)
from auditor.pictures.sources.trees import FolderTree, Images, PathError, folder_tree

IMAGE_FOLDERS = ("images", "image", "imgs", "img")
MASK_FOLDERS = ("masks", "mask", "labels", "annotations", "segmentation", "segmentations", "gt")
IMAGE_ENDINGS = ("_leftimg8bit", "_image", "_img", "_sat")
MASK_ENDINGS = (
    *("_gtfine_labeltrainids", "_gtfine_labelids", "_gtcoarse_labeltrainids", "_gtcoarse_labelids"),
    *(
        "_segmentation",
        "_ground_truth",
        "_groundtruth",
        "_labels",
        "_label",
        "_masks",
        "_mask",
        "_seg",
        "_gt",
    ),
    "_l",
)
"""What the name of a mask may add to that of its image, in any case and with any sign between."""
OTHER_ENDINGS = ("_color", "_colors", "_instanceids", "_polygons")
"""Files beside masks that are none."""
TURN = "#turned="
VOID = 255
"""What marks ignored pixels where nobody says otherwise."""
CITYSCAPES = (
    *("road", "sidewalk", "building", "wall", "fence", "pole", "traffic light", "traffic sign", "vegetation"),
    *("terrain", "sky", "person", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle"),
)
CITYSCAPES_IDS = (7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33)
VOC = (
    *("background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train"),
    "tvmonitor",
)
COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8c6bb1", "#b0a000"),
    *("#1b9e77", "#a6761d", "#e7298a", "#66a61e", "#7570b3", "#999999", "#17becf"),
)
"""Colours of classes that have none of their own, in turn."""
_BETWEEN = re.compile(r"[-_. ]+")
_COLOUR_PART = re.compile(r"[0-9]{1,3}")
_COLOURED = re.compile(r"(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\S.*)")


@dataclass(frozen=True)
class Pair:
    """An image and its mask, as locations below the root."""

    image: str
    mask: str | None
    split: str | None = None
    is_near: bool = False
    """Whether the mask lies at a path that is only nearly the image's."""


@dataclass(frozen=True)
class Legend:
    """What people call the classes, where they say it."""

    names: tuple[str, ...]
    values: tuple[int, ...] | None = None
    """The value of each in a file; None: its place."""
    is_colour: bool = False


class MaskSource:
    """Images below one root, each with its mask."""

    def __init__(
        self,
        root: str,
        pairs: list[Pair],
        code: MaskCode,
        names: tuple[str, ...],
        masks_on: str | None = None,
        tree: Images | None = None,
    ) -> None:
        """``pairs`` in the order of the samples, found by ``tree``; ``masks_on`` as in ``SourceOptions``."""
        self.ignored: list[str] = []
        self.tree = tree
        self._pairs, self._masks_on = pairs, masks_on
        self.info = SourceInfo(kind="masks", root=root, table_file=root, class_names=names, masks=code)

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``. A mask that is missing or of another size than its image is a problem.

        Raises:
            ImportRefusedError: pictures are turned, and nothing tells whether their masks are.
        """
        are_stored = self._are_stored()
        for pair in self._pairs:
            found = self._looked_at(pair)
            if isinstance(found, Problem):
                yield found
                continue
            image, size = found
            fits, fits_stored = size == (image.height, image.width), size == image.stored
            if not (fits or fits_stored):
                text = f"has {size[1]} x {size[0]} pixels and its image {image.width} x {image.height}"
                yield Problem(str(pair.mask), None, f"{text}; save the mask at the image's size")
                continue
            turn = image.orientation if fits_stored and (are_stored or not fits) else 1
            mask = f"{pair.mask}{TURN}{turn}" if turn > 1 else pair.mask
            yield SourceRow(None, pair.image, pair.image, None, split=pair.split, mask=mask)

    def _are_stored(self) -> bool:
        """Return whether masks of images that are turned by EXIF were drawn on the stored pixels.

        Their sizes tell where width and height change places; where none does, a person has to.
        """
        if self._masks_on is not None:
            return self._masks_on == "stored"
        turned = []
        for pair in self._pairs:
            found = None if _is_never_turned(pair.image) else self._looked_at(pair)
            if found is None or isinstance(found, Problem) or found[0].orientation == 1:
                continue
            image, size = found
            turned.append(pair.image)
            if image.stored != (image.height, image.width) and size in (
                image.stored,
                (image.height, image.width),
            ):
                return size == image.stored
        if turned:
            raise ImportRefusedError(
                f"{plural(len(turned), 'picture')} such as {printable(turned[0], 60)}: EXIF turns them, and their "
                "sizes do not tell what their masks were drawn on; say which: stored (the pixels as they lie in "
                "the file) or seen (the picture as it is shown).",
                field="masks_on",
            )
        return True

    def _looked_at(self, pair: Pair) -> tuple[Probe, tuple[int, int]] | Problem:
        if pair.mask is None:
            return Problem(pair.image, None, "has no mask; add one, or leave such images out")
        try:
            size = self._mask_size(pair.mask)
        except (ImageError, UnreadableError) as error:
            return Problem(pair.mask, None, str(error))
        try:
            return probe(read_bytes(self.info.root, pair.image)), size
        except (ImageError, UnreadableError) as error:
            return Problem(pair.image, None, str(error))

    def _mask_size(self, location: str) -> tuple[int, int]:
        code = self.info.masks
        if code is not None and code.layout == "coco":
            found = read_mask(self.info.root, location, code)
            return found.shape[0], found.shape[1]
        return size_of(read_bytes(self.info.root, location))

    def remarks(self) -> list[str]:
        """Return which masks were taken for those of images of nearly their path."""
        near = [pair for pair in self._pairs if pair.is_near]
        if not near:
            return []
        shown = f"{near[0].mask} is that of {near[0].image}"
        return [f"{plural(len(near), 'mask')} found by nearly the path of the image: {printable(shown)}."]

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """See ``Source``: workers read the files themselves."""
        yield from locations


def open_masks(source: Path, options: SourceOptions) -> MaskSource:
    """Recognise a folder of images with masks.

    Raises:
        ImportRefusedError: no known layout, no masks, or values that no class stands for.
    """
    is_coco = source.is_file() and source.suffix.lower() == ".json"
    for field in ("label_column", "path_column", "true_label_column", *(() if is_coco else ("root",))):
        if getattr(options, field) is not None:
            text = f"{source} is no table: its labels are masks; leave the {field.replace('_', ' ')} out."
            raise ImportRefusedError(text, field=field)
    if is_coco:
        return _open_coco(source, options)
    if not source.is_dir():
        raise ImportRefusedError(
            f"{source} is no folder; name a folder of images with masks (unpack a zip first), or a file of COCO."
        )
    legend = None if options.class_names is None else read_legend(Path(options.class_names).expanduser())
    if options.masks is not None:
        root, pairs, layout = _two_folders(source, Path(options.masks).expanduser().absolute())
    else:
        root, pairs, layout = _one_folder(source)
    if not any(pair.mask for pair in pairs):
        raise ImportRefusedError(
            f"{source}: no image has a mask; give image and mask the same name, or name the masks' folder.",
            field="masks",
        )
    if legend is None and layout == "voc":
        legend = _labelmap(root / "labelmap.txt")
    code, names = _read_values(root, pairs, layout, legend, options.ignore_index)
    return MaskSource(str(root), pairs, code, names, options.masks_on)


def _open_coco(file: Path, options: SourceOptions) -> MaskSource:
    for field in ("class_names", "masks", "ignore_index"):
        if getattr(options, field) is not None:
            text = f"{file} names its classes and holds its masks; leave the {field.replace('_', ' ')} out."
            raise ImportRefusedError(text, field=field)
    found = coco.read(file, file.parent)
    folder = file.parent if options.root is None else Path(options.root).expanduser().absolute()
    if not folder.is_dir():
        raise ImportRefusedError(f"{folder} is no folder; name the folder of the images.", field="root")
    root = Path(os.path.commonpath([file.parent, folder]))
    below = folder.relative_to(root).as_posix()
    prefix = "" if below == "." else f"{below}/"
    own = file.relative_to(root).as_posix()
    images = Resolved(folder_tree(folder))
    pairs = []
    for number, image in found.images.items():
        location = str(image["file_name"])
        with suppress(PathError):  # the row says that it is not there
            location = images.locate(location)
        pairs.append(Pair(f"{prefix}{location}", f"{own}#{number}"))
    names = found.class_names
    colours = tuple(COLOURS[number % len(COLOURS)] for number in range(len(names)))
    code = MaskCode("coco", tuple(range(len(names))), colours)
    return MaskSource(str(root), pairs, code, names, options.masks_on, images)


def split_turn(location: str) -> tuple[str, int]:
    """(location of a mask's file, EXIF orientation that it has to follow) of ``mask.png#turned=6``."""
    file, mark, turn = location.rpartition(TURN)
    return (file, int(turn)) if mark and turn.isdecimal() else (location, 1)


def _is_never_turned(name: str) -> bool:
    return name.lower().endswith((".bmp", ".gif", ".ppm", ".pgm", ".pbm", ".pnm"))


def read_mask(root: str, location: str, code: MaskCode) -> NDArray[np.uint8]:
    """(H, W) the classes of a mask below ``root``, upright as its image is.

    Raises:
        ImageError: damaged, or of a format that blurs values.
        UnreadableError: it is not there any more.
    """
    location, turn = split_turn(location)
    if code.layout != "coco":
        return upright(decode(read_bytes(root, location), code), turn)
    file, _, number = location.rpartition("#")
    try:
        return upright(coco.mask_of(coco.read(Path(root) / file, root), int(number)), turn)
    except (ImportRefusedError, OSError) as error:
        raise UnreadableError(str(error)) from error
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise UnreadableError(f"has a segmentation that cannot be read ({error}); correct it") from error


def _one_folder(source: Path) -> tuple[Path, list[Pair], str]:
    below = {entry.name: entry.name for entry in source.iterdir() if entry.is_dir()}
    if {"JPEGImages", "SegmentationClass"} <= below.keys():
        return source, _voc(source), "voc"
    truth = next((name for name in ("gtFine", "gtCoarse") if name in below), None)
    if "leftImg8bit" in below and truth is not None:
        return source, _matched(source, "leftImg8bit", truth), "cityscapes"
    lower = {name.lower(): name for name in below}
    images = next((lower[name] for name in IMAGE_FOLDERS if name in lower), None)
    masks = next((lower[name] for name in MASK_FOLDERS if name in lower), None)
    if images is None or masks is None:
        raise ImportRefusedError(
            f"{source} has no known layout of masks (images/ and masks/, JPEGImages/ and SegmentationClass/, "
            "leftImg8bit/ and gtFine/); name the folder of the images, and that of the masks.",
            field="masks",
        )
    return source, _matched(source, images, masks), "pair"


def _two_folders(images: Path, masks: Path) -> tuple[Path, list[Pair], str]:
    if not masks.is_dir():
        raise ImportRefusedError(f"{masks} is no folder; name the folder of the masks.", field="masks")
    if images == masks:
        raise ImportRefusedError(
            f"{masks} is the folder of the images too; keep the masks apart.", field="masks"
        )
    root = Path(os.path.commonpath([images, masks]))
    if root in (images, masks):
        root = root.parent
    pairs = _matched(root, images.relative_to(root).as_posix(), masks.relative_to(root).as_posix())
    return root, pairs, "pair"


def _matched(root: Path, images: str, masks: str) -> list[Pair]:
    """Images and masks by their paths below the two folders, and where that names none by nearly that path."""
    by_path: dict[str, str] = {}
    whole: dict[str, str] = {}
    for file in _files(root / masks):
        stem = _stem(file)
        if stem.endswith(OTHER_ENDINGS):
            continue
        whole[os.path.splitext(file)[0]] = file
        key = _without(stem, MASK_ENDINGS)
        if key in by_path and not _is_better(stem, _stem(by_path[key])):
            continue
        by_path[key] = file
    pairs, known = [], Paths(by_path)
    for file in _files(root / images):
        if images != masks and masks.startswith(f"{images}/") and f"{images}/{file}".startswith(f"{masks}/"):
            continue
        stem = _stem(file)
        key = _without(stem, IMAGE_ENDINGS)
        # A file whose whole name is that of an image belongs to it, whatever it ends with.
        found = whole.get(os.path.splitext(file)[0]) or by_path.get(stem) or by_path.get(key)
        near = known.find(key) if found is None else None
        found = by_path.get(near or "", found)
        mask = None if found is None else f"{masks}/{found}"
        pairs.append(Pair(f"{images}/{file}", mask, _split(file), is_near=near is not None))
    return pairs


def _stem(file: str) -> str:
    """The path without its suffix, in one spelling, lower case and with one sign between words."""
    return _BETWEEN.sub("_", normal(os.path.splitext(file)[0]).casefold())


def _is_better(stem: str, known: str) -> bool:
    """Of two masks of one image: the one whose ending comes first in ``MASK_ENDINGS``."""

    def place(name: str) -> int:
        return next((at for at, end in enumerate(MASK_ENDINGS) if name.endswith(end)), len(MASK_ENDINGS))

    return place(stem) < place(known)


def _without(stem: str, endings: tuple[str, ...]) -> str:
    return next((stem.removesuffix(end) for end in endings if stem.endswith(end)), stem)


def _split(file: str) -> str | None:
    first = file.partition("/")[0]
    return first if "/" in file and is_split(first) else None


def _voc(root: Path) -> list[Pair]:
    """The images that have a mask: in VOC most have none."""
    splits: dict[str, str] = {}
    for listed in split_lists(root):
        if listed.stem != "trainval":
            for word in " ".join(lines_in(listed)).split():
                splits.setdefault(word, listed.stem)
    images = {os.path.splitext(file)[0]: file for file in _files(root / "JPEGImages")}
    pairs = []
    for file in _files(root / "SegmentationClass"):
        stem = os.path.splitext(file)[0]
        if stem in images:
            mask = f"SegmentationClass/{file}"
            pairs.append(Pair(f"JPEGImages/{images[stem]}", mask, splits.get(stem)))
    return pairs


def split_lists(root: Path) -> list[Path]:
    """VOC's lists of the names of its images, a file a split."""
    folder = root / "ImageSets" / "Segmentation"
    return sorted(folder.glob("*.txt")) if folder.is_dir() else []


def _files(folder: Path) -> list[str]:
    return [name for name, reason in FolderTree(folder).walk() if reason is None and is_image_name(name)]


def read_legend(file: Path) -> Legend:
    """Class names from a file, one a line; ``R G B NAME`` where the masks are coloured.

    Raises:
        ImportRefusedError: it cannot be read, is empty, or names a class twice.
    """
    lines = lines_in(file)
    coloured = [_COLOURED.fullmatch(line) for line in lines if line]
    if coloured and all(coloured):
        found = [match.groups() for match in coloured if match is not None]
        values = tuple(int(red) << 16 | int(green) << 8 | int(blue) for red, green, blue, _ in found)
        return _checked_legend(file, Legend(tuple(name for *_, name in found), values, is_colour=True))
    return _checked_legend(file, Legend(tuple(names_in(file))))


def _labelmap(file: Path) -> Legend | None:
    """CVAT's ``labelmap.txt``: ``name:r,g,b:parts:actions`` a line; None where there is none."""
    if not file.is_file():
        return None
    names, values = [], []
    for row, line in enumerate(lines_in(file), start=1):
        name, _, rest = line.partition(":")
        colour = rest.partition(":")[0].split(",")
        if line and not line.startswith("#") and len(colour) == 3:
            parts = [_COLOUR_PART.fullmatch(part.strip()) for part in colour]
            red, green, blue = (int(part[0]) if part else 256 for part in parts)
            if max(red, green, blue) > 255:
                raise ImportRefusedError(
                    f"{file}, row {row}: {printable(','.join(colour), 40)} is no colour; write "
                    "NAME:RED,GREEN,BLUE:: with numbers from 0 to 255.",
                    field="class_names",
                )
            names.append(name.strip())
            values.append(red << 16 | green << 8 | blue)
    return _checked_legend(file, Legend(tuple(names), tuple(values), is_colour=True))


def _checked_legend(file: Path, legend: Legend) -> Legend:
    names = legend.names
    if not names:
        raise ImportRefusedError(
            f"{file} is empty; write one class name a line, class 0 first.", field="class_names"
        )
    again = next((name for at, name in enumerate(names) if names.index(name) < at), None)
    if again is not None:
        raise ImportRefusedError(
            f"{file.name} names the class {printable(again, 60)!r} twice; keep one.", field="class_names"
        )
    if len(names) > MOST_CLASSES:
        raise ImportRefusedError(
            f"{file.name} names {len(names)} classes; masks may have {MOST_CLASSES}.", field="class_names"
        )
    return legend


def _read_values(
    root: Path, pairs: list[Pair], layout: str, legend: Legend | None, ignore: int | None
) -> tuple[MaskCode, tuple[str, ...]]:
    """The value of each class in these masks, after a look at every value that occurs."""
    found, is_colour, shown = _values(root, pairs, legend)
    if is_colour:
        names, values = _coloured_classes(root, found, legend)
    else:
        names, values = _numbered_classes(root, found, layout, legend, ignore, _only(pairs))
    if len(names) < 2:
        raise ImportRefusedError(
            f"{root}: its masks hold one class only ({names[0] if names else 'none'}); an audit needs two."
        )
    colours = tuple(
        f"#{value:06x}" if is_colour else shown.get(value, COLOURS[number % len(COLOURS)])
        for number, value in enumerate(values)
    )
    return MaskCode(layout, values, colours, is_colour), names


def code_of_targets(
    root: Path, pairs: list[Pair], targets: Mapping[Any, str], ignore: int | None
) -> tuple[MaskCode, tuple[str, ...]]:
    """The value of each class where a tool says it: value -> name, or ``#rrggbb`` -> name; nothing = a look.

    0 is background where it has no name, as FiftyOne shows it.

    Raises:
        ImportRefusedError: as ``open_masks``.
    """
    if not targets:
        return _read_values(root, pairs, "pair", None, ignore)
    by_value = {_target(key): name for key, name in targets.items()}
    is_colour = any(str(key).startswith("#") for key in targets)
    if not is_colour:
        by_value = {0: "background"} | by_value
        by_value.pop(VOID if ignore is None else ignore, None)
    if len(by_value) > MOST_CLASSES or len(set(by_value.values())) < len(by_value):
        raise ImportRefusedError(
            f"{root}: the mask targets name {len(by_value):,} values, some of them alike or too many; give each of "
            f"at most {MOST_CLASSES} classes one value."
        )
    values = tuple(sorted(by_value))
    colours = [f"#{one:06x}" if is_colour else COLOURS[at % len(COLOURS)] for at, one in enumerate(values)]
    names = tuple(str(by_value[one]) for one in values)
    return MaskCode("pair", values, tuple(colours), is_colour), names


def _target(key: Any) -> int:
    text = str(key)
    return int(text[1:], 16) if text.startswith("#") else int(text)


def _only(pairs: list[Pair]) -> str:
    return next(pair.mask for pair in pairs if pair.mask is not None)


def _values(root: Path, pairs: list[Pair], legend: Legend | None) -> tuple[list[int], bool, dict[int, str]]:
    """(values that occur, whether they are colours, colours of a palette's values)."""
    found: set[int] = set()
    shades: dict[int, str] = {}
    unreadable = ""
    is_colour = legend is not None and legend.is_colour
    for pair in pairs:
        if pair.mask is None:
            continue
        try:
            data = read_bytes(str(root), pair.mask)
            raw = raw_values(data, is_colour=is_colour)
        except (ImageError, UnreadableError) as error:
            unreadable = unreadable or f"{pair.mask} {error}"
            continue  # a problem of that row
        here = np.unique(raw).tolist()
        colours = palette(data)
        if colours is not None and not is_colour:
            own = {one: f"#{bytes(colours[one]).hex()}" for one in here if one < len(colours)}
            if any(shades.get(one, colour) != colour for one, colour in own.items()):
                return _values(root, pairs, Legend((), None, is_colour=True))  # each file has its own palette
            shades |= own
        elif here and max(here) > 0xFFFF and not is_colour:
            return _values(root, pairs, Legend((), None, is_colour=True))
        found.update(here)
    if unreadable and not found:
        raise ImportRefusedError(f"{root}: not one mask can be read: {unreadable}.")
    return sorted(found), is_colour, shades


def _coloured_classes(
    root: Path, found: list[int], legend: Legend | None
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    if legend is not None and legend.values is not None:
        if not set(legend.values) & set(found):
            raise ImportRefusedError(
                f"{root}: no pixel of its masks has one of the named colours; correct the file of class names.",
                field="class_names",
            )
        return legend.names, legend.values
    if legend is not None and legend.names:
        raise ImportRefusedError(
            f"{root}: its masks are coloured; write `R G B NAME` in each line of the class names.",
            field="class_names",
        )
    if len(found) > MOST_CLASSES:
        raise ImportRefusedError(
            f"{root}: its masks have {len(found):,} colours; name the classes in a file of `R G B NAME` lines.",
            field="class_names",
        )
    return tuple(f"#{value:06x}" for value in found), tuple(found)


def _numbered_classes(
    root: Path, found: list[int], layout: str, legend: Legend | None, ignore: int | None, first: str
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    void = ignore
    if void is None and VOID in found and found != [0, VOID]:
        void = VOID
    used = [value for value in found if value != void]
    if legend is not None:
        if all(value < len(legend.names) for value in used):
            return legend.names, tuple(range(len(legend.names)))
        if len(used) == len(legend.names):
            return legend.names, tuple(used)
        high = max(used)
        raise ImportRefusedError(
            f"{root}: its masks hold the value {high} and {len(legend.names)} classes are named; name every class, "
            "or the value to ignore.",
            field="class_names",
        )
    if layout == "cityscapes":
        if "TrainIds" in first:
            return CITYSCAPES, tuple(range(len(CITYSCAPES)))
        return CITYSCAPES, CITYSCAPES_IDS
    if layout == "voc" and used and max(used) < len(VOC):
        return VOC, tuple(range(len(VOC)))
    if len(used) > MOST_CLASSES:
        raise ImportRefusedError(
            f"{root}: its masks hold {len(used):,} values; a mask holds one number a class, at most {MOST_CLASSES}."
        )
    return tuple(str(value) for value in used), tuple(used)
