"""Tar archives, packed or not: class folders inside one, or the shards that WebDataset writes and reads.

A shard holds the files of one sample beside each other under one name: ``0001.jpg``, ``0001.cls``, ``0001.json``.
The label is in ``.cls``, or in ``.json`` under one of the usual names. Nothing is ever unpickled.
"""

from __future__ import annotations

import copy
import functools
import io
import json
import os
import tarfile
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, Self, cast

from auditor.ground.errors import ImportRefusedError
from auditor.pictures.decoding import MAX_FILE_BYTES
from auditor.pictures.sources.addresses import is_remote, opened, path_of
from auditor.pictures.sources.columns import LABEL_NAMES, choose_column
from auditor.pictures.sources.folder import has_broken_text
from auditor.pictures.sources.layout import SPLITS
from auditor.pictures.sources.rows import (
    IMAGE_SUFFIXES,
    WHOLE,
    Outcomes,
    Payload,
    Problem,
    SourceInfo,
    SourceOptions,
    SourceRow,
    class_name,
    is_whole,
    numbered,
    printable,
)
from auditor.pictures.sources.trees import (
    MAX_MEMBERS,
    MissingError,
    PathError,
    checked_relative,
    common_folder,
    is_noise,
)

TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
LABELS, JSON = (".cls", ".class"), ".json"
MAX_TEXT = 1 << 20
"""Bytes of a label's file."""
_ONE_AT_A_TIME = threading.Lock()


def is_tar(name: str) -> bool:
    """Return whether the name is one of a tar archive."""
    return name.lower().endswith(TAR_SUFFIXES)


class TarTree:
    """Files in a tar archive in its own order; one wrapping folder is stripped."""

    kind = "tar"

    def __init__(self, archive: Path, below: Path | str | None = None) -> None:
        """Read the headers of all files; for a packed archive that means to unpack it once. ``below``: ``opened``.

        Raises:
            ImportRefusedError: no tar, or a damaged one.
        """
        self.root = str(archive)
        self._tar = open_tar(self.root, below)
        with _damage_named(self.root):
            self._members: dict[str, tarfile.TarInfo] = {}
            self._unusable: dict[str, str] = {}
            for number, member in enumerate(self._tar):
                if number >= MAX_MEMBERS:
                    raise ImportRefusedError(f"{archive} lists more than {MAX_MEMBERS:,} files; split it.")
                if not member.isdir() and not is_noise(member.name):
                    self._take(member)
        self.base = common_folder(list(self._members))

    def _take(self, member: tarfile.TarInfo) -> None:
        name = member.name.removeprefix("./")
        try:
            clean = checked_relative(name)
        except PathError:
            self._unusable[name] = "leaves the archive (an absolute path or '..'); pack the folder again"
            return
        if not member.isreg():
            self._unusable[name] = "is a link or no file; pack the file itself"
        elif clean != name or "\\" in name:
            self._unusable[name] = "has a name that is not a plain relative path; pack the folder again"
        else:
            self._members[name] = member

    def locate(self, text: str) -> str:
        """See ``Images``."""
        relative = checked_relative(text)
        for location in (self.base + relative, relative):
            if location in self._unusable:
                raise PathError(self._unusable[location])
            if location in self._members:
                return location
        raise MissingError(f"is not in {Path(self.root).name}; correct the path")

    def walk(self) -> Iterator[tuple[str, str | None]]:
        """See ``Tree``, in the archive's order: a packed one cannot be read backwards."""
        yield from ((name, None) for name in self._members)
        yield from self._unusable.items()

    def unusable(self) -> Iterable[tuple[str, str]]:
        """(name, reason) of the files that are not taken."""
        return self._unusable.items()

    def open(self, location: str) -> IO[bytes]:
        """See ``Tree``."""
        with _damage_named(self.root):
            stream = self._tar.extractfile(self._members[location])
        assert stream is not None  # only regular files were taken
        return stream

    def size_of(self, location: str) -> int:
        """Bytes of the file."""
        return self._members[location].size

    def member(self, location: str) -> tarfile.TarInfo:
        """Its header in the archive."""
        return self._members[location]


@dataclass
class _Sample:
    """The files of one sample in a shard, by what follows the first dot of their name."""

    key: str
    files: dict[str, str] = field(default_factory=dict)

    def image(self) -> str | None:
        """The location of its image."""
        plain = (self.files[end] for end in self.files if end in IMAGE_SUFFIXES)
        return next(plain, None) or next(
            (self.files[end] for end in self.files if end.endswith(IMAGE_SUFFIXES)), None
        )


