"""Read one image's bytes again by its location: in a folder, an archive, a file of rows, or at an address."""

from __future__ import annotations

import functools
import io
import math
import os
import re
import threading
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from auditor.ground import apart
from auditor.ground.apart import DiedError
from auditor.ground.errors import ImportRefusedError
from auditor.ground.files import open_below
from auditor.pictures.decoding import MAX_FILE_BYTES, TURNS, ImageError, Probe, probe, upright
from auditor.pictures.sources.addresses import is_remote, path_of
from auditor.pictures.sources.array_files import is_array, read_entry
from auditor.pictures.sources.arrow_files import ArrowFile
from auditor.pictures.sources.parquet_files import image_column, layout_of, open_columns, split_location
from auditor.pictures.sources.remote import HEAD_BYTES, RemoteTree
from auditor.pictures.sources.rows import printable
from auditor.pictures.sources.tars import is_tar, read_member
from auditor.pictures.sources.trees import PathError, checked_relative, open_zip

PACKED = re.compile(
    r"(.+?(?:\.parquet|\.pq|\.arrow|\.tar|\.tar\.gz|\.tgz|\.tar\.bz2|\.tar\.xz"
    r"|\.npz(?=/)|\.npy(?=#)|idx[34]-[a-z]+(?:\.gz)?(?=#)))([#/].+)",
    re.IGNORECASE | re.DOTALL,
)
"""A file below the root that holds many images, and the place of one in it."""
Region: TypeAlias = tuple[float, float, float, float]
"""Left, top, width and height in pixels."""
NUMBER = r"-?[0-9]{1,9}(?:\.[0-9]{1,20})?"
Key: TypeAlias = tuple[str, float, int, str | None, str | None]
"""File, when it was changed, process, column and ``below`` of ``opened``."""
REGION = re.compile(rf"(.+)#xywh=({NUMBER}(?:,{NUMBER}){{3}})", re.DOTALL)
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
    whole, region = split_region(location)
    if region is None and not _is_archive(root) and not PACKED.match(whole):
        return _read(root, whole)  # as it is
    try:
        return apart.call(_parsed, root, whole, region)
    except DiedError as error:
        raise UnreadableError(str(error)) from error


def _parsed(root: str, location: str, region: Region | None) -> bytes:
    data = _read(root, location)
    return data if region is None else cropped(data, region)


def read_each(root: str, locations: Sequence[str], *, heads: bool = False) -> Iterator[bytes | str]:
    """``read_bytes`` of each, or why it cannot be read; below an address many at a time.

    ``heads`` is for whoever wants to know an image's size: what comes over a network may be its beginning alone.
    """
    places = [split_region(location) for location in locations]
    if not is_remote(root) or _is_archive(root) or any(PACKED.match(whole) for whole, _ in places):
        for location in locations:
            try:
                yield read_bytes(root, location)
            except UnreadableError as error:
                yield str(error)
        return
    tree = _open_remote_once(root, os.getpid())
    paths = [whole for whole, _ in places]
    is_whole = not heads or any(region for _, region in places)
    found = tree.read(paths) if is_whole else tree.read_heads(paths)
    for data, (_, region) in zip(found, places, strict=True):
        try:
            yield data if region is None or isinstance(data, str) else cropped(data, region)
        except UnreadableError as error:
            yield str(error)


def local_file(root: str, location: str) -> Path | None:
    """The file of this machine that holds the image; None where there is none."""
    if is_remote(root):
        return None
    if not os.path.isdir(root):
        return Path(root)
    whole, _ = split_region(location)
    path = Path(root, whole)
    packed = PACKED.match(whole)
    return Path(root, packed[1]) if packed is not None and not path.is_file() else path


def is_beginning(root: str, data: bytes) -> bool:
    """Return whether ``read_each`` may have given only the beginning of a file."""
    return is_remote(root) and len(data) == HEAD_BYTES


def _read(root: str, location: str) -> bytes:
    try:
        if os.path.exists(root) and not os.path.isdir(root) and not os.path.isfile(root):
            raise UnreadableError("cannot be read because its root is no folder and no regular file")
        if (
            location.startswith("#")
            and root.lower().endswith((".parquet", ".pq"))
            and not os.path.isdir(root)
        ):
            _, row, column = _split(location)
            return _parquet_row(root, row, column)
        if is_tar(root):
            return _whole(read_member(root, location))
        if is_remote(root):
            return _below_address(root, location)
        if os.path.isdir(root):
            return _below_folder(root, location)
        if not os.path.exists(root):
            raise UnreadableError("cannot be read because its root does not exist any more")
        return _zip_member(root, location)
    except ImportRefusedError as error:
        raise UnreadableError(str(error)) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = printable(str(error), 100)
        raise UnreadableError(f"cannot be read ({reason}); put the same file back") from error


