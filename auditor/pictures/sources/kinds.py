"""What a folder, an archive or an address is: recognisers in one list, and the opener of what they name.

Each recogniser looks at a ``Listing``, which holds names, and says what it takes the source for, how sure that is
and why. Their order means nothing: what is surest is opened, and two that are as sure are asked about.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from auditor.ground.errors import ImportRefusedError
from auditor.pictures.sources.addresses import is_remote, path_of
from auditor.pictures.sources.array_files import ArraySource, are_arrays
from auditor.pictures.sources.arrow_files import INFO, SPLITS_OF, STATE, saved_files
from auditor.pictures.sources.beside import (
    WholeSource,
    first_rows,
    is_form,
    label_files,
    refuse_lists,
    refuse_other_labels,
    rows_of,
)
from auditor.pictures.sources.columns import NoColumnError, refuse_columns
from auditor.pictures.sources.folder import FolderSource, Listing
from auditor.pictures.sources.formats import open_labels
from auditor.pictures.sources.layout import TwoWaysError
from auditor.pictures.sources.parquet import ParquetSource
from auditor.pictures.sources.parts import NAMES as PARTS
from auditor.pictures.sources.parts import Part, PartsSource, parts_of
from auditor.pictures.sources.remote import RemoteTree
from auditor.pictures.sources.roots import Resolved, images_at
from auditor.pictures.sources.rows import Source, SourceOptions, printable
from auditor.pictures.sources.tables import TableSource
from auditor.pictures.sources.tars import TAR_SUFFIXES, TarTree, WebDatasetSource, holds_samples, is_tar
from auditor.pictures.sources.trees import ROOT, FolderTree, Images, Tree, ZipTree, is_below
from auditor.pictures.sources.unpacking import unpack_parquet

NOTHING, PERHAPS, LIKELY, SURE, SAID = range(5)
"""How sure a recogniser is; ``SAID``: the person said it. ``NOTHING`` only tells why it is not that."""
TFDS = ("features.json", "dataset_info.json")
PARQUET = (".parquet", ".pq")
TABLES = (".csv", ".tsv")
DEEPEST = 2
"""Folders that a table may lie in; what lies further in is about a part of the pictures."""


@dataclass(frozen=True)
class Kind:
    """What one recogniser takes a source for."""

    what: str
    """In a word, for a question."""
    confidence: int
    because: str
    """What says so, in a sentence without its point."""
    open: Callable[[], Source] | None = None
    refusal: ImportRefusedError | None = None
    """Why it cannot be opened, or what has to be said first."""


@dataclass(frozen=True)
class Seen:
    """What the recognisers look at."""

    listing: Listing
    options: SourceOptions
    scratch: Path | None
    """A folder that a zip's Parquet files may be unpacked into."""

    @property
    def tree(self) -> Tree:
        """Of the source."""
        return self.listing.tree

    def top(self, *names: str) -> bool:
        """Return whether all of these files lie in the first folder."""
        return all(f"{self.tree.base}{name}" in self.listing.files for name in names)

    def ending(self, suffixes: tuple[str, ...]) -> list[str]:
        """The files whose names end so."""
        return [name for name in self.listing.files if name.lower().endswith(suffixes)]

    def paths(self, names: list[str]) -> list[Path]:
        """Return where files of a folder or an address lie.

        Raises:
            ImportRefusedError: one of that kind cannot be used, for example a link that leads out of the root.
        """
        suffixes = {Path(name).suffix for name in names}
        for name, reason in self.listing.unusable:
            if Path(name).suffix in suffixes:
                raise ImportRefusedError(f"{Path(self.tree.root, name)} {reason}.")
        if isinstance(self.tree, RemoteTree):
            return [path_of(f"{self.tree.root}/{name}") for name in names]
        return [Path(self.tree.root, name) for name in names]

    @property
    def root(self) -> Path:
        """The folder or address that locations are relative to."""
        return path_of(self.tree.root) if is_remote(self.tree.root) else Path(self.tree.root)

    def packed(self, what: str) -> ImportRefusedError:
        """Return why that kind is not read from where it is."""
        remedy = "copy it to this machine" if isinstance(self.tree, RemoteTree) else "unpack it"
        return ImportRefusedError(
            f"{self.tree.root} holds {what}; {remedy}, and import the folder that comes out."
        )


