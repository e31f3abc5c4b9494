"""Folders of TensorFlow Datasets (TFDS): records of one image and one label, without TensorFlow.

A folder ``mnist/3.0.1`` holds ``features.json``, ``label.labels.txt`` and files such as
``mnist-train.tfrecord-00000-of-00001``. A file is a chain of length, checksum, record, checksum:
https://www.tensorflow.org/tutorials/load_data/tfrecord.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from auditor.ground.errors import ImportRefusedError
from auditor.ground.files import text_of
from auditor.pictures.decoding import MAX_FILE_BYTES
from auditor.pictures.sources.addresses import opened
from auditor.pictures.sources.columns import IMAGE_NAMES, LABEL_NAMES, choose_column
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

FEATURES, INFO = "features.json", "dataset_info.json"
SHARD = re.compile(r"(.+)-([^-]+)\.tfrecord-(\d+)-of-(\d+)")
LENGTH, CHECKSUM = 8, 4


class TfdsSource:
    """The records of all splits, file after file; rows are counted from 0 in each file."""

    def __init__(self, folder: Path, options: SourceOptions) -> None:
        """Read the description.

        Raises:
            ImportRefusedError: no records, no image or label among the features, or ``tfrecord`` is missing.
        """
        self.ignored: list[str] = []
        self._folder = folder
        self._files = sorted(file for file in folder.iterdir() if SHARD.fullmatch(file.name))
        if not self._files:
            raise ImportRefusedError(
                f"{folder} has a {FEATURES} but no file such as NAME-train.tfrecord-00000-of-00001; only TFRecord "
                "files are read."
            )
        for file in self._files:
            if not file.is_file():
                raise ImportRefusedError(f"{file} is no regular file; prepare the dataset again.")
        _examples()
        names = tuple(_features(folder))
        label = choose_column(FEATURES, names, "label", options.label_column, LABEL_NAMES)
        self._image = choose_column(FEATURES, names, "path", options.path_column, IMAGE_NAMES)
        self._label = label
        self._names = _class_names(folder, label)
        self.info = SourceInfo(
            kind="tfds",
            root=str(folder),
            table_file=folder.name,
            class_names=self._names,
            columns=names,
            path_column=self._image,
            label_column=label,
        )

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``."""
        for file in self._files:
            found = SHARD.fullmatch(file.name)
            split = found[2] if found else None
            for row, record in enumerate(_records(file)):
                try:
                    label = self._class_of(_example(record))
                except ValueError as error:
                    yield Problem(file.name, row, str(error))
                    continue
                place = f"{file.name}#{row}"
                yield SourceRow(row=row, filepath=place, location=place, label=label, split=split)

    def _class_of(self, example: Any) -> str | None:
        values = example.features.feature[self._label]
        if values.bytes_list.value:
            return values.bytes_list.value[0].decode("utf-8", "replace").strip() or None
        if len(values.int64_list.value) > 1:
            raise ValueError("has several labels; one class per image can be audited")
        if not values.int64_list.value or values.int64_list.value[0] == -1:
            return None
        number = int(values.int64_list.value[0])
        if self._names is None:
            return str(number)
        if not 0 <= number < len(self._names):
            raise ValueError(f"{self._label} is {number}, outside 0..{len(self._names) - 1}; correct it")
        return self._names[number]

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """See ``Source``: the bytes, in row order."""
        for location in locations:
            name, _, row = location.rpartition("#")
            yield read_record(str(self._folder / name), int(row), str(self._folder), self._image)

    def write_again(self, out: Path, outcomes: Outcomes, class_names: Sequence[str]) -> None:
        """See ``sources.Rewritable``: the same files, with the numbers of their records in the description."""
        from tfrecord.writer import TFRecordWriter

        out.mkdir(exist_ok=True)
        decided, counts = iter(outcomes), Counter[str]()
        for file in self._folder.iterdir():
            if file.is_file() and file not in self._files:
                with opened(file, self._folder) as original, (out / file.name).open("wb") as copy:
                    shutil.copyfileobj(original, copy)
        for file in self._files:
            with (out / file.name).open("wb") as written:
                for record in _records(file):
                    label = next(decided)
                    if label is None:
                        continue
                    counts[file.name] += 1
                    data = self._relabelled(record, label, class_names) if label else record
                    length = struct.pack("<Q", len(data))
                    for part in (length, data):
                        written.write(part + TFRecordWriter.masked_crc(part))
        _count_again(out, self._files, counts)

    def _relabelled(self, record: bytes, label: str, class_names: Sequence[str]) -> bytes:
        example = _example(record)
        feature = example.features.feature[self._label]
        if feature.bytes_list.value:
            feature.bytes_list.value[0] = label.encode()
        else:
            feature.int64_list.value[:] = [int(numbered(label, class_names))]
        return bytes(example.SerializeToString())


