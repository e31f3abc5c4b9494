"""Where the paths of a table lead: the root may be a folder, a zip or a Parquet file with the images."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path

from auditor.ground.errors import ImportRefusedError
from auditor.ground.paths import LOCAL, Paths
from auditor.pictures.sources.addresses import is_remote
from auditor.pictures.sources.parquet_files import image_column, layout_of, open_parquet
from auditor.pictures.sources.remote import RemoteTree
from auditor.pictures.sources.rows import printable
from auditor.pictures.sources.trees import (
    FolderTree,
    Images,
    MissingError,
    OutsideError,
    Tree,
    ZipTree,
    folder_tree,
)

ROWS_A_BATCH = 10_000
MOST_SAID = 3
BACKSLASH = chr(92)


def images_at(root: str | None, default: Path | str) -> Images:
    """Return where a table's paths lead: a folder here or at an address, a zip, or the images inside a
    Parquet file.

    A path that leads nowhere there is taken for a near one where that is clear (``Resolved``).

    Raises:
        ImportRefusedError: ``root`` is none of these.
    """
    found = _place(root, default)
    return found if isinstance(found, RemoteTree) else Resolved(found)


class Below:
    """A folder of a tree: what is named there is found there, and its location is that below the whole."""

    def __init__(self, tree: FolderTree | ZipTree, folder: str) -> None:
        """``folder`` ends in a slash; empty is the whole tree."""
        self.tree, self.root, self._folder = tree, tree.root, folder

    def locate(self, text: str) -> str:
        """See ``Images``; ``../`` may lead to another folder of the tree."""
        if not text or not self._folder or "://" in text or text.startswith("/") or LOCAL.match(text):
            return self.tree.locate(text)
        return self.tree.locate(posixpath.normpath(f"{self._folder}{text.replace(BACKSLASH, '/')}"))

    def walk(self) -> Iterator[tuple[str, str | None]]:
        """Yield what lies in the folder, by its path below it; see ``Tree``."""
        size = len(self._folder)
        for location, reason in self.tree.walk():
            if location.startswith(self._folder):
                yield location[size:], reason


class Resolved:
    """Images by what a table or another tool calls them, which need not be their path."""

    def __init__(self, tree: Tree | ParquetImages | Below) -> None:
        """Nothing is listed before a path leads nowhere."""
        self.tree, self.root = tree, tree.root
        self._paths: Paths | None = None
        self._taken: dict[str, str] = {}
        self._num_taken = 0

    def locate(self, text: str) -> str:
        """See ``Images``."""
        try:
            return self.tree.locate(text)
        except (MissingError, OutsideError) as error:
            if self._paths is None:
                self._paths = Paths(name for name, reason in self.tree.walk() if reason is None)
            found = self._paths.find(text) if text else None
            if found is None:
                hint = self._paths.hint(text) if text else ""
                raise type(error)(f"{error}; {hint}" if hint else str(error)) from error
            self._num_taken += 1
            if len(self._taken) < MOST_SAID:
                self._taken[text] = found
            return self.tree.locate(found)

    def remarks(self) -> list[str]:
        """Return which paths were taken for others, once for all."""
        own = remarks(self.tree)
        if not self._num_taken:
            return own
        shown = ", ".join(
            f"{printable(said, 60)} is {printable(found, 60)}" for said, found in self._taken.items()
        )
        return [*own, f"{self._num_taken:,} paths lead to files of nearly that name: {shown}."]


def remarks(source: object) -> list[str]:
    """Return what is to be said about how a source's images were found."""
    parts = [source, getattr(source, "tree", None)]
    return [text for part in parts if hasattr(part, "remarks") for text in part.remarks()]


def _place(root: str | None, default: Path | str) -> FolderTree | ZipTree | RemoteTree | ParquetImages:
    if root is None:
        root = str(default)
        if not is_remote(root):
            return folder_tree(Path(root))
    if is_remote(root):
        return RemoteTree(root)
    path = Path(root).expanduser().absolute()
    if path.is_dir():
        return FolderTree(path)
    if path.suffix.lower() == ".zip" and path.is_file():
        return ZipTree(path)
    if path.suffix.lower() == ".parquet" and path.is_file():
        return ParquetImages(path)
    raise ImportRefusedError(
        f"{path} is no folder, zip or Parquet file; name the place of the images.", field="root"
    )


class ParquetImages:
    """Images inside one Parquet file, found by the path stored with their bytes, or by ``#ROW``."""

    def __init__(self, file: Path) -> None:
        """Read the paths.

        Raises:
            ImportRefusedError: no Parquet, or no column with image bytes.
        """
        self.root = str(file)
        opened = open_parquet(file)
        schema = opened.schema_arrow
        column = image_column(file.name, schema, None)
        if layout_of(schema, column) == "path":
            raise ImportRefusedError(
                f"{file} holds paths, not images; name the images' folder as the root.", field="root"
            )
        self._num_rows = opened.metadata.num_rows
        self._row_of: dict[str, int] = {}
        fields = schema.field(column).type
        if layout_of(schema, column) == "struct" and fields.get_field_index("path") >= 0:
            row = 0
            for batch in opened.iter_batches(batch_size=ROWS_A_BATCH, columns=[f"{column}.path"]):
                for path in batch.column(0).field("path").to_pylist():
                    self._row_of.setdefault(path or "", row)
                    row += 1

    def walk(self) -> Iterator[tuple[str, str | None]]:
        """The paths that are stored with the images; see ``Tree``."""
        for path in self._row_of:
            yield path, None

    def locate(self, text: str) -> str:
        """See ``Images``."""
        if text in self._row_of:
            return f"#{self._row_of[text]}"
        name, mark, row = text.rpartition("#")
        own_name = name in ("", Path(self.root).name)
        if mark and own_name and row.isascii() and row.isdigit() and int(row) < self._num_rows:
            return f"#{int(row)}"
        raise MissingError(
            f"is not in {printable(Path(self.root).name)}; correct the path or set another root"
        )
