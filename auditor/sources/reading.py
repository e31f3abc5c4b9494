"""Read one image's bytes again by its location: from a folder, a zip, a Parquet file or a torchvision set."""

from __future__ import annotations

import functools
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

from auditor.decoding import MAX_FILE_BYTES
from auditor.errors import ImportRefusedError, NotFoundError
from auditor.sources.parquet_files import image_column, layout_of, open_parquet
from auditor.sources.trees import PathError, checked_relative, open_zip

SMALL_ROW_GROUP = 256 * 2**20


class UnreadableError(ValueError):
    """This one image cannot be read from its place; the text says why and what to do."""


def read_bytes(root: str, location: str) -> bytes:
    """The encoded image at ``location`` below ``root``, as the user has it.

    Raises:
        UnreadableError: it is not there, cannot be read, or its location leaves the root.
    """
    try:
        if root.startswith("torchvision:"):
            from auditor.sources.torchvision_sets import read_item  # torchvision is heavy and seldom needed

            return read_item(root, location)
        if root.endswith(".parquet") and location.startswith("#"):
            return _parquet_row(root, location)
        if os.path.isdir(root):
            return _below_folder(root, location)
        return _zip_member(root, location)
    except (ImportRefusedError, NotFoundError) as error:
        raise UnreadableError(str(error)) from error


def _below_folder(root: str, location: str) -> bytes:
    file, mark, row = location.rpartition("#")
    if mark and file.endswith(".parquet") and row.isdigit():
        return _parquet_row(os.path.join(root, _checked(file)), f"#{row}")
    path = os.path.join(root, _checked(location))
    try:
        if os.path.getsize(path) > MAX_FILE_BYTES:
            raise UnreadableError(f"is larger than {MAX_FILE_BYTES >> 20} MB; make the image smaller")
        with open(path, "rb") as stream:
            return stream.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, UnreadableError):
            raise
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnreadableError(f"cannot be read ({reason}); check that it is there and readable") from error


def _checked(location: str) -> str:
    try:
        return checked_relative(location)
    except PathError as error:
        raise UnreadableError(str(error)) from error


def _zip_member(root: str, location: str) -> bytes:
    try:
        archive = _open_zip_once(root, os.path.getmtime(root))
        info = archive.getinfo(location)
        if info.file_size > MAX_FILE_BYTES:
            raise UnreadableError(f"is larger than {MAX_FILE_BYTES >> 20} MB; make the image smaller")
        return archive.read(info)
    except KeyError as error:
        raise UnreadableError(f"is not in {Path(root).name} any more; put the same zip back") from error
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise UnreadableError(f"cannot be unpacked ({error}); zip the folder again") from error


@functools.lru_cache(maxsize=4)
def _open_zip_once(root: str, modified: float) -> zipfile.ZipFile:  # noqa: ARG001 - part of the cache's key
    return open_zip(Path(root))


def _parquet_row(file: str, location: str) -> bytes:
    row = int(location[1:])
    try:
        modified = os.path.getmtime(file)
    except OSError as error:
        raise UnreadableError(f"{file} cannot be read ({error.strerror}); put the same file back") from error
    opened, column, layout = _open_parquet_once(file, modified)
    if layout == "path":
        raise UnreadableError(
            f"column {column!r} of {file} holds paths, not images; name the images' folder as root"
        )
    for group in range(opened.num_row_groups):
        size = opened.metadata.row_group(group).num_rows
        if row < size:
            return _from_row_group(file, modified, group, row)
        row -= size
    raise UnreadableError(f"{Path(file).name} has no row {location[1:]} any more; put the same file back")


@functools.lru_cache(maxsize=4)
def _open_parquet_once(file: str, modified: float) -> tuple[Any, str, str]:  # noqa: ARG001
    opened = open_parquet(file)
    column = image_column(Path(file).name, opened.schema_arrow, None)
    return opened, column, layout_of(opened.schema_arrow, column)


def _from_row_group(file: str, modified: float, group: int, row: int) -> bytes:
    opened, column, layout = _open_parquet_once(file, modified)
    if opened.metadata.row_group(group).total_byte_size <= SMALL_ROW_GROUP:
        return _small_row_group(file, modified, group)[row].as_py() or b""
    name = f"{column}.bytes" if layout == "struct" else column
    for batch in opened.iter_batches(batch_size=64, row_groups=[group], columns=[name]):
        if row < batch.num_rows:
            images = batch.column(0).field("bytes") if layout == "struct" else batch.column(0)
            return images[row].as_py() or b""
        row -= batch.num_rows
    raise UnreadableError(f"{Path(file).name} is damaged; get it again")


@functools.lru_cache(maxsize=1)
def _small_row_group(file: str, modified: float, group: int) -> Any:
    """The group's images, kept because neighbours are usually asked for next."""
    opened, column, layout = _open_parquet_once(file, modified)
    name = f"{column}.bytes" if layout == "struct" else column
    images = opened.read_row_group(group, columns=[name]).column(0).combine_chunks()
    return images.field("bytes") if layout == "struct" else images
