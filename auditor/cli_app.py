"""Serve the Streamlit app from the command line."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import click

from auditor.errors import AuditorError


def serve(*, port: int = 8501, address: str = "127.0.0.1", page: str = "", dataset: str = "") -> None:
    """Run the app until Ctrl-C.

    Raises:
        AuditorError: the port is taken.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise AuditorError(f"Port {port} is taken; choose another with --port {port + 1}.") from error
    main = Path(__file__).resolve().parent.parent / "app" / "main.py"
    query = f"{page}?dataset={dataset}" if dataset else page
    click.echo(f"\nThe app: http://{address}:{port}/{query}   (Ctrl-C stops it; nothing is lost)")
    command = [sys.executable, "-m", "streamlit", "run", str(main)]
    command += ["--server.port", str(port), "--server.address", address, "--server.headless", "true"]
    command += ["--browser.gatherUsageStats", "false", "--server.fileWatcherType", "none"]
    with subprocess.Popen(
        command, env=os.environ | {"STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false"}
    ) as server:
        try:
            server.wait()
        except KeyboardInterrupt:
            server.terminate()
            server.wait()
