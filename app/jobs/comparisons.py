"""Before and after in a process of its own. ``python -m app.jobs.comparisons FOLDER`` is the process."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.jobs import background
from auditor.catalog.models import DatasetTable
from auditor.experiments import before_after
from auditor.settings import settings


def start(
    dataset: DatasetTable, preset: str, device: str, policy: str, max_fdr: float | None, *, audit_id: int
) -> Path:
    """Start training on given and on the labels of such an export; returns the folder of the work."""
    request = {
        "name": dataset.name,
        "born": _born(dataset),
        "preset": preset,
        "device": device,
        "policy": policy,
        "max_fdr": max_fdr,
        "audit_id": audit_id,
    }
    return background.start(_kind(dataset), "app.jobs.comparisons", request)


def newest(dataset: DatasetTable) -> Path | None:
    """The newest comparison of that dataset, or None."""
    found = background.folders(_kind(dataset))
    return next((one for one in found if background.request(one)["born"] == _born(dataset)), None)


def _kind(dataset: DatasetTable) -> str:
    """``auditor.api.remove`` deletes this folder with the dataset."""
    return f"{settings().comparisons.name}/{dataset.id}"


def _born(dataset: DatasetTable) -> str:
    """Tells the dataset from an earlier one: names and numbers are given again once a dataset was removed."""
    return dataset.created_at.isoformat()


def work(folder: Path) -> None:
    """Do the comparison that the folder describes."""

    def compared(request: dict[str, Any]) -> dict[str, Any]:
        seen: dict[str, Any] = {"stage": "training"}

        def tell(**more: Any) -> None:
            seen.update(more)
            background.tell(folder, seen)

        found = before_after.before_after(
            request["name"],
            preset=request["preset"],
            device=request["device"],
            policy=request["policy"],
            max_fdr=request["max_fdr"],
            audit_id=request["audit_id"],
            on_ready=lambda text: tell(about=text),
            on_progress=lambda progress: tell(**asdict(progress)),
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
    background.as_process(work)
