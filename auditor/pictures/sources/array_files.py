"""Arrays of images beside arrays of labels: ``.npz`` as MedMNIST and Keras write it, ``.npy``, idx files of MNIST.

Which arrays belong together is told by their names: ``train_images`` and ``train_labels``, ``x_test`` and
``y_test``, ``t10k-images-idx3-ubyte.gz`` and ``t10k-labels-idx1-ubyte.gz``, ``images`` and ``labels``. An image is
read where it lies in its array, which is never held as a whole. idx: http://yann.lecun.com/exdb/mnist.
"""

from __future__ import annotations

import functools
import gzip
import io
import math
import os
import re
import shutil
import threading
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from auditor.ground.errors import ImportRefusedError
from auditor.pictures.decoding import MAX_FILE_BYTES, plain_pixels
from auditor.pictures.sources.addresses import opened
from auditor.pictures.sources.columns import choose_column
from auditor.pictures.sources.layout import is_split
from auditor.pictures.sources.rows import (
    Outcomes,
    Payload,
    Problem,
    SourceInfo,
    SourceOptions,
    SourceRow,
    numbered,
    printable,
)

IMAGES = ("images", "image", "imgs", "img", "x", "data", "inputs", "pixels")
LABELS = ("labels", "label", "y", "targets", "target", "classes")
NAMES = ("class_names", "label_names", "classes", "categories")
IDX = re.compile(r".*idx[1-4]-[a-z]{3,6}(\.gz)?", re.IGNORECASE)
IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
NOT_NAMES = re.compile(r"idx\d|u?byte|u?int|float|gz|npy")
MOST_LABEL_BYTES = 2**30
CHUNK = 2**24
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, OSError)
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Array:
    """An array in a file, known by its header."""

    place: str
    """The file below the root; in an archive with the name of the array: ``mnist.npz/train_images``."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: int
    """Where its values begin in the unpacked file."""

    @property
    def row_bytes(self) -> int:
        """Of one entry."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize


class Pair(NamedTuple):
    """Images, and their labels where there are some."""

    images: Array
    labels: Array | None
    split: str | None


