"""What a comparison or a tournament said, kept beside the dataset so that the report can say it too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from auditor.catalog import folders
from auditor.catalog.records import now
from auditor.ground.errors import DamagedError
from auditor.ground.files import load_json, written_whole

KINDS = {"compare": "Before and after", "simulate": "Planted errors"}
"""By the command that makes it: what the report calls it."""


@dataclass(frozen=True)
class Experiment:
    """The newest result of one kind."""

    title: str
    made_at: str
    """Date and time, UTC, as text."""
    sentences: Sequence[str]


def keep(dataset_id: int, kind: str, sentences: Sequence[str]) -> None:
    """Remember a result of ``kind`` (a key of ``KINDS``) instead of the one before."""
    folder = folders.of_dataset(dataset_id)
    with written_whole(folder / f"{kind}.json") as beside:
        stamp = now().strftime("%Y-%m-%d %H:%M UTC")
        beside.write_text(json.dumps({"made_at": stamp, "sentences": list(sentences)}), encoding="utf-8")


def kept(dataset_id: int) -> list[Experiment]:
    """The newest result of each kind."""
    found = []
    for kind, title in KINDS.items():
        path = folders.of_dataset(dataset_id) / f"{kind}.json"
        if path.exists():
            # A note of ours for the report: one that is damaged is passed over, it can be made again.
            with suppress(DamagedError, KeyError):
                stored = load_json(path, remedy=f"run `auditor {kind}` again")
                found.append(Experiment(title, stored["made_at"], stored["sentences"]))
    return found
