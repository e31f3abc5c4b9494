"""What every source of images hands over: rows of text, problems, and where to read the pixels.

A source never decodes an image and never decides what is refused: it reports. All text in a row is the user's
data and is only ever compared and stored.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from auditor.ground.vocabulary import CLASSIFICATION, MULTILABEL, REGRESSION, SEGMENTATION
from auditor.pictures.masks import MaskCode

IMAGE_SUFFIXES = (
    *(".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".avif", ".jp2"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".heic", ".heif", ".dcm", ".dicom"),
)
ALL = "all"
LONGEST_SHOWN = 160
BOOK_KB = 16_000
"""Of a ``PathBook`` in memory."""
WHOLE = re.compile(r"-?[0-9]{1,18}")
"""A class that is a number; Python turns no text of thousands of digits into one."""

OWN_TO_ONE = re.compile(
    r"'[^']*'|\([^)]*\)|\S*[./\\]\S*|\S*[0-9]\S*|; \S+( and [0-9,]+ more)? (is|are) there$"
)
"""What a problem's text says of one row alone: paths, quoted names, numbers."""

Payload: TypeAlias = "bytes | str"
"""An encoded image, or the location where a worker reads it itself."""

Outcomes: TypeAlias = "Sequence[str | None]"
"""What an export says about each item of a source's ``rows``, in their order: the class that it becomes, empty
where it stays as it is, None where it is left out."""


@dataclass(frozen=True)
class Problem:
    """One thing in the source that cannot be imported as it is."""

    file: str
    """The file that a person would open to mend it."""
    row: int | None
    """As a spreadsheet counts in a CSV (the header is row 1), 0-based in Parquet, None for plain files."""
    text: str
    """What is wrong and what to do about it, on one line."""
    is_missing: bool = False
    """The image is not below the root."""
    contradicted: str = ""
    """The location of an image that an earlier row gives another label: neither is kept."""

    @property
    def cause(self) -> str:
        """Return what is wrong without the names and numbers in it: equal for what has one cause."""
        return OWN_TO_ONE.sub("", self.text)

    def __str__(self) -> str:
        place = self.file if self.row is None else f"{self.file}, row {self.row}"
        return f"{printable(place)}: {self.text}"


@dataclass(slots=True)
class SourceRow:
    """One sample as the source describes it."""

    row: int | None
    filepath: str
    """As the user gave it, relative to the root where it lies below it."""
    location: str
    """How ``reading.read_bytes`` finds the image below the root."""
    label: str | None
    """The given label's class name; None = unlabeled."""
    answers: dict[str, str] | None = None
    """Class names by annotator, where several answered; the label is then the marked truth, if there is one."""
    true_label: str | None = None
    trusted: bool = False
    split: str | None = None
    extra: dict[str, str] | None = None
    """The user's own columns, untouched."""
    mask: str | None = None
    """How its mask is found below the root, where labels are masks."""
    review: dict[str, str] | None = None
    """A decision that our own export holds (``vocabulary.REVIEW_COLUMNS``); None = nobody decided."""


@dataclass(frozen=True)
class SourceInfo:
    """What is known before the first row is read."""

    kind: str
    """``folder``, ``table``, ``parquet``, ``webdataset``, ``zip``, ``tar``, ``fiftyone`` or
    a format of ``annotations``."""
    root: str
    """Absolute path or address of the folder or file that locations are relative to."""
    table_file: str = ""
    """The file that rows are counted in."""
    class_names: tuple[str, ...] | None = None
    """The vocabulary where the source declares one; None = the labels that occur."""
    takes_classes: bool = False
    """Whether it is written again with classes that were renamed or came later."""
    user_columns: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    """All columns of a table, for choosing between them."""
    path_column: str | None = None
    label_column: str | None = None
    true_label_column: str | None = None
    annotators: tuple[str, ...] = ()
    """Who gave the answers of ``SourceRow.answers``."""
    is_own_export: bool = False
    encoding: str | None = None
    """Of a table's text, where the user named it."""
    masks_on: str | None = None
    """What boxes of turned pictures were drawn on, where the user said it (``MASKS_ON``)."""
    masks: MaskCode | None = None
    """How the masks are written, where labels are masks."""
    is_numeric: bool = False
    """Labels are numbers, each as the text that ``numbers.number_text`` writes."""
    is_set: bool = False
    """Labels are sets of classes, each as a text that ``sets.read_set`` reads."""
    read_as: tuple[str, ...] = ()
    """How its folders are read, a line a split, where that is more than a class a folder."""
    left_out: tuple[str, ...] = ()
    """Sentences on folders that mean nothing."""
    because: str = ""
    """What the reading of its folders rests on; empty where it has none to read."""
    is_sure: bool = True
    """Whether that leaves nothing else that they may mean."""

    @property
    def task(self) -> str:
        """One of ``vocabulary.TASKS``."""
        if self.masks is not None:
            return SEGMENTATION
        if self.is_set:
            return MULTILABEL
        return REGRESSION if self.is_numeric else CLASSIFICATION


MASKS_ON = ("stored", "seen")
"""What masks and boxes of turned pictures may have been drawn on."""


