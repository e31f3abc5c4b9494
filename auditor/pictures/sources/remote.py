"""Images below an address: listed, found, and read many at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import IO, Any, cast
from urllib.parse import quote, unquote

from auditor.pictures.sources.addresses import explained, file_system, is_remote
from auditor.pictures.sources.rows import printable
from auditor.pictures.sources.trees import MissingError, checked_relative, is_noise

HEAD_BYTES = 64 * 1024
"""Of an image, to learn its size: enough for all but some TIFFs."""
AT_A_TIME = 32
"""Requests that are under way together."""


class RemoteTree:
    """Files below an address, as ``trees.FolderTree`` has those below a folder."""

    kind, base = "folder", ""

    def __init__(self, root: str) -> None:
        """Nothing is asked of the other side yet.

        Raises:
            ImportRefusedError: nothing here speaks that kind of address.
        """
        self.root = root.rstrip("/")
        self._system, self._base = file_system(self.root)

    def locate(self, text: str) -> str:
        """See ``Images``. An address is accepted where it lies below the root.

        Whether the image is there shows when it is read: one question an image would take hours.
        """
        if not is_remote(text):
            return checked_relative(text)
        if not text.startswith(self.root + "/"):
            raise MissingError(f"is outside {self.root}; set the root to an address that holds all images")
        inner = text[len(self.root) + 1 :]
        return checked_relative(unquote(inner) if self.root.startswith("http") else inner)

    def walk(self) -> Iterator[tuple[str, str | None]]:
        """See ``Tree``. A store is asked for one folder at a time; a web server for its pages of links, which need
        be no tree, all at once."""
        base = self._base.rstrip("/")
        for path in self._linked() if self._is_web else self._below(base):
            name = unquote(path[len(base) + 1 :]) if self._is_web else path[len(base) + 1 :]
            if name and not is_noise(str(PurePosixPath(name))):
                yield name, None

    def _linked(self) -> list[str]:
        with explained(self.root):
            found = self._system.find(self._base)
        return sorted(found, key=lambda path: unquote(path).split("/"))

    def _below(self, folder: str) -> Iterator[str]:
        """The paths of the files below a folder, in the order of their parts."""
        with explained(self.root):
            listed = self._system.ls(folder, detail=True, refresh=True)
            self._system.invalidate_cache(folder)  # fsspec would keep what it listed for good
        entries = sorted((entry["name"].rstrip("/"), entry["type"] == "directory") for entry in listed)
        del listed
        for path, is_folder in entries:
            part = path[len(folder) + 1 :]
            if not is_folder:
                yield path
            elif part and not is_noise(part):  # a store may name the folder itself among what is in it
                yield from self._below(path)

    def open(self, location: str) -> IO[bytes]:
        """See ``Tree``."""
        with explained(f"{self.root}/{location}"):
            return cast(IO[bytes], self._system.open(self.path_of(location), "rb"))

    def path_of(self, location: str) -> str:
        """Return how the file system calls it."""
        inner = checked_relative(location)
        return f"{self._base.rstrip('/')}/{quote(inner) if self._is_web else inner}"

    def read(self, locations: Sequence[str]) -> list[bytes | str]:
        """The files' bytes, many requests at a time; for one that cannot be read, why."""
        return self._beginnings(locations, None)

    def read_heads(self, locations: Sequence[str]) -> list[bytes | str]:
        """As ``read``, for the first ``HEAD_BYTES`` of each."""
        return self._beginnings(locations, HEAD_BYTES)

    def _beginnings(self, locations: Sequence[str], end: int | None) -> list[bytes | str]:
        found: list[bytes | str] = []
        for first in range(0, len(locations), AT_A_TIME):
            paths = [self.path_of(location) for location in locations[first : first + AT_A_TIME]]
            start = [None if end is None else 0] * len(paths)
            with explained(self.root):
                # Not cat(), which takes [ and * in a name for a pattern.
                answers = self._system.cat_ranges(paths, start, [end] * len(paths), on_error="return")
            found += map(self._said, answers)
        return found

    def _said(self, answer: Any) -> bytes | str:
        if isinstance(answer, (bytes, bytearray)):
            return bytes(answer)
        if isinstance(answer, FileNotFoundError):
            return f"does not exist in {self.root}; correct the path or set another root"
        return f"cannot be read from {self.root} ({printable(str(answer), 100)}); try again later"

    @property
    def _is_web(self) -> bool:
        return self.root.lower().startswith("http")
