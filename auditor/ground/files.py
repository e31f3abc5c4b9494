"""Files that are whole or absent: a full disk or a kill leaves the earlier one, or none, but never a half."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
import stat
import sys
import tempfile
import uuid
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TextIO, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from auditor.ground.errors import DamagedError

fcntl: Any
try:
    import fcntl
except ModuleNotFoundError:  # on Windows, which removes no file that is open
    fcntl = None

F_GETPATH = 50
"""Of macOS; Python has a name for it there alone."""
BLOCK_BYTES = 2**20
NUMBERS_AT_ONCE = 65_536
MOST_LETTERS = 2**25
"""Of a line."""
TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}\.writing")
"""What we call a file that is being written."""
T = TypeVar("T")


class LongLineError(ValueError):
    """A line that no table or document has."""


def open_below(root: str | os.PathLike[str], location: str) -> IO[bytes]:
    """The regular file at ``location``, which lies below ``root`` with all links followed.

    What was opened is looked at, not its path: whoever changes the path meanwhile gains nothing.

    Raises:
        OSError: it lies outside, is no regular file, or cannot be opened.
    """
    # A pipe would let us wait for ever.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = os.path.join(root, location)
    with ExitStack() as on_error:
        descriptor = os.open(file, flags)
        on_error.callback(os.close, descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        if not _path_of(descriptor, file).startswith(os.path.realpath(root).rstrip(os.sep) + os.sep):
            raise OSError(errno.ELOOP, f"it is a link to a place outside {os.fspath(root)}")
        on_error.pop_all()
    return os.fdopen(descriptor, "rb")


def _path_of(descriptor: int, opened: str) -> str:
    """Return where the opened file lies."""
    if sys.platform == "linux":
        return os.readlink(f"/proc/self/fd/{descriptor}")
    if sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(descriptor, F_GETPATH, bytes(1024)).rstrip(b"\0"))
    return os.path.realpath(opened)  # Windows lets an administrator alone make links


def is_part_of(file: str | os.PathLike[str], place: str) -> bool:
    """Return whether what is there at ``file`` is the file or folder ``place`` or lies below it, by whatever
    links.
    """
    place = os.path.expanduser(place)
    if not (os.path.exists(file) and os.path.exists(place)):
        return False
    folder = os.path.realpath(place).rstrip(os.sep) + os.sep
    return os.path.samefile(file, place) or os.path.realpath(file).startswith(folder)


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A path beside ``path`` to write to. It takes the place of ``path`` at the end of the block.

    The folder is made where it is missing. Where the block fails nothing of it stays; what a kill leaves there is
    removed by whoever writes into that folder next.

    Raises:
        OSError: the system does not let us write there.
    """
    if path.exists() and not path.is_file():  # a device would become a file
        raise OSError(errno.EINVAL, "it is no regular file")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = _beside_of(path)
    with _alone_in(path.parent):
        _sweep(path.parent)
        held = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        _lock(held)
    try:
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        if os.name != "posix":  # Windows renames no open file
            os.close(held)
            held = -1
        beside.replace(path)
    finally:
        if held >= 0:
            os.close(held)
        beside.unlink(missing_ok=True)


@contextmanager
def folder_written_whole(path: Path) -> Iterator[Path]:
    """As ``written_whole``, for a new folder; ``path`` must not exist."""
    with new_folder_beside(path) as beside:
        yield beside
        beside.rename(path)


@contextmanager
def new_folder_beside(path: Path) -> Iterator[Path]:
    """A new folder beside ``path``, gone at the end of the block unless it was renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = _beside_of(path)
    held = -1
    with _alone_in(path.parent):
        _sweep(path.parent)
        beside.mkdir()
        if os.name == "posix":
            held = os.open(beside, os.O_RDONLY)
            _lock(held)
    try:
        yield beside
    finally:
        if held >= 0:
            os.close(held)
        shutil.rmtree(beside, ignore_errors=True)


def _beside_of(path: Path) -> Path:
    """A name beside ``path`` that nothing else has; a long one is cut, for a file system takes 255 bytes."""
    name = os.fsencode(path.name)[:200].decode(errors="ignore")
    return path.with_name(f".{name}.{uuid.uuid4().hex[:12]}.writing")


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Nobody else begins to write in the folder meanwhile: a file that was just made has no lock yet."""
    descriptor = -1
    if fcntl is not None:
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _sweep(folder: Path) -> None:
    """Remove what killed writers left in a folder; one that lives, on whatever host, holds a lock on its own."""
    with suppress(OSError):
        for found in list(os.scandir(folder)):
            if TEMPORARY.fullmatch(found.name) and not found.is_symlink() and not _is_held(found.path):
                if found.is_dir(follow_symlinks=False):
                    shutil.rmtree(found.path, ignore_errors=True)
                else:
                    with suppress(OSError):
                        os.unlink(found.path)


def lines_of(stream: TextIO, name: object) -> Iterator[str]:
    """The lines of a text; a file with holes may be one line of many gigabytes.

    Raises:
        LongLineError: a line has more than ``MOST_LETTERS`` letters; the text names its row.
    """
    row = 1
    while line := stream.readline(MOST_LETTERS):
        if len(line) == MOST_LETTERS:
            raise LongLineError(f"row {row} of {name} has over {MOST_LETTERS:,} letters")
        yield line
        row += 1


