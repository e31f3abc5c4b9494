"""Processes of this machine, whatever its system: what they may use, who lives, and may this one fork?"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

BETWEEN_FORKS = "between forks"
"""Name of threads that do whatever they do inside ``between_forks``."""
_forking = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_forking.release
    )
NICENESS = 5
"""0 is usual, 19 goes last."""


def started(pid: int | None = None) -> float:
    """Return when a process (default: this one) began, in seconds: on Linux since the boot, elsewhere since 1970.

    Linux works the other one out from its clock: it changes for every process when somebody sets the clock.

    Raises:
        psutil.NoSuchProcess: it is gone.
    """
    pid = os.getpid() if pid is None else pid
    if not psutil.LINUX:
        return psutil.Process(pid).create_time()
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError as error:
        raise psutil.NoSuchProcess(pid) from error
    return int(fields.rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")


def process_lives(pid: int, began: float | None) -> bool:
    """Return whether the process of that number still is the one that began at ``began`` (``started``)."""
    try:
        is_same = began is None or abs(started(pid) - began) < 2
        return is_same and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextmanager
def between_forks() -> Iterator[None]:
    """Let this process fork only before or after the block, never while it holds a lock of some library."""
    with _forking:
        yield


def may_fork() -> bool:
    """Return whether no thread of this process could be in the middle of something while it forks."""
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    return all(thread.name == BETWEEN_FORKS for thread in others)


def usable_cores() -> int:
    """Processors that this process may use, at least 1; macOS tells only how many there are."""
    this = psutil.Process()
    return len(this.cpu_affinity()) if hasattr(this, "cpu_affinity") else psutil.cpu_count() or 1


def yield_to_others() -> None:
    """Let everything else that a person does at the machine go first; one that goes later already stays there."""
    this = psutil.Process()
    if psutil.WINDOWS:
        this.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
    elif this.nice() < NICENESS:  # to go earlier again takes the rights of root
        this.nice(NICENESS)
