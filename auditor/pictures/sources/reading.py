"""Read one image's bytes again by its location: from a folder, a zip, a Parquet file or a torchvision set."""

from __future__ import annotations

import functools
import os
import stat
import threading
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from auditor.errors import ImportRefusedError
from auditor.pictures.decoding import MAX_FILE_BYTES
from auditor.pictures.sources.parquet_files import image_column, layout_of, open_parquet, split_location
from auditor.pictures.sources.trees import PathError, checked_relative, open_zip

SMALL_ROW_GROUP = 256 * 2**20
_ONE_AT_A_TIME = threading.Lock()
"""A Parquet reader serves one thread at a time; an app has many."""


class UnreadableError(ValueError):
    """This one image cannot be read from its place; the text says why and what to do."""


def read_bytes(root: str, location: str) -> bytes:
    """The encoded image at ``location`` below ``root``, as the user has it.

    Raises:
        UnreadableError: it is not there, cannot be read, or its location leaves the root.
    """
    try:
        if root.startswith("torchvision:"):
            from auditor.pictures.sources.torchvision_sets import (
                read_item,  # torchvision is heavy and seldom needed
            )

            return read_item(root, location)
        if os.path.exists(root) and not os.path.isdir(root) and not os.path.isfile(root):
            raise UnreadableError("cannot be read because its root is no folder and no regular file")
        if (
            location.startswith("#")
            and root.lower().endswith((".parquet", ".pq"))
            and not os.path.isdir(root)
        ):
            _, row, column = _split(location)
            return _parquet_row(root, row, column)
        if os.path.isdir(root):
            return _below_folder(root, location)
        if not os.path.exists(root):
            raise UnreadableError("cannot be read because its root does not exist any more")
        return _zip_member(root, location)
    except (ImportRefusedError, pa.ArrowException) as error:
        raise UnreadableError(str(error)) from error


def _below_folder(root: str, location: str) -> bytes:
    if ".parquet#" in location.lower() and not os.path.isfile(os.path.join(root, _checked(location))):
        file, row, column = _split(location)
        return _parquet_row(os.path.join(root, _checked(file)), row, column)
    path = os.path.join(root, _checked(location))
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):  # a pipe would let us wait for ever
            raise UnreadableError("is no regular file; put the image back")
        if found.st_size > MAX_FILE_BYTES:
            raise UnreadableError(f"is larger than {MAX_FILE_BYTES >> 20} MB; make the image smaller")
        with open(path, "rb") as stream:
            return stream.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, UnreadableError):
            raise
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnreadableError(f"cannot be read ({reason}); check that it exists and is readable") from error


def _split(location: str) -> tuple[str, int, str | None]:
    try:
        return split_location(location)
    except ValueError as error:
        raise UnreadableError(str(error)) from error


def _checked(location: str) -> str:
    try:
        return checked_relative(location)
    except PathError as error:
        raise UnreadableError(str(error)) from error


def _zip_member(root: str, location: str) -> bytes:
    try:
        archive = _open_zip_once(root, os.path.getmtime(root), os.getpid())
        info = archive.getinfo(location)
        if info.file_size > MAX_FILE_BYTES:
            raise UnreadableError(f"is larger than {MAX_FILE_BYTES >> 20} MB; make the image smaller")
        return archive.read(info)
    except KeyError as error:
        raise UnreadableError(f"is not in {Path(root).name} any more; put the same zip back") from error
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise UnreadableError(f"cannot be unpacked ({error}); zip the folder again") from error


@functools.lru_cache(maxsize=4)
def _open_zip_once(root: str, modified: float, pid: int) -> zipfile.ZipFile:  # noqa: ARG001
    """Kept open, by file version and process: a forked worker must not share the parent's place in the file."""
    return open_zip(Path(root))


def _parquet_row(file: str, row: int, wanted: str | None) -> bytes:
    try:
        key = (file, os.path.getmtime(file), os.getpid(), wanted)
    except OSError as error:
        raise UnreadableError(f"{file} cannot be read ({error.strerror}); put the same file back") from error
    with _ONE_AT_A_TIME:
        opened, column, layout = _open_parquet_once(*key)
        if layout == "path":
            raise UnreadableError(f"column {column!r} of {file} holds paths; name the images' folder as root")
        left = row
        for group in range(opened.num_row_groups):
            size = opened.metadata.row_group(group).num_rows
            if left < size:
                return _from_row_group(key, group, left)
            left -= size
    raise UnreadableError(f"{Path(file).name} has no row {row} any more; put the same file back")


@functools.lru_cache(maxsize=4)
def _open_parquet_once(file: str, modified: float, pid: int, wanted: str | None) -> tuple[Any, str, str]:  # noqa: ARG001
    opened = open_parquet(file)
    column = image_column(Path(file).name, opened.schema_arrow, wanted)
    return opened, column, layout_of(opened.schema_arrow, column)


def _from_row_group(key: tuple[str, float, int, str | None], group: int, row: int) -> bytes:
    opened, column, layout = _open_parquet_once(*key)
    if opened.metadata.row_group(group).total_byte_size <= SMALL_ROW_GROUP:
        return _small_row_group(key, group)[row].as_py() or b""
    name = f"{column}.bytes" if layout == "struct" else column
    for batch in opened.iter_batches(batch_size=64, row_groups=[group], columns=[name]):
        if row < batch.num_rows:
            images = batch.column(0).field("bytes") if layout == "struct" else batch.column(0)
            return images[row].as_py() or b""
        row -= batch.num_rows
    raise UnreadableError(f"{Path(key[0]).name} is damaged; download or copy it again")


@functools.lru_cache(maxsize=1)
def _small_row_group(key: tuple[str, float, int, str | None], group: int) -> Any:
    """The group's images, kept because neighbours are usually asked for next."""
    opened, column, layout = _open_parquet_once(*key)
    name = f"{column}.bytes" if layout == "struct" else column
    images = opened.read_row_group(group, columns=[name]).column(0).combine_chunks()
    return images.field("bytes") if layout == "struct" else images
