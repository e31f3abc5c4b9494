"""Files below one root, in a folder or in a zip: find, list and read them, and never leave the root."""

from __future__ import annotations

import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from auditor.ground.errors import ImportRefusedError
from auditor.ground.files import open_below
from auditor.pictures.sources.addresses import is_remote, open_remote
from auditor.pictures.sources.layout import is_split
from auditor.pictures.sources.rows import printable

BOMB_RATIO = 100
"""A zip that grows by more than this factor ..."""
BOMB_BYTES = 1 << 30
"""... to more than this is refused. Photographs hardly grow at all; even flat drawings stay below 50."""
MAX_MEMBERS = 5_000_000
MAX_DEPTH = 200
"""Python gives up at a thousand."""
UTF8_NAME, BACKSLASH = 0x800, chr(92)
"""What a zip says of a name that is UTF-8; any other is read as the first IBM PC had it."""
LATIN = re.compile(
    "(?:[\\x00-\\x7f]|(?<![^\\x00-\\x7f])[éâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜáíóúñÑß](?![^\\x00-\\x7f]|[@A-Z[-`{-~]))*"
)
"""Western letters one by one; two in a row, or one before a capital, are as likely halves of an Asian sign."""
NOISE = frozenset(
    [
        *("__macosx", ".ds_store", "thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r", "_ds_store"),
        *("$recycle.bin", "recycler", "system volume information", "found.000", "lost+found"),
        *("@eadir", "#recycle", "@recycle", "#snapshot", "@recently-snapshot", "@tmp", "@sharebin"),
        *("network trash folder", "temporary items", "__pycache__"),
    ]
)
"""What systems, network drives and tools put beside people's files, in lower case; hidden names are noise, too."""


ROOT = "set the root to"
HUB = {"blobs", "snapshots", "refs", ".no_exist"}
"""All that the library of Hugging Face's hub puts into a repository of its cache."""


class PathError(ValueError):
    """A path that cannot be used; the text says why and what to do."""


class MissingError(PathError):
    """A path that leads to nothing below the root: where it is so for all, the root is wrong."""


class OutsideError(PathError):
    """A path that starts somewhere else than at the root."""


class Images(Protocol):
    """A place where images are found by what a table says about them."""

    root: str

    def locate(self, text: str) -> str:
        """The location of the image that ``text`` names.

        Raises:
            PathError: it leaves the root or does not exist.
        """


class Tree(Images, Protocol):
    """A root with files below it, named by relative POSIX paths."""

    kind: str
    """What ``SourceInfo`` calls class folders in it."""
    base: str
    """The one folder that wraps everything, with its slash; empty where there is none."""

    def walk(self) -> Iterator[tuple[str, str | None]]:
        """(location, why it cannot be used or None) of every file, sorted by folder, then name."""

    def open(self, location: str) -> IO[bytes]:
        """The file's bytes as a stream."""


