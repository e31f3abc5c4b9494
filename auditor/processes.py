"""Processes of this machine: is the one that was recorded still the same one?"""

from __future__ import annotations

import psutil


def process_lives(pid: int, started: float | None) -> bool:
    """Whether the process of that number still is the one that started at ``started``."""
    try:
        process = psutil.Process(pid)
        same = started is None or abs(process.create_time() - started) < 2
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