def _below_address(root: str, location: str) -> bytes:
    if root.lower().endswith(".zip"):
        return _zip_member(root, location)
    packed = PACKED.match(location)
    if packed is not None:
        return _packed(f"{root}/{_checked(packed[1])}", packed[2])
    found = _open_remote_once(root, os.getpid()).read([_checked(location)])[0]
    if isinstance(found, str):
        raise UnreadableError(found)
    return _whole(found)


@functools.lru_cache(maxsize=4)
def _open_remote_once(root: str, pid: int) -> RemoteTree:  # noqa: ARG001
    """Kept open, by process: a forked worker must not share the parent's connections."""
    return RemoteTree(root)


def _is_archive(root: str) -> bool:
    return is_tar(root) or root.lower().endswith((".zip", ".parquet", ".pq"))


def _whole(data: bytes) -> bytes:
    if len(data) > MAX_FILE_BYTES:
        raise UnreadableError(f"is larger than {MAX_FILE_BYTES >> 20} MB; make the image smaller")
    return data


def _packed(file: str, inner: str, below: str | None = None) -> bytes:
    """An image inside a file below the root: ``#ROW:COLUMN`` of a table, ``/MEMBER`` of an archive."""
    if not is_remote(file) and is_array(os.path.basename(file)):
        place, _, number = f"{os.path.basename(file)}{inner}".rpartition("#")
        return read_entry(os.path.dirname(file), place, _split(f"#{number}")[1])
    if inner.startswith("/"):
        return _whole(read_member(file, inner[1:], below))
    _, row, column = _split(inner)
    return _parquet_row(file, row, column, below)


def split_region(location: str) -> tuple[str, Region | None]:
    """(location of the image, box in it) of ``photo.jpg#xywh=10,20,30,40``, a media fragment of the W3C."""
    found = REGION.fullmatch(location)
    if found is None:
        return location, None
    left, top, width, height = map(float, found[2].split(","))
    return found[1], (left, top, width, height)


def headers(root: str, locations: Iterable[str]) -> dict[str, Probe]:
    """Read the headers of images, but for those that cannot be read: that is named when the images are."""
    listed = list(dict.fromkeys(locations))
    found = {}
    if is_remote(root):
        for location, data in zip(listed, read_each(root, listed, heads=True), strict=True):
            with suppress(ImageError, DiedError):
                if isinstance(data, bytes):
                    found[location] = apart.call(probe, data)
        return found
    for location in listed:
        with suppress(ImageError, UnreadableError, DiedError):
            found[location] = apart.call(_probed, root, location)
    return found


def _probed(root: str, location: str) -> Probe:
    return probe(read_bytes(root, location))


def is_on_stored(image: Probe, drawn_on: tuple[int, int] | None) -> bool | None:
    """Return whether boxes were drawn on the stored pixels; None where their size (width, height) tells nothing."""
    if drawn_on is None or image.stored == (image.height, image.width):
        return None
    return {image.stored[::-1]: True, (image.width, image.height): False}.get(drawn_on)


def placed_region(
    image: Probe | None, region: str, drawn_on: tuple[int, int] | None, *, on_stored: bool
) -> str:
    """A box as it lies in the upright image; it may have been drawn on the pixels as they are stored.

    ``drawn_on`` is (width, height) as the file of the box says it: that tells which. Where it does not,
    ``on_stored`` does.

    Raises:
        UnreadableError: the image has neither size, or the box is of the other one.
    """
    if image is None or not region:
        return region
    seen, stored = (image.width, image.height), image.stored[::-1]
    drawn_on = drawn_on or (stored if on_stored else seen)
    if drawn_on not in (seen, stored):
        raise UnreadableError(
            f"has {image.width} x {image.height} pixels and its boxes are of {drawn_on[0]} x {drawn_on[1]}; "
            "correct width and height, or the boxes"
        )
    _, box = split_region(f"image{region}")
    assert box is not None
    left, top, width, height = box
    across, down = drawn_on
    is_out = left + width > across + 1 or top + height > down + 1
    if image.orientation > 1 and is_out and left + width <= down and top + height <= across:
        raise UnreadableError(
            f"is turned by EXIF: its box leaves {across} x {down} pixels and lies in {down} x {across}; correct "
            "width and height, or the box"
        )
    if image.orientation == 1 or (drawn_on == seen and not (on_stored and drawn_on == stored)):
        return region
    turns, is_mirrored = TURNS[image.orientation]
    for _ in range(turns):
        left, top, width, height = top, across - left - width, height, width
        across, down = down, across
    left = across - left - width if is_mirrored else left
    return f"#xywh={left:g},{top:g},{width:g},{height:g}"