class FolderTree:
    """Files in a folder. Links are followed where they lead to a place below the root, and never out of it."""

    kind = "folder"

    def __init__(self, root: Path, base: str = "") -> None:
        """``root`` must be a folder; ``base``: the folder below it that is meant, with its slash."""
        self.root, self.base = str(root), base
        self._real_root = os.path.realpath(root)
        self._real_base = os.path.realpath(root / base)
        self._safe_folders: dict[str, bool] = {}

    def locate(self, text: str) -> str:
        """See ``Images``. An absolute path is accepted where it lies below the root."""
        spelled = [self._relative(candidate) for candidate in _spellings(text)]
        for location in dict.fromkeys(base + one for one in spelled for base in (self.base, "")):
            full = os.path.join(self.root, location)
            try:
                mode = os.lstat(full).st_mode
            except (OSError, ValueError):
                continue
            if not self.is_inside(location, is_link=stat.S_ISLNK(mode)):
                raise PathError(self.outside(location))
            if not os.path.isfile(full):
                raise PathError("is a folder or a special file, not an image; correct the path")
            return location
        raise MissingError(f"does not exist in {self.root}; correct the path or set another root")

    def walk(self) -> Iterator[tuple[str, str | None]]:
        """See ``Tree``; a folder that links lead to is read once, and never in a circle."""
        yield from self._walk(self.base.rstrip("/"), 0, set())

    def _walk(self, folder: str, depth: int, followed: set[str]) -> Iterator[tuple[str, str | None]]:
        try:
            with os.scandir(os.path.join(self.root, folder)) as entries:
                ordered = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            yield folder or ".", f"cannot be listed ({error.strerror}); make the folder readable or remove it"
            return
        for entry in ordered:
            location = f"{folder}/{entry.name}" if folder else entry.name
            if is_noise(entry.name):
                continue
            if entry.is_symlink() and not self.is_inside(location, is_link=True):
                yield location, self.outside(location)
            elif entry.is_symlink() and not os.path.exists(entry.path):  # or to itself
                yield location, "is a link to nothing; put the file there or remove the link"
            elif entry.is_dir(follow_symlinks=False) or (
                entry.is_dir() and self._leads_on(entry.path, followed)
            ):
                if depth < MAX_DEPTH:
                    yield from self._walk(location, depth + 1, followed)
                else:
                    yield location, f"lies more than {MAX_DEPTH} folders deep; move it further up"
            elif entry.is_dir():
                yield location, "is a link to a folder that is read already; remove the link"
            elif entry.is_file():
                yield location, None

    def _leads_on(self, link: str, followed: set[str]) -> bool:
        """Return whether a link leads to a folder that is read through no other name, and not round in a circle."""
        real, base = os.path.realpath(link), self._real_base
        here = os.path.realpath(os.path.dirname(link))
        turns = any(f"{place}/".startswith(real.rstrip("/") + "/") for place in (here, base))
        inside = real.startswith(base.rstrip("/") + "/") and not is_noise(os.path.relpath(real, base))
        if turns or inside or real in followed:
            return False
        followed.add(real)
        return True

    def outside(self, location: str) -> str:
        """Return why a link that leads out of the root is not followed, and what to do."""
        target = os.path.realpath(os.path.join(self.root, location))
        both = os.path.commonpath([self._real_root, target])
        remedy = f"{ROOT} {both}, which holds both, or " if both.count("/") > 1 else ""
        return f"is a link to {printable(target)}, outside {self.root}; {remedy}copy it there"

    def listed(self, folder: str) -> tuple[list[str], list[str]]:
        """(names of files, names of folders) in a folder; hidden ones are left out."""
        files, folders = list[str](), list[str]()
        with os.scandir(os.path.join(self.root, folder)) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if not is_noise(entry.name):
                    (folders if entry.is_dir() else files).append(entry.name)
        return files, folders

    def holds(self, location: str) -> bool:
        """Return whether there is such a file."""
        return os.path.isfile(os.path.join(self.root, location))

    def open(self, location: str) -> IO[bytes]:
        """See ``Tree``."""
        return open_below(self.root, location)

    def is_inside(self, location: str, *, is_link: bool) -> bool:
        """Return whether the file, with all links followed, lies below the root."""
        if is_link:
            return self._contains(os.path.realpath(os.path.join(self.root, location)))
        folder = location.rpartition("/")[0]
        if folder not in self._safe_folders:
            self._safe_folders[folder] = self._contains(os.path.realpath(os.path.join(self.root, folder)))
        return self._safe_folders[folder]

    def _contains(self, real: str) -> bool:
        return real == self._real_root or real.startswith(self._real_root.rstrip("/") + "/")

    def _relative(self, text: str) -> str:
        if not os.path.isabs(text):
            return checked_relative(text)
        for root in (self.root, self._real_root):
            if text.startswith(root.rstrip("/") + "/"):
                return checked_relative(text[len(root.rstrip("/")) + 1 :])
        raise MissingError(f"is outside {self.root}; set the root to a folder that holds all images")