class ArraySource:
    """The images of all pairs, one pair after the other; rows are counted from 0 in each."""

    def __init__(self, path: Path, options: SourceOptions) -> None:
        """Read the headers in a ``.npz``, a folder of files, or the folder of the one that is named.

        Raises:
            ImportRefusedError: damaged, no images, or it is not clear which arrays belong together.
        """
        self.ignored: list[str] = []
        self._path = path
        self._root = path if path.is_dir() else path.parent
        arrays = _arrays(self._root, path)
        self._pairs = _pairs(path, arrays, options)
        self._names = _class_names(self._root, arrays)
        self.info = SourceInfo(
            kind="arrays",
            root=str(self._root),
            table_file=path.name,
            class_names=self._names,
            columns=tuple(arrays),
            path_column=options.path_column,
            label_column=options.label_column,
        )

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``."""
        for images, labels, split in self._pairs:
            classes = [None] * images.shape[0] if labels is None else self._classes(labels)
            for row, label in enumerate(classes):
                place = f"{images.place}#{row}"
                if isinstance(label, ValueError):
                    yield Problem(place, row, str(label))
                else:
                    yield SourceRow(row=row, filepath=place, location=place, label=label, split=split)

    def _classes(self, labels: Array) -> Iterator[str | ValueError | None]:
        for value in _all(self._root, labels):
            try:
                yield self._class_of(value)
            except ValueError as error:
                yield error

    def _class_of(self, value: Any) -> str | None:
        if isinstance(value, np.ndarray) and value.size > 1:  # a place for each class
            if not np.isin(value, (0, 1)).all():
                raise ValueError(
                    f"has the labels {printable(str(value.tolist()), 60)}; give one number an image, or a one and "
                    "zeros"
                )
            chosen = np.flatnonzero(value)
            if len(chosen) > 1:
                raise ValueError(
                    f"has several labels ({', '.join(map(str, chosen))}); one class per image can be audited"
                )
            if not len(chosen):
                return None
            value = chosen[0]
        value = value.item() if isinstance(value, np.ndarray) else value
        if isinstance(value, bytes | str | np.bytes_ | np.str_):
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
            return text.strip() or None
        if value != value:
            return None
        if int(value) != value:
            raise ValueError(f"has the label {value:g}; give a class or a whole number")
        if self._names is None:
            return str(int(value))
        if value == -1:
            return None
        if not 0 <= value < len(self._names):
            raise ValueError(f"has the label {int(value)}, outside 0..{len(self._names) - 1}; correct it")
        return self._names[int(value)]

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """See ``Source``: pixels as PNG, or TIFF where they are deep."""
        for location in locations:
            place, _, row = location.rpartition("#")
            yield read_entry(str(self._root), place, int(row))

    def write_again(self, out: Path, outcomes: Outcomes, class_names: Sequence[str]) -> None:
        """See ``sources.Rewritable``: the same files or archive, with the labels of the classes.

        Raises:
            ImportRefusedError: one file of several was imported.
        """
        if not (self._path.is_dir() or self._path.suffix.lower() == ".npz"):
            raise ImportRefusedError(f"{self._path} is one file of several; import its folder.")
        kept: dict[str, list[int]] = {}
        new: dict[str, NDArray[Any]] = {}
        left = iter(outcomes)
        for images, labels, _ in self._pairs:
            said = [next(left) for _ in range(images.shape[0])]
            rows = [row for row, label in enumerate(said) if label is not None]
            kept[images.place] = rows
            if labels is not None:
                kept[labels.place] = rows
                new[labels.place] = _relabelled(_all(self._root, labels), said, class_names)
        if self._path.is_dir():
            out.mkdir(exist_ok=True)
            for file in sorted(self._path.iterdir()):
                if file.is_file():
                    array = _header(self._root, file.name) if file.name in kept else None
                    with opened(file, self._root) as original, (out / file.name).open("wb") as copy:
                        _write(original, copy, array, kept, new, is_packed=file.suffix.lower() == ".gz")
            return
        with zipfile.ZipFile(self._path) as before, zipfile.ZipFile(out, "w") as after:
            for info in before.infolist():
                place = f"{self._path.name}/{info.filename.removesuffix('.npy')}"
                array = _header(self._root, place) if place in kept else None
                target = zipfile.ZipInfo(info.filename, info.date_time)
                target.compress_type = info.compress_type
                with before.open(info) as original, after.open(target, "w", force_zip64=True) as copy:
                    _write(original, copy, array, kept, new)


def is_array(name: str) -> bool:
    """Return whether a file of that name holds arrays."""
    return name.lower().endswith((".npz", ".npy")) or IDX.fullmatch(name) is not None


def are_arrays(names: Iterable[str]) -> bool:
    """Return whether files of these names, in one folder, hold arrays of images and of their labels."""
    names = [name.rpartition("/")[2] for name in names]
    of_numpy = {word for name in names if name.lower().endswith(".npy") for word in _words(name)}
    is_pair = bool(of_numpy & set(IMAGES)) and bool(of_numpy & set(LABELS))
    return is_pair or any(IDX.fullmatch(name) for name in names)


def read_entry(root: str, place: str, row: int) -> bytes:
    """An image of an array as PNG, or as TIFF where it is deep.

    Raises:
        ImportRefusedError: there is no such row, or it is no image; the file is damaged.
    """
    with _ONE_AT_A_TIME:
        try:
            array = _header(Path(root), place)
            stream = _kept_open(root, place, os.path.getmtime(_file_of(root, place)), os.getpid())
            if row >= array.shape[0]:
                raise ImportRefusedError(f"{place} has no row {row} any more; put the same file back.")
            stream.seek(array.start + row * array.row_bytes)
            data = stream.read(array.row_bytes)
        except DAMAGE as error:
            raise _damaged(place, error) from error
    if len(data) < array.row_bytes:
        raise _damaged(place, EOFError("cut off"))
    values = np.frombuffer(data, array.dtype).reshape(array.shape[1:])
    try:
        deep = values.ndim == 2 and values.dtype.kind in "iuf" and values.dtype.itemsize > 1
        image = Image.fromarray(_deep(values) if deep else plain_pixels(values))
    except ValueError as error:
        raise ImportRefusedError(str(error)) from error
    written = io.BytesIO()
    image.save(written, "TIFF" if deep else "PNG", **({} if deep else {"compress_level": 1}))
    return written.getvalue()


def _deep(values: NDArray[Any]) -> NDArray[Any]:
    """Grey in one of the kinds that pictures have: the scale is that of the set."""
    if values.dtype == np.uint16:
        return values.astype("<u2")
    return values.astype(np.float32 if values.dtype.kind == "f" else np.int32)


def _file_of(root: str | Path, place: str) -> str:
    return os.path.join(root, place.partition("/")[0])


@functools.lru_cache(maxsize=4)
def _kept_open(root: str, place: str, version: float, pid: int) -> IO[bytes]:  # noqa: ARG001
    """Kept open, by file version and process: in a packed array one goes on from where the last one was."""
    return _unpacked(root, place)


def _unpacked(root: str | Path, place: str) -> IO[bytes]:
    stream = opened(_file_of(root, place), root)
    name, _, member = place.partition("/")
    if member:
        return zipfile.ZipFile(stream).open(f"{member}.npy")
    return cast(IO[bytes], gzip.GzipFile(fileobj=stream)) if name.lower().endswith(".gz") else stream


@functools.lru_cache(maxsize=64)
def _header_of(root: str, place: str, version: float) -> Array:  # noqa: ARG001
    with _unpacked(root, place) as stream:
        first = stream.read(6)
        if first == np.lib.format.MAGIC_PREFIX:
            version_of = tuple(stream.read(2))
            read = (
                np.lib.format.read_array_header_1_0
                if version_of == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, in_columns, dtype = read(stream)
            if dtype.hasobject:
                raise ImportRefusedError(f"{place} holds Python objects; save it as numbers or text.")
            if in_columns and len(shape) > 1:
                raise ImportRefusedError(
                    f"{place} is saved column by column; save np.ascontiguousarray of it."
                )
            return Array(place, shape, dtype, stream.tell())
        if first[:2] != b"\0\0" or first[2] not in IDX_TYPES:
            raise ImportRefusedError(f"{place} is no array of NumPy and no idx file; write it again.")
        sizes = first[4:] + stream.read(4 * first[3] - 2)
        shape = tuple(int.from_bytes(sizes[at : at + 4], "big") for at in range(0, len(sizes), 4))
        return Array(place, shape, np.dtype(IDX_TYPES[first[2]]), 4 + 4 * first[3])


def _header(root: Path, place: str) -> Array:
    try:
        array = _header_of(str(root), place, os.path.getmtime(_file_of(root, place)))
    except DAMAGE as error:
        raise _damaged(place, error) from error
    if array.row_bytes > MAX_FILE_BYTES:
        raise ImportRefusedError(
            f"{place} has entries larger than {MAX_FILE_BYTES >> 20} MB; make them smaller."
        )
    return array


def _damaged(place: str, error: Exception) -> ImportRefusedError:
    if isinstance(error, ImportRefusedError):
        return error
    return ImportRefusedError(f"{printable(place)} is damaged ({printable(str(error), 80)}); copy it again.")


def _arrays(root: Path, path: Path) -> dict[str, Array]:
    """Every array with at least one dimension, by its name."""
    if path.suffix.lower() == ".npz":
        try:
            with zipfile.ZipFile(path) as archive:
                members = [name for name in archive.namelist() if name.endswith(".npy")]
        except DAMAGE as error:
            raise _damaged(path.name, error) from error
        places = [f"{path.name}/{name.removesuffix('.npy')}" for name in members]
    else:
        names = sorted(entry.name for entry in root.iterdir() if entry.is_file())
        places = [name for name in names if IDX.fullmatch(name) or name.lower().endswith(".npy")]
    found: dict[str, Array] = {}
    for place in places:
        try:
            found[place.rpartition("/")[2]] = _header(root, place)
        except ImportRefusedError:
            if set(_words(place.rpartition("/")[2])) & {*IMAGES, *LABELS}:
                raise  # others may be anything
    return {name: array for name, array in found.items() if array.shape}


def _called(array: Array) -> str:
    return array.place.rpartition("/")[2]


def _words(name: str) -> list[str]:
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[XY]$)|(?<=^[xyXY])(?=[A-Z])", "_", name).lower())
    return [word for word in words if not NOT_NAMES.fullmatch(word)]


def _pairs(path: Path, arrays: dict[str, Array], options: SourceOptions) -> list[Pair]:
    """Images with their labels, by the words of their names that say neither."""
    if options.path_column is not None or options.label_column is not None:
        images = choose_column(path.name, tuple(arrays), "path", options.path_column, IMAGES)
        labels = choose_column(path.name, tuple(arrays), "label", options.label_column, LABELS)
        return [_checked(Pair(arrays[images], arrays[labels], None))]
    both: tuple[dict[str, Array], dict[str, Array]] = ({}, {})
    for name, array in arrays.items():
        words = _words(name)
        for kind, role in zip((IMAGES, LABELS), both, strict=True):
            own = next((word for word in kind if word in words), None)
            if own is not None and not (
                kind is LABELS and array.dtype.kind in "US" and _called(array) in NAMES
            ):
                rest = " ".join(word for word in words if word != own)
                role.setdefault(rest, array)
                break
    images_of, labels_of = both
    pairs = [Pair(array, labels_of.get(rest), _split(rest)) for rest, array in images_of.items()]
    if path.is_file() and path.suffix.lower() != ".npz":
        pairs = [
            pair for pair in pairs if path.name in (pair.images.place, getattr(pair.labels, "place", None))
        ]
    alone = (
        [array for array in arrays.values() if len(array.shape) > 2],
        [array for array in arrays.values() if len(array.shape) < 3],
    )
    if not pairs and [len(kind) for kind in alone] == [1, 1]:  # arr_0 and arr_1
        pairs = [Pair(alone[0][0], alone[1][0], None)]
    if not any(pair.labels for pair in pairs):
        listed = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "none"
        raise ImportRefusedError(
            f"{path} has no arrays that are clearly images and labels, such as train_images and train_labels; "
            f"name them. Its arrays are: {printable(listed)}.",
            field="label_column",
        )
    return [_checked(pair) for pair in pairs]


def _split(rest: str) -> str | None:
    words = ["test" if word == "t10k" else word for word in rest.split()]
    return next(filter(is_split, words), None)


def _checked(pair: Pair) -> Pair:
    images, labels, _ = pair
    if labels is not None and labels.shape[0] != images.shape[0]:
        raise ImportRefusedError(
            f"{images.place} has {images.shape[0]:,} images and {labels.place} {labels.shape[0]:,} labels; "
            "give one each."
        )
    if len(images.shape) not in (3, 4) or (
        len(images.shape) == 4 and not {1, 3, 4} & {images.shape[1], images.shape[3]}
    ):
        raise ImportRefusedError(
            f"{images.place} has the shape {images.shape}; images are (N, H, W), (N, H, W, C) or (N, C, H, W)."
        )
    return pair


def _all(root: Path, array: Array) -> NDArray[Any]:
    """All of a small array."""
    size = array.row_bytes * array.shape[0]
    if size > MOST_LABEL_BYTES:
        raise ImportRefusedError(f"{array.place} has {size >> 20:,} MB of labels; give one number an image.")
    try:
        with _unpacked(root, array.place) as stream:
            stream.seek(array.start)
            return np.frombuffer(stream.read(size), array.dtype).reshape(array.shape)
    except DAMAGE as error:
        raise _damaged(array.place, error) from error


def _class_names(root: Path, arrays: dict[str, Array]) -> tuple[str, ...] | None:
    array = next((arrays[name] for name in NAMES if name in arrays), None)
    if array is None or array.dtype.kind not in "US" or len(array.shape) != 1:
        return None
    return tuple(one.decode() if isinstance(one, bytes) else str(one) for one in _all(root, array).tolist())


def _relabelled(labels: NDArray[Any], said: Outcomes, class_names: Sequence[str]) -> NDArray[Any]:
    """Those of the rows that stay."""
    wide = max(
        [labels.dtype, *(np.array([label]).dtype for label in said if label)], key=lambda one: one.itemsize
    )
    new = labels.astype(wide if labels.dtype.kind == "U" else labels.dtype)
    for row, label in enumerate(said):
        if label:
            value: Any = label if new.dtype.kind in "US" else int(numbered(label, class_names))
            if new.ndim == 2 and new.shape[1] > 1:
                new[row] = np.arange(new.shape[1]) == value
            else:
                new[row] = value
    return new[[label is not None for label in said]]


def _write(
    original: IO[bytes],
    copy: IO[bytes],
    array: Array | None,
    kept: dict[str, list[int]],
    new: dict[str, NDArray[Any]],
    *,
    is_packed: bool = False,
) -> None:
    """An array once more: rows that stay, new labels; anything else as it is."""
    if array is None:
        shutil.copyfileobj(original, copy)
        return
    source = gzip.GzipFile(fileobj=original) if is_packed else original
    target = gzip.GzipFile(fileobj=copy, mode="wb", mtime=0) if is_packed else copy
    values, rows = new.get(array.place), kept[array.place]
    shape = (len(rows), *array.shape[1:])
    head = source.read(array.start)
    if head[:6] == np.lib.format.MAGIC_PREFIX:
        header = {"descr": np.lib.format.dtype_to_descr(array.dtype if values is None else values.dtype)}
        np.lib.format.write_array_header_1_0(target, header | {"fortran_order": False, "shape": shape})
    else:
        target.write(head[:4] + len(rows).to_bytes(4, "big") + head[8:])
    if values is not None:
        target.write(values.tobytes())
    else:
        row, size = 0, array.row_bytes
        for wanted in rows:
            while row < wanted:
                source.read(size)
                row += 1
            target.write(source.read(size))
            row += 1
    if is_packed:
        target.close()
