"""A folder with one sub-folder a class, as torchvision's ``ImageFolder`` reads it; also inside a zip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from auditor.ground.errors import ImportRefusedError
from auditor.pictures.decoding import looks_like_image
from auditor.pictures.sources.layout import Look, Parts, read
from auditor.pictures.sources.rows import IMAGE_SUFFIXES, Payload, Problem, SourceInfo, SourceRow, printable
from auditor.pictures.sources.trees import Tree

LOOKED_INTO = ("folder", "zip")
HEAD_BYTES = 132


class FolderSource:
    """Pictures in class folders, as ``layout.read`` understands the whole of them."""

    def __init__(self, tree: Tree, layout: str | None = None) -> None:
        """Look at the names of all folders.

        Raises:
            ImportRefusedError: there is no folder with images, or it is not clear what the folders mean.
        """
        self.tree = tree
        self.ignored: list[str] = []
        folders: Counter[Parts] = Counter()
        others: set[Parts] = set()
        for parts, is_picture in self._listed():
            if is_picture:
                folders[parts[:-1]] += 1
            else:
                others.add(parts[:-1])
        look = Look(tree.root, folders, frozenset(others), self._pictures)
        self.reading = read(look, layout)
        self.info = SourceInfo(
            kind=tree.kind,
            root=tree.root,
            table_file=Path(tree.root, tree.base).name if tree.kind == "folder" else Path(tree.root).name,
            read_as=() if self.reading.is_plain else tuple(self.reading.lines()),
            left_out=tuple(self.reading.left_out()),
            because=_because(self.reading.because, tree),
            is_sure=self.reading.is_sure,
        )

    def _inner(self, location: str) -> str:
        base = self.tree.base
        return location[len(base) :] if location.startswith(base) else location

    def _listed(self) -> Iterator[tuple[Parts, bool]]:
        """The parts of every file's path, and whether it is a picture."""
        for location, _ in self.tree.walk():
            yield tuple(self._inner(location).split("/")), self._is_image(location)

    def _is_image(self, location: str) -> bool:
        """By its name; a file without a suffix, here or in a zip, by its first bytes."""
        if is_image_name(location) or "." in location.rpartition("/")[2] or self.tree.kind not in LOOKED_INTO:
            return is_image_name(location)
        try:
            with self.tree.open(location) as stream:
                return looks_like_image(stream.read(HEAD_BYTES))
        except (OSError, ImportRefusedError):
            return False

    def _pictures(self) -> Iterator[Parts]:
        return (parts for parts, is_picture in self._listed() if is_picture)

    def meant(self, location: str) -> tuple[str | None, str | None] | None:
        """(class or None, split or None) of a file; None: its folder says nothing."""
        return self.reading.of(self._inner(location).split("/"))

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``. Files that do not look like images are put on ``ignored``."""
        self.ignored = []
        previous = None
        for location, reason in self.tree.walk():
            inner = self._inner(location)
            if reason is not None:
                yield Problem(inner, None, reason)
                continue
            parts = inner.split("/")
            if not self._is_image(location) or self.reading.is_aside(parts):
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


def _because(reason: str, tree: Tree) -> str:
    """What the reading rests on, and how far links are followed where a root says so."""
    if tree.kind != "folder" or not tree.base:
        return reason
    return "; ".join(filter(None, [reason, f"links are followed below {tree.root}"]))


def is_image_name(location: str) -> bool:
    """Whether the suffix is one of an image."""
    dot = location.rfind(".")
    return dot >= 0 and location[dot:].lower() in IMAGE_SUFFIXES


def has_broken_text(text: str) -> bool:
    """Whether the name holds bytes that are no text (lone surrogates), which no database can store."""
    return any("\ud800" <= character <= "\udfff" for character in text)
