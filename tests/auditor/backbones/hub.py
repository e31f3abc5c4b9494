"""A small hub on 127.0.0.1 that answers Hugging Face's client: one repository, files with random weights."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """Files of one repository, and what was asked for."""

    def __init__(self, repository: str, files: dict[str, bytes], licence: str = "apache-2.0") -> None:
        self.repository, self.files, self.licence = repository, files, licence
        self.asked: list[str] = []
        self.says: dict[str, str] = {}
        """SHA-256 that the hub claims by file, where it differs from the truth."""
        self.url = ""

    def sha256(self, file: str) -> str:
        return self.says.get(file) or hashlib.sha256(self.files[file]).hexdigest()

    def about(self) -> bytes:
        siblings = [
            {
                "rfilename": name,
                "size": len(content),
                "blobId": COMMIT,
                "lfs": {"sha256": self.sha256(name), "size": len(content), "pointerSize": 134},
            }
            for name, content in self.files.items()
        ]
        card = {"license": self.licence}
        known = {"_id": "1", "id": self.repository, "modelId": self.repository, "sha": COMMIT, "tags": []}
        return json.dumps(known | {"private": False, "siblings": siblings, "cardData": card}).encode()


@contextmanager
def served(hub: Hub) -> Iterator[Hub]:
    """The hub answers at ``hub.url`` inside the block."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            path = self.path.partition("?")[0]
            hub.asked.append(f"{self.command} {path}")
            headers = {"X-Repo-Commit": COMMIT}
            if path.startswith(f"/api/models/{hub.repository}"):
                body = hub.about()
                headers["Content-Type"] = "application/json"
            elif path.startswith(f"/{hub.repository}/resolve/") and path.rpartition("/")[2] in hub.files:
                name = path.rpartition("/")[2]
                body = hub.files[name]
                headers |= {"ETag": f'"{hub.sha256(name)}"', "Accept-Ranges": "bytes"}
            else:
                self.send_response(404)
                self.send_header("X-Error-Code", "RepoNotFound")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(200)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
