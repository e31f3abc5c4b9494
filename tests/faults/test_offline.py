"""Nothing leaves the machine: commands and screens in a network of their own, every connection counted.

The network namespace has only the loopback, so nothing could leave; ``strace`` sees what would have tried.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.auditor.sample_pictures import write_folder

ROOT = Path(__file__).resolve().parents[2]
APART = ["unshare", "--net", "--map-root-user"]
CALLS = "trace=connect,sendto,sendmsg,sendmmsg"
ADDRESS = re.compile(r'sa_family=AF_INET6?\b.*?(?:inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)")')
SCREENS = ["Import", "Audit", "Verify", "Suspects", "Map", "Classes", "Engines", "Export"]
MAY_REFUSE = ("doctor", "restore", "compare")
"""Commands that have nothing to do here: no fault is found, the home is not empty, few rows are verified."""
pytestmark = pytest.mark.timeout(600)  # every call of the system is watched, which takes its time


def needs_a_network_of_its_own() -> None:
    for program in ("unshare", "strace", "ip"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing")
    looks = [*APART, "strace", "-f", "-qq", "-e", CALLS, "-o", os.devnull, "true"]
    if subprocess.run(looks, capture_output=True, check=False).returncode:
        pytest.skip("this system lets us make no network of our own, or trace in it")


def foreign(traces: Path) -> list[str]:
    """Calls to an address that is not of this machine."""
    found = []
    for line in (
        line for file in sorted(traces.iterdir()) for line in file.read_text("utf-8", "replace").splitlines()
    ):
        address = ADDRESS.search(line)
        if address is not None and not (address[1] or address[2]).startswith(("127.", "::1", "0.0.0.0")):
            found.append(line)
    return found


def inside(home: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a function of this file in a new network namespace with its loopback up."""
    code = f"from tests.faults.test_offline import {script} as run; run()"
    env = os.environ | {"PYTHONPATH": str(ROOT), "AUDITOR_HOME": str(home), "WORK": str(home.parent)}
    command = [*APART, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=home.parent, env=env, capture_output=True, text=True, timeout=600, check=False
    )


def traced(*command: str) -> list[str]:
    traces = Path(os.environ["WORK"]) / "traces"
    traces.mkdir(exist_ok=True)
    out = traces / str(len(list(traces.iterdir())))
    return [
        "strace",
        "-f",
        "--seccomp-bpf",
        "-qq",
        "-e",
        CALLS,
        "-o",
        str(out),
        sys.executable,
        "-m",
        *command,
    ]


def every_command() -> None:
    work = Path(os.environ["WORK"])
    source = str(write_folder(work / "source"))
    settings = ["--set", "cross_entropy.epochs=2", "--set", "cross_entropy.network=mlp"]
    commands = [
        ["import", source, "--name", "few", "--image-size", "8", "--workers", "1"],
        ["audit", "few", "--engines", "cross_entropy", "--backbone", "none", "--map", "pca", *settings],
        *(["status"], ["suspects", "few"], ["verify", "few", "--draw", "4", "--out", "draw.csv"]),
        ["verify", "few", "--apply", "draw.csv", "--reviewer", "ann"],
        *(["export", "few", "--out", "out.csv"], ["report", "few", "--out", "out.html"], ["weights", "list"]),
        *(["doctor"], ["backup", "all.tar"], ["restore", "all.tar"]),
        *(["review", "few", "--apply", "out.csv"], ["move", "few", source]),
        ["compare", "few", "--seeds", "1", "--set", "epochs=2", "--set", "network=mlp"],
        ["remove", "few", "--yes"],
    ]
    # One process for all of them: starting one under strace takes longer than most commands.
    done = subprocess.run(
        traced("tests.faults.test_offline", json.dumps(commands)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def run_commands(commands: list[list[str]]) -> None:
    from auditor.__main__ import main

    for command in commands:
        sys.argv = ["auditor", *command]
        try:
            main()
        except SystemExit as end:
            if end.code and command[0] not in MAY_REFUSE:
                raise


def every_screen() -> None:
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import FLAGS, WAIT_MS, settled
    from tests.helpers import chromium

    port, asked = 8601, []
    server = subprocess.Popen(
        traced("auditor", "app", "--port", str(port)), stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        until = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5).read()
                break
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.5)
        for origin in ("http://evil.example:8601", "http://10.0.0.9:8601"):
            knock(port, origin)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=str(chromium()), args=FLAGS)
            page = browser.new_page()
            page.on("request", lambda request: asked.append(request.url))
            page.goto(f"http://127.0.0.1:{port}/", timeout=WAIT_MS)
            for screen in SCREENS:
                page.locator(".st-key-screens").get_by_role("link", name=screen, exact=True).click(
                    timeout=WAIT_MS
                )
                page.wait_for_url(f"**/{screen.lower()}*", timeout=WAIT_MS)
                settled(page)
            browser.close()
        ours = (f"http://127.0.0.1:{port}/", "data:", "blob:")
        assert [url for url in asked if not url.startswith(ours)] == []
    finally:
        os.killpg(server.pid, signal.SIGKILL)  # strace alone would leave the app running
        server.wait()


def knock(port: int, origin: str) -> None:
    """A websocket with a foreign Origin."""
    host = origin.removeprefix("http://")
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        request = [
            *("GET /_stcore/stream HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade"),
            *(
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                "Sec-WebSocket-Version: 13",
                f"Origin: {origin}",
            ),
        ]
        client.sendall("\r\n".join([*request, "", ""]).encode())
        assert b"403" in client.recv(200)


def test_foreign__counts_what_would_leave(home: Path) -> None:
    needs_a_network_of_its_own()
    home.mkdir(parents=True)
    inside(home, "two_that_would_leave")
    assert len(foreign(home.parent / "traces")) == 2


def two_that_would_leave() -> None:
    code = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.sendto(b'x', ('192.0.2.1', 53))"
    for _ in range(2):
        command = traced("timeit", "-n", "1", "-r", "1", code)
        subprocess.run(command, capture_output=True, check=False)


def test_commands__connect_to_nothing_outside(home: Path) -> None:
    needs_a_network_of_its_own()
    home.mkdir(parents=True)
    done = inside(home, "every_command")
    assert done.returncode == 0, done.stderr[-3000:]
    assert foreign(home.parent / "traces") == []


def test_screens__connect_to_nothing_outside(audited: tuple[object, int], home: Path) -> None:
    needs_a_network_of_its_own()
    from tests.helpers import chromium

    chromium()  # or skip
    done = inside(home, "every_screen")
    assert done.returncode == 0, done.stderr[-3000:]
    assert foreign(home.parent / "traces") == []


if __name__ == "__main__":
    run_commands(json.loads(sys.argv[1]))
