"""The secret that opens our own HTTP routes, and tokens that say who is asking.

A page receives it over Streamlit's websocket, which checks where it is asked from; another website that makes
a browser call this server does not know it. It lies in the home, so that a page survives a restarted server.
Where people sign in, no page receives the secret: each gets a token with its person and a time. It is signed with
another secret, which no page ever sees; the first may be known from a time when nobody signed in.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import secrets
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from auditor.ground.errors import AuditorError
from auditor.ground.settings import settings

OWNER, REVIEWER, READER = "owner", "reviewer", "reader"
ROLES = (READER, REVIEWER, OWNER)
"""Each may do what those before it may."""
HALF_A_DAY_S = 12 * 3600
"""A page that is never reloaded may go on for one to two of these; a token is the same for one of them, so that
the browser finds pictures again."""


@dataclass(frozen=True)
class Person:
    """Somebody at a page."""

    name: str | None
    """As signed in; None where nobody signs in."""
    role: str

    def may(self, wanted: str) -> bool:
        """Return whether the role is that one, or one that may do more."""
        return ROLES.index(self.role) >= ROLES.index(wanted)


def token() -> str:
    """The secret of the current home, made at the first call."""
    return _read_or_make(settings().home / "app_token")


def is_known(candidate: str | None) -> bool:
    """Return whether a request carries the secret."""
    return bool(candidate) and secrets.compare_digest((candidate or "").encode(), token().encode())


def sign(name: str) -> str:
    """A token that says for half a day at least who this is."""
    until = (int(time.time()) // HALF_A_DAY_S + 2) * HALF_A_DAY_S
    told = json.dumps([name, until]).encode()
    body = base64.urlsafe_b64encode(told).decode()
    return f"{body}.{_seal(body)}"


def signed(candidate: str | None) -> str | None:
    """The name of whoever holds the token; None where it was not signed here or its time is over."""
    body, _, seal = (candidate or "").partition(".")
    if not hmac.compare_digest(seal.encode(), _seal(body).encode()):
        return None
    name, until = json.loads(base64.urlsafe_b64decode(body))
    return str(name) if time.time() < until else None


def _seal(body: str) -> str:
    return hmac.new(
        _read_or_make(settings().home / "app_seal").encode(), body.encode(), hashlib.sha256
    ).hexdigest()


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
