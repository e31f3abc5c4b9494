"""Imports a source in a process of its own, so that a test can kill it or take its disk away.

Usage: importer.py SOURCE WORKERS STOP SAVES, where at the stage STOP it writes "here" and waits for a line or the
end of its standard input, once. SAVES are the seconds after which it saves how far it is. It writes rows into the
catalog 16 at a time.
"""

from __future__ import annotations

import signal
import sys

from auditor.catalog import datasets
from auditor.ground import progress as ticking
from auditor.ground.errors import AuditorError
from auditor.importing import journal
from auditor.importing.imports import Progress, import_dataset


def main() -> int:
    source, workers, stop, journal.SAVE_EVERY_S = *sys.argv[1:4], float(sys.argv[4])
    datasets.ROWS_A_STATEMENT = 16
    ticking.EVERY_S = 0.0  # every step is told, so that STOP is met where it is and not a tick later
    # Whoever starts the tests in the background lets them ignore Ctrl-C; a person at a terminal does not.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    waits = [stop]

    def watch(progress: Progress) -> None:
        stage, _, least = stop.partition(":")
        if waits and progress.stage == stage and progress.done >= int(least or 0):
            waits.clear()
            print("here", flush=True)
            sys.stdin.readline()

    try:
        report = import_dataset(source, name="digits", workers=int(workers), skip_bad=True, progress=watch)
    except AuditorError as error:
        print(f"refused: {error}", flush=True)
        return 1
    print(f"imported {report.num_samples}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
