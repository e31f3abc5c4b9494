"""The command line in a process that kills itself as soon as two trainings are kept: a test could come too late."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from auditor import __main__

KEPT: list[Path] = []
REPLACE = Path.replace


def replace(self: Path, target: Path) -> Path:
    """``Path.replace``, by which a kept training comes to its name."""
    place = REPLACE(self, target)
    if place.suffix == ".npz":
        KEPT.append(place)
        if len(KEPT) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
    return place


def main() -> None:
    """Run the command that ``sys.argv`` names."""
    Path.replace = replace  # type: ignore[method-assign, assignment]
    __main__.main()
