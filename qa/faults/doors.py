"""Requests that no browser sends, to the app's port: verbs, names, origins, doubled and split headers, sockets.

Whoever names another machine, or comes from another page, gets 403 or 400 and nothing else; nobody without the
session's secret gets a picture or writes a verdict; nothing makes the server fail.
"""

from __future__ import annotations

import functools
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from qa.faults.trial import AT_END, FaultError

OURS = [
    "127.0.0.1:{port}",
    "localhost:{port}",
    "127.0.0.1",
    "LOCALHOST:{port}",
    "[::1]:{port}",
    "127.9.9.9:{port}",
]
FOREIGN = [
    *(
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "localhost.evil.example",
        "10.0.0.1",
    ),
    *(
        "0.0.0.0:{port}",
        "[::]:{port}",
        "127.0.0.1@evil.example",
        "evil.example#127.0.0.1",
        "evil.example/127.0.0.1",
    ),
    *(
        "",
        " ",
        "127.0.0.1, evil.example",
        "127.0.0.1 evil.example",
        "127.0.0.1:{port}:{port}",
        "localhost\t.evil",
    ),
    *(
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "[::ffff:10.0.0.1]",
        "[::1",
        "localhost.",
        "127.0.0.1:x",
    ),
    *(
        "xn--lcalhost-54g",
        "loc\u0430lhost",
        "127。0。0。1",
        "%6c%6f%63alhost",
        "local\x00host",
        "*",
        "null",
        "_",
    ),
]
"""Names that are not this machine's, or that are written in ways that only some programs read as one."""
ORIGINS_OURS = ["http://127.0.0.1:{port}", "http://localhost:{port}"]
ORIGINS = [
    *(
        "http://evil.example",
        "http://evil.example:{port}",
        "null",
        "http://127.0.0.1:1",
        "http://localhost:1",
        "http://127.0.0.1:{port}/",
    ),
    *(
        "file://",
        "http://127.0.0.1:{port}.evil.example",
        "http://127.0.0.1:{port}@evil.example",
        "",
        " ",
        "x",
    ),
    *("chrome-extension://abc", "http://evil.example http://127.0.0.1:{port}", "//127.0.0.1:{port}"),
]
PATHS = [
    *(
        "/",
        "/_stcore/health",
        "/_stcore/stream",
        "/_stcore/host-config",
        "/_stcore/upload_file/a/b",
        "/media/x.png",
    ),
    *(
        "/bench/queue",
        "/bench/verdicts",
        "/bench/image/1/0",
        "/bench/image/1/0?t=",
        "/bench/map/1/umn",
    ),
    *(
        "//bench/queue",
        "/bench/../bench/queue",
        "/%62ench/queue",
        "/bench/queue/",
        "/bench/queue;x",
        "/bench/queue%00",
    ),
    *(
        "/../../../../etc/passwd",
        "/static/../../../etc/passwd",
        "/static/%2e%2e/%2e%2e/etc/passwd",
        "/app/static/..%2f",
    ),
    *(
        "/component/x/../../etc/passwd",
        "/?%s",
        "/suspects?sample=1&dataset=%3Cscript%3E",
        "/\u0430",
        "/" + "a" * 9_000,
    ),
    *(
        "*",
        "http://evil.example/",
        "http://127.0.0.1:{port}/bench/queue",
        "evil.example:443",
        "/_stcore/../home/app_token",
    ),
]
VERBS = [
    "GET",
    "POST",
    "HEAD",
    "OPTIONS",
    "PUT",
    "DELETE",
    "PATCH",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "get",
    "X" * 99,
]
EXTRA = [
    *(
        "X-Forwarded-Host: 127.0.0.1",
        "Forwarded: host=localhost",
        "X-HTTP-Method-Override: DELETE",
        "Via: 1.1 x",
    ),
    *(
        "X-Original-URL: /bench/queue",
        "X-Rewrite-URL: /bench/queue",
        "Transfer-Encoding: chunked",
        "Expect: 100-continue",
    ),
    *(
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding:\tchunked",
        "Content-Length: 5",
        "Content-Length: -1",
    ),
    *(
        "Content-Length: 99999999999999999999",
        "Content-Length: 0x5",
        "Content-Length : 3",
        " folded: x",
        "no colon",
    ),
    *(
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Connection: keep-alive, Upgrade",
        "Sec-WebSocket-Version: 13",
    ),
    *(
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 99",
        "Sec-WebSocket-Protocol: a, b",
    ),
    *(
        "Upgrade: h2c",
        "HTTP2-Settings: AAMAAABkAAQAAP__",
        "Range: bytes=0-,0-,0-",
        "Accept-Encoding: \xff",
        "Cookie: a=b;;",
    ),
    *(
        "Content-Type: application/json",
        "Content-Type: text/plain",
        "X-Auditor-Token: ",
        "X-Auditor-Token: \xff\xfe",
    ),
    *(
        "Cookie: " + "a" * 20_000,
        "X-Auditor-Token: null",
        "Referer: http://evil.example",
        "Sec-Fetch-Site: cross-site",
    ),
]
WAIT_S = 20.0


