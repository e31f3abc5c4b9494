"""The gate: every way in which a request names its host and its page."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from app.server.gate import HEADERS, VARIABLE, Gate

OURS = ["127.0.0.1:8501", "localhost:8501", "LOCALHOST", "[::1]:8501", "127.3.4.5", "127.0.0.1"]
FOREIGN = [
    "evil.example:8501",
    "127.0.0.1.evil.example",
    "localhost.evil.example:8501",
    "0.0.0.0:8501",
    "10.0.0.5:8501",
    "127.0.0.1@evil.example",
    "user@127.0.0.1",
    "evil.example/127.0.0.1",
    "127.0.0.1:port",
    "[::1",
    "127.0.0.1?.evil.example",
    "127.0.0.1#evil.example",
    "127.0.0\t.1",
    "",
    "0x7f.1",
    "[::1].evil",
    "[::1]evil:8501",
    "evil[::1]:8501",
]


@pytest.mark.parametrize("host", OURS)
def test_admits__names_of_this_machine(host: str) -> None:
    assert Gate(None, []).admits([host], [])  # type: ignore[arg-type]
    assert Gate(None, []).admits([host], [f"http://{host}"])  # type: ignore[arg-type]


@pytest.mark.parametrize("host", FOREIGN)
def test_admits__no_other_name_even_where_the_page_has_it_too(host: str) -> None:
    assert not Gate(None, []).admits([host], [])  # type: ignore[arg-type]
    assert not Gate(None, []).admits([host], [f"http://{host}"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "origin",
    [
        *("http://evil.example", "http://127.0.0.1:9999", "http://localhost:8501", "null", "", "file://"),
        *("http://127.0.0.1:8501.evil.example", "ftp://127.0.0.1:8501", "http://evil@127.0.0.1:8501"),
    ],
)
def test_admits__no_page_of_another_origin(origin: str) -> None:
    assert not Gate(None, []).admits(["127.0.0.1:8501"], [origin])  # type: ignore[arg-type]


def test_admits__not_two_hosts_or_two_origins() -> None:
    gate = Gate(None, [])  # type: ignore[arg-type]
    assert not gate.admits(["127.0.0.1", "evil.example"], [])
    assert not gate.admits([], [])
    assert not gate.admits(["127.0.0.1"], ["http://127.0.0.1", "http://evil.example"])


def test_admits__configured_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "labels.example , 10.0.0.5,[fd00::1],fd00::2,team.example:8443")
    gate = Gate(None)  # type: ignore[arg-type]
    assert gate.admits(["labels.example"], ["https://labels.example"])
    assert gate.admits(["10.0.0.5:8501"], ["http://10.0.0.5:8501"])
    assert gate.admits(["[fd00::1]:8501"], [])
    assert gate.admits(["127.0.0.1:8501"], ["https://labels.example"])  # a proxy that rewrites the host
    assert gate.admits(["[fd00::2]:8501"], ["http://[fd00::2]:8501"])
    assert gate.admits(["team.example"], ["https://team.example:8443"])
    assert not gate.admits(["labels.example"], ["https://evil.example"])


@pytest.mark.parametrize("host", ["127.0.0.1:8501", "labels.example:8501", "labels.example"])
@pytest.mark.parametrize(
    "origin", ["http://127.0.0.1:9999", "http://127.0.0.1", "https://labels.example:9999"]
)
def test_admits__no_page_on_another_port_of_a_configured_name(host: str, origin: str) -> None:
    gate = Gate(None, ["127.0.0.1", "labels.example"])  # type: ignore[arg-type]
    assert not gate.admits([host], [origin])


def client(base_url: str, *allowed: str) -> TestClient:
    async def page(request: Request) -> PlainTextResponse:
        told = {"X-Frame-Options": "SAMEORIGIN", "X-Told": " ".join(request.headers.getlist("origin"))}
        return PlainTextResponse("secret", headers=told)

    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text("secret")
        await websocket.close()

    routes = [Route("/", page), WebSocketRoute("/stream", socket)]
    return TestClient(Starlette(routes=routes, middleware=[Middleware(Gate, allowed=allowed)]), base_url)


def test_gate__a_page_behind_a_proxy_counts_as_one_of_this_host() -> None:
    proxied = client("http://127.0.0.1:8501", "labels.example")
    answer = proxied.get("/", headers={"origin": "https://labels.example"})
    assert answer.headers["x-told"] == "http://127.0.0.1:8501"
    assert proxied.get("/").headers["x-told"] == ""


def test_gate__answers_and_adds_its_headers() -> None:
    answer = client("http://127.0.0.1:8501").get("/")
    assert answer.text == "secret"
    for name, value in HEADERS.items():
        assert answer.headers.get_list(name.decode()) == [value.decode()]


@pytest.mark.parametrize(
    ("base", "origin"),
    [("http://evil.example", None), ("http://127.0.0.1:8501", "http://evil.example")],
)
def test_gate__refuses_pages_and_websockets(base: str, origin: str | None) -> None:
    headers = {} if origin is None else {"Origin": origin}
    caller = client(base)
    answer = caller.get("/", headers=headers)
    assert answer.status_code == 403
    assert VARIABLE in answer.text
    assert "secret" not in answer.text
    with pytest.raises(WebSocketDisconnect), caller.websocket_connect("/stream", headers=headers):
        pass


@pytest.mark.parametrize("path", ["/_stcore/metrics", "/_stcore/%6detrics?families=x", "/_stcore/metrics%0a"])
def test_gate__tells_nobody_what_the_app_has(path: str) -> None:
    async def metrics(_: Request) -> PlainTextResponse:
        return PlainTextResponse("secret")

    routes = [Route("/_stcore/metrics", metrics)]
    app = Starlette(routes=routes, middleware=[Middleware(Gate, allowed=[])])
    assert TestClient(app, "http://127.0.0.1:8501").get(path).status_code == 404


def test_gate__lets_a_websocket_of_the_page_pass() -> None:
    with client("http://127.0.0.1:8501").websocket_connect(
        "/stream", headers={"Origin": "http://127.0.0.1:8501", "Host": "127.0.0.1:8501"}
    ) as websocket:
        assert websocket.receive_text() == "secret"
