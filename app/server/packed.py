"""Streamlit's scripts and styles, packed once: a first visit then takes a third of the bytes.

Streamlit sends its bundles as they are, because packing them at every request costs more than it saves. Their names
change with their content and there are few of them, so here each is packed at its first request and kept.
"""

from __future__ import annotations

import asyncio
import gzip

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PLACE, KINDS = "/static/", (".js", ".css")
LEAST_BYTES = 1024
MOST_KEPT = 512
LEVEL = 6


class Packed:
    """ASGI middleware: answers requests for bundles with gzip where the browser takes it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._kept: dict[str, tuple[Message, bytes]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; pack what comes back if it is a bundle."""
        if scope["type"] != "http" or not _is_bundle(scope):
            await self.app(scope, receive, send)
            return
        path = scope["path"]
        if path not in self._kept:
            start, body = await self._fetched(scope, receive)
            if start["status"] != 200 or len(body) < LEAST_BYTES or len(self._kept) >= MOST_KEPT:
                await _answer(send, start, body)
                return
            packed = await asyncio.to_thread(gzip.compress, body, LEVEL, mtime=0)
            headers = MutableHeaders(raw=list(start["headers"]))
            headers["content-encoding"], headers["content-length"] = "gzip", str(len(packed))
            headers.add_vary_header("accept-encoding")
            self._kept[path] = {**start, "headers": headers.raw}, packed
        await _answer(send, *self._kept[path])

    async def _fetched(self, scope: Scope, receive: Receive) -> tuple[Message, bytes]:
        """The whole answer of the app behind this one."""
        start: Message = {}
        parts: list[bytes] = []

        async def keep(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))

        await self.app(scope, receive, keep)
        return start, b"".join(parts)


def _is_bundle(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return (
        scope["method"] == "GET"
        and PLACE in scope["path"]
        and scope["path"].endswith(KINDS)
        and "gzip" in headers.get("accept-encoding", "")
        # What asks for a part, or whether what it has is still good, is answered as it is.
        and not any(name in headers for name in ("range", "if-none-match", "if-modified-since"))
    )


async def _answer(send: Send, start: Message, body: bytes) -> None:
    await send(start)
    await send({"type": "http.response.body", "body": body})
