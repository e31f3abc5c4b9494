"""The secret that opens our own HTTP routes.

A page receives it over Streamlit's websocket, which checks where it is asked from; another website that makes
a browser call this server does not know it. It lies in the home, so that a page survives a restarted server.
"""

from __future__ import annotations

import os
import secrets
from functools import lru_cache
from pathlib import Path

from auditor.ground.errors import AuditorError
from auditor.ground.settings import settings


def token() -> str:
    """The secret of the current home, made at the first call."""
    return _read_or_make(settings().home / "app_token")


def is_known(candidate: str | None) -> bool:
    """Whether a request carries the secret."""
    return bool(candidate) and secrets.compare_digest((candidate or "").encode(), token().encode())


@lru_cache(maxsize=4)
def _read_or_make(path: Path) -> str:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _read(path) or _made(path)
    except OSError as error:
        raise AuditorError(
            f"{path} cannot be written ({error.strerror}); set AUDITOR_HOME to a folder that you can write to."
        ) from error


def _made(path: Path) -> str:
    """Make the secret, or take that of another server which was faster.

    The file comes whole to its place: a kill leaves no empty one, with which no page could open any route.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.writing")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(24))
        try:
            os.link(beside, path)
        except FileExistsError:
            if not _read(path):
                beside.replace(path)
        return _read(path)
    finally:
        beside.unlink(missing_ok=True)


def _read(path: Path) -> str:
    """The secret in the file; empty where there is no file or nothing in it."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return ""
