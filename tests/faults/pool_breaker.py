"""Kills a worker of the decoding pool while chunks larger than a pipe's buffer are on their way to it.

In a process of its own, because the pool forks only where no other thread runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool

import psutil

from auditor.importing.pool import pool, run_in_order

HEAVY = 2_000_000
"""Bytes of a chunk; a pipe holds 65,536."""


def weigh(chunk: bytes) -> int:
    """Slow enough that the next chunk is always waiting in the pipe."""
    time.sleep(0.01)
    return len(chunk)


def endless() -> Iterator[tuple[bytes]]:
    """Chunks for as long as somebody takes them."""
    while True:
        yield (os.urandom(HEAVY),)


def main() -> None:
    """Five times."""
    for _ in range(5):
        try:
            with pool(2, 1_000_000) as executor:
                for done, _ in enumerate(run_in_order(executor, weigh, endless(), in_flight=6)):
                    if done == 2:
                        psutil.Process().children()[0].kill()
        except BrokenProcessPool:
            print("broken, and left", flush=True)


if __name__ == "__main__":
    main()
