"""A backbone's features as tasks: shards of rows that any machine of a cluster computes.

On one machine ``features.embed`` does it, with processes that write into one file.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from auditor.backbones import features
from auditor.backbones.features import FeatureSource
from auditor.ground.errors import AuditFailedError
from auditor.work import EMBEDDING, Embed, Event, Executor, Outcome

RANGES = 16
"""Of ``features.CHUNK`` rows, in one task: with a small backbone some ten seconds of one core."""


def embed(
    dataset_id: int,
    images: Path,
    source: FeatureSource,
    executor: Executor,
    *,
    device: str,
    on_rows: Callable[[int], None],
) -> None:
    """Compute the rows that are missing; each shard that is done is kept.

    Args:
        dataset_id: whose folder the features are kept in.
        images: the image cache, ``.npy`` of (N, C, H, W) uint8.
        source: a backbone's.
        executor: does the shards.
        device: a resolved one.
        on_rows: hears how many rows are done, several times a second; what it raises stops the work.

    Raises:
        AuditFailedError: a shard failed; the others are kept.
        NotFoundError: the weights file is gone or has changed since the audit was planned.
    """
    rows = features.Rows(dataset_id, source, images)
    specs = [embedding_of(shard, source, images, rows.place, device) for shard in _shards(rows.missing)]
    gathered = _Gathered(rows, {spec.name: spec for spec in specs}, on_rows)
    if specs:
        executor.run(specs, gathered)
    if gathered.errors:
        raise AuditFailedError(" ".join(dict.fromkeys(gathered.errors)))


def embedding_of(
    rows: tuple[int, int], source: FeatureSource, images: Path, place: Path, device: str
) -> Embed:
    """The task that computes a backbone's features of some rows, the first and the one after the last."""
    name = f"{EMBEDDING} {rows[0]}"
    return Embed(
        name=name,
        out=str(place / name),
        images=str(images),
        weights=str(source.weights),
        backbone=source.name,
        side=source.side,
        views=source.views,
        rows=rows,
        device=device,
        threads=1 if device == "cpu" else None,
    )


def _shards(missing: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Neighbouring ranges as one, up to ``RANGES`` of them."""
    found: list[tuple[int, int]] = []
    for start, end in missing:
        if found and found[-1][1] == start and end - found[-1][0] <= RANGES * features.CHUNK:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


class _Gathered:
    """Puts what the tasks left where it belongs, and tells how far they are."""

    def __init__(self, rows: features.Rows, specs: dict[str, Embed], on_rows: Callable[[int], None]) -> None:
        self.errors: list[str] = []
        self._rows, self._specs, self._on_rows = rows, specs, on_rows
        self._begun: dict[str, int] = {}

    def started(self, task: str) -> None:
        """See ``Listener``."""
        self._begun[task] = 0

    def heard(self, event: Event) -> None:
        """See ``Listener``."""
        start, end = self._specs[event.task].rows
        self._begun[event.task] = round(event.progress * (end - start))
        self.tick()

    def ended(self, outcome: Outcome) -> None:
        """See ``Listener``."""
        self._begun.pop(outcome.task, None)
        if outcome.result is None:
            self.errors.append(outcome.error or "")
            return
        spec = self._specs[outcome.task]
        self._rows.put(spec.rows[0], np.load(Path(spec.out) / "features.npy", allow_pickle=False))
        shutil.rmtree(spec.out)
        self.tick()

    def tick(self) -> None:
        """See ``Listener``."""
        self._on_rows(self._rows.num_done + sum(self._begun.values()))