class ZipTree:
    """Files in a zip, read in place. One wrapping folder is stripped."""

    kind = "zip"

    def __init__(self, archive: Path) -> None:
        """Read the table of contents.

        Raises:
            ImportRefusedError: no zip, or one that would grow beyond all bounds.
        """
        self.root = str(archive)
        self._zip = open_zip(archive)
        # `is_dir` of a member without a name fails.
        infos = [info for info in self._zip.infolist() if info.filename and not info.is_dir()]
        _refuse_bomb(archive, infos)
        self._unusable = {info.filename: reason for info in infos if (reason := _unusable(info))}
        self._names = [
            info.filename for info in infos if info.filename in self._unusable or not is_noise(info.filename)
        ]
        self._known = frozenset(self._names)
        self.base = common_folder([name for name in self._names if name not in self._unusable])
        self._untold = [info.filename for info in infos if not (_is_told(info) or is_noise(info.filename))]
        foreign = next((name for name in self._untold if not LATIN.fullmatch(name)), None)
        if foreign is not None:
            raise ImportRefusedError(
                f"{archive} does not say in which letters its names are ({printable(foreign, 60)!r}, or some other "
                "language's); zip the folder again with names in UTF-8, or unpack it and import the folder."
            )

    def remarks(self) -> list[str]:
        """Return which names are read as the first IBM PC had them, for the archive does not say how they are."""
        if not self._untold:
            return []
        shown = printable(", ".join(self._untold[:3]), 100)
        return [
            f"{len(self._untold):,} names in the zip do not say their letters; read as Western ones: {shown}."
        ]

    def locate(self, text: str) -> str:
        """See ``Images``."""
        for candidate in _spellings(text):
            relative = checked_relative(candidate)
            for location in (self.base + relative, relative):
                if location in self._unusable:
                    raise PathError(self._unusable[location])
                if location in self._known:
                    return location
        raise MissingError(f"is not in {Path(self.root).name}; correct the path")

    def walk(self) -> Iterator[tuple[str, str | None]]:
        """See ``Tree``. A name that occurs twice is yielded twice."""
        for name in sorted(self._names, key=lambda name: name.split("/")):
            yield name, self._unusable.get(name)

    def open(self, location: str) -> IO[bytes]:
        """See ``Tree``.

        Raises:
            ImportRefusedError: it is damaged; also while it is read.
        """
        with _damage_named(location):
            return io.BufferedReader(_Member(location, self._zip.open(location)))

    def listed(self, folder: str) -> tuple[list[str], list[str]]:
        """See ``FolderTree.listed``."""
        files, folders = dict[str, None](), dict[str, None]()
        for name in self._names:
            if name.startswith(folder):
                first, slash, _ = name[len(folder) :].partition("/")
                (folders if slash else files)[first] = None
        return sorted(files), sorted(folders)

    def holds(self, location: str) -> bool:
        """Return whether there is such a file."""
        return location in self._known

    def size_of(self, location: str) -> int:
        """Bytes of the unpacked file, as the zip declares them; more are never read."""
        return self._zip.getinfo(location).file_size


class _Member(io.RawIOBase):
    """A file in a zip that says its name where it is damaged: a wrong checksum shows only at its end."""

    def __init__(self, name: str, packed: IO[bytes]) -> None:
        self._name, self._packed = name, packed

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        with _damage_named(self._name):
            return self._packed.seek(offset, whence)

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        with _damage_named(self._name):
            data = self._packed.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._packed.close()
        super().close()


