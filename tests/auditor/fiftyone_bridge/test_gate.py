"""The gate before FiftyOne's App: names, keys and files."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from auditor.fiftyone_bridge.gate import HEADERS, Gate

TOKEN = "a-long-secret"
HERE = "http://127.0.0.1:5151"


async def _media(request: Request) -> PlainTextResponse:
    return PlainTextResponse(Path(request.query_params["filepath"]).read_text())


async def _hello(request: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


async def _echo(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text(await websocket.receive_text())
    await websocket.close()


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    """A browser before the gate, without the key."""
    routes = [Route("/media", _media), Route("/hello", _hello), WebSocketRoute("/ws", _echo)]
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "one.png").write_text("picture")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "pictures" / "link.png").symlink_to(tmp_path / "secret.txt")
    gate = Gate(Starlette(routes=routes), token=TOKEN, roots=[tmp_path / "pictures"], port=5151)
    return TestClient(gate, base_url=HERE, follow_redirects=False)


def enter(client: TestClient) -> TestClient:
    assert client.get(f"/enter/{TOKEN}?next=/hello").headers["location"] == "/hello"
    return client


def test_gate__lets_in_by_the_key_alone(client: TestClient) -> None:
    assert client.get("/hello").status_code == 403
    assert client.get("/enter/wrong?next=/hello").status_code == 403
    assert client.get("/hello", headers={"cookie": "auditor_fiftyone_5151=wrong"}).status_code == 403
    answer = enter(client).get("/hello")
    assert (answer.status_code, answer.text) == (200, "hello")
    assert {name.decode(): value.decode() for name, value in HEADERS.items()}.items() <= dict(
        answer.headers
    ).items()


def test_gate__key_is_out_of_reach_of_scripts_and_other_sites(client: TestClient) -> None:
    cookie = client.get(f"/enter/{TOKEN}").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=lax" in cookie.lower()


@pytest.mark.parametrize("wanted", ["//evil.example", "http://evil.example", "/\\evil.example"])
def test_gate__sends_to_no_other_site(client: TestClient, wanted: str) -> None:
    assert client.get(f"/enter/{TOKEN}", params={"next": wanted}).headers["location"] == "/"


def test_gate__foreign_names_and_pages(client: TestClient) -> None:
    enter(client)
    assert client.get("/hello", headers={"host": "evil.example:5151"}).status_code == 403
    assert client.get("/hello", headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get("/hello", headers={"origin": "http://127.0.0.1:8501"}).status_code == 403
    assert client.get("/hello", headers={"origin": HERE}).status_code == 200


@pytest.mark.parametrize("wanted", ["secret.txt", "pictures/link.png", "pictures/../secret.txt"])
def test_gate__files_outside_the_pictures(client: TestClient, tmp_path: Path, wanted: str) -> None:
    enter(client)
    for path in ("/media", "/media/", "/media%0a"):
        answer = client.get(path, params={"filepath": str(tmp_path / wanted)}, follow_redirects=True)
        assert "secret" not in answer.text
        assert answer.status_code == 404


def test_gate__pictures(client: TestClient, tmp_path: Path) -> None:
    picture, secret = tmp_path / "pictures" / "one.png", tmp_path / "secret.txt"
    assert client.get("/media", params={"filepath": str(picture)}).status_code == 403
    enter(client)
    assert client.get("/media", params={"filepath": str(picture)}).text == "picture"
    assert client.get("/media").status_code == 404
    assert client.get(f"/media?filepath={picture}&filepath={secret}").status_code == 404
    assert client.get(f"/media?filepath={secret}&filepath={picture}").status_code == 404
    assert client.get("/media", params={"filepath": "a\0b"}).status_code == 404


def test_gate__websockets(client: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("ws://127.0.0.1:5151/ws"):
        pass
    enter(client)
    with client.websocket_connect("ws://127.0.0.1:5151/ws", headers={"origin": HERE}) as socket:
        socket.send_text("carried")
        assert socket.receive_text() == "carried"
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("ws://127.0.0.1:5151/ws", headers={"origin": "http://evil.example"}),
    ):
        pass
