"""The secret that opens our own HTTP routes.

A page receives it over Streamlit's websocket, which checks where it is asked from; another website that makes
a browser call this server does not know it. It lies in the home, so that a page survives a restarted server.
"""

from __future__ import annotations

import os
import secrets
from functools import lru_cache
from pathlib import Path

from auditor.errors import AuditorError
from auditor.settings import settings


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
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(24))
        except FileExistsError:
            pass
        return path.read_text()
    except OSError as error:
        raise AuditorError(
            f"{path} cannot be written ({error.strerror}); set AUDITOR_HOME to a folder that you may write."
        ) from error
