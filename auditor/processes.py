"""Processes of this machine, whatever its system: what they may use, and whether a recorded one still lives."""

from __future__ import annotations

import psutil

NICENESS = 5
"""0 is usual, 19 goes last."""


def process_lives(pid: int, started: float | None) -> bool:
    """Whether the process of that number still is the one that started at ``started``."""
    try:
        process = psutil.Process(pid)
        same = started is None or abs(process.create_time() - started) < 2
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def usable_cores() -> int:
    """Processors that this process may use, at least 1; macOS tells only how many there are."""
    this = psutil.Process()
    return len(this.cpu_affinity()) if hasattr(this, "cpu_affinity") else psutil.cpu_count() or 1


def yield_to_others() -> None:
    """Let everything else that a person does at the machine go first."""
    psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS if psutil.WINDOWS else NICENESS)