def cropped(data: bytes, region: Region) -> bytes:
    """The part of an image inside a box (left, top, width, height in pixels), as PNG (deep grey: TIFF).

    Raises:
        UnreadableError: the image cannot be decoded, or nothing of the box lies in it.
    """
    try:
        image = upright(data, is_plain=False)
    except ImageError as error:
        raise UnreadableError(str(error)) from error
    left, top, width, height = region
    box = (
        max(0, math.floor(left)),
        max(0, math.floor(top)),
        min(image.width, math.ceil(left + width)),
        min(image.height, math.ceil(top + height)),
    )
    if box[0] >= box[2] or box[1] >= box[3]:
        raise UnreadableError(
            f"has a box outside the image of {image.width} x {image.height} pixels; correct the box"
        )
    stream = io.BytesIO()
    image.crop(box).save(stream, "PNG" if image.mode in ("L", "RGB") else "TIFF", compress_level=1)
    return stream.getvalue()


def _below_folder(root: str, location: str) -> bytes:
    path = os.path.join(root, _checked(location))
    packed = PACKED.match(location)
    try:
        if packed is not None and not os.path.isfile(path):
            return _packed(os.path.join(root, _checked(packed[1])), packed[2], root)
        with open_below(root, _checked(location)) as stream:
            if os.fstat(stream.fileno()).st_size > MAX_FILE_BYTES:
                raise UnreadableError(f"is larger than {MAX_FILE_BYTES >> 20} MB; make the image smaller")
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
        version = 0.0 if is_remote(root) else os.path.getmtime(root)
        archive = _open_zip_once(root, version, os.getpid())
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
    return open_zip(path_of(root))


def _parquet_row(file: str, row: int, wanted: str | None, below: str | None = None) -> bytes:
    try:
        version = 0.0 if is_remote(file) else os.path.getmtime(file)
        key = (file, version, os.getpid(), wanted, below)
    except OSError as error:
        raise UnreadableError(f"{file} cannot be read ({error.strerror}); put the same file back") from error
    with _ONE_AT_A_TIME:
        opened, column, layout = _open_parquet_once(*key)
        if layout == "path":
            raise UnreadableError(f"column {column!r} of {file} holds paths; name the images' folder as root")
        if isinstance(opened, ArrowFile):
            return _arrow_row(opened, file, row, column)
        left = row
        for group in range(opened.num_row_groups):
            size = opened.metadata.row_group(group).num_rows
            if left < size:
                return _from_row_group(key, group, left)
            left -= size
    raise UnreadableError(f"{Path(file).name} has no row {row} any more; put the same file back")


def _arrow_row(opened: ArrowFile, file: str, row: int, column: str) -> bytes:
    try:
        return opened.image(row, column) or b""
    except IndexError as error:
        raise UnreadableError(
            f"{Path(file).name} has no row {row} any more; put the same file back"
        ) from error


@functools.lru_cache(maxsize=4)
def _open_parquet_once(
    file: str,
    modified: float,  # noqa: ARG001
    pid: int,  # noqa: ARG001
    wanted: str | None,
    below: str | None,
) -> tuple[Any, str, str]:
    opened = open_columns(file, below)
    column = image_column(Path(file).name, opened.schema_arrow, wanted)
    return opened, column, layout_of(opened.schema_arrow, column)


def _from_row_group(key: Key, group: int, row: int) -> bytes:
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
def _small_row_group(key: Key, group: int) -> Any:
    """The group's images, kept because neighbours are usually asked for next."""
    opened, column, layout = _open_parquet_once(*key)
    name = f"{column}.bytes" if layout == "struct" else column
    images = opened.read_row_group(group, columns=[name]).column(0).combine_chunks()
    return images.field("bytes") if layout == "struct" else images
