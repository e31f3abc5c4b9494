"""FiftyOne's App: a server of its own on 127.0.0.1 with one owner, who stops it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import psutil

from auditor.errors import FiftyOneError
from auditor.fiftyone_bridge import database
from auditor.fiftyone_bridge.processes import ADDRESS, folder, is_free, recorded, stop_recorded, write_record
from auditor.processes import process_lives

PORT = 5151
START_S = 180.0
"""A busy machine loads FiftyOne for a minute."""


@dataclass
class RunningApp:
    """FiftyOne's App on this machine."""

    url: str
    process: subprocess.Popen[bytes] | None
    """None where it was running before, started by another process of ours that still lives."""

    def stop(self) -> None:
        """End it, if it is ours to end."""
        if self.process is not None:
            stop_recorded(folder() / "app.json", self.process)


def start_app(*, port: int = PORT, environment: dict[str, str] | None = None) -> RunningApp:
    """Serve the App on 127.0.0.1 from a process of its own; ``connect()`` must have been called.

    An App of this home whose owner was killed is ended first; one whose owner lives is used as it is.

    Raises:
        FiftyOneError: the port is taken, or the App does not start.
    """
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    record = recorded(place / "app.json")
    if record is not None:
        if process_lives(record["owner"], record["owner_started"]) and record["owner"] != os.getpid():
            return RunningApp(f"http://{ADDRESS}:{record['port']}", None)
        stop_recorded(place / "app.json", None)
    refuse_port(port)
    log = place / "app.log"
    command = [sys.executable, "-m", "fiftyone.server.main", "--port", str(port), "--address", ADDRESS]
    own = {
        **database.QUIET,
        "FIFTYONE_DATABASE_URI": database.uri(),
        "FIFTYONE_APP_THEME": "light",
    }
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command,
            stdout=stream,
            stderr=stream,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **own, **(environment or {})},
            start_new_session=True,
        )
    owner = psutil.Process()
    write_record(
        place / "app.json", process.pid, port=port, owner=owner.pid, owner_started=owner.create_time()
    )
    app = RunningApp(f"http://{ADDRESS}:{port}", process)
    try:
        _await_app(app, log)
    except BaseException:
        app.stop()
        raise
    return app


def _await_app(app: RunningApp, log: Path) -> None:
    assert app.process is not None
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if app.process.poll() is not None:
            last = (log.read_text(errors="replace").strip().splitlines() or ["no message"])[-1]
            raise FiftyOneError(
                f"FiftyOne's App stopped right after its start ({last[:100]}); {log} says more."
            )
        try:
            with urllib.request.urlopen(f"{app.url}/fiftyone", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise FiftyOneError(f"FiftyOne's App did not answer within {START_S:.0f} s; {log} says more.")


def refuse_port(port: int) -> None:
    """Say early that the port is taken.

    Raises:
        FiftyOneError: another program than an App of this home listens on it.
    """
    record = recorded(folder() / "app.json")
    if not is_free(port) and (record is None or record["port"] != port):
        raise FiftyOneError(
            f"Port {port} is taken by another program; stop it, or choose another one with --port {port + 1}."
        )
