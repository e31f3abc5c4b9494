"""A folder with one sub-folder a class, as torchvision's ``ImageFolder`` reads it; also inside a zip."""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from auditor.ground.errors import ImportRefusedError
from auditor.pictures.decoding import looks_like_image
from auditor.pictures.sources.layout import MASK_ENDING, Look, Parts, Reading, read
from auditor.pictures.sources.rows import IMAGE_SUFFIXES, Payload, Problem, SourceInfo, SourceRow, printable
from auditor.pictures.sources.trees import Tree

LOOKED_INTO = ("folder", "zip")
HEAD_BYTES = 132
SPEAKING = re.compile(
    r".*(\.csv|\.tsv|\.xlsx|\.parquet|\.pq|\.npz|\.npy|idx[1-4]-[a-z]{3,6}(\.gz)?|\.zip|\.tar|\.tgz|\.tar\.(gz|bz2|xz))"
    r"|(features|dataset_info|state|dataset_dict|_annotations\.coco)\.json|metadata\.jsonl",
    re.IGNORECASE,
)
"""Names of files that may say what the whole of a listing is."""


class Listing:
    """What is seen of a folder, an archive or an address: names, and first bytes where a name has no suffix."""

    def __init__(self, tree: Tree) -> None:
        """Go through all names once."""
        self.tree = tree
        folders: Counter[Parts] = Counter()
        others: set[Parts] = set()
        has_masks = False
        self.files: dict[str, None] = {}
        """The files that may say what the whole is, by their locations."""
        self.unusable: list[tuple[str, str]] = []
        """The first file that cannot be used, and those of ``files``, with the reasons."""
        for location, reason in tree.walk():
            parts = tuple(self.inner(location).split("/"))
            tells = SPEAKING.fullmatch(parts[-1]) is not None
            if reason is not None and (tells or not self.unusable):
                self.unusable.append((location, reason))
            elif reason is None and tells:
                self.files[location] = None
            if reason is not None:
                continue
            if self.is_picture(location):
                folders[parts[:-1]] += 1
                has_masks = has_masks or MASK_ENDING.search(parts[-1].rpartition(".")[0]) is not None
            else:
                others.add(parts[:-1])
        self.num_pictures = folders.total()
        self._common = functools.reduce(_shared, folders) if folders else ()
        self._readings: dict[str | None, Reading] = {}
        self._look = Look(tree.root, folders, frozenset(others), self._pictures, self._texts, has_masks)

    def reading(self, layout: str | None) -> Reading:
        """Return what its folders mean as a whole; see ``layout.read``."""
        if layout not in self._readings:
            self._readings[layout] = read(self._look, layout)
        return self._readings[layout]

    def inner(self, location: str) -> str:
        """The path without the folder that wraps everything."""
        base = self.tree.base
        return location[len(base) :] if location.startswith(base) else location

    def depth(self, location: str) -> int:
        """Return how many folders a file lies below the one that holds all pictures."""
        parts = tuple(self.inner(location).split("/")[:-1])
        return len(parts) - len(_shared(parts, self._common))

    def meant(self, location: str) -> tuple[str | None, str | None] | None:
        """(class or None, split or None) of a file; None: its folder says nothing."""
        return self.reading(None).of(self.inner(location).split("/"))

    def is_picture(self, location: str) -> bool:
        """By its name; a file without a suffix, here or in a zip, by its first bytes."""
        if is_image_name(location) or "." in location.rpartition("/")[2] or self.tree.kind not in LOOKED_INTO:
            return is_image_name(location)
        try:
            with self.tree.open(location) as stream:
                return looks_like_image(stream.read(HEAD_BYTES))
        except (OSError, ImportRefusedError):
            return False

    def locations(self) -> Iterator[str]:
        """Of all pictures."""
        return (one for one, reason in self.tree.walk() if reason is None and self.is_picture(one))

    def _pictures(self) -> Iterator[Parts]:
        return (tuple(self.inner(one).split("/")) for one in self.locations())

    def _texts(self) -> Iterator[Parts]:
        named = (one for one, reason in self.tree.walk() if reason is None and not is_image_name(one))
        return (tuple(self.inner(one).split("/")) for one in named)


class FolderSource:
    """Pictures in class folders."""

    def __init__(self, listing: Listing, reading: Reading) -> None:
        """``reading`` is what the folders mean as a whole."""
        self._listing, self.reading = listing, reading
        self.tree = tree = listing.tree
        self.ignored: list[str] = []
        self.info = SourceInfo(
            kind=tree.kind,
            root=tree.root,
            table_file=Path(tree.root, tree.base).name if tree.kind == "folder" else Path(tree.root).name,
            read_as=() if reading.is_plain else tuple(reading.lines()),
            left_out=tuple(reading.left_out()),
            because=_because(reading.because, tree),
            is_sure=reading.is_sure,
        )

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``. Files that do not look like images are put on ``ignored``."""
        self.ignored = []
        previous = None
        for location, reason in self.tree.walk():
            inner = self._listing.inner(location)
            if reason is not None:
                yield Problem(inner, None, reason)
                continue
            parts = inner.split("/")
            if not self._listing.is_picture(location) or self.reading.is_aside(parts):
                self.ignored.append(inner)
                continue
            if location == previous:
                yield Problem(inner, None, "is in the zip twice; zip the folder again")
                continue
            previous = location
            yield self._row(location, inner, parts)

    def _row(self, location: str, inner: str, parts: list[str]) -> SourceRow | Problem:
        meant = self.reading.of(parts)
        if meant is None:
            return Problem(inner, None, "is next to the class folders; move it into the folder of its class")
        label, split = meant
        if label is not None and not label.strip():
            return Problem(inner, None, "is in a folder whose name is blank; name the folder after its class")
        if has_broken_text(inner):
            return Problem(printable(inner), None, "has a name that is not valid text; rename the file")
        label = None if label is None else label.strip()
        return SourceRow(row=None, filepath=inner, location=location, label=label, split=split)

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """See ``Source``: workers read the files themselves."""
        yield from locations


def _shared(first: Parts, second: Parts) -> Parts:
    """The folders that both paths begin with."""
    both = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    return tuple(one for one, _ in both)


def _because(reason: str, tree: Tree) -> str:
    """Return what the reading rests on, and how far links are followed where a root says so."""
    if tree.kind != "folder" or not tree.base:
        return reason
    return "; ".join(filter(None, [reason, f"links are followed below {tree.root}"]))


def is_image_name(location: str) -> bool:
    """Return whether the suffix is one of an image."""
    dot = location.rfind(".")
    return dot >= 0 and location[dot:].lower() in IMAGE_SUFFIXES


def has_broken_text(text: str) -> bool:
    """Return whether the name holds bytes that are no text (lone surrogates), which no database can store."""
    return any("\ud800" <= character <= "\udfff" for character in text)
