"""A folder or zip in which each split has a file of labels beside its images, or that has one for all of them.

=======================  =============================================================================
``metadata.jsonl, .csv`` an image folder of Hugging Face
``_annotations.coco.json``  COCO, as Roboflow writes it
``_classes.csv``         a column of ones and zeros a class, as Roboflow writes it
=======================  =============================================================================

In a folder that is called like a split, any other table or file of annotations will do where it is the only one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from auditor.ground.errors import ImportRefusedError
from auditor.pictures.sources.folder import is_image_name
from auditor.pictures.sources.layout import is_split
from auditor.pictures.sources.roots import Below, Resolved, remarks
from auditor.pictures.sources.rows import (
    Outcomes,
    Payload,
    Problem,
    Rewritable,
    Source,
    SourceInfo,
    SourceRow,
)
from auditor.pictures.sources.trees import FolderTree, ZipTree

NAMES = ("metadata.jsonl", "metadata.csv", "_annotations.coco.json", "_classes.csv")
"""Files of labels by their names."""
SUFFIXES = (".jsonl", ".csv", ".tsv", ".json", ".xml")
"""Of the only file beside the images of a split."""
Opener = Callable[[str, Resolved], Source]
"""Opens a file of labels below the root; its images are found in the place that is handed over."""


class Part(NamedTuple):
    """A folder of the whole, with its slash, and its file of labels; empty: there is none."""

    folder: str
    file: str


class PartsSource:
    """The images of all parts, one part after the other; locations are those below the whole."""

    def __init__(self, tree: FolderTree | ZipTree, parts: list[Part], opener: Opener) -> None:
        """Open the file of each part.

        Raises:
            ImportRefusedError: one of them cannot be read.
        """
        self.ignored: list[str] = []
        self._tree = tree
        self._left_out = [part.folder for part in parts if not (part.file or is_split(_name(part.folder)))]
        self._parts = [
            (part, opener(part.file, Resolved(Below(tree, part.folder))) if part.file else None)
            for part in parts
            if part.folder not in self._left_out
        ]
        infos = [source.info for _, source in self._parts if source is not None]
        named = [info.class_names for info in infos]
        names = dict.fromkeys(itertools.chain(*(one or () for one in named)))
        self.info = SourceInfo(
            kind=tree.kind if tree.kind == "zip" else infos[0].kind,
            root=tree.root,
            table_file=parts[0].file or Path(tree.root).name,
            class_names=tuple(names) if all(named) else None,
            takes_classes=all(info.takes_classes for info in infos),
            user_columns=tuple(dict.fromkeys(itertools.chain(*(info.user_columns for info in infos)))),
            columns=tuple(dict.fromkeys(itertools.chain(*(info.columns for info in infos)))),
            path_column=infos[0].path_column,
            label_column=infos[0].label_column,
            true_label_column=infos[0].true_label_column,
            is_own_export=all(info.is_own_export for info in infos),
        )

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``. Rows are numbered where there is one file."""
        for part, source in self._parts:
            for item in self._unlabeled(part.folder) if source is None else source.rows():
                if isinstance(item, Problem):
                    yield replace(item, file=f"{part.folder}{item.file}")
                    continue
                inner = item.location.removeprefix(part.folder).split("/")[0]
                item.split = item.split or next(filter(is_split, (_name(part.folder), inner)), None)
                item.filepath = f"{part.folder}{item.filepath}"
                item.row = item.row if len(self._parts) == 1 else None
                yield item

    def _unlabeled(self, folder: str) -> Iterator[SourceRow | Problem]:
        for name, reason in Below(self._tree, folder).walk():
            if reason is not None:
                yield Problem(name, None, reason)
            elif is_image_name(name):
                yield SourceRow(None, name, f"{folder}{name}", None)
            else:
                self.ignored.append(f"{folder}{name}")

    def remarks(self) -> list[str]:
        """Return which files the labels come from, and what is to be said of each."""
        said = [
            f"{part.folder} {f'labels from {_name(part.file)}' if part.file else 'unlabeled'}"
            for part, _ in self._parts
        ] + [f"{folder} left out" for folder in self._left_out]
        own = [text for _, source in self._parts if source is not None for text in remarks(source)]
        return [*([f"Read as: {'; '.join(said)}."] if len(said) > 1 else []), *own]

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """See ``Source``: workers read the files themselves."""
        yield from locations

    def write_again(self, out: Path, outcomes: Outcomes, class_names: Sequence[str]) -> None:
        """See ``sources.Rewritable``: the files of labels in their folders.

        Raises:
            ImportRefusedError: one of them cannot be written again.
        """
        left = iter(outcomes)
        for part, source in self._parts:
            items = self._unlabeled(part.folder) if source is None else source.rows()
            own = [outcome for _, outcome in zip(items, left)]  # noqa: B905
            if source is None:
                continue
            if not isinstance(source, Rewritable):
                raise ImportRefusedError(f"{part.file} cannot be written in its own form.")
            (out / part.file).parent.mkdir(parents=True, exist_ok=True)
            source.write_again(out / part.file, own, self._in_order_of(source, class_names))

    def _in_order_of(self, source: Source, class_names: Sequence[str]) -> list[str]:
        """The dataset's classes, those first that a part declares, in its own order."""
        places = {name: place for place, name in enumerate(self.info.class_names or ())}
        declared = [places[name] for name in source.info.class_names or () if name in places]
        return [class_names[one] for one in dict.fromkeys([*declared, *range(len(class_names))])]


def parts_of(tree: FolderTree | ZipTree) -> list[Part]:
    """The parts of a folder or zip; none where no file of labels lies beside images as described above."""
    folder = tree.base
    while True:
        found = next((name for name in NAMES if tree.holds(f"{folder}{name}")), None)
        if found is not None:
            return [Part(folder, f"{folder}{found}")]
        files, folders = tree.listed(folder)
        if len(folders) != 1 or any(map(is_image_name, files)) or is_split(folders[0]):
            break
        folder += f"{folders[0]}/"
    parts = [_part(tree, f"{folder}{name}/") for name in folders]
    return parts if any(part.file for part in parts) else []


def _part(tree: FolderTree | ZipTree, folder: str) -> Part:
    found = next((name for name in NAMES if tree.holds(f"{folder}{name}")), None)
    if found is None and is_split(_name(folder)):
        files, folders = tree.listed(folder)
        tables = [name for name in files if name.lower().endswith(SUFFIXES)]
        found = tables[0] if len(tables) == 1 and len(folders) < 2 else None
    return Part(folder, "" if found is None else f"{folder}{found}")


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
