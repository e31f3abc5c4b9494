"""Who may talk to the app: requests to a name of this machine, from pages of this app, in no other page's frame.

A page of another website can make a browser call any address, and can give its own name the address 127.0.0.1
(DNS rebinding). So every request, websockets included, must name a host that is ours, and a page that asks must
have come from that same host and port. Streamlit has a check of its own for websockets; it accepts any host that
equals the page's, and asks an address service on the Internet about the others. With this gate in front it never
sees those: what passes on from a proxy that gives us another name is told to come from that name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from auditor.ground.hosts import admits

VARIABLE = "AUDITOR_ALLOWED_HOSTS"
"""Comma-separated names and addresses by which others reach the app, for example behind a proxy."""
METRICS = "/_stcore/metrics"
"""Streamlit tells everybody there how many sessions and how much memory the app has."""
HEADERS = {
    b"content-security-policy": b"frame-ancestors 'none'",
    b"x-frame-options": b"DENY",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
"""Added to every answer."""
REFUSED = (
    "This app cannot be opened under this name. Open it at http://127.0.0.1 with its port, or start it with "
    f"{VARIABLE} set to the name (without the port) if other people may open it there.\n"
)


class Gate:
    """ASGI middleware: refuses foreign hosts and origins, adds the headers, answers no metrics."""

    def __init__(self, app: ASGIApp, allowed: Iterable[str] | None = None) -> None:
        self.app = app
        self._configured = frozenset(_configured() if allowed is None else allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 403."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = [(name.lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        hosts = [value for name, value in headers if name == b"host"]
        origins = [value for name, value in headers if name == b"origin"]
        if not self.admits(hosts, origins):
            await _refuse(scope, receive, send)
            return
        if METRICS in scope["path"]:
            await PlainTextResponse("Not Found", status_code=404)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [pair for pair in message.get("headers", []) if pair[0].lower() not in HEADERS]
                message["headers"] = [*kept, *HEADERS.items()]
            await send(message)

        here = [(b"origin", f"http://{hosts[0]}".encode("latin-1"))] if origins else []
        kept = [pair for pair in scope["headers"] if pair[0].lower() != b"origin"]
        await self.app({**scope, "headers": [*kept, *here]}, receive, send_with_headers)

    def admits(self, hosts: list[str], origins: list[str]) -> bool:
        """Return whether a request with these headers may pass."""
        return admits(hosts, origins, self._configured)


def _configured() -> list[str]:
    names = os.environ.get(VARIABLE, "").split(",")
    return [_bracketed(name.strip().lower()) for name in names if name.strip()]


def _bracketed(name: str) -> str:
    """An address of IPv6 as it stands in a header."""
    return f"[{name}]" if name.count(":") > 1 and not name.startswith("[") else name


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})  # before it is accepted: the browser sees a 403
        return
    await PlainTextResponse(REFUSED, status_code=403)(scope, receive, send)