def is_tfds(folder: Path) -> bool:
    """Whether TensorFlow Datasets wrote the folder."""
    return (folder / FEATURES).is_file() and (folder / INFO).is_file()


def read_record(file: str, row: int, below: str | None, image: str | None = None) -> bytes:
    """The encoded image of one record; ``below`` as ``opened``.

    Raises:
        ImportRefusedError: there is no such record, or the file is damaged.
    """
    starts = _starts(file, os.path.getmtime(file), below)
    if row >= len(starts):
        raise ImportRefusedError(f"{Path(file).name} has no row {row} any more; put the same file back.")
    start, length = starts[row]
    with opened(file, below) as stream:
        stream.seek(start)
        example = _example(stream.read(length))
    names = list(example.features.feature)
    column = image or choose_column(Path(file).name, names, "path", None, IMAGE_NAMES)
    values = example.features.feature[column].bytes_list.value
    return bytes(values[0]) if values else b""


@functools.lru_cache(maxsize=32)
def _starts(file: str, version: float, below: str | None) -> list[tuple[int, int]]:  # noqa: ARG001
    """(place, length) of every record, found from length to length."""
    found = list[tuple[int, int]]()
    place = 0
    with opened(file, below) as stream:
        size = os.fstat(stream.fileno()).st_size
        while place < size:
            stream.seek(place)
            head = stream.read(LENGTH)
            length = struct.unpack("<Q", head)[0] if len(head) == LENGTH else size
            start = place + LENGTH + CHECKSUM
            place = start + length + CHECKSUM
            if place > size or length > 2 * MAX_FILE_BYTES:
                raise ImportRefusedError(
                    f"{file} is cut off or damaged in row {len(found)}; prepare the dataset again."
                )
            found.append((start, length))
    return found


def _records(file: Path) -> Iterator[bytes]:
    folder = str(file.parent)
    with opened(file, folder) as stream:
        for start, length in _starts(str(file), file.stat().st_mtime, folder):
            stream.seek(start)
            yield stream.read(length)


def _examples() -> Any:
    try:
        from tfrecord import example_pb2
    except ImportError as error:
        raise ImportRefusedError(
            "folders of TensorFlow Datasets need the package tfrecord: pip install 'label-auditor[tfds]'."
        ) from error
    return example_pb2


def _example(record: bytes) -> Any:
    from google.protobuf.message import DecodeError

    example = _examples().Example()
    try:
        example.ParseFromString(record)
    except DecodeError as error:
        raise ValueError("is no record of tf.train.Example; prepare the dataset again") from error
    return example


def _features(folder: Path) -> dict[str, Any]:
    found = _json(folder / FEATURES)
    features = found.get("featuresDict", {}).get("features") if isinstance(found, dict) else None
    if not isinstance(features, dict):
        raise ImportRefusedError(f"{folder / FEATURES} names no features; prepare the dataset again.")
    return features


def _class_names(folder: Path, label: str) -> tuple[str, ...] | None:
    """One name a line in ``label.labels.txt``; None where the classes have numbers alone."""
    file = folder / f"{label}.labels.txt"
    if not file.is_file():
        return None
    try:
        names = [name.strip() for name in text_of(file, most_bytes=MAX_FILE_BYTES).splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ImportRefusedError(
            f"{printable(str(file))} cannot be read ({error}); prepare it again."
        ) from error
    while names and not names[-1]:
        names.pop()
    if len(set(names)) < len(names) or "" in names:
        raise ImportRefusedError(f"{file} has a name twice or an empty line; write one class name a line.")
    return tuple(names) or None


def _count_again(out: Path, files: Sequence[Path], counts: Counter[str]) -> None:
    """Correct the lengths of the shards, which TensorFlow Datasets believes."""
    if not (out / INFO).is_file():
        return
    info = _json(out / INFO)
    by_split: dict[str, list[str]] = {}
    for file in files:
        found = SHARD.fullmatch(file.name)
        by_split.setdefault(found[2] if found else "", []).append(file.name)
    for split in info.get("splits") or []:
        shards = by_split.get(split.get("name"))
        if shards is not None:
            split["shardLengths"] = [str(counts[name]) for name in shards]
            split["numBytes"] = str(sum((out / name).stat().st_size for name in shards))
    (out / INFO).write_text(json.dumps(info, indent=2), encoding="utf-8")


def _json(file: Path) -> Any:
    try:
        return json.loads(text_of(file, most_bytes=MAX_FILE_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise ImportRefusedError(
            f"{printable(str(file))} cannot be read ({error}); prepare it again."
        ) from error
