"""A folder with one sub-folder a class, as torchvision's ``ImageFolder`` reads it; also inside a zip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from auditor.ground.errors import ImportRefusedError
from auditor.pictures.sources.rows import IMAGE_SUFFIXES, Payload, Problem, SourceInfo, SourceRow, printable
from auditor.pictures.sources.trees import Tree

SPLITS = frozenset(["train", "training", "val", "valid", "validation", "test", "testing", "dev"])


class FolderSource:
    """The class is the name of the first folder below the root; deeper folders belong to it.

    Where every first folder is named like a split (train, val, test), the second one is the class.
    """

    def __init__(self, tree: Tree) -> None:
        """Look at the first folders.

        Raises:
            ImportRefusedError: there is no folder with images.
        """
        self.tree = tree
        self.ignored: list[str] = []
        self._base = tree.base
        tops, seconds = self._top_folders()
        if not tops:
            raise ImportRefusedError(
                f"{tree.root} has no sub-folder with images; put each class in a folder of its own, or import "
                "a CSV with a path and a label column."
            )
        self.has_splits = bool(seconds) and all(name.lower() in SPLITS for name in tops)
        self.info = SourceInfo(kind=tree.kind, root=tree.root, table_file=Path(tree.root).name)

    def _top_folders(self) -> tuple[set[str], bool]:
        tops: set[str] = set()
        all_deep = True
        for location, _ in self.tree.walk():
            parts = self._inner(location).split("/")
            if len(parts) > 1 and is_image_name(location):
                tops.add(parts[0])
                all_deep = all_deep and len(parts) > 2
        return tops, all_deep

    def _inner(self, location: str) -> str:
        return location[len(self._base) :] if location.startswith(self._base) else location

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``. Files that do not look like images are put on ``ignored``."""
        self.ignored = []
        depth = 1 if self.has_splits else 0
        previous = None
        for location, reason in self.tree.walk():
            inner = self._inner(location)
            if reason is not None:
                yield Problem(inner, None, reason)
                continue
            if not is_image_name(location):
                self.ignored.append(inner)
                continue
            if location == previous:
                yield Problem(inner, None, "is in the zip twice; zip the folder again")
                continue
            previous = location
            yield self._row(location, inner, inner.split("/"), depth)

    def _row(self, location: str, inner: str, parts: list[str], depth: int) -> SourceRow | Problem:
        if len(parts) < depth + 2:
            return Problem(inner, None, "is next to the class folders; move it into the folder of its class")
        label = parts[depth].strip()
        if not label:
            return Problem(inner, None, "is in a folder whose name is blank; name the folder after its class")
        if has_broken_text(inner):
            return Problem(printable(inner), None, "has a name that is not valid text; rename the file")
        split = parts[0] if self.has_splits else None
        return SourceRow(row=None, filepath=inner, location=location, label=label, split=split)

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """See ``Source``: workers read the files themselves."""
        yield from locations


def is_image_name(location: str) -> bool:
    """Whether the suffix is one of an image."""
    dot = location.rfind(".")
    return dot >= 0 and location[dot:].lower() in IMAGE_SUFFIXES


def has_broken_text(text: str) -> bool:
    """Whether the name holds bytes that are no text (lone surrogates), which no database can store."""
    return any("\ud800" <= character <= "\udfff" for character in text)
