"""Serve the Streamlit app from the command line."""

from __future__ import annotations

import errno
import os
import socket
import sys
from pathlib import Path
from typing import NoReturn

import click

from auditor.ground.errors import AuditorError

EVERY_ADDRESS = ("0.0.0.0", "::")


def serve(*, port: int = 8501, address: str = "127.0.0.1", page: str = "", dataset: str = "") -> NoReturn:
    """Become the app's server, which runs until Ctrl-C or a signal; never returns.

    Raises:
        AuditorError: the port is taken or reserved, or the address is not of this machine.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise AuditorError(_why_not(error, port, address)) from error
    main = Path(__file__).resolve().parents[2] / "app" / "main.py"
    query = f"{page}?dataset={dataset}" if dataset else page
    click.echo(f"\nThe app: http://{address}:{port}/{query}   (Ctrl-C stops it; nothing is lost)")
    command = [sys.executable, "-m", "streamlit", "run", str(main)]
    command += ["--server.port", str(port), "--server.address", address, "--server.headless", "true"]
    command += ["--browser.gatherUsageStats", "false", "--server.fileWatcherType", "none"]
    environment = os.environ | {"STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false"}
    if address not in EVERY_ADDRESS:  # the gate of the app lets in what is named here
        named = [name for name in (environment.get("AUDITOR_ALLOWED_HOSTS"), address) if name]
        environment["AUDITOR_ALLOWED_HOSTS"] = ",".join(named)
    # The server takes this process's place: whatever ends it (Ctrl-C, systemd, docker stop) ends the server itself.
    os.execve(sys.executable, command, environment)


def _why_not(error: OSError, port: int, address: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is taken; choose another with --port {port + 1}."
    if error.errno == errno.EACCES:
        return f"Port {port} can be used by the administrator only; choose another, for example --port 8501."
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return (
            f"{address} is not an address of this machine; write --address 127.0.0.1 for this machine alone or "
            "0.0.0.0 to let others connect."
        )
    return f"{address}:{port} cannot be opened ({error.strerror}); choose another --address or --port."
