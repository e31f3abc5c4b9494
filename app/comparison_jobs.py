"""Before and after in a process of its own. ``python -m app.comparison_jobs FOLDER`` is the process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from app import background
from auditor import comparisons

KIND = "comparisons"


def start(name: str, preset: str, device: str) -> Path:
    """Start training on given and on cleaned labels; returns the folder of the work."""
    return background.start(KIND, "app.comparison_jobs", {"name": name, "preset": preset, "device": device})


def newest(name: str) -> Path | None:
    """The newest comparison of that dataset, or None."""
    return next((one for one in background.folders(KIND) if background.request(one)["name"] == name), None)


def work(folder: Path) -> None:
    """Do the comparison that the folder describes."""

    def compared(request: dict[str, Any]) -> dict[str, Any]:
        background.tell(folder, {"stage": "training", "done": 0, "total": None})
        found = comparisons.before_after(
            request["name"],
            preset=request["preset"],
            device=request["device"],
            on_run=lambda done, total: background.tell(
                folder, {"stage": "training", "done": done, "total": total}
            ),
        )
        return {
            "sentence": found.sentence,
            "is_clear": found.difference.is_clear,
            "by_seed": found.by_seed,
            "held_out": found.num_held_out,
            "changed": found.num_changed,
            "notes": found.notes,
        }

    background.run(folder, compared)


if __name__ == "__main__":
    work(Path(sys.argv[1]))