@dataclass(frozen=True)
class SourceOptions:
    """Choices of the user about a source."""

    label_column: str | None = None
    path_column: str | None = None
    true_label_column: str | None = None
    root: str | None = None
    class_names: str | None = None
    """A file with one class name a line, for a source whose labels are numbers."""
    boxes: bool = False
    """Of a file of boxes: each box is a sample of its own."""
    task: str | None = None
    """One of ``vocabulary.TASKS``; None: what the source says by itself, a class an image."""
    masks: str | None = None
    """The folder of the masks, where it is not found by itself."""
    ignore_index: int | None = None
    """The value of pixels without a class in masks; None: 255 where it occurs beside other classes."""
    encoding: str | None = None
    """Of a table's text; None: as its first bytes say, else UTF-8."""
    merge_classes: bool | None = None
    """Whether names of classes that look alike are one class; None: that is asked."""
    joined_classes: bool = False
    """Whether a name such as ``cat|dog`` is a class of its own."""
    layout: str | None = None
    """One of ``layout.LAYOUTS``: what the first folders are, where that is asked; None: as they look."""
    annotators: tuple[str, ...] = ()
    """Whose answers are read: columns of a table, names in a file of annotations, or ``ALL`` in it."""
    annotator_column: str | None = None
    """Of a table with one row an answer: who answered."""
    masks_on: str | None = None
    """One of ``MASKS_ON``: what masks and boxes of pictures that EXIF turns were drawn on; None: sizes tell."""


class Source(Protocol):
    """Rows in a fixed order, streamed: two passes over ``rows`` give the same rows."""

    info: SourceInfo
    ignored: list[str]
    """Files that were passed over because they are no images, filled by ``rows``."""

    def rows(self) -> Iterator[SourceRow | Problem]:
        """Every sample in input order, and every problem at its place."""

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """Return what a decoding worker needs for each location, in the same order."""


@runtime_checkable
class Rewritable(Protocol):
    """A source that can be written once more in its own form."""

    def write_again(self, out: Path, outcomes: Outcomes, class_names: Sequence[str]) -> None:
        """Write the source to ``out`` with other labels and everything else in it unchanged.

        Args:
            out: a new file, or the new folder of a source that is a folder; it exists and is empty.
            outcomes: one for each item of ``rows``, problems too.
            class_names: the dataset's classes in their order, for a source that holds numbers.
        """


class PathBook:
    """Finds a path that is listed twice.

    What came before lies in a temporary file (in ``TMPDIR``, else ``/var/tmp``), of some 30 bytes a path.
    """

    def __init__(self) -> None:
        """Nothing is listed yet."""
        # A database without a name has a file of its own once it is larger than the cache, and takes it along.
        self._seen = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._seen.execute("PRAGMA journal_mode = OFF")
        self._seen.execute(f"PRAGMA cache_size = -{BOOK_KB}")
        self._seen.execute("CREATE TABLE seen (key INTEGER PRIMARY KEY, place INTEGER NOT NULL, label TEXT)")
        self._seen.execute("BEGIN")

    def again(self, file: str, named: str, location: str, row: int, label: str | None) -> Problem | None:
        """Return why ``location`` cannot be taken where it came before; remembers it, and None, otherwise.

        Raises:
            OSError: there is no room on the disk.
        """
        key = hash(location)
        try:
            added = self._seen.execute("INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", (key, row, label))
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                raise
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        if added.rowcount:
            return None
        first, there = self._seen.execute("SELECT place, label FROM seen WHERE key = ?", (key,)).fetchone()
        if there == label:
            return Problem(file, row, f"{printable(named)} is listed before, in row {first}; remove one")
        labels = f"{_quoted(there)} there, {_quoted(label)} here"
        text = f"is listed before, in row {first}, with another label ({labels}); keep the right one"
        return Problem(file, row, f"{printable(named)} {text}", contradicted=location)


def _quoted(label: str | None) -> str:
    return "no label" if label is None else repr(printable(label, 60))


def is_whole(text: str) -> bool:
    """Return whether the text is a whole number."""
    return text.isascii() and text.removeprefix("-").isdigit()


def class_name(value: Any, column: str) -> str | None:
    """The class that a value of JSON names: text or a whole number; empty is unlabeled.

    Raises:
        ValueError: it is something else; the text says what to write.
    """
    if value is None or value == "":
        return None
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value).strip() or None
    shown = printable(json.dumps(value), 60)
    raise ValueError(f"{column} is {shown}, not a class; give a name or a whole number")


def numbered(label: str, class_names: Sequence[str]) -> str:
    """The class as a source with numbers has it: the name, where classes are called by their numbers."""
    return label if all(map(is_whole, class_names)) else str(list(class_names).index(label))


def printable(text: str, longest: int = LONGEST_SHOWN) -> str:
    """``text`` on one line without control characters, shortened in the middle: for messages only."""
    clean = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp", "Cs") else c for c in text)
    if len(clean) <= longest:
        return clean
    half = longest // 2 - 2
    return f"{clean[:half]} ... {clean[-half:]}"


def ordered_class_names(names: Iterable[str]) -> list[str]:
    """Classes in the order a person expects: as numbers where all are whole numbers, else by text."""
    found = list(names)
    if all(WHOLE.fullmatch(name) for name in found):
        return sorted(found, key=lambda name: (int(name), name))
    return sorted(found)
