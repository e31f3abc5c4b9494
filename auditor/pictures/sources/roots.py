"""Where the paths of a table lead: the root may be a folder, a zip or a Parquet file with the images."""

from __future__ import annotations

from pathlib import Path

from auditor.ground.errors import ImportRefusedError
from auditor.pictures.sources.addresses import is_remote
from auditor.pictures.sources.parquet_files import image_column, layout_of, open_parquet
from auditor.pictures.sources.remote import RemoteTree
from auditor.pictures.sources.rows import printable
from auditor.pictures.sources.trees import FolderTree, Images, MissingError, ZipTree

ROWS_A_BATCH = 10_000


def images_at(root: str | None, default: Path | str) -> Images:
    """Where a table's paths lead: a folder here or at an address, a zip, or the images inside a Parquet file.

    Raises:
        ImportRefusedError: ``root`` is none of these.
    """
    if root is None:
        root = str(default)
        if not is_remote(root):
            return FolderTree(Path(root))
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
