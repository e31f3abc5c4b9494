"""Imports a source in a process of its own, so that a test can kill it or take its disk away.

Usage: importer.py SOURCE WORKERS STOP, where at the stage STOP it writes "here" and waits.
"""

from __future__ import annotations

import signal
import sys
import time

from auditor.ground.errors import AuditorError
from auditor.importing.imports import Progress, import_dataset


def main() -> int:
    source, workers, stop = sys.argv[1:]
    # Whoever starts the tests in the background lets them ignore Ctrl-C; a person at a terminal does not.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def watch(progress: Progress) -> None:
        stage, _, least = stop.partition(":")
        if progress.stage == stage and progress.done >= int(least or 0):
            print("here", flush=True)
            time.sleep(60)

    try:
        report = import_dataset(source, name="digits", workers=int(workers), progress=watch)
    except AuditorError as error:
        print(f"refused: {error}", flush=True)
        return 1
    print(f"imported {report.num_samples}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
