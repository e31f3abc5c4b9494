"""Files of tasks that run on other machines: one place that all of them reach, ``s3://``, ``gs://`` or a folder.

An object is there whole or not at all. A place that refuses or is slow is asked again for about a minute.
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from auditor.ground.errors import AuditFailedError

VARIABLE = "AUDITOR_STORAGE"
WAITS_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Between one attempt and the next."""
FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
"""Answers that another attempt does not change."""

T = TypeVar("T")


class Storage:
    """Objects below one address, by keys such as ``inputs/abc/images.npy``.

    Raises:
        AuditFailedError: nothing here speaks that kind of address; or, from each method, it cannot be reached.
    """

    def __init__(self, address: str) -> None:
        try:
            import fsspec
        except ImportError as error:
            raise AuditFailedError(
                f"{VARIABLE} needs the package fsspec: pip install 'label-auditor[remote]'."
            ) from error
        self.address = address.rstrip("/")
        try:
            self._system, root = fsspec.core.url_to_fs(self.address)
        except (ImportError, ValueError) as error:
            raise AuditFailedError(
                f"{VARIABLE} names {address}, which cannot be used ({error}); name a folder that all machines see, "
                "or s3:// or gs:// with pip install 'label-auditor[remote]'."
            ) from error
        self._root = str(root).rstrip("/")
        protocol = self._system.protocol
        self._is_folder = bool(
            {"file", "local"} & ({protocol} if isinstance(protocol, str) else set(protocol))
        )

    def has(self, key: str) -> bool:
        """Return whether the object is there."""

        def ask() -> bool:
            self._system.invalidate_cache()  # another machine may have written it since
            return bool(self._system.exists(self._at(key)))

        return self._patiently(ask)

    def put(self, file: Path, key: str) -> None:
        """Copy a file into the place; an older object of that key is replaced."""

        def copy() -> None:
            if not self._is_folder:
                self._system.put_file(str(file), self._at(key))  # an object store shows only whole objects
                return
            beside = f"{self._at(key)}.{uuid.uuid4().hex}.writing"
            self._system.makedirs(self._at(key).rpartition("/")[0], exist_ok=True)
            self._system.put_file(str(file), beside)
            Path(beside).replace(self._at(key))

        self._patiently(copy)

    def get(self, key: str, file: Path) -> None:
        """Copy an object to a file of this machine.

        Raises:
            FileNotFoundError: there is no such object.
        """
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = file.with_name(f"{file.name}.{uuid.uuid4().hex}.writing")
        try:
            self._patiently(lambda: self._system.get_file(self._at(key), str(beside)))
            beside.replace(file)
        finally:
            beside.unlink(missing_ok=True)

    def put_folder(self, folder: Path, key: str) -> None:
        """Copy the files of a folder, as one object."""
        with tempfile.TemporaryDirectory() as place:
            packed = Path(place, "folder.tar")
            with tarfile.open(packed, "w") as tar:
                tar.add(folder, arcname=".")
            self.put(packed, key)

    def get_folder(self, key: str, folder: Path) -> None:
        """Write the files that ``put_folder`` copied into a folder.

        Raises:
            FileNotFoundError: there is no such object.
        """
        with tempfile.TemporaryDirectory() as place:
            packed = Path(place, "folder.tar")
            self.get(key, packed)
            with tarfile.open(packed) as tar:
                tar.extractall(folder, filter="data")

    def remove(self, key: str) -> None:
        """Remove an object, if it is there."""

        def delete() -> None:
            try:
                self._system.rm_file(self._at(key))
            except FileNotFoundError:
                return

        self._patiently(delete)

    def _at(self, key: str) -> str:
        return f"{self._root}/{key}"

    def _patiently(self, call: Callable[[], T]) -> T:
        for wait in (*WAITS_S, None):
            try:
                return call()
            except FINAL:
                raise
            except Exception as error:  # botocore's, aiohttp's, the system's: each has its own family
                if wait is None or "Credentials" in type(error).__name__:
                    raise AuditFailedError(
                        f"{self.address} cannot be reached ({type(error).__name__}: {error}); check the network "
                        "and the credentials, then resume the audit."
                    ) from error
                time.sleep(wait)
        raise AssertionError


def fingerprint(*parts: Any) -> str:
    """A name for what these values say, the same on every machine."""
    return hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=16).hexdigest()