def text_of(path: Path, *, most_bytes: int) -> str:
    """The text of a regular file.

    Raises:
        OSError: it is a pipe or a device, which could let us wait for ever, or larger than ``most_bytes``.
        UnicodeDecodeError: it is not UTF-8.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "no regular file")
    if found.st_size > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes >> 20:,} MB")
    return path.read_text(encoding="utf-8-sig")


def read_npy(path: Path, *, mapped: bool = True) -> NDArray[Any]:
    """An ``.npy`` file, read-only and mapped from disk, or in memory. Nothing in it is ever unpickled.

    Mapped, a header that promises more than the file holds is found before memory is taken.

    Raises:
        OSError: it is not there or cannot be read, in the system's words.
        ValueError: it is no whole array, in ours; NumPy's repeat half of the file, or advise to unpickle it.
    """
    try:
        found: NDArray[Any] = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # whatever NumPy raises on a damaged header
        raise ValueError(_what_is_wrong(path)) from error
    if not isinstance(found, np.ndarray):  # a renamed .npz
        found.close()
        raise ValueError("no .npy array")
    return found


def _what_is_wrong(path: Path) -> str:
    """Return why NumPy cannot read a file, in a few words."""
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
        except ValueError:
            return "no .npy array" if path.stat().st_size else "empty"
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        try:
            shape, _, dtype = read(file)
        except Exception:  # as above
            return "its header is damaged"
    return "it holds Python objects" if dtype.hasobject else f"it ends before its {shape} {dtype}"


def load_array(path: Path, *, remedy: str, mapped: bool = True) -> NDArray[Any]:
    """An ``.npy`` file of ours, read-only and mapped from disk, or in memory.

    Raises:
        DamagedError: it is gone, empty, cut off or no array; the text names the file and the remedy.
    """
    return _read(path, remedy, lambda: read_npy(path, mapped=mapped))


def load_arrays(path: Path, *names: str, remedy: str) -> list[NDArray[Any]]:
    """Those arrays of an ``.npz`` file of ours.

    Raises:
        DamagedError: as ``load_array``.
    """

    def read() -> list[NDArray[Any]]:
        with np.load(path, allow_pickle=False) as stored:
            return [stored[name] for name in names]

    return _read(path, remedy, read)


def load_json(path: Path, *, remedy: str) -> dict[str, Any]:
    """A JSON object in a file of ours.

    Raises:
        DamagedError: it is gone, cut off or no object; the text names the file and the remedy.
    """

    def read() -> dict[str, Any]:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise TypeError("no JSON object")
        return found

    return _read(path, remedy, read)


def _read(path: Path, remedy: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except FileNotFoundError as error:
        raise DamagedError(f"{path} is missing; {remedy}.") from error
    except Exception as error:  # of NumPy, zipfile and zlib: whatever they raise on a damaged file
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise DamagedError(f"{path} is damaged ({reason}); {remedy}.") from error


def reserve(stream: IO[bytes], num_bytes: int) -> None:
    """Take the room for the first ``num_bytes`` of a file in one step; what follows its content is zero.

    Writing through a memory map into a file with holes kills the process when the disk fills up (SIGBUS).

    Raises:
        OSError: there is not so much room.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(stream.fileno(), 0, num_bytes)
        return
    # macOS and Windows: only what was written has its room for sure.
    missing = num_bytes - stream.seek(0, os.SEEK_END)
    for start in range(0, missing, BLOCK_BYTES):
        stream.write(bytes(min(BLOCK_BYTES, missing - start)))
    stream.flush()


def array_on_disk(shape: tuple[int, ...], dtype: DTypeLike, folder: Path | None = None) -> NDArray[Any]:
    """Zeros in a file without a name, which the system writes out and reads back as it needs.

    Its room is taken from the start, and given back with the array or the process. ``folder`` None is the system's
    one for temporary files.

    Raises:
        OSError: there is not so much room.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if not size:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile(dir=folder) as file:
        reserve(file, size)
        return np.asarray(np.memmap(file, dtype, "r+", shape=shape))


class GrowingArray:
    """Numbers that come one by one and lie in such a file."""

    def __init__(self, code: str, folder: Path | None = None) -> None:
        """``code`` is the module ``array``'s for a number."""
        self._waiting: array[Any] = array(code)
        self._num = 0
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `whole`

    def append(self, number: float) -> None:
        """Add one.

        Raises:
            OSError: there is no room.
        """
        self._waiting.append(number)
        if len(self._waiting) == NUMBERS_AT_ONCE:
            self._write()

    def whole(self) -> NDArray[Any]:
        """(N,) all of them, to be changed where they lie. Nothing can be added any more."""
        self._write()
        with self._file:
            if not self._num:
                return np.zeros(0, self._waiting.typecode)
            return np.asarray(np.memmap(self._file, self._waiting.typecode, "r+", shape=(self._num,)))

    def _write(self) -> None:
        self._file.write(self._waiting.tobytes())
        self._file.flush()
        self._num += len(self._waiting)
        del self._waiting[:]


def _lock(descriptor: int) -> None:
    """Until the descriptor is closed or the process ends."""
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_held(path: str) -> bool:
    """Return whether a writer that lives holds the file or folder; where nobody can tell, it does."""
    if fcntl is None:
        return False  # Windows removes no file that is open
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
