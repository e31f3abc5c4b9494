"""Places that are reached through fsspec: ``s3://``, ``gs://``, ``https://`` and whatever else it knows.

Only what is decoded is kept on this machine. Credentials and endpoints are those of fsspec's configuration and the
environment (``AWS_PROFILE``, ``AWS_ENDPOINT_URL``, ``GOOGLE_APPLICATION_CREDENTIALS``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from auditor.ground.errors import ImportRefusedError
from auditor.ground.files import open_below
from auditor.pictures.sources.rows import printable

SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
SPOKEN_BY = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "http": "aiohttp", "https": "aiohttp"}


def is_remote(text: str) -> bool:
    """Return whether the text is an address rather than a path of this machine."""
    return SCHEME.match(text) is not None


def file_system(address: str) -> tuple[Any, str]:
    """fsspec's file system for an address, and the path in it.

    Raises:
        ImportRefusedError: unknown, or the package that speaks it is missing; the text names it.
    """
    import fsspec  # with its plugins, some tenths of a second

    found = SCHEME.match(address)
    scheme = found[1].lower() if found else ""
    if scheme in ("file", "local", "memory", "blockcache", "filecache", "simplecache"):
        raise ImportRefusedError(f"{printable(address)} is no address of another machine; name the path.")
    try:
        system, path = fsspec.core.url_to_fs(address, **_options(scheme))
    except ImportError as error:
        package = SPOKEN_BY.get(scheme, "")
        needs = f"the package {package}: pip install 'label-auditor[remote]'" if package else str(error)
        raise ImportRefusedError(f"{scheme}:// needs {needs}.") from error
    except ValueError as error:
        raise ImportRefusedError(
            f"{scheme}:// is not known ({printable(str(error), 80)}); use s3://, gs:// or https://."
        ) from error
    return system, str(path)


def _options(scheme: str) -> dict[str, Any]:
    if scheme not in ("http", "https"):
        return {}
    from auditor.pictures.sources import web  # of the extra "remote"

    return {"get_client": web.session}


@contextmanager
def explained(address: str) -> Iterator[None]:
    """Say in one line whatever a remote place answers.

    Raises:
        ImportRefusedError: it is not there, not allowed, or cannot be reached.
    """
    try:
        yield
    except (ImportRefusedError, KeyboardInterrupt, SystemExit):
        raise
    except FileNotFoundError as error:
        if isinstance(error.__cause__, ImportRefusedError):  # fsspec takes our limits for that
            raise error.__cause__ from error
        raise ImportRefusedError(f"{printable(address)} does not exist; check the address.") from error
    except PermissionError as error:
        raise ImportRefusedError(
            f"{printable(address)} may not be read; check the credentials in the environment."
        ) from error
    except Exception as error:  # aiohttp's, botocore's, Google's: each has its own family
        reason = printable(f"{type(error).__name__}: {error}", 120)
        raise ImportRefusedError(
            f"{printable(address)} cannot be read ({reason}); check the address, the network and the credentials."
        ) from error


def path_of(text: str) -> Path:
    """A path of this machine, or an address with the same methods (``upath.UPath``).

    Raises:
        ImportRefusedError: nothing here speaks that kind of address.
    """
    if not is_remote(text):
        return Path(text)
    file_system(text)
    try:
        from upath import UPath  # of the extra "remote"
    except ImportError as error:
        raise ImportRefusedError(
            "addresses need the package universal-pathlib: pip install 'label-auditor[remote]'."
        ) from error
    return cast(Path, UPath(text, **_options(text.partition(":")[0].lower())))


def is_folder(address: str) -> bool:
    """Return whether other files lie below an address.

    Raises:
        ImportRefusedError: it does not exist or cannot be asked.
    """
    system, path = file_system(address)
    with explained(address):
        if address.endswith("/"):
            return True
        if not system.exists(path):
            raise FileNotFoundError(address)
        return bool(system.isdir(path)) and not PurePosixPath(path).suffix


def open_remote(address: str) -> IO[bytes]:
    """The file at an address, as a stream that can be read from any place.

    Raises:
        ImportRefusedError: it does not exist or cannot be read.
    """
    system, path = file_system(address)
    with explained(address):
        # gcsfs would fetch ahead in tasks that outlive the stream.
        more = {"cache_type": "readahead"} if address.lower().startswith(("gs:", "gcs:")) else {}
        stream = cast(IO[bytes], system.open(path, "rb", **more))
        if getattr(stream, "size", 0) is None:
            raise ImportRefusedError(
                f"{printable(address)} comes without its length, so nothing can be looked up in it; copy it here."
            )
        read = stream.read

        def explained_read(*size: int) -> bytes:
            with explained(address):
                return read(*size)

        stream.read = explained_read  # type: ignore[method-assign]
        return stream


def opened(file: Path | str, below: Path | str | None) -> IO[bytes]:
    """A file of a source, here or at an address; ``below`` the folder that it must not leave (``open_below``).

    Raises:
        ImportRefusedError: at an address, it does not exist or cannot be read.
        OSError: here, the same, or it lies outside ``below``.
    """
    if is_remote(str(file)):
        return open_remote(str(file))
    return open(file, "rb") if below is None else open_below(below, os.path.relpath(file, below))


def fetch(address: str, target: str) -> None:
    """Copy the file at an address to a path of this machine.

    Raises:
        ImportRefusedError: it does not exist or cannot be read.
    """
    system, path = file_system(address)
    with explained(address):
        system.get_file(path, target)
