"""Starts the app and jobs seconds faster: a process that has imported what they need forks for each line it reads.

    python -m tests.forker

A line is JSON with ``main`` (the module whose ``main`` is called), ``argv``, ``env``, ``cwd``, ``out``, ``err``
and ``ended``, a file for its exit code; the answer is the number of the process. What is run is the product's own
code from its first line; what is spared is the start of Python and the imports. The journey, and some tests of the
command line, start the product as a user does instead.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

import psutil

ROOT = Path(__file__).resolve().parents[1]
APP, COMMAND = "streamlit.web.cli", "auditor.__main__"
KILLED = "tests.auditor.experiments.killed"
IMPORTED = {
    APP: (
        *("altair", "sqlmodel", "streamlit.web.bootstrap", "streamlit.web.cli", "auditor.api"),
        *("auditor.catalog.db", "auditor.outputs.export", "auditor.outputs.report_page"),
        "auditor.review.verifying",
    ),
    COMMAND: (
        *("auditor.__main__", "auditor.audits.worker", "auditor.importing.imports", "auditor.outputs.export"),
        *("auditor.outputs.report_page", "auditor.experiments.before_after", "sklearn.decomposition"),
        *("torch", "engines.cross_entropy.training", "engines.choicenet.training"),
    ),
}
IMPORTED[KILLED] = IMPORTED[COMMAND]
"""By what is run, modules that it would import. No thread may run in what is forked: these start none."""


class Forker:
    """One process a session that has imported what the app and jobs need, from when it is first asked for."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def start(
        self, main: str, argv: list[str], env: dict[str, str], out: str, *, err: str = "", ended: str = ""
    ) -> int:
        """Return the number of the process that runs, in the folder that is the current one here.

        What it prints goes to the files ``out`` and ``err`` (default: the same), its exit code to ``ended``.
        """
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forker"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"main": main, "argv": argv, "env": env, "cwd": os.getcwd(), "out": out, "err": err or out}
        asked["ended"] = ended
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def call(
        self, main: str, argv: list[str], *, seconds: float = 250, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end, as ``subprocess.run`` does.

        Raises:
            TimeoutError: it took longer; it was killed.
        """
        with tempfile.TemporaryDirectory() as folder:
            out, err, ended = (str(Path(folder) / name) for name in ("out", "err", "ended"))
            pid = self.start(main, argv, os.environ | env, out, err=err, ended=ended)
            until = time.monotonic() + seconds
            while psutil.pid_exists(pid):
                if time.monotonic() > until:
                    os.kill(pid, signal.SIGKILL)
                    raise TimeoutError(f"{argv} took longer than {seconds} s.")
                time.sleep(0.01)
            code = int(Path(ended).read_text()) if Path(ended).exists() else -signal.SIGKILL
            return subprocess.CompletedProcess(argv, code, Path(out).read_text(), Path(err).read_text())

    def end(self) -> None:
        """End it; what it started goes on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Jobs:
    """What ``auditor.jobs`` takes for the module ``subprocess``: jobs are forked."""

    DEVNULL = subprocess.DEVNULL

    def __init__(self, forker: Forker) -> None:
        self._forker = forker

    def Popen(  # noqa: N802 - the name that is called
        self, command: list[str], *, env: dict[str, str], stdin: int, stdout: IO[bytes], stderr: IO[bytes],
        start_new_session: bool,
    ) -> _Started:  # fmt: skip
        """Start ``python -m auditor ARGS`` apart, writing to a log."""
        assert command[:3] == [sys.executable, "-m", "auditor"]
        assert stdin == self.DEVNULL
        assert stdout is stderr
        assert start_new_session
        return _Started(self._forker.start(COMMAND, ["auditor", *command[3:]], env, stdout.name))


class _Started:
    def __init__(self, pid: int) -> None:
        self.pid = pid

    def wait(self) -> None:
        """The forker reaps what it started."""


def run(main: str, argv: list[str], env: dict[str, str], cwd: str, out: str, err: str, ended: str) -> None:
    """Become what was asked for; never returns."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    printed, told = (os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for file in (out, err))
    for stream, target in ((0, nothing), (1, printed), (2, told)):
        os.dup2(target, stream)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = argv
    status: Any = 1
    try:
        importlib.import_module(main).main()
        status = 0
    except SystemExit as left:
        status = left.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        code = status if isinstance(status, int) else 1
        if ended:
            Path(ended).write_text(str(code))
        os._exit(code)


def main() -> None:
    """Fork until the standard input ends."""
    import pandas as pd
    import pyarrow as pa

    pd.DataFrame({"a": [1]}).describe()
    pa.set_cpu_count(1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # what was killed leaves no zombie
    for line in sys.stdin:
        asked = json.loads(line)
        for name in IMPORTED[asked["main"]]:
            importlib.import_module(name)
        gc.freeze()  # or each run of a page, and each training, looks through all of it for garbage
        pid = os.fork()
        if not pid:
            run(**asked)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