class WebDatasetSource:
    """The samples of one shard, or of all shards in a folder: row 0 is the first sample of the first shard."""

    def __init__(
        self, shards: Sequence[Path], root: Path, options: SourceOptions, first: TarTree | None = None
    ) -> None:
        """Read the first sample. ``root`` is the shard itself, or the folder of all shards.

        ``first`` is the first shard, if it is open already: a packed or distant one takes long to open.

        Raises:
            ImportRefusedError: damaged, or no image or label in it.
        """
        self.ignored: list[str] = []
        self._shards, self._root = list(shards), root
        self._one = str(shards[0]) == str(root)
        self._open = first
        tree = self._tree(shards[0])
        sample = next(_samples(tree), None)
        if sample is None or sample.image() is None:
            raise ImportRefusedError(
                f"{shards[0]} holds no image; a shard of WebDataset has 0001.jpg and 0001.cls."
            )
        self._label, self._column, columns = self._label_of(tree, sample, options)
        self.info = SourceInfo(
            kind="webdataset",
            root=str(root),
            table_file=root.name,
            columns=columns,
            label_column=self._column,
        )

    @staticmethod
    def _label_of(
        tree: TarTree, sample: _Sample, options: SourceOptions
    ) -> tuple[str, str | None, tuple[str, ...]]:
        """(the ending of the file with the label, its field, all fields)."""
        found = next((end for end in LABELS if end in sample.files), None)
        if found is not None and options.label_column in (None, found.lstrip(".")):
            return found, None, ()
        if JSON not in sample.files:
            held = ", ".join(sample.files)
            raise ImportRefusedError(
                f"{Path(tree.root).name}: the sample {printable(sample.key, 60)} has no .cls or .json with a label "
                f"(it has {printable(held)}); write one."
            )
        value = _parsed(_text(tree, sample.files[JSON]))
        column = choose_column(Path(tree.root).name, list(value), "label", options.label_column, LABEL_NAMES)
        return JSON, column, tuple(value)

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``."""
        row = 0
        for shard in self._shards:
            tree = self._tree(shard)
            split = PurePosixPath(shard.name).name.partition("-")[0].lower()
            for sample in _samples(tree):
                yield self._row(shard, tree, sample, row, split if split in SPLITS else None)
                row += 1
            for name, reason in tree.unusable():
                yield Problem(f"{shard.name}: {printable(name)}", None, reason)

    def _row(
        self, shard: Path, tree: TarTree, sample: _Sample, row: int, split: str | None
    ) -> SourceRow | Problem:
        file, image = shard.name, sample.image()
        if image is None:
            return Problem(file, row, f"{printable(sample.key, 60)} has no image; leave the sample out")
        if has_broken_text(image):
            return Problem(file, row, "has a name that is not valid text; rename the file")
        try:
            label = self._read_label(tree, sample)
        except ValueError as error:
            return Problem(file, row, f"{printable(sample.key, 60)} {error}")
        location = image if self._one else f"{shard.relative_to(self._root).as_posix()}/{image}"
        return SourceRow(row=row, filepath=location, location=location, label=label, split=split)

    def _read_label(self, tree: TarTree, sample: _Sample) -> str | None:
        if self._label not in sample.files:
            return None
        text = _text(tree, sample.files[self._label]).strip()
        if self._column is None:
            name = class_name(int(text) if WHOLE.fullmatch(text) else text, self._label)
        else:
            name = class_name(_parsed(text).get(self._column), self._column)
        if has_broken_text(name or ""):
            raise ValueError("has a label that is not valid text; correct it")
        return name

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """See ``Source``: the bytes, shard after shard."""
        for location in locations:
            shard, inner = self._place(location)
            yield _limited(self._tree(shard), inner)

    def _tree(self, shard: Path) -> TarTree:
        """The open shard; the one before it is let go."""
        if self._open is None or self._open.root != str(shard):
            self._open = TarTree(shard, None if self._one else self._root)
        return self._open

    def _place(self, location: str) -> tuple[Path, str]:
        if self._one:
            return self._root, location
        for shard in self._shards:
            prefix = shard.relative_to(self._root).as_posix() + "/"
            if location.startswith(prefix):
                return shard, location[len(prefix) :]
        raise ImportRefusedError(f"{printable(location)} is in no shard of {self._root}.")

    def write_again(self, out: Path, outcomes: Outcomes, class_names: Sequence[str]) -> None:
        """See ``sources.Rewritable``: the shards under their names, every other file as it was."""
        if not self._one:
            out.mkdir(exist_ok=True)
        decided = iter(outcomes)
        for shard in self._shards:
            target = out if self._one else out / shard.relative_to(self._root).as_posix()
            target.parent.mkdir(parents=True, exist_ok=True)
            tree = self._tree(shard)
            with tarfile.open(target, cast(Any, f"w:{_packing(shard.name)}")) as written:
                for sample in _samples(tree):
                    outcome = next(decided)
                    if outcome is not None:
                        self._write(written, tree, sample, outcome, class_names)
            for _ in tree.unusable():
                next(decided)

    def _write(
        self,
        written: tarfile.TarFile,
        tree: TarTree,
        sample: _Sample,
        label: str,
        class_names: Sequence[str],
    ) -> None:
        for end, location in sample.files.items():
            data = tree.open(location).read()
            if label and end == self._label:
                data = self._relabelled(data.decode("utf-8"), label, class_names).encode()
            header = copy.copy(tree.member(location))
            header.size = len(data)
            written.addfile(header, io.BytesIO(data))
        if label and self._label not in sample.files:  # it came without a label
            text = self._relabelled("{}" if self._column else "", label, class_names).encode()
            header = tarfile.TarInfo(f"{sample.key}{self._label}")
            header.size = len(text)
            written.addfile(header, io.BytesIO(text))

    def _relabelled(self, text: str, label: str, class_names: Sequence[str]) -> str:
        if self._column is None:
            return numbered(label, class_names) if is_whole(text.strip()) or not text else label
        value = _parsed(text)
        before = value.get(self._column)
        is_number = isinstance(before, int) and not isinstance(before, bool)
        value[self._column] = int(numbered(label, class_names)) if is_number else label
        return json.dumps(value, ensure_ascii=False)


def holds_samples(tree: TarTree) -> bool:
    """Return whether an archive is a shard of WebDataset rather than class folders."""
    first = next(_samples(tree), None)
    return first is not None and first.image() is not None and not {*LABELS, JSON}.isdisjoint(first.files)


def read_member(root: str, location: str, below: str | None = None) -> bytes:
    """One file of an archive, here or at an address; ``below`` as ``opened``.

    Raises:
        ImportRefusedError: the archive cannot be read any more, or has no such file.
    """
    version = "" if is_remote(root) else str(os.path.getmtime(root))
    with _ONE_AT_A_TIME:
        tree = _open_once(root, version, os.getpid(), below)
        try:
            return _limited(tree, location)
        except KeyError as error:
            raise ImportRefusedError(
                f"is not in {Path(root).name} any more; put the same archive back"
            ) from error


@functools.lru_cache(maxsize=4)
def _open_once(root: str, version: str, pid: int, below: str | None) -> TarTree:  # noqa: ARG001
    """Kept open, by file version and process."""
    return TarTree(path_of(root), below)


class _Header(tarfile.TarInfo):
    """A header that must be whole: `tarfile` takes one that is damaged, or the end of a file that was cut off, for
    the end of the archive, and the files after it would be missing in silence."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """See ``tarfile``: it ends an archive where this raises its ``EOFHeaderError``, at a block of zeros."""
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if buf and not any(buf):
                raise
            raise tarfile.ReadError("it is cut off or damaged") from error


def open_tar(archive: str, below: Path | str | None) -> tarfile.TarFile:
    """Open a tar archive, here or at an address; ``below`` as ``opened``.

    Raises:
        ImportRefusedError: it is none, or is damaged.
    """
    with _damage_named(archive):
        return tarfile.open(fileobj=opened(archive, below), mode="r:*", tarinfo=_Header)


def _samples(tree: TarTree) -> Iterator[_Sample]:
    """Files beside each other with one name before the first dot, as WebDataset groups them."""
    sample: _Sample | None = None
    for location, reason in tree.walk():
        if reason is not None:
            continue
        folder, _, name = location.rpartition("/")
        stem, dot, end = name.partition(".")
        key = f"{folder}/{stem}" if folder else stem
        if sample is None or sample.key != key:
            if sample is not None:
                yield sample
            sample = _Sample(key)
        sample.files[(dot + end).lower()] = location
    if sample is not None:
        yield sample


def _limited(tree: TarTree, location: str) -> bytes:
    if tree.size_of(location) > MAX_FILE_BYTES:
        return b""
    with _damage_named(tree.root):
        return tree.open(location).read()


def _text(tree: TarTree, location: str) -> str:
    with _damage_named(tree.root):
        data = tree.open(location).read(MAX_TEXT)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"has a label that is not UTF-8 text ({error.reason}); write it again") from error


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"has no JSON that can be read ({error}); write it again") from error
    if not isinstance(value, dict):
        raise ValueError("has no JSON object; write one with the label in it")
    return value


def _packing(name: str) -> str:
    lower = name.lower()
    ends = {".tar.gz": "gz", ".tgz": "gz", ".tar.bz2": "bz2", ".tar.xz": "xz"}
    return next((kind for end, kind in ends.items() if lower.endswith(end)), "")


@contextmanager
def _damage_named(archive: str) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise ImportRefusedError(
            f"{printable(archive)} cannot be read as a tar archive ({printable(str(error), 100)}); pack it again."
        ) from error
