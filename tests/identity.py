"""Who people are, on 127.0.0.1: a small OpenID Connect provider, and a proxy that says it in a header.

Both let in whoever a test says.
"""

from __future__ import annotations

import secrets
import socket
import threading
import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import uvicorn
from joserfc import jwk, jwt
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

CLIENT, SECRET = "auditor", "kept by the app and the provider alone"


class NamingProxy:
    """Passes connections on to the app and adds a header to the first request of each, as a company's proxy does.

    A browser opens a connection of its own for a websocket, so that also has it. Chromium puts the headers that a
    test asks for on no websocket.
    """

    def __init__(self, port: int, header: str) -> None:
        self._port, self._header = port, header.encode()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no further connection."""
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(near,), daemon=True).start()

    def _pass_on(self, near: socket.socket) -> None:
        with near, socket.create_connection(("127.0.0.1", self._port)) as far:
            first = near.recv(65_536)
            line, _, rest = first.partition(b"\r\n")
            if line:
                far.sendall(line + b"\r\n" + self._header + b"\r\n" + rest)
            back = threading.Thread(target=_copied, args=(far, near), daemon=True)
            back.start()
            _copied(near, far)
            back.join()


def _copied(source: socket.socket, target: socket.socket) -> None:
    """Until either end closes."""
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class Provider:
    """Discovery, authorization with a code, token and keys; ``email`` is whoever signs in next."""

    def __init__(self, email: str) -> None:
        self.email = email
        self.claims: dict[str, Any] = {}
        self._key = jwk.RSAKey.generate_key(2048, {"kid": "test", "alg": "RS256", "use": "sig"})
        self._codes: dict[str, dict[str, str]] = {}
        routes = [
            Route("/.well-known/openid-configuration", self._about),
            Route("/authorize", self._authorize),
            Route("/token", self._token, methods=["POST"]),
            Route("/keys", self._keys),
        ]
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="error"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer nobody any more."""
        self._server.should_exit = True
        self._thread.join()

    async def _about(self, _: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.address,
                "authorization_endpoint": f"{self.address}/authorize",
                "token_endpoint": f"{self.address}/token",
                "jwks_uri": f"{self.address}/keys",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        code = secrets.token_urlsafe(8)
        self._codes[code] = asked
        back = urlencode({"code": code, "state": asked["state"]})
        return RedirectResponse(f"{asked['redirect_uri']}?{back}", status_code=302)

    async def _token(self, request: Request) -> Response:
        form = await request.form()
        asked = self._codes.pop(str(form["code"]))
        now = int(time.time())
        claims = {
            "iss": self.address,
            "sub": self.email,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 600,
            "nonce": asked["nonce"],
            "email": self.email,
            **self.claims,
        }
        token = jwt.encode({"alg": "RS256", "kid": "test"}, claims, self._key)
        return JSONResponse(
            {"access_token": "none", "token_type": "Bearer", "expires_in": 600, "id_token": token}
        )

    async def _keys(self, _: Request) -> Response:
        return JSONResponse({"keys": [self._key.as_dict(private=False)]})
