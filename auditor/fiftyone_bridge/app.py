"""FiftyOne's App behind a gate: a process of its own on 127.0.0.1 that ends with the one that started it."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from auditor.fiftyone_bridge.processes import ADDRESS, folder, is_free
from auditor.ground.errors import FiftyOneError

PORT = 5151
START_S = 180.0
"""A busy machine loads FiftyOne for a minute."""
STOP_S = 10.0


@dataclass
class RunningApp:
    """FiftyOne's App on this machine."""

    url: str
    """Opens it once for a browser, with the key; whoever has this address gets in."""
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        """End it."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_app(
    path: str, *, roots: Sequence[Path], plugins: Path, reviewer: str = "", port: int = PORT
) -> RunningApp:
    """Serve the App on 127.0.0.1 from a process of its own; ``connect()`` must have been called.

    ``path``: of the address that is opened. ``roots``: only files below them are given out.

    Raises:
        FiftyOneError: the port is taken, or the App does not start.
    """
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    refuse_port(port)
    log, token = place / "app.log", secrets.token_urlsafe(32)
    told = {
        "port": port,
        "token": token,
        "roots": [str(root) for root in roots],
        "plugins": str(plugins),
        "reviewer": reviewer,
    }
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "auditor.fiftyone_bridge.serving"],
            stdout=stream,
            stderr=stream,
            stdin=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C must reach us first
        )
    address = f"http://{ADDRESS}:{port}"
    app = RunningApp(f"{address}/enter/{token}?next={quote(path, safe='')}", process)
    try:
        assert process.stdin is not None
        # By its standard input, not its arguments or environment: those are seen in a list of processes. When
        # this process ends, however it ends, that input ends too, and with it the App.
        process.stdin.write(json.dumps(told).encode() + b"\n")
        process.stdin.flush()
        _await_app(app, f"{address}/fiftyone", token, log)
    except BaseException:
        app.stop()
        raise
    return app


def _await_app(app: RunningApp, url: str, token: str, log: Path) -> None:
    asked = urllib.request.Request(url, headers={"X-Auditor-Key": token})
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if app.process.poll() is not None:
            last = (log.read_text(errors="replace").strip().splitlines() or ["no message"])[-1]
            raise FiftyOneError(
                f"FiftyOne's App stopped right after its start ({last[:100]}); {log} says more."
            )
        try:
            with urllib.request.urlopen(asked, timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise FiftyOneError(f"FiftyOne's App did not answer within {START_S:.0f} s; {log} says more.")


def refuse_port(port: int) -> None:
    """Say early that the port is taken.

    Raises:
        FiftyOneError: a program listens on it.
    """
    if not is_free(port):
        raise FiftyOneError(
            f"Port {port} is taken by another program; stop it, or choose another one with --port {port + 1}."
        )
