"""Class folders and the tables beside them: which of the two says what a picture is, where both are there."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from auditor.ground.errors import ImportRefusedError
from auditor.ground.names import normal
from auditor.ground.wording import plural
from auditor.pictures.sources.annotations import RenamedSource
from auditor.pictures.sources.folder import Listing
from auditor.pictures.sources.formats import open_labels
from auditor.pictures.sources.roots import Resolved
from auditor.pictures.sources.rows import (
    Problem,
    Source,
    SourceOptions,
    SourceRow,
    is_whole,
    printable,
)
from auditor.pictures.sources.tables import TableSource
from auditor.pictures.sources.trees import PathError, Tree

DEEPEST = 2
"""Folders that a text with labels may lie in."""
ROWS_COMPARED, LONGEST_LINE = 1_000, 4_096
MOST_NAMED = 3
LABEL_FILES = (".json", ".jsonl", ".ndjson", ".manifest", ".xml", ".txt", ".xlsx")
"""Endings of files that may hold labels beside pictures, apart from tables of text and Parquet."""
MOST_READ = 20
"""Of such files."""


class WholeSource(RenamedSource):
    """A table or files of labels in a folder or archive: it says which pictures there are named by no row."""

    def __init__(self, source: Source, listing: Listing) -> None:
        """``source`` finds its pictures in what is listed."""
        super().__init__(source, source.info, lambda label: label)
        self._listing = listing
        self._named: set[int] | None = None

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``."""
        named = self._named = set()
        for row in super().rows():
            if isinstance(row, SourceRow):
                named.add(hash(row.location.partition("#xywh=")[0]))
            yield row

    def remarks(self) -> list[str]:
        """Return what the source says, and the pictures that are left out once its rows were read."""
        named = self._named
        if named is None or len(named) >= self._listing.num_pictures:
            return super().remarks()
        left = [one for one in self._listing.locations() if hash(one) not in named]
        shown = printable(", ".join(map(self._listing.inner, left[:MOST_NAMED])), 160)
        more = f" and {len(left) - MOST_NAMED:,} more" if len(left) > MOST_NAMED else ""
        said = f"{plural(len(left), 'picture')} left out, named by no row that can be used: {shown}{more}."
        return [*super().remarks(), *([said] if left else [])]


def refuse_lists(listing: Listing) -> None:
    """Ask where a text gives labels to pictures that have none by their folders, as Tiny ImageNet's does.

    Raises:
        ImportRefusedError: it is so.
    """
    tree = listing.tree
    images = Resolved(tree)
    for name, reason in tree.walk():
        if reason is not None or not name.lower().endswith(".txt") or listing.depth(name) > DEEPEST:
            continue
        with tree.open(name) as stream:
            words = stream.readline(LONGEST_LINE).decode("utf-8-sig", "replace").split()
        if len(words) < 2:
            continue
        for place in dict.fromkeys(("", name.rpartition("/")[0])):
            try:
                meant = listing.meant(images.locate(f"{place}/{words[0]}".lstrip("/")))
            except PathError:
                continue
            if meant is not None and meant[0] is None:
                raise ImportRefusedError(
                    f"{tree.root}: {name} says labels of pictures that have none by their folders "
                    f"({printable(words[0], 40)}: {printable(words[1], 40)}); write it as a table with a header "
                    "(path,label) and import that, or say that the first folders are splits: these pictures stay "
                    "without labels.",
                    field="layout",
                )


def first_rows(source: Source) -> list[SourceRow]:
    """The first rows of a source that name a picture."""
    first = itertools.islice(source.rows(), ROWS_COMPARED)
    return [row for row in first if isinstance(row, SourceRow)]


def is_form(name: str) -> bool:
    """Return whether a table is called as Kaggle's form for answers, which holds no labels."""
    return "submission" in name.lower()


def label_files(listing: Listing, options: SourceOptions) -> Iterator[tuple[str, list[SourceRow]]]:
    """Files of other tools beside the pictures, with the first rows that give one of these a label."""
    tree, num_read = listing.tree, 0
    for name, reason in tree.walk():
        if reason is not None or not name.lower().endswith(LABEL_FILES) or listing.depth(name) > DEEPEST:
            continue
        num_read += 1
        if num_read > MOST_READ:
            return
        with tempfile.TemporaryDirectory(prefix="label-auditor-") as folder:
            file = Path(folder, name.rpartition("/")[2])
            with suppress(ImportRefusedError, PathError, OSError), tree.open(name) as stream:
                with file.open("wb") as copy:
                    shutil.copyfileobj(stream, copy)
                source = open_labels(file, replace(options, layout=None), Resolved(tree))
                rows = [] if source is None else [row for row in first_rows(source) if row.label]
                if rows:
                    yield name, rows


def rows_of(tree: Tree, name: str, images: Resolved, options: SourceOptions) -> list[SourceRow]:
    """The first rows of a table that name a picture; none where it is no table of pictures with labels."""
    try:
        with tree.open(name) as stream:
            return first_rows(TableSource(name, stream, images, replace(options, layout=None)))
    except (ImportRefusedError, PathError):
        return []


def refuse_other_labels(listing: Listing, name: str, rows: list[SourceRow]) -> None:
    """Ask where the table does not say what the folders say; a number in place of each name says the same.

    Raises:
        ImportRefusedError: it does not.
    """
    pairs: dict[tuple[str | None, str | None], SourceRow] = {}
    for row in rows:
        meant = listing.meant(row.location)
        mine = None if meant is None else meant[0]
        pairs.setdefault((None if mine is None else normal(mine), row.label and normal(row.label)), row)
    ours, theirs = {mine for mine, _ in pairs}, {other for _, other in pairs}
    are_numbers = all(other is not None and is_whole(other.removesuffix(".0")) for other in theirs)
    are_names = not any(mine is None or is_whole(mine) for mine in ours)
    if are_numbers and are_names and len(pairs) == len(ours) == len(theirs):
        return
    other_pair = next((pair for pair in pairs if pair[0] != pair[1]), None)
    if other_pair is not None:
        mine, other = (printable(one, 40) if one else "no label" for one in other_pair)
        raise ImportRefusedError(
            f"{listing.tree.root} can be read in two ways: {name} says other labels than the folders "
            f"({printable(pairs[other_pair].filepath, 60)}: {other} there, {mine} by its folder). Import "
            "that table (name it, or its column of labels), or say what the first folders are: "
            "classes, splits or deepest.",
            field="layout",
        )