def open_kind(tree: Tree, options: SourceOptions, scratch: Path | None = None) -> Source:
    """Open a folder, archive or address as what it is.

    Raises:
        ImportRefusedError: it is nothing that is known, or can be read in two ways.
    """
    seen = Seen(Listing(tree), options, scratch)
    found = [kind for recognise in RECOGNISERS if (kind := recognise(seen)) is not None]
    best = max(kind.confidence for kind in found)
    surest = [kind for kind in found if kind.confidence == best]
    refusal = next((kind.refusal for kind in surest if kind.refusal is not None), None)
    if refusal is not None:
        raise _explained(refusal, seen) if refusal.field is not None or best == NOTHING else refusal
    if len(surest) > 1:
        raise ImportRefusedError(
            f"{_place(seen)} can be read in two ways: it holds {' and '.join(kind.what for kind in surest)}. Name "
            "the file or folder that is meant, or say of class folders what the first ones are: classes, splits or "
            "deepest.",
            field="layout",
        )
    assert surest[0].open is not None
    source = surest[0].open()
    if not isinstance(source, FolderSource):
        source.info = replace(source.info, because=surest[0].because)
    return source


def _class_folders(seen: Seen) -> Kind:
    what, layout = "class folders", seen.options.layout
    try:
        reading = seen.listing.reading(layout)
        if layout is None and reading.unlabeled:
            refuse_lists(seen.listing)
    except ImportRefusedError as error:
        asked = SAID if layout is not None else LIKELY
        return Kind(what, NOTHING if error.field is None else asked, "", refusal=error)

    def opened() -> Source:
        refuse_columns(seen.tree.root, "its classes are its folders", seen.options)
        _refuse_root(seen)
        if layout is None and not isinstance(seen.tree, RemoteTree):
            for name, rows in label_files(seen.listing, seen.options):
                refuse_other_labels(seen.listing, name, rows)
        return FolderSource(seen.listing, reading)

    return Kind(what, LIKELY if layout is None else SAID, reading.because, opened)


def _table(seen: Seen) -> Kind | None:
    """The one table that names the pictures, where no folder is a class or a person named its columns."""
    tree, options, listing = seen.tree, seen.options, seen.listing
    tables = [name for name in seen.ending(TABLES) if listing.depth(name) <= DEEPEST]
    if not tables or isinstance(tree, RemoteTree) or _has_parts(seen):
        return None
    is_rooted = isinstance(tree, ZipTree) and options.root is not None
    images = images_at(options.root, Path(tree.root).parent) if is_rooted else Resolved(tree)

    def opened(name: str) -> Source:
        table = TableSource(name, tree.open(name), images, options)
        return table if is_rooted else WholeSource(table, listing)

    def kind(name: str, confidence: int, because: str) -> Kind:
        return Kind("a table", confidence, because, lambda: opened(name))

    named = (options.label_column, options.path_column, options.true_label_column, options.encoding)
    if len(tables) == 1 and (is_rooted or any(named)):
        return kind(tables[0], SAID, f"{tables[0]} is its table")
    if options.layout is not None:
        return None
    if len(tables) == 1 and not listing.num_pictures and isinstance(tree, ZipTree):
        return kind(tables[0], LIKELY, f"{tables[0]} is its only table")
    with_labels = [name for name in tables if not is_form(name)]
    found = {name: rows for name in with_labels if (rows := rows_of(tree, name, Resolved(tree), options))}
    try:
        listing.reading(None)
    except ImportRefusedError as error:
        if not found or isinstance(error, TwoWaysError):
            return None
        if len(found) > 1:
            several = ImportRefusedError(
                f"{_place(seen)} holds several tables that name its pictures ({printable(', '.join(found), 100)}); "
                "import one of them."
            )
            return Kind("a table", SURE, "", refusal=several)
        name = next(iter(found))
        return kind(name, SURE, f"{name} names the pictures, and no folder is a class")
    try:
        for name, rows in found.items():
            refuse_other_labels(listing, name, rows)
    except ImportRefusedError as error:
        return Kind("a table", LIKELY, "", refusal=error)
    return None


