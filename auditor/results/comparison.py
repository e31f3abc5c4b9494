"""What a comparison before and after said, kept beside the dataset so that the report can say it too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from auditor.catalog import folders
from auditor.catalog.records import now
from auditor.ground.errors import DamagedError
from auditor.ground.files import load_json, written_whole


@dataclass(frozen=True)
class Comparison:
    """The newest result."""

    made_at: str
    """Date and time, UTC, as text."""
    sentences: Sequence[str]


def keep(dataset_id: int, sentences: Sequence[str]) -> None:
    """Remember a result instead of the one before."""
    with written_whole(_path(dataset_id)) as beside:
        stamp = now().strftime("%Y-%m-%d %H:%M UTC")
        beside.write_text(json.dumps({"made_at": stamp, "sentences": list(sentences)}), encoding="utf-8")


def kept(dataset_id: int) -> Comparison | None:
    """Return the newest result; None where there is none."""
    path = _path(dataset_id)
    # A note of ours for the report: one that is damaged is passed over, it can be made again.
    with suppress(DamagedError, KeyError):
        if path.exists():
            stored = load_json(path, remedy="run `auditor compare` again")
            return Comparison(stored["made_at"], stored["sentences"])
    return None


def _path(dataset_id: int) -> Path:
    return folders.of_dataset(dataset_id) / "compare.json"