@contextmanager
def _damage_named(name: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise ImportRefusedError(f"{printable(name)} cannot be unpacked ({error}); zip it again.") from error


def folder_tree(folder: Path, root: str | None = None) -> FolderTree:
    """The tree of a folder, whose links are followed below ``root`` where that holds the folder.

    Else they are followed below the folder itself; below the repository where it lies in the cache of Hugging
    Face's hub, whose snapshots are links to its blobs.
    """
    if root is not None and is_below(folder, root):
        within = Path(root).expanduser().absolute()
    else:
        hubs = [place.parent for place in (folder, *folder.parents) if place.name == "snapshots"]
        within = next(filter(is_repository, hubs), folder)
    base = folder.relative_to(within).as_posix()
    return FolderTree(within, "" if base == "." else f"{base}/")


def is_below(folder: Path, root: str) -> bool:
    """Return whether a folder lies in the folder that was named as the root."""
    return folder.is_relative_to(Path(root).expanduser().absolute())


def is_repository(place: Path) -> bool:
    """Return whether a folder is a repository as the library of Hugging Face's hub keeps it, and nothing else
    is in it.
    """
    try:
        names = {entry.name for entry in place.iterdir()}
    except OSError:
        return False
    return {"blobs", "snapshots"} <= names <= HUB


def checked_relative(text: str) -> str:
    """``text`` as a normal relative POSIX path.

    Raises:
        PathError: empty, absolute, a web address, or one that climbs out by ``..``.
    """
    if not text or "\0" in text:
        raise PathError("names no file; fill in the path")
    if "://" in text:
        raise OutsideError("is a web address; download the image and name the file instead")
    path = PurePosixPath(text)
    if path.is_absolute() or (len(text) > 1 and text[1] == ":" and text[0].isalpha()):
        raise OutsideError("is an absolute path; name files relative to one root")
    if ".." in path.parts:
        raise OutsideError("leaves the root by '..'; set the root to a folder that holds all images")
    return str(path)


def open_zip(archive: Path) -> zipfile.ZipFile:
    """Open a zip.

    Raises:
        ImportRefusedError: it is no zip or is damaged.
    """
    try:
        opened = zipfile.ZipFile(open_remote(str(archive)) if is_remote(str(archive)) else archive)
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError) as error:  # the last: a newer kind of zip
        raise ImportRefusedError(
            f"{archive} cannot be read as a zip ({error}); zip the folder again."
        ) from error
    for info in opened.infolist():
        name = _meant_name(info)
        if name != info.filename:
            opened.NameToInfo.pop(info.filename, None)
            info.filename, opened.NameToInfo[name] = name, info
    return opened


def _meant_name(info: zipfile.ZipInfo) -> str:
    """The name that its writer meant: some of Windows part folders by backslashes, macOS does not say UTF-8."""
    name = info.filename
    if not info.flag_bits & UTF8_NAME and not name.isascii():
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return name if "/" in name else name.replace(BACKSLASH, "/")


def _is_told(info: zipfile.ZipInfo) -> bool:
    """Return whether it is sure how the name is written: plain letters, or UTF-8, said or not."""
    plain = info.filename.isascii() or bool(info.flag_bits & UTF8_NAME)
    return plain or info.filename != info.orig_filename.replace(BACKSLASH, "/")  # which was UTF-8 after all


def _spellings(text: str) -> list[str]:
    return [text, text.replace("\\", "/")] if "\\" in text else [text]


def _refuse_bomb(archive: Path, infos: list[zipfile.ZipInfo]) -> None:
    if len(infos) > MAX_MEMBERS:
        raise ImportRefusedError(
            f"{archive} lists {len(infos):,} files, more than {MAX_MEMBERS:,}; split it."
        )
    unpacked = sum(info.file_size for info in infos)
    if unpacked > BOMB_BYTES and unpacked > BOMB_RATIO * max(1, archive.stat().st_size):
        raise ImportRefusedError(
            f"{archive} would unpack to {unpacked / 2**30:,.0f} GB, over {BOMB_RATIO} times its size: that looks "
            "like a zip bomb; unpack it yourself and import the folder if you trust it."
        )


def _unusable(info: zipfile.ZipInfo) -> str | None:
    name = info.filename
    try:
        clean = checked_relative(name)
    except PathError:
        return "leaves the zip (an absolute path or '..'); zip the folder again without it"
    if "\\" in name or clean != name:
        return f"has a name that is not a plain relative path ({printable(name, 60)}); zip the folder again"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "is a link, not a file; zip the file itself"
    if info.flag_bits & 0x1:
        return "is protected by a password; unpack the zip and import the folder"
    return None


def is_noise(name: str) -> bool:
    """Return whether a system put the file there, or its name is hidden."""
    parts = name.split("/")
    return any(part.lower() in NOISE or (part.startswith(".") and part not in (".", "..")) for part in parts)


def common_folder(names: list[str]) -> str:
    """The one folder that wraps everything, with its slash, where it holds folders or tables; else empty."""
    tops = {name.split("/")[0] for name in names}
    if len(tops) != 1 or any("/" not in name for name in names) or is_split(*tops):
        return ""
    inner = [name.split("/", 1)[1] for name in names]
    wraps = any("/" in name or name.lower().endswith((".csv", ".tsv", ".parquet")) for name in inner)
    return f"{tops.pop()}/" if wraps else ""
