"""Folders that ``save_to_disk`` of Hugging Face's ``datasets`` writes: Arrow streams in place of Parquet."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from auditor.ground.errors import ImportRefusedError
from auditor.ground.files import text_of
from auditor.pictures.decoding import MAX_FILE_BYTES
from auditor.pictures.sources.addresses import opened
from auditor.pictures.sources.rows import printable

STATE, INFO, SPLITS_OF = "state.json", "dataset_info.json", "dataset_dict.json"


class ArrowFile:
    """One ``data-00000-of-00001.arrow``, mapped from disk, with what is asked of a ``pyarrow`` Parquet file."""

    def __init__(self, file: Path | str, below: Path | str | None = None) -> None:
        """Map the file and check that every offset in it lies in it; ``below`` as ``opened``.

        Raises:
            ImportRefusedError: damaged, or no Arrow stream.
        """
        try:
            with opened(file, below) as raw:
                mapped = pa.py_buffer(mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ))
            with pa.ipc.open_stream(mapped) as stream:
                self._table = stream.read_all()
            self._table.validate(full=True)
        except (pa.ArrowException, OSError, EOFError, ValueError) as error:
            raise ImportRefusedError(
                f"{file} cannot be read as Arrow ({printable(str(error), 100)}); save it again."
            ) from error
        self.schema_arrow: pa.Schema = self._table.schema

    def iter_batches(self, batch_size: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Batches of those columns; ``image.path`` is the column ``image`` with that one field."""
        table = self._table if columns is None else _chosen(self._table, columns)
        yield from table.to_batches(max_chunksize=batch_size)

    def image(self, row: int, column: str) -> bytes | None:
        """The encoded image in one row; None where there is none.

        Raises:
            IndexError: there is no such row.
        """
        if row >= self._table.num_rows:
            raise IndexError(row)
        value = self._table.column(column)[row].as_py()
        return value.get("bytes") if isinstance(value, dict) else value

    def has_no_bytes(self, column: str) -> bool:
        """Return whether a column of images holds paths alone."""
        chunks = self._table.column(column).chunks
        return bool(chunks) and all(len(one) == one.field("bytes").null_count for one in chunks)


def _chosen(table: pa.Table, columns: list[str]) -> pa.Table:
    found = {}
    for name in columns:
        top, _, field = name.partition(".")
        if top == name or name in table.column_names:
            found[name] = table.column(name)
            continue
        chunks = [
            pa.StructArray.from_arrays([chunk.field(field)], [field]) for chunk in table.column(top).chunks
        ]
        kind = pa.struct([table.schema.field(top).type.field(field)])
        found[top] = pa.chunked_array(chunks, kind)
    return pa.table(found)


def saved_files(folder: Path) -> list[Path] | None:
    """The Arrow files of a folder that ``save_to_disk`` wrote, in their order; None where it did not write it.

    Raises:
        ImportRefusedError: a file that the folder's own list names is missing, or the list is damaged.
    """
    if (folder / SPLITS_OF).is_file():
        parts = [folder / str(name) for name in _json(folder / SPLITS_OF).get("splits", [])]
    elif (folder / STATE).is_file() and (folder / INFO).is_file():
        parts = [folder]
    else:
        return None
    files = []
    for part in parts:
        listed = _json(part / STATE).get("_data_files", [])
        files += [part / str(one.get("filename")) for one in listed if isinstance(one, dict)]
    root = folder.resolve()
    for file in files:
        if not file.is_file() or not file.resolve().is_relative_to(root):
            raise ImportRefusedError(f"{file} is missing in {folder}; save the dataset again.")
    if not files:
        raise ImportRefusedError(f"{folder} lists no file of data; save the dataset again.")
    return files


def copy_descriptions(source: Path, target: Path, num_rows: int) -> None:
    """Copy the JSON that lies beside Arrow files, with the number of rows that the copy has."""
    state = _json(source / STATE)
    (target / STATE).write_text(json.dumps(state, indent=2), encoding="utf-8")
    if (source / INFO).is_file():
        info = _json(source / INFO)
        splits = info.get("splits")
        split = splits.get(state.get("_split")) if isinstance(splits, dict) else None
        if isinstance(split, dict):
            split["num_examples"] = num_rows
        (target / INFO).write_text(json.dumps(info, indent=2), encoding="utf-8")


def _json(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(text_of(file, most_bytes=MAX_FILE_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise ImportRefusedError(f"{file} cannot be read ({error}); save the dataset again.") from error
    if not isinstance(value, dict):
        raise ImportRefusedError(f"{file} is no JSON object; save the dataset again.")
    return value
