"""Processes of this machine: is the one that was recorded still the same one, and may this one fork?"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

BETWEEN_FORKS = "between forks"
"""Name of threads that do whatever they do inside ``between_forks``."""
_forking = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_forking.release
    )


def process_lives(pid: int, started: float | None) -> bool:
    """Whether the process of that number still is the one that started at ``started``."""
    try:
        process = psutil.Process(pid)
        same = started is None or abs(process.create_time() - started) < 2
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextmanager
def between_forks() -> Iterator[None]:
    """Let this process fork only before or after the block, never while it holds a lock of some library."""
    with _forking:
        yield


def may_fork() -> bool:
    """Whether no thread of this process could be in the middle of something while it forks."""
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    return all(thread.name == BETWEEN_FORKS for thread in others)