def _labels_beside(seen: Seen) -> Kind | None:
    """Files of labels beside the images of each split, or of all."""
    tree = seen.tree
    if isinstance(tree, TarTree):
        named = next((name for name in seen.listing.files if name.rpartition("/")[2] in PARTS), None)
        if named is None or holds_samples(tree):
            return None
        return Kind("labels", SURE, "", refusal=seen.packed(f"labels in {named}"))
    parts = parts_of(tree) if isinstance(tree, (FolderTree, ZipTree)) else []
    if not parts:
        return None
    files = ", ".join(part.file for part in parts if part.file)
    because = f"labels lie beside the pictures in {printable(files, 80)}"
    try:
        source = _open_parts(seen, parts)
    except ImportRefusedError as error:  # captions alone: the folders may be the classes
        return Kind("labels", PERHAPS if isinstance(error, NoColumnError) else SURE, "", refusal=error)

    def opened() -> Source:
        if seen.options.label_column is None and _has_classes(seen.listing):
            refuse_other_labels(seen.listing, files, first_rows(source))
        return WholeSource(source, seen.listing)

    return Kind("files of labels", SURE, because, opened)


def _has_classes(listing: Listing) -> bool:
    """Return whether folders alone say the class of each picture."""
    try:
        return listing.reading(None) is not None
    except ImportRefusedError:
        return False


def _has_parts(seen: Seen) -> bool:
    return isinstance(seen.tree, (FolderTree, ZipTree)) and bool(parts_of(seen.tree))


def _open_parts(seen: Seen, parts: list[Part]) -> PartsSource:
    """Files of labels in a zip are unpacked while it is open."""
    tree, options = seen.tree, seen.options
    assert isinstance(tree, (FolderTree, ZipTree))
    folder = None if isinstance(tree, FolderTree) else Path(tempfile.mkdtemp(prefix="label-auditor-"))

    def opened(name: str, images: Images) -> Source:
        file = Path(tree.root, name)
        if folder is not None:
            file = folder / str(len(list(folder.iterdir()))) / file.name
            file.parent.mkdir()
            with tree.open(name) as packed, file.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
        source = open_labels(file, options, images if options.root is None else None)
        assert source is not None
        return source

    try:
        source = PartsSource(tree, parts, opened)
    except BaseException:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if folder is not None:
        weakref.finalize(source, shutil.rmtree, folder, ignore_errors=True)
    return source


def _parquet(seen: Seen) -> Kind | None:
    names = seen.ending(PARQUET)
    if not names:
        return None
    if isinstance(seen.tree, TarTree):
        return Kind("Parquet", LIKELY, "", refusal=seen.packed("Parquet"))

    def opened() -> Source:
        if isinstance(seen.tree, ZipTree):
            files, root = unpack_parquet(seen.tree, names, seen.scratch)
            return ParquetSource(files, root, seen.options, kind="zip")
        return ParquetSource(seen.paths(names), seen.root, seen.options)

    return Kind("Parquet", LIKELY, "it holds Parquet", opened)


def _saved(seen: Seen) -> Kind | None:
    """Return what ``save_to_disk`` of ``datasets`` wrote."""
    if seen.options.layout is not None or not (seen.top(SPLITS_OF) or seen.top(STATE, INFO)):
        return None
    what = "a saved table"
    if not isinstance(seen.tree, FolderTree):
        return Kind(what, LIKELY, "", refusal=seen.packed("what save_to_disk wrote"))
    folder = seen.root / seen.tree.base

    def opened() -> Source:
        files = saved_files(folder)
        assert files is not None
        return ParquetSource(files, folder, seen.options)

    return Kind(what, LIKELY, "save_to_disk of datasets wrote it", opened)


