"""Bundles are packed once and are the same bytes for the browser."""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.testclient import TestClient

from app.server.packed import Packed

SCRIPT = "const one = 1;\n" * 500


def client(folder: Path) -> TestClient:
    for name in ("big.js", "picture.png"):
        (folder / name).write_text(SCRIPT)
    (folder / "small.js").write_text("1")
    return TestClient(
        Starlette(routes=[Mount("/static", StaticFiles(directory=folder))], middleware=[Middleware(Packed)])
    )


def test_packed__a_bundle_is_sent_small_and_kept(tmp_path: Path) -> None:
    asked = client(tmp_path)
    first = asked.get("/static/big.js")
    (tmp_path / "big.js").unlink()
    for answer in (first, asked.get("/static/big.js")):
        assert answer.text == SCRIPT
        assert answer.headers["content-encoding"] == "gzip"
        assert int(answer.headers["content-length"]) < len(SCRIPT) / 10
        assert "accept-encoding" in answer.headers["vary"].lower()


def test_packed__everything_else_stays_as_it_is(tmp_path: Path) -> None:
    asked = client(tmp_path)
    plain = {"accept-encoding": "identity"}
    tag = asked.get("/static/big.js").headers["etag"]
    for answer in (
        asked.get("/static/small.js"),
        asked.get("/static/picture.png"),
        asked.get("/static/big.js", headers=plain),
        asked.get("/static/big.js", headers={"range": "bytes=0-3"}),
        asked.get("/static/missing.js"),
    ):
        assert "content-encoding" not in answer.headers
    assert asked.get("/static/missing.js").status_code == 404
    assert asked.get("/static/big.js", headers={"if-none-match": tag}).status_code == 304
