"""How web servers are asked: they name no other server, and what they send has limits."""

from __future__ import annotations

import ipaddress
import time
from typing import Any

import aiohttp
from aiohttp import abc

from auditor.ground.errors import ImportRefusedError
from auditor.pictures.decoding import MAX_FILE_BYTES

MOST_STREAMED = 4 * 2**30
"""Bytes of what is copied or read piece by piece, unpacked; what is read at once has the limit of an image."""
FIRST_S, SLOWEST = 10.0, 1_000
"""After so many seconds an answer has come with so many bytes a second, or is given up."""
SILENT_S, WHOLE_S = 30.0, 300.0
"""How long nothing may come, and how long one answer may take."""


async def session(**options: Any) -> aiohttp.ClientSession:
    """Return what fsspec asks web servers with."""
    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_stay)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(resolver=_Resolver()),
        timeout=aiohttp.ClientTimeout(total=WHOLE_S, sock_connect=SILENT_S, sock_read=SILENT_S),
        response_class=_Response,
        trace_configs=[trace],
        **options,
    )


async def _stay(_session: Any, _context: Any, params: aiohttp.TraceRequestRedirectParams) -> None:
    """Refuse to be sent to another server: it may be one that only this machine reaches."""
    asked = params.url
    there = asked.join(type(asked)(params.response.headers.get("Location", "")))
    is_upgrade = (asked.scheme, asked.port, there.scheme, there.port) == ("http", 80, "https", 443)
    if there.host != asked.host or not (is_upgrade or there.origin() == asked.origin()):
        raise ImportRefusedError(
            f"{asked.host} sends to another place ({there.with_query(None)}); name that address if you trust it."
        )


class _Resolver(abc.AbstractResolver):
    """Names of the web do not lead back to this machine; who means it says localhost, or the address.

    What is returned is what is connected to: a name that means another address a moment later gains nothing. A
    private address behind a name is a server of the person's own network, whom they named.
    """

    def __init__(self) -> None:
        self._real = aiohttp.ThreadedResolver()

    async def resolve(self, host: str, port: int = 0, *args: Any, **options: Any) -> list[abc.ResolveResult]:
        found = await self._real.resolve(host, port, *args, **options)
        for one in found:
            address = ipaddress.ip_address(one["host"].partition("%")[0])
            address = getattr(address, "ipv4_mapped", None) or address
            if host != "localhost" and (
                address.is_loopback or address.is_link_local or address.is_unspecified
            ):
                raise ImportRefusedError(
                    f"{host} leads to {address}, on this machine or beside it; name that address if you mean it."
                )
        return found

    async def close(self) -> None:
        await self._real.close()


class _Response(aiohttp.ClientResponse):
    """An answer of which no more is read than the limits allow."""

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        await super().start(connection)
        self.content: Any = _Limited(self.content, str(self.url.with_query(None)))
        return self


class _Limited:
    """The body of an answer, counted as it is unpacked."""

    def __init__(self, stream: aiohttp.StreamReader, name: str) -> None:
        self._stream, self._name = stream, name
        self._begun, self._num = time.monotonic(), 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def read(self, n: int = -1) -> bytes:
        if n >= 0:
            return self._counted(await self._stream.read(n), MOST_STREAMED)
        parts = []
        while part := self._counted(await self._stream.readany(), MAX_FILE_BYTES):
            parts.append(part)
        return b"".join(parts)

    def _counted(self, part: bytes, most: int) -> bytes:
        self._num += len(part)
        if self._num > most:
            raise ImportRefusedError(
                f"{self._name} sends more than {most >> 20:,} MB; copy it here, or leave it out."
            )
        took = time.monotonic() - self._begun
        if part and took > FIRST_S and self._num < took * SLOWEST:
            raise ImportRefusedError(
                f"{self._name} sends less than {SLOWEST:,} bytes a second; try again later, or copy it here."
            )
        return part