@functools.cache
def app(owner: int) -> int:
    """The port of an app on the home of this process."""
    home = os.environ["AUDITOR_HOME"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "auditor", "app", "--port", str(port)]  # as a user starts it
    with (Path(home).parent / "server.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=Path(home).parent)

    def end() -> None:
        process.send_signal(signal.SIGKILL)
        process.wait()

    AT_END.append(end)
    until = time.monotonic() + 55
    while not healthy(port):
        if time.monotonic() > until:
            raise OSError("the app does not start")
        time.sleep(0.2)
    return port


def sent(port: int, data: bytes, wait_s: float = WAIT_S, pieces: int = 1) -> bytes:
    """What the server answers until it closes, or says nothing for a while."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), 10) as client, suppress(OSError):
        client.settimeout(wait_s)
        size = -(-len(data) // pieces)
        for start in range(0, len(data), size):
            client.sendall(data[start : start + size])
        while more := client.recv(65_536):
            found += more
            client.settimeout(0.5)
            if len(found) > 2**22:
                break
    return found


def healthy(port: int) -> bool:
    """The server answers whoever may ask."""
    asked = f"GET /_stcore/health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
    with suppress(OSError):
        return b"\r\n\r\nok" in sent(port, asked.encode())
    return False


def knocks(luck: random.Random, place: Path) -> None:
    """One odd request."""
    port = app(os.getpid())
    is_foreign = luck.random() < 0.7
    hosts = [luck.choice(FOREIGN if is_foreign else OURS)]
    if luck.random() < 0.15:
        hosts.append(luck.choice(OURS))
        is_foreign = True
    if luck.random() < 0.05:
        hosts, is_foreign = [], True
    origins = [luck.choice(ORIGINS)] if luck.random() < 0.4 else []
    if not origins and luck.random() < 0.3:
        origins = [luck.choice(ORIGINS_OURS)]
    is_foreign_page = any(one in ORIGINS for one in origins)
    extra = luck.sample(EXTRA, luck.randrange(0, 5))
    body = luck.choice(
        [b"", b"{}", b"hello", b"5\r\nhello\r\n0\r\n\r\n", b"0\r\n\r\nGET /bench/queue HTTP/1.1\r\n\r\n"]
    )
    end = luck.choice(["\r\n"] * 8 + ["\n"])
    version = luck.choice(["HTTP/1.1"] * 6 + ["HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "http/1.1"])
    lines = [f"{luck.choice(VERBS)} {luck.choice(PATHS)} {version}"]
    lines += [f"Host: {one}" for one in hosts] + [f"Origin: {one}" for one in origins]
    lines += ["Connection: close", *extra]
    if not any("ength" in one or "ncoding: c" in one for one in extra) and body:
        lines.append(f"Content-Length: {len(body)}")
    text = end.join([*lines, "", ""]).replace("{port}", str(port))
    answer = sent(port, text.encode("utf-8", "replace") + body, 1.0, luck.choice([1, 1, 3]))
    status = answer.split(b"\r\n", 1)[0].split(b" ")
    code = int(status[1]) if len(status) > 1 and status[1].isdigit() else 0
    shown = f"{text[:300]!r} -> {answer[:200]!r}"
    if code >= 500 and code not in (501, 505):
        raise FaultError("traceback", shown)
    # A request of HTTP/1.0 may name no host; ours wants one all the same.
    if (is_foreign or is_foreign_page) and code not in (0, 400, 403, 405, 408, 413, 414, 431, 501, 505):
        raise FaultError("wrong", f"let in: {shown}")
    secret = Path(os.environ["AUDITOR_HOME"]) / "app_token"
    if secret.exists() and secret.read_bytes().strip() in answer:
        raise FaultError("wrong", f"the secret: {shown}")
    if b"root:x:0" in answer or b"\x89PNG\r\n" in answer or b"SQLite format" in answer:
        raise FaultError("wrong", f"a file: {shown}")
    if luck.random() < 0.1 and not healthy(port):
        raise FaultError("hang", f"the app does not answer after {shown}")
