"""What a folder, zip or tar of pictures means as a whole: wrappers, splits and classes, read from names alone.

``read`` asks all recognisers. Each looks at the folders that hold pictures and says what they mean, that it does
not know them, or that a person has to say it; the surest one counts, and none opens a file.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from auditor.ground.errors import ImportRefusedError
from auditor.ground.names import likeness
from auditor.ground.wording import plural
from auditor.pictures.sources.rows import printable

SPLITS = frozenset(["train", "training", "trainval", "val", "valid", "validation", "test", "testing", "dev"])
"""Usual names; of folders more are known (``is_split``)."""
LAYOUTS = ("classes", "splits", "deepest")
"""What ``--layout`` answers: the first folders are the classes, or splits with the classes below them, or the
classes are the folders that hold the pictures."""
ANYTHING, NAMES, COPIES, PARTS, ELSEWHERE = range(5)
"""How sure a recogniser is: of any folder a class, of names of splits, of the same pictures twice, of masks and
files beside pictures, of folders that are parts of another task."""
MOST_SHOWN = 5
ENOUGH_PAIRS = 0.9
"""Of the masks in a folder: so many are called like a picture in the folder beside it."""
Parts: TypeAlias = tuple[str, ...]


class TwoWaysError(ImportRefusedError):
    """What is there has class folders, and can be read in more than one way: a person has to choose."""


_SPLIT_WORD = (
    "train|training|trainval|trn|val|valid|validate|validation|test|testing|tst|publictest|privatetest|dev|eval|"
    "evaluation|pred|holdout|heldout|entrenamiento|entrainement|treino|treinamento|prueba|teste|validacion|validacao|"
    "trainings|validierungs?|训练集?|验证集?|测试集?"
)
_OF_A_SPLIT = (
    r"sets?|data|daten|dataset|images?|imgs?|pictures?|photos?|input|split|ing|files?|jpe?gs?|pngs?|tiff?|full|small|"
    r"final|v\d{1,2}|stg\d|stage\d|\d{1,4}(?:x\d{1,4})?(?:px)?"
)
_SPLIT = re.compile(
    rf"(?:[a-z0-9\-]{{1,40}}[_\- ]){{0,4}}(?:{_SPLIT_WORD})(?:[_\- ]?(?:{_OF_A_SPLIT})){{0,3}}[ab]?"
)
_SPLIT_AND_MORE = re.compile(rf"({_SPLIT_WORD})[_\- ](.+)")
_PART = re.compile(
    r"(.*?(?:part|batch|chunk|fold|folder|images?|imgs?|shard|data|dataset|set|section|split|run|session|camera|cam|"
    r"patient|case|study|series|scan|slide|video|clip|frame|sequence|seq|scene|site|roi|tile|plot|flight|recording|"
    r"day|week|month)s?)"
    r"[_\- ]?\(?\d+\)?"
)
"""Folders that are numbered and are parts of one thing rather than classes: ``images_1``, ``fold 2``."""
_TAKEN_THEN = re.compile(
    r"(?:19|20)\d\d(?:[-_.]?(?:0[1-9]|1[0-2])(?:[-_.]?[0-3]\d)?)?|[0-3]?\d[-_.][0-3]?\d[-_.](?:19|20)?\d\d"
    r"|1\d\d[a-z_][a-z0-9_]{4}"
)
"""Folders by date, or as cameras call them: ``2021-03``, ``100CANON``."""
_SIZE = re.compile(
    r"(?:28|32|48|64|96|112|128|160|192|224|256|299|320|384|448|480|512|600|640|768|800|1024|2048)"
)
_SIZED = re.compile(rf"{_SIZE.pattern}(?:x{_SIZE.pattern})?(?:px|p)?")
VIEWS = frozenset(
    [
        *(
            "rgb",
            "depth",
            "nir",
            "ir",
            "infrared",
            "thermal",
            "visible",
            "grayscale",
            "greyscale",
            "gray",
            "grey",
        ),
        *(
            "color",
            "colour",
            "input",
            "inputs",
            "target",
            "targets",
            "output",
            "outputs",
            "left",
            "right",
            "hr",
            "lr",
        ),
        *(
            "low",
            "high",
            "noisy",
            "clean",
            "blur",
            "sharp",
            "hazy",
            "before",
            "after",
            "original",
            "enhanced",
        ),
        *(
            "disparity",
            "normals",
            "edges",
            "sketch",
            "sketches",
            "raw",
            "processed",
            "crops",
            "crop",
            "cropped",
        ),
    ]
)
"""Folders of the same scenes seen in several ways, where their pictures are called alike."""
MASK_ENDING = re.compile(
    r"[-_. ](?:mask|segmentation|seg|gt|groundtruth|ground_truth|annotation|superpixels)(?:[-_. ]?\d{1,3})?$",
    re.IGNORECASE,
)
LABEL_FILES = (".txt", ".xml", ".json")
_WORDS = re.compile(r"[_\-. ]+")
_NUMBER = re.compile(r"[_\-. ]*\d+$")
IMAGES, MASKS, BOXES = "images", "masks", "boxes"
ROLES = {
    **dict.fromkeys(["images", "image", "imgs", "img", "jpegimages", "pictures"], IMAGES),
    **dict.fromkeys(["masks", "mask", "segmentation", "segmentations", "segmentationclass", "gt"], MASKS),
    **dict.fromkeys(["groundtruth", "ground truth", "ground_truth", "trimaps", "manual"], MASKS),
    **dict.fromkeys(["annotations", "annotation", "ann", "labels", "label"], BOXES),
}
"""Names of folders that are parts of a layout and no classes."""
UNLABELED = frozenset(
    [
        *(
            "unlabeled",
            "unlabelled",
            "no_label",
            "no label",
            "nolabel",
            "unannotated",
            "not labeled",
            "not_labeled",
        ),
        *("to label", "to_label", "to be labeled", "unsorted", "to sort", "to_sort"),
    ]
)
_UNNAMED = re.compile(
    r"(?:new folder|untitled folder|untitled|neuer ordner|nouveau dossier|nueva carpeta|nuova cartella|nova pasta)"
    r"(?: ?\(?\d{1,3}\)?)?"
)
"""What systems call a folder that nobody has named."""
THUMBNAILS = frozenset(["thumbnails", "thumbnail", "thumbs", "thumb", "previews"])
REMEDIES = {
    MASKS: "masks beside images: import them with the task segmentation",
    BOXES: "files of boxes beside images (VOC, YOLO); write them as COCO and import that file with boxes, or "
    "import them with the task segmentation where they are masks",
    IMAGES: "images and no class folders; name the table or the file of annotations that holds their labels",
}


@dataclass(frozen=True)
class Look:
    """What is seen of a folder or archive: names, never what is in a file."""

    root: str
    folders: Counter[Parts]
    """How many pictures lie in each folder."""
    others: frozenset[Parts] = frozenset()
    """Folders that hold other files."""
    pictures: Callable[[], Iterable[Parts]] = tuple
    """The paths of all pictures once more."""
    texts: Callable[[], Iterable[Parts]] = tuple
    """The paths of all other files."""
    has_masks: bool = False
    """Whether any picture is called as a mask (``MASK_ENDING``)."""

    def below(self, prefix: Parts) -> Look:
        """Return what lies below a folder, by the rest of the paths."""
        size = len(prefix)
        return Look(
            self.root,
            _below(self.folders, prefix),
            frozenset(one[size:] for one in self.others if one[:size] == prefix),
            lambda: (one[size:] for one in self.pictures() if one[:size] == prefix),
            lambda: (one[size:] for one in self.texts() if one[:size] == prefix),
            self.has_masks,
        )

    def shown(self) -> str:
        """The first folders with their counts, for a message."""
        first = list(self.folders.items())[:MOST_SHOWN]
        shown = ", ".join(f"{'/'.join(folder) or '.'} {count:,}" for folder, count in first)
        return printable(shown + (", ..." if len(self.folders) > MOST_SHOWN else ""), 160)


@dataclass(frozen=True)
class Reading:
    """What the folders mean."""

    wrapper: Parts = ()
    """Folders round everything, which mean nothing."""
    inner: Mapping[str, Parts] | None = None
    """By split: folders below it, round its classes, which mean nothing; None: the first folders are no splits."""
    unlabeled: frozenset[str] = frozenset()
    """Splits without class folders."""
    is_split_below: bool = False
    """Whether each class has a folder a split in it."""
    is_deepest: bool = False
    """Whether the folder that holds a picture is its class."""
    without: frozenset[str] = frozenset()
    """Folders called as what has no label, in place of a class."""
    aside: frozenset[str] = frozenset()
    """Folders of masks or thumbnails, which are left out, in lower case."""
    masks: frozenset[Parts] = frozenset()
    """Masks that lie among the pictures, which are left out."""
    counts: Counter[Parts] | None = None
    """Pictures by folder."""
    because: str = ""
    """What says so, in a sentence."""
    is_sure: bool = True
    """Whether names alone leave nothing else that it may mean."""

    def of(self, parts: list[str]) -> tuple[str | None, str | None] | None:
        """(class or None, split or None) of a file by the parts of its path; None: it lies beside the classes."""
        if tuple(parts[: len(self.wrapper)]) != self.wrapper:
            return None
        rest, split = parts[len(self.wrapper) : -1], None
        if self.inner is not None:
            if not rest:
                return None
            split, inner = rest[0], self.inner.get(rest[0], ())
            rest = rest[1:]
            rest = rest[len(inner) :] if tuple(rest[: len(inner)]) == inner else rest
            if split in self.unlabeled:
                return None, split
        if not rest:
            return None
        if self.is_deepest:
            named = rest[:-1] if len(rest) > 1 and _role(rest[-1]) == IMAGES else rest
            return named[-1], split
        label = None if rest[0] in self.without else rest[0]
        return label, rest[1] if self.is_split_below and len(rest) > 1 else split

    def is_aside(self, parts: list[str]) -> bool:
        """Return whether a file is a mask, or lies in a folder of masks or thumbnails: it is left out."""
        in_folder = bool(self.aside) and any(part.lower() in self.aside for part in parts[:-1])
        return in_folder or (bool(self.masks) and tuple(parts) in self.masks)

    def lines(self) -> list[str]:
        """The reading as a person checks it: a line a split with its classes, and what was left out."""
        found: dict[str | None, Counter[str | None]] = {}
        masks = Counter(path[:-1] for path in self.masks)
        for folder, count in (self.counts or {}).items():
            if not self.is_aside([*folder, ""]) and (meant := self.of([*folder, ""])) is not None:
                found.setdefault(meant[1], Counter())[meant[0]] += count - masks[folder]
        return [*tree_lines(found), *self.left_out()]

    def left_out(self) -> list[str]:
        """A line for each folder that means nothing, and one for masks or thumbnails."""
        left = ["/".join(self.wrapper)] if self.wrapper else []
        left += [f"{split}/{'/'.join(inner)}" for split, inner in (self.inner or {}).items() if inner]
        aside = sum(count for one, count in (self.counts or {}).items() if self.is_aside([*one, ""]))
        aside += len(self.masks)
        what = "mask" if self.masks or MASKS in map(_role, self.aside) else "thumbnail"
        said = [f"wrapper {printable(one, 60)}/ left out" for one in left]
        return said + ([f"{plural(aside, what)} left out"] if aside else [])

    @property
    def is_plain(self) -> bool:
        """One folder a class and nothing else: there is nothing to say."""
        is_flat = all(len(folder) < 2 for folder in self.counts or ())
        is_whole = not (self.wrapper or self.aside or self.masks or self.without)
        return is_flat and is_whole and self.inner is None


Recogniser: TypeAlias = Callable[[Look, str | None], Reading | None]


def tree_lines(found: Mapping[str | None, Mapping[str | None, int]]) -> list[str]:
    """A line for each split, None where there is none, with its classes and counts; the class None is no label."""
    said = []
    for split, classes in found.items():
        named = [(name, count) for name, count in classes.items() if name is not None]
        shown = ", ".join(f"{printable(name, 40)} {count:,}" for name, count in named[:MOST_SHOWN])
        more = f", and {len(named) - MOST_SHOWN:,} more" if len(named) > MOST_SHOWN else ""
        parts = [f"{plural(len(named), 'class')}: {shown}{more}"] if named else []
        parts += [f"unlabeled: {classes[None]:,}"] if classes.get(None) else []
        what = "; ".join(parts)
        said.append(what if split is None else f"{printable(split, 40)}, {what}")
    return said


def is_split(name: str) -> bool:
    """Return whether a folder of that name is a split, in any usual spelling: ``seg_train``, ``val2017``,
    ``Test set``.
    """
    return _SPLIT.fullmatch(_plain(name)) is not None


def _plain(name: str) -> str:
    """In lower case, without accents."""
    lower = name.lower().strip()
    if lower.isascii():
        return lower
    signs = unicodedata.normalize("NFKD", lower)
    return "".join(sign for sign in signs if not unicodedata.combining(sign))


def _splits_joined(names: Iterable[str]) -> bool:
    """Return whether names join a split and a class: ``train_cat``, ``train_dog``, ``test_cat``, ``test_dog``."""
    found = [_SPLIT_AND_MORE.fullmatch(_plain(name)) for name in names]
    pairs = {(one[1], one[2]) for one in found if one is not None}
    splits, classes = {split for split, _ in pairs}, {rest for _, rest in pairs}
    return all(found) and len(splits) > 1 and len(pairs) > len(classes) > 1


def _splits_among(names: list[str]) -> list[str]:
    """Those that are splits: by themselves, or together, as ``train_of mine`` and ``test_of mine``."""
    called = [name for name in names if is_split(name)]
    found = [_SPLIT_AND_MORE.fullmatch(_plain(name)) for name in names]
    if called or len(names) < 2 or len({one[2] for one in found if one}) != 1 or not all(found):
        return called
    return names


def read(look: Look, layout: str | None) -> Reading:
    """Return what the folders that hold pictures mean as a whole.

    Raises:
        ImportRefusedError: there are no class folders, two readings are plausible and ``layout`` says neither, or
            what is there has its labels elsewhere; the text shows the reading.
    """
    if layout is not None and layout not in LAYOUTS:
        raise ImportRefusedError(f"There is no layout {layout!r}; use {', '.join(LAYOUTS)}.", field="layout")
    folders = Counter({parts: count for parts, count in look.folders.items() if parts})
    if not folders:
        raise ImportRefusedError(
            f"{look.root} has no sub-folder with images; put each class in a folder of its own, or import "
            "a CSV with a path and a label column."
        )
    wrapper = _wrapper(folders)
    inside = replace(look, folders=folders).below(wrapper)
    found = _surest(inside, layout, RECOGNISERS)
    masks = frozenset((*wrapper, *one) for one in found.masks)
    found = replace(found, wrapper=wrapper, counts=folders, masks=masks)
    names = {part for folder in inside.folders for part in folder[:2] if layout != "classes"}
    found = replace(found, without=frozenset(one for one in names if one.lower() in UNLABELED))
    return found if layout is None else replace(found, because=f"said to be {layout}", is_sure=True)


def _surest(look: Look, layout: str | None, recognisers: Mapping[Recogniser, int]) -> Reading:
    """The reading that is surest; of several as sure, a question comes before a reading.

    Raises:
        ImportRefusedError: the surest recogniser asks or refuses.
    """
    found: list[tuple[int, bool, str, Reading | ImportRefusedError]] = []
    for recognise, confidence in recognisers.items():
        said: Reading | ImportRefusedError | None
        try:
            said = recognise(look, layout)
        except ImportRefusedError as refusal:
            said = refusal
        if said is not None:
            found.append((confidence, isinstance(said, ImportRefusedError), recognise.__name__, said))
    *_, best = max(found, key=lambda one: one[:3])
    if isinstance(best, ImportRefusedError):
        raise best
    return best


def _parts_of_tasks(look: Look, layout: str | None) -> Reading | None:
    """``images/`` and ``masks/``, ``JPEGImages/``, ``train/images/``: no folder is a class."""
    if layout is not None:
        return None
    rests = {folder[1:] if is_split(folder[0]) else folder for folder in look.folders}
    names = {rest[0] for rest in rests if rest}
    roles = {name: role for name in names if (role := _role(name)) is not None}
    others = {one[1:] if one and is_split(one[0]) else one for one in look.others}
    beside = {
        role for one in others if one and one[0] not in names and (role := _role(one[0])) in (MASKS, BOXES)
    }
    is_flat = all(len(rest) < 2 for rest in rests)
    if roles and len(roles) == len(names) and (is_flat or len(names) > 1):
        raise _of_task(look, {*roles.values(), *(beside if is_flat else ())})
    masks = {name for name in names if _word(name) in (MASKS, BOXES)}
    if masks and masks < names and _are_pairs(look, masks):
        raise _of_task(look, {MASKS})
    return None


def _masks_below(look: Look, layout: str | None) -> Reading | None:
    """``covid/images/`` and ``covid/masks/``: classes with masks, or cells with masks of their own."""
    seconds: dict[Parts, dict[str, str]] = {}
    for folder in look.folders:
        for at in range(1, len(folder)):
            role = _role(folder[at])
            if role is not None:
                seconds.setdefault(folder[:at], {})[folder[at].lower()] = role
    both = [names for names in seconds.values() if {IMAGES, MASKS} <= set(names.values())]
    if not both:
        return None
    masks = frozenset(name for names in both for name, role in names.items() if role == MASKS)
    if layout is None:
        raise ImportRefusedError(
            f"{look.root} ({look.shown()}) holds masks beside images in its folders; import them with the task "
            "segmentation folder by folder, or say that the first folders are the classes: masks are left out.",
            field="layout",
        )
    return _without(look, masks, layout)


def _masks_among(look: Look, layout: str | None) -> Reading | None:
    """``benign (1)_mask.png`` beside ``benign (1).png`` in a folder of one class."""
    if not look.has_masks:
        return None
    there = {(*path[:-1], _stem(path)) for path in look.pictures()}
    masks = frozenset(
        path
        for path in look.pictures()
        if (base := MASK_ENDING.sub("", _stem(path))) != _stem(path) and (*path[:-1], base) in there
    )
    if len(masks) < (1 - ENOUGH_PAIRS) * len(there):
        return None
    if layout is None:
        raise ImportRefusedError(
            f"{look.root} ({look.shown()}) holds masks among its pictures ({printable(min(masks)[-1], 60)}); say "
            "what its first folders are (classes, splits or deepest), and they are left out, or import images and "
            "masks in folders of their own with the task segmentation.",
            field="layout",
        )
    found = _left(look, look.folders - Counter(path[:-1] for path in masks), layout)
    return replace(found, masks=masks)


def _label_files(look: Look, layout: str | None) -> Reading | None:
    """A text of boxes beside each picture, as YOLO, VOC and LabelMe write it: the folders need not be classes."""
    if layout is not None or look.others.isdisjoint(look.folders):
        return None
    texts = {
        (*path[:-1], _stem(path)): path for path in look.texts() if path[-1].lower().endswith(LABEL_FILES)
    }
    paired = texts.keys() & {(*path[:-1], _stem(path)) for path in look.pictures()}
    if 2 * len(paired) < look.folders.total():
        return None
    raise ImportRefusedError(
        f"{look.root} ({look.shown()}) holds a file beside each picture ({printable(texts[min(paired)][-1], 60)}): "
        f"{REMEDIES[BOXES]}. If the first folders are classes, say so.",
        field="layout",
    )


def _views(look: Look, layout: str | None) -> Reading | None:
    """``rgb/`` and ``depth/``, ``128/`` and ``256/``: the same pictures in several ways."""
    tops = {folder[0] for folder in look.folders}
    if layout is not None or len(tops) < 2:
        return None
    is_sized = all(_SIZED.fullmatch(top.lower()) for top in tops)
    if is_sized or (all(top.lower() in VIEWS for top in tops) and _are_pairs(look, {min(tops)})):
        raise _asked(look, "the folders may hold the same pictures in several ways")
    if any(_role(folder[0]) == IMAGES and len(folder) == 1 for folder in look.folders):
        raise _asked(look, "a folder of images lies beside others")
    return None


def _unnamed(look: Look, layout: str | None) -> Reading | None:
    """``New folder`` among classes: nobody said what it holds."""
    there = {part for folder in look.folders for part in folder if _UNNAMED.fullmatch(part.lower().strip())}
    if not there or layout is not None:
        return None
    raise _asked(look, f"nobody has named {printable(', '.join(sorted(there)), 60)}")


def _thumbnails(look: Look, layout: str | None) -> Reading | None:
    """``thumbnails/`` beside classes or in them: small copies, where pictures elsewhere are called alike."""
    there = {part for folder in look.folders for part in folder if part.lower() in THUMBNAILS}
    if not there or layout is not None:
        return None
    if not _are_pairs(look, there):
        raise _asked(look, f"{', '.join(sorted(there))} may hold small copies of the others")
    return _without(look, frozenset(name.lower() for name in there), layout)


def _without(look: Look, aside: frozenset[str], layout: str | None) -> Reading:
    """The reading of what does not lie in folders of these names."""
    kept = {one: count for one, count in look.folders.items() if not aside & {part.lower() for part in one}}
    return replace(_left(look, Counter(kept), layout), aside=aside)


def _left(look: Look, kept: Counter[Parts], layout: str | None) -> Reading:
    """The reading of these folders alone."""
    inside = replace(look, folders=kept)
    return _surest(inside, layout, {one: RECOGNISERS[one] for one in OF_CLASSES})


def _splits(look: Look, layout: str | None) -> Reading | None:
    """A folder a split, with classes below it or without."""
    tops = list(dict.fromkeys(folder[0] for folder in look.folders))
    called = _splits_among(tops)
    if layout == "classes" or not (called or layout == "splits"):
        return None
    if len(called) < len(tops) and layout != "splits":
        if layout is None:
            raise _asked(look)
        return None
    inner = {top: _inner(_below(look.folders, (top,))) for top in tops}
    below = {top: look.below((top, *inner[top])) for top in tops}
    unlabeled = frozenset(top for top in tops if not any(below[top].folders))
    if unlabeled == set(tops):
        raise ImportRefusedError(
            f"{look.root} has splits and no class folders in them ({look.shown()}): not one image has a label; "
            "import the table or file of annotations that holds the labels, or say that these folders are classes.",
            field="layout",
        )
    classes = {top: {folder[0] for folder in one.folders if folder} for top, one in below.items()}
    everything = set().union(*classes.values())
    if all(map(is_split, everything)):
        raise ImportRefusedError(
            f"{look.root} ({look.shown()}) has splits in its folders; import a folder further in, or say that the "
            "deepest folders are the classes.",
            field="layout",
        )
    if layout is None:
        for top, names in classes.items():
            rest = set().union(*(others for other, others in classes.items() if other != top))
            if len(names) == 1 and len(rest) > 1 and not names & rest:
                raise _asked(look, f"{'/'.join((top, *inner[top], *names))} is a class of no other split")
        named = [set(map(likeness, names)) for names in classes.values() if len(names) > 1]
        if len(named) > 1 and all(
            first.isdisjoint(second) for first, second in itertools.combinations(named, 2)
        ):
            raise _asked(look, "no class is in two of the splits")
        _refuse_doubtful(look, [folder for one in below.values() for folder in one.folders if folder])
    named = [names for names in classes.values() if names]
    because = f"{printable(', '.join(tops), 80)} are names of splits"
    return Reading(
        inner=inner,
        unlabeled=unlabeled,
        is_deepest=layout == "deepest",
        because=because if called else "",
        is_sure=all(names == named[0] for names in named),
    )


def _splits_below(look: Look, layout: str | None) -> Reading | None:
    """``cat/train/1.png``: a folder a split in each class."""
    seconds = {folder[1] for folder in look.folders if len(folder) > 1}
    if layout == "deepest" or len(seconds) < 2 or any(len(folder) < 2 for folder in look.folders):
        return None
    if _splits_among(list({folder[0] for folder in look.folders})):
        return None
    if not all(map(is_split, seconds)) or all(_PART.fullmatch(folder[0].lower()) for folder in look.folders):
        return None
    if layout is None and len({folder[2] for folder in look.folders if len(folder) > 2}) > 1:
        raise _asked(look)
    return Reading(is_split_below=True, because="the folders in each first one have names of splits")


def _classes(look: Look, layout: str | None) -> Reading:
    """A folder a class, deeper ones belong to it; asked about where the second ones may be the classes."""
    if layout is None:
        seconds: dict[str, set[str]] = {}
        for folder in look.folders:
            if len(folder) > 1:
                seconds.setdefault(folder[0], set()).add(folder[1])
        tops = {folder[0] for folder in look.folders}
        again = any(len(names & (tops - {top})) > 1 for top, names in seconds.items())
        common = Counter(name for names in seconds.values() for name in names if _role(name) is None)
        repeated = [name for name, count in common.items() if count > 1]
        if again or (len(repeated) > 1 and len(seconds) == len(tops) > 1):
            raise _asked(look)
        if _splits_joined(tops):
            raise _asked(look, "their names join a split and a class")
        _refuse_doubtful(look, list(look.folders))
    is_flat = all(len(folder) < 2 for folder in look.folders)
    return Reading(
        is_deepest=layout == "deepest",
        because="pictures lie in one folder a class"
        if is_flat
        else "deeper folders belong to the first ones",
        is_sure=is_flat,
    )


RECOGNISERS: Mapping[Recogniser, int] = {
    _classes: ANYTHING,
    _label_files: PARTS,
    _masks_among: PARTS,
    _masks_below: PARTS,
    _parts_of_tasks: ELSEWHERE,
    _splits: NAMES,
    _splits_below: NAMES,
    _thumbnails: COPIES,
    _unnamed: COPIES,
    _views: COPIES,
}
"""All of them by their names, and how sure each is: none is asked before another."""
OF_CLASSES = (_classes, _splits, _splits_below)


def _refuse_doubtful(look: Look, folders: list[Parts]) -> None:
    """Ask where a first folder has nothing but folders, which may be the classes, or all are numbered parts."""
    tops = {folder[0] for folder in folders}
    parts = [_PART.fullmatch(top.lower()) for top in tops]
    if len(tops) > 1 and all(parts) and len({part[1] for part in parts if part is not None}) == 1:
        raise _asked(look)
    if len(tops) > 1 and all(_TAKEN_THEN.fullmatch(top.lower()) for top in tops):
        raise _asked(look, "the folders are called as days, years or what a camera makes")
    hold = {folder[0] for folder in folders if len(folder) == 1}
    below = [folder for folder in folders if folder[0] not in hold]
    if all(len(folder) == 2 and folder[0].casefold() == folder[1].casefold() for folder in below):
        return  # cat/cat: both mean the same
    is_images = all(len(folder) == 2 and _role(folder[1]) == IMAGES for folder in below)
    beside = any(
        len(one) > 1 and one[0] in tops - hold and _role(one[1]) in (MASKS, BOXES) for one in look.others
    )
    if below and (not is_images or beside):
        raise _asked(look)


def _of_task(look: Look, roles: set[str]) -> ImportRefusedError:
    first = next(role for role in REMEDIES if role in roles)
    return ImportRefusedError(
        f"{look.root} ({look.shown()}) holds {REMEDIES[first]}. If the first folders are classes, say so.",
        field="layout",
    )


def _role(name: str) -> str | None:
    """Return what a folder of that name holds in many layouts (``ROLES``); None: it may be a class."""
    lower = name.lower().strip()
    return ROLES.get(lower) or ROLES.get(_NUMBER.sub("", lower))


def _word(name: str) -> str | None:
    """Return what the last word of a name says: ``train_masks``, ``DUTS-TR-Mask``."""
    lower = name.lower().strip()
    return _role(name) or ROLES.get(_WORDS.split(lower)[-1]) or ROLES.get(" ".join(_WORDS.split(lower)[-2:]))


def _stem(path: Parts) -> str:
    return path[-1].rpartition(".")[0] or path[-1]


def _are_pairs(look: Look, masks: set[str]) -> bool:
    """Return whether nearly all pictures in these folders are called like one that lies in none of them."""
    stems: dict[bool, set[str]] = {True: set(), False: set()}
    for path in look.pictures():
        rest = path[1:] if is_split(path[0]) else path
        stems[bool(masks & set(rest[:-1]))].add(rest[-1].rpartition(".")[0].lower())
    ours, theirs = stems[True], stems[False]
    paired = sum(1 for stem in ours if any(name in theirs for name in _without_ending(stem)))
    return paired >= ENOUGH_PAIRS * len(ours) > 0


def _without_ending(stem: str) -> list[str]:
    parts = _WORDS.split(stem)
    return [stem, *(stem[: -len(parts[-1]) - 1] for _ in range(len(parts) > 1))]


def _asked(look: Look, why: str = "") -> TwoWaysError:
    return TwoWaysError(
        f"{look.root} can be read in two ways ({look.shown()}){f': {why}' if why else ''}. Its first folders may "
        "be the classes, or splits (or parts) with the classes below them, or only the deepest folders are "
        "classes; say which (classes, splits or deepest), or import a folder further in.",
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
        if not (is_split(top) or _role(top) is not None):
            return prefix
        prefix = (*prefix, top)
