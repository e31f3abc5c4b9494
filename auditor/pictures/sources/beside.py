"""Class folders and the tables beside them: which of the two says what a picture is, where both are there."""

from __future__ import annotations

import itertools
from dataclasses import replace

from auditor.ground.errors import ImportRefusedError
from auditor.ground.names import normal
from auditor.pictures.sources.folder import Listing
from auditor.pictures.sources.roots import Resolved
from auditor.pictures.sources.rows import Source, SourceOptions, SourceRow, is_whole, printable
from auditor.pictures.sources.tables import TableSource
from auditor.pictures.sources.trees import PathError, Tree

DEEPEST = 2
"""Folders that a text with labels may lie in."""
ROWS_COMPARED, LONGEST_LINE = 1_000, 4_096


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


def refuse_other_folders(source: Source) -> None:
    """Ask where a file of labels names the classes that folders have, and not each picture's own one.

    Raises:
        ImportRefusedError: it is so; the text names a picture.
    """
    first = [
        row
        for row in itertools.islice(source.rows(), ROWS_COMPARED)
        if isinstance(row, SourceRow) and row.label
    ]
    folders = [normal(row.location.split("/")[-2]) if "/" in row.location else "" for row in first]
    labels = [normal(row.label or "") for row in first]
    other = next((at for at, label in enumerate(labels) if label != folders[at]), None)
    if other is not None and len(set(labels)) > 1 and set(labels) == set(folders):
        raise ImportRefusedError(
            f"{source.info.root} can be read in two ways: {source.info.table_file} says other labels than the "
            f"folders ({printable(first[other].filepath, 60)}: {printable(labels[other], 40)} there). Name its "
            "column of labels, or the file itself, to believe it, or import the folders without it.",
            field="label_column",
        )


def rows_of(tree: Tree, name: str, images: Resolved, options: SourceOptions) -> list[SourceRow]:
    """The first rows of a table that name a picture; none where it is no table of pictures with labels."""
    try:
        with tree.open(name) as stream:
            source = TableSource(name, stream, images, replace(options, layout=None))
            first = list(itertools.islice(source.rows(), ROWS_COMPARED))
    except (ImportRefusedError, PathError):
        return []
    return [row for row in first if isinstance(row, SourceRow)]


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
