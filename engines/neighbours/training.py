"""Neighbours: the labels of the nearest rows in feature space judge each label. Nothing is trained.

A witness that costs seconds and shares no network with the others. Votes as in SimiFeat, weighed and counted as in
WANN (see ``votes``); no label votes on itself, so every judgement is out of sample. Works on features only: pixels
say little about what looks alike.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from engines.contract import (
    Checkpoint,
    EngineInputError,
    EngineResult,
    EpochRecord,
    OnEpoch,
    Provenance,
    TrainingData,
)
from engines.neighbours.search import nearest, unit_rows
from engines.neighbours.votes import FEWEST, MOST, neighbour_probs
from engines.shared.config import check_preset
from engines.shared.device import (
    describe_device,
    memory_errors_explained,
    peak_memory_bytes,
    resolve_device,
    versions,
)
from engines.shared.scoring import test_time_margin, trust_from_evidence
from engines.shared.work import Work

SEARCH_PASSES = 20
"""Passes of a row through a head that a row's search takes as long as (25,000 rows: a second)."""


@dataclass(frozen=True, kw_only=True)
class NeighboursConfig:
    """Settings of the neighbours."""

    neighbours: int = MOST
    """Largest neighbourhood, 11 to 1000 (WANN: 51). Small sets use as many as they have."""

    def __post_init__(self) -> None:
        if not FEWEST <= self.neighbours <= 1000:
            raise EngineInputError(
                f"NeighboursConfig: neighbours is {self.neighbours}, it must be {FEWEST} to 1000."
            )

    @classmethod
    def preset(cls, name: str) -> NeighboursConfig:
        """The same for all three."""
        check_preset(name)
        return cls()

    def work(self, num_rows: int, num_classes: int, *, on_features: bool) -> Work:
        """A search for every row, counted in passes of a head."""
        del num_classes, on_features
        return Work(0, SEARCH_PASSES * num_rows)

    def for_features(self) -> NeighboursConfig:
        """Unchanged: they work on features only."""
        return self

    def as_dict(self) -> dict[str, Any]:
        """Every field, plain values."""
        return asdict(self)


@memory_errors_explained()
def train(
    data: TrainingData,
    config: NeighboursConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
) -> EngineResult:
    """Ask the neighbours of every row; there is nothing to save or to resume.

    Raises:
        EngineInputError: images instead of features, no labels, or fewer than three rows.
    """
    del checkpoint
    data.require_labels()
    if data.features is None:
        raise EngineInputError("neighbours need features; give a backbone, or leave this engine out.")
    if data.num_samples < 3:
        raise EngineInputError(f"neighbours need at least 3 samples, there are {data.num_samples}.")
    began = time.perf_counter()
    place = resolve_device(device)

    # 1. One row a sample: the mean over its views, of length 1.
    rows = unit_rows(data.features)

    # 2. The nearest others, and their votes.
    near, similar = nearest(rows, min(config.neighbours, data.num_samples - 1), device=place)
    probs = neighbour_probs(near, similar, data.given_labels, data.num_classes)

    # 3. Trust: how far the votes for the given class lead those for the best other.
    margin = test_time_margin(np.log(probs), data.given_labels)
    given = np.take_along_axis(probs, np.maximum(data.given_labels, 0)[:, None], axis=1)[:, 0]
    agreement = np.where(data.labeled, given, np.float32("nan")).astype(np.float32)
    seconds = time.perf_counter() - began
    metrics = {
        "train_accuracy": float(np.mean(probs.argmax(1)[data.labeled] == data.given_labels[data.labeled]))
    }
    record = EpochRecord(
        "votes", 0, 1, 1.0, seconds, {}, metrics, {"agreement": agreement.astype(np.float16)}
    )
    if on_epoch is not None:
        on_epoch(record)
    return EngineResult(
        pred_probs=probs,
        trust_score=trust_from_evidence(margin),
        signals={"agreement": agreement},
        signal_history={"agreement": agreement.astype(np.float16)[None]},
        embeddings=rows,
        history=(record,),
        provenance=Provenance(
            engine="neighbours",
            config=config.as_dict(),
            seed=seed,
            device=describe_device(place),
            versions=versions(),
            seconds=seconds,
            peak_memory_bytes=peak_memory_bytes(place),
            notes={"neighbours": near.shape[1]},
        ),
        is_out_of_sample=True,
    )
