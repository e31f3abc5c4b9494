"""The gate before FiftyOne's App: who comes in, and which files go out.

FiftyOne's own server asks nobody who they are, answers under any name, and gives out every file of the machine
that its user may read. Here a request must name this machine, come from a page of the App itself, and carry the key
that only the address of ``auditor fiftyone NAME open`` has; pictures come from below the folders of the pushed
dataset and from nowhere else.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from starlette.datastructures import QueryParams
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from auditor.ground import hosts

ENTER = "/enter/"
KEY_HEADER = b"x-auditor-key"
MEDIA, FILE = "/media", "filepath"
"""The route that gives out files, and what names one in its query."""
HEADERS = {
    b"content-security-policy": b"frame-ancestors 'none'",
    b"x-frame-options": b"DENY",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"same-origin",
}
"""Added to every answer."""
CLOSED = "Open the address that `auditor fiftyone NAME open` prints: it has the key to this App.\n"


class Gate:
    """ASGI middleware: refuses foreign hosts and pages, whoever has no key, and files outside the roots."""

    def __init__(self, app: ASGIApp, *, token: str, roots: Iterable[Path], port: int) -> None:
        self.app = app
        self._token = token
        self._roots = [root.resolve() for root in roots]
        # Cookies know no ports: another App on this machine has another name for its key.
        self._cookie = f"auditor_fiftyone_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, let somebody in, or answer 403 or 404."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        answer = self._answer(scope)
        if answer is None:
            await self.app(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: a 403
        else:
            await answer(scope, receive, _with_headers(send))

    def _answer(self, scope: Scope) -> Response | None:
        """Return what is said in FiftyOne's place, or None where FiftyOne may answer."""
        headers = [(name.lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        named = [value for name, value in headers if name == b"host"]
        origins = [value for name, value in headers if name == b"origin"]
        if not hosts.admits(named, origins):
            return PlainTextResponse(CLOSED, status_code=403)
        path = str(scope["path"])
        if path.startswith(ENTER) and scope["type"] == "http":
            return self._let_in(path.removeprefix(ENTER), scope)
        if not self._has_key(headers):
            return PlainTextResponse(CLOSED, status_code=403)
        query = scope["query_string"].decode("latin-1")
        # By the query too: routes of Starlette also match a path with a line break at its end.
        asks_for_file = path.rstrip("/") == MEDIA or FILE in QueryParams(query)
        if asks_for_file and not self.passes_media(query):
            return PlainTextResponse("This App shows the pictures of one dataset.\n", status_code=404)
        return None

    def _let_in(self, key: str, scope: Scope) -> Response:
        if not secrets.compare_digest(key.encode(), self._token.encode()):
            return PlainTextResponse(CLOSED, status_code=403)
        wanted = QueryParams(scope["query_string"].decode("latin-1")).get("next", "/")
        is_here = wanted.startswith("/") and not wanted.startswith(("//", "/\\"))
        answer = RedirectResponse(wanted if is_here else "/", status_code=303)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="lax")
        return answer

    def _has_key(self, headers: list[tuple[bytes, str]]) -> bool:
        given = [value for name, value in headers if name == KEY_HEADER]
        for text in (value for name, value in headers if name == b"cookie"):
            try:
                morsel = SimpleCookie(text).get(self._cookie)
            except CookieError:
                continue
            given += [] if morsel is None else [morsel.value]
        return any(secrets.compare_digest(one.encode(), self._token.encode()) for one in given)

    def passes_media(self, query: str) -> bool:
        """Return whether a request for a file names one below the roots, links followed."""
        wanted = QueryParams(query).getlist(FILE)
        if len(wanted) != 1:
            return False
        try:
            found = Path(wanted[0]).resolve()
        except (OSError, ValueError, RuntimeError):
            return False
        return Path(wanted[0]).is_absolute() and any(found.is_relative_to(root) for root in self._roots)


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [pair for pair in message.get("headers", []) if pair[0].lower() not in HEADERS]
            message["headers"] = [*kept, *HEADERS.items()]
        await send(message)

    return send_with_headers