def _shards(seen: Seen) -> Kind | None:
    """Shards of WebDataset; archives beside pictures may hold the same pictures once more."""
    if isinstance(seen.tree, TarTree) and holds_samples(seen.tree):
        file, tree = seen.root, seen.tree
        return Kind(
            "a shard of WebDataset",
            SURE,
            "each sample has its files side by side",
            lambda: WebDatasetSource([file], file, seen.options, tree),
        )
    names = seen.ending((".zip", *TAR_SUFFIXES))
    if not names:
        return None
    confidence = PERHAPS if seen.listing.num_pictures else LIKELY
    if isinstance(seen.tree, (TarTree, ZipTree)) or not any(map(is_tar, names)):
        return Kind("archives", confidence, "", refusal=seen.packed(f"archives ({printable(names[0], 40)})"))
    return Kind(
        "tar",
        confidence,
        "it holds shards of WebDataset",
        lambda: WebDatasetSource(seen.paths(list(filter(is_tar, names))), seen.root, seen.options),
    )


def _arrays(seen: Seen) -> Kind | None:
    """Arrays of images and of labels, in a folder round all pictures or in the only one that has some."""
    if seen.options.layout is not None:
        return None
    by_folder: dict[str, list[str]] = {}
    for name in seen.listing.files:
        by_folder.setdefault(name.rpartition("/")[0], []).append(name)
    found = {folder for folder, names in by_folder.items() if are_arrays(names)}
    above = {folder for folder in found if not seen.listing.depth(by_folder[folder][0])}
    folder = next(iter(above or found), None)
    if folder is None or (not above and (len(found) > 1 or seen.listing.num_pictures)):
        return None
    if not isinstance(seen.tree, FolderTree):
        return Kind("arrays", LIKELY, "", refusal=seen.packed("arrays"))
    return Kind(
        "arrays",
        LIKELY,
        "arrays of images and of labels are called so",
        lambda: ArraySource(seen.root / folder, seen.options),
    )


def _tfds(seen: Seen) -> Kind | None:
    if not seen.top(*TFDS):
        return None
    refusal = ImportRefusedError(
        f"{_place(seen)} is a folder of TFDS; read it with tensorflow_datasets and hand its arrays to "
        "auditor.from_arrays(images, labels, name=...)."
    )
    return Kind("a folder of TFDS", SURE, "", refusal=refusal)


RECOGNISERS: tuple[Callable[[Seen], Kind | None], ...] = (
    _arrays,
    _class_folders,
    _labels_beside,
    _parquet,
    _saved,
    _shards,
    _table,
    _tfds,
)
"""By their names: none is asked before another."""


def _explained(refusal: ImportRefusedError, seen: Seen) -> ImportRefusedError:
    """The refusal with the table that may be meant, or with the first file that cannot be used."""
    if not isinstance(seen.tree, FolderTree):
        return refusal
    place = _place(seen)
    base = seen.tree.base
    tables = [name for name in seen.ending((*TABLES, ".xlsx", *PARQUET)) if "/" not in name[len(base) :]]
    tables.sort(key=is_form)
    table = seen.root / tables[0] if tables else None
    if refusal.field is not None:  # a question, or parts of another layout
        refuse_columns(str(place), "its classes are its folders", seen.options)
        text = f"{refusal} To import its table, name {table}." if table else str(refusal)
        return ImportRefusedError(text, field=refusal.field)
    if table:
        return ImportRefusedError(
            f"{place} has no sub-folder with images; to import its table, name {table}."
        )
    if seen.listing.unusable:
        _refuse_root(seen)
        name, reason = seen.listing.unusable[0]
        text = f"{refusal} {printable(name.removeprefix(base))} {reason}."
        return ImportRefusedError(text, field="root" if ROOT in text else None)
    return refusal


def _refuse_root(seen: Seen) -> None:
    """Of class folders the root holds them and says how far links are followed; of a table it may lie elsewhere."""
    root, place = seen.options.root, _place(seen)
    if root is not None and isinstance(seen.tree, FolderTree) and not is_below(place, root):
        raise ImportRefusedError(
            f"{place} does not lie below the root {root}; name one that holds it and what links lead to.",
            field="root",
        )


def _place(seen: Seen) -> Path:
    """Return what the person named."""
    return seen.root / seen.tree.base if isinstance(seen.tree, FolderTree) else seen.root
