"""Starts the app seconds faster: a process that has imported what it needs forks a server for each line it reads.

    python -m tests.browser.app_forker

A line is JSON with ``port``, ``home`` and ``log``; the answer is the number of the process that serves. The journey
starts the app as a user does instead.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import altair  # noqa: F401 - imported for the servers
import pandas as pd
import pyarrow as pa
import sqlmodel  # noqa: F401
import streamlit.web.bootstrap
import streamlit.web.cli

import auditor.api
import auditor.catalog.db
import auditor.outputs.export
import auditor.outputs.report_page
import auditor.review.random_sample  # noqa: F401

MAIN = Path(__file__).resolve().parents[2] / "app" / "main.py"


def serve(port: int, home: str, log: str) -> None:
    """Become the app; never returns."""
    os.setsid()
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, target in ((0, nothing), (1, out), (2, out)):
        os.dup2(target, stream)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ |= {"AUDITOR_HOME": home, "OMP_NUM_THREADS": "1"}
    os.chdir(Path(home).parent)
    sys.argv = ["streamlit", "run", str(MAIN), "--server.port", str(port)]
    status = 1
    try:
        streamlit.web.cli.main()
        status = 0
    finally:
        os._exit(status)


def main() -> None:
    """Fork until the standard input ends."""
    pd.DataFrame({"a": [1]}).describe()
    pa.set_cpu_count(1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # servers that were killed leave no zombie
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if not pid:
            serve(**asked)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
