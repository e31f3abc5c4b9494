"""Before and after in a process of its own. ``python -m app.comparison_jobs FOLDER`` is the process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from app import background
from auditor import comparisons

KIND = "comparisons"


def start(name: str, preset: str, device: str, policy: str, max_fdr: float | None) -> Path:
    """Start training on given and on the labels of such an export; returns the folder of the work."""
    request = {"name": name, "preset": preset, "device": device, "policy": policy, "max_fdr": max_fdr}
    return background.start(KIND, "app.comparison_jobs", request)


def newest(name: str) -> Path | None:
    """The newest comparison of that dataset, or None."""
    return next((one for one in background.folders(KIND) if background.request(one)["name"] == name), None)


def work(folder: Path) -> None:
    """Do the comparison that the folder describes."""

    def compared(request: dict[str, Any]) -> dict[str, Any]:
        seen: dict[str, Any] = {"stage": "training", "done": 0, "total": None, "about": ""}

        def tell(**more: Any) -> None:
            seen.update(more)
            background.tell(folder, seen)

        tell()
        found = comparisons.before_after(
            request["name"],
            preset=request["preset"],
            device=request["device"],
            policy=request["policy"],
            max_fdr=request["max_fdr"],
            on_ready=lambda text: tell(about=text),
            on_run=lambda done, total: tell(done=done, total=total),
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
