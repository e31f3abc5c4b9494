"""The app's server, started and stopped as a user, systemd or Docker does it."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from auditor.cli import serve
from auditor.ground.errors import AuditorError
from tests.helpers import WAIT_S, free_port

ROOT = Path(__file__).resolve().parents[3]


def answers(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1.0)
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def server(home: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """``auditor app`` once it answers, and its port; nothing of it is left behind."""
    port = free_port()
    command = [sys.executable, "-m", "auditor", "app", "--port", str(port)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        # Under nohup a hangup is ignored, here and in every child.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    until = time.monotonic() + WAIT_S
    while not answers(port):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until
        time.sleep(0.2)
    yield process, port
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_app__a_signal_to_the_command_ends_its_server(
    server: tuple[subprocess.Popen[bytes], int], number: signal.Signals
) -> None:
    process, port = server
    process.send_signal(number)
    process.wait(timeout=WAIT_S)
    assert not answers(port)
    text = process.stdout.read().decode() if process.stdout else ""
    assert f"http://127.0.0.1:{port}/" in text
    assert "Traceback" not in text


def test_serve__a_taken_port_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(
            AuditorError, match=f"^Port {port} is taken; choose another with --port {port + 1}"
        ):
            serve.serve(port=port)


@pytest.mark.parametrize("address", ["192.0.2.1", "no.such.host.invalid"])
def test_serve__an_address_of_another_machine_is_named(address: str) -> None:
    with pytest.raises(
        AuditorError, match=f"^{address} is not an address of this machine; write --address 127"
    ):
        serve.serve(port=free_port(), address=address)


def test_serve__a_reserved_port_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("socket.socket.bind", bind)
    with pytest.raises(AuditorError, match="^Port 80 can be used by the administrator only; choose another"):
        serve.serve(port=80)
