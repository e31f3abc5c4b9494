"""Images below an address: listed, found, and read many at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import IO, Any, cast
from urllib.parse import quote, unquote

from auditor.pictures.sources.addresses import explained, file_system, is_remote
from auditor.pictures.sources.rows import printable
from auditor.pictures.sources.trees import NOISE, MissingError, checked_relative

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
        """See ``Tree``. A web server is asked for its pages of links."""
        with explained(self.root):
            if not self._is_web:
                self._system.invalidate_cache()
            found = self._system.find(self._base)
        base = self._base.rstrip("/") + "/"
        names = [unquote(name[len(base) :]) if self._is_web else name[len(base) :] for name in found]
        for name in sorted(filter(None, names), key=lambda name: name.split("/")):
            parts = PurePosixPath(name).parts
            if not any(part in NOISE or part.startswith(".") for part in parts):
                yield name, None

    def open(self, location: str) -> IO[bytes]:
        """See ``Tree``."""
        with explained(f"{self.root}/{location}"):
            return cast(IO[bytes], self._system.open(self.path_of(location), "rb"))

    def path_of(self, location: str) -> str:
        """How the file system calls it."""
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
