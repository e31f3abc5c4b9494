"""Several trainings of an engine that differ in their seeds alone: what they say of each sample is averaged.

On few rows, what a network starts from decides much of what it says. The mean of five trainings ranks better than
one (benchmarks/results/few_rows.md). It costs five times as much, which is seconds there.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray

from engines.contract import Checkpoint, EngineResult, EpochRecord, OnEpoch, TrainingData
from engines.shared.checkpoint import load_state, run_fingerprint, save_state
from engines.shared.config import LoopConfig, at_least
from engines.shared.device import derive_seed, resolve_device
from engines.shared.work import Work

FEW_ROWS = 2_000
"""On features of at most so many samples ``TRAININGS_ON_FEW`` are averaged (measured on 341 to 2,000)."""
TRAININGS_ON_FEW = 5
ONE = "train"
"""Stage of an engine that has one."""

T = TypeVar("T", bound=Callable[..., EngineResult])


@dataclass(frozen=True, kw_only=True)
class AveragedConfig(LoopConfig):
    """The shared loop of an engine whose ``train`` is ``averaged``."""

    trainings: int | None = None
    """Trainings that differ in their seeds, at least 1; what they say is averaged. None: 5 on features of at most
    2,000 samples, else 1. A paper's preset has 1, as published."""

    def problems(self) -> list[str]:
        found = super().problems()
        return found if self.trainings is None else [*found, *at_least(self, 1, "trainings")]

    def trainings_for(self, num_rows: int, *, on_features: bool) -> int:
        """How many trainings a run on ``num_rows`` samples has."""
        if self.trainings is not None:
            return self.trainings
        return TRAININGS_ON_FEW if on_features and num_rows <= FEW_ROWS else 1

    def work(self, num_rows: int, num_classes: int, *, on_features: bool) -> Work:
        one = self.work_of_one(num_rows, num_classes, on_features=on_features)
        count = self.trainings_for(num_rows, on_features=on_features)
        return Work(count * one.trained, count * one.scored)

    def work_of_one(self, num_rows: int, num_classes: int, *, on_features: bool) -> Work:
        """``work`` of one training; engines override it."""
        return super().work(num_rows, num_classes, on_features=on_features)


def averaged(engine: str) -> Callable[[T], T]:
    """Make the ``train`` of an engine train as often as its config says (``AveragedConfig``).

    The first training has the run's own seed, so one training is what ``train`` does without this. Of several, the
    embeddings and the notes are those of the first, the record holds the epochs of all, and a checkpoint what the
    finished ones said beside the state of the one under way.
    """

    def decorate(train: T) -> T:
        @functools.wraps(train)
        def repeated(
            data: TrainingData,
            config: AveragedConfig,
            *,
            seed: int = 0,
            device: str = "auto",
            on_epoch: OnEpoch | None = None,
            checkpoint: Checkpoint | None = None,
            **before: Any,
        ) -> EngineResult:
            count = config.trainings_for(data.num_samples, on_features=data.features is not None)
            if count == 1:
                return train(
                    data, config, seed=seed, device=device, on_epoch=on_epoch, checkpoint=checkpoint, **before
                )
            assert not before, "what is done apart belongs to a run of one training"
            data.require_labels()
            mean, under_way, fingerprint = _Mean(), None, ""
            if checkpoint is not None:
                fingerprint = run_fingerprint(engine, config, seed, data, resolve_device(device))
                state = load_state(checkpoint, fingerprint)
                if state is not None:
                    mean.load_state_dict(state["mean"])
                    under_way = state["training"]
            for number in range(mean.count, count):
                result = train(
                    data,
                    dataclasses.replace(config, trainings=1),
                    seed=seed_of(seed, number),
                    device=device,
                    on_epoch=None if on_epoch is None else _told(on_epoch, number, count),
                    checkpoint=None
                    if checkpoint is None
                    else _Inside(checkpoint, fingerprint, mean, under_way),
                )
                under_way = None
                mean.add(result, count)
            return mean.result(result, config, seed)

        return cast(T, repeated)

    return decorate


def seed_of(seed: int, number: int) -> int:
    """The seed of training ``number`` (from 0) of a run: its own, then others that follow from it."""
    return seed if number == 0 else derive_seed(seed, "training", number) % 2**31


def _renamed(record: EpochRecord, number: int, count: int) -> EpochRecord:
    """An epoch of training ``number`` as one of the whole run."""
    stage = f"training {number + 1}" + ("" if record.stage == ONE else f", {record.stage}")
    return dataclasses.replace(record, stage=stage, progress=(number + record.progress) / count)


def _told(on_epoch: OnEpoch, number: int, count: int) -> OnEpoch:
    return lambda record: on_epoch(_renamed(record, number, count))


class _Mean:
    """What the finished trainings said."""

    def __init__(self) -> None:
        self.count = 0
        self._sums: dict[str, NDArray[np.float64]] = {}
        self._known: dict[str, NDArray[np.int32]] = {}
        """By array, how many trainings know each value (are not NaN there)."""
        self._embeddings = np.empty((0, 0), dtype=np.float32)
        self._notes: dict[str, Any] = {}
        self._history: list[EpochRecord] = []
        self._seconds, self._peak_bytes = 0.0, 0

    def add(self, result: EngineResult, count: int) -> None:
        """Take in the next training, of ``count``."""
        for name, values in _arrays(result).items():
            known = ~np.isnan(values)
            self._sums[name] = self._sums.get(name, 0.0) + np.where(known, values, 0).astype(np.float64)
            self._known[name] = self._known.get(name, 0) + known.astype(np.int32)
        if self.count == 0:
            self._embeddings, self._notes = result.embeddings, dict(result.provenance.notes)
        self._history += [_renamed(record, self.count, count) for record in result.history]
        self._seconds += result.provenance.seconds
        self._peak_bytes = max(self._peak_bytes, result.provenance.peak_memory_bytes)
        self.count += 1

    def result(self, last: EngineResult, config: AveragedConfig, seed: int) -> EngineResult:
        """The mean of all, NaN where no training knows a value; ``last``: what the last one said."""
        with np.errstate(invalid="ignore"):
            means = {name: total / self._known[name] for name, total in self._sums.items()}
        return dataclasses.replace(
            last,
            pred_probs=means["pred_probs"].astype(np.float32),
            trust_score=means["trust_score"].astype(np.float32),
            signals={name: means[f"signal {name}"].astype(np.float32) for name in last.signals},
            signal_history={
                name: means[f"history {name}"].astype(np.float16) for name in last.signal_history
            },
            embeddings=self._embeddings,
            history=tuple(self._history),
            provenance=dataclasses.replace(
                last.provenance,
                config=config.as_dict(),
                seed=seed,
                seconds=self._seconds,
                peak_memory_bytes=self._peak_bytes,
                notes={**self._notes, "trainings": self.count},
            ),
        )

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint: plain values and tensors."""
        return {
            "count": self.count,
            "sums": {name: torch.from_numpy(values) for name, values in self._sums.items()},
            "known": {name: torch.from_numpy(values) for name, values in self._known.items()},
            "embeddings": torch.from_numpy(self._embeddings),
            "notes": self._notes,
            "history": [dataclasses.asdict(record) for record in self._history],
            "seconds": self._seconds,
            "peak_bytes": self._peak_bytes,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        self.count, self._notes = state["count"], state["notes"]
        self._sums = {name: values.numpy() for name, values in state["sums"].items()}
        self._known = {name: values.numpy() for name, values in state["known"].items()}
        self._embeddings = state["embeddings"].numpy()
        self._history = [EpochRecord(**record) for record in state["history"]]
        self._seconds, self._peak_bytes = state["seconds"], state["peak_bytes"]


def _arrays(result: EngineResult) -> dict[str, NDArray[np.floating]]:
    """What is averaged, by name; the same names and shapes in every training of a run."""
    return {
        "pred_probs": result.pred_probs,
        "trust_score": result.trust_score,
        **{f"signal {name}": values for name, values in result.signals.items()},
        **{f"history {name}": values for name, values in result.signal_history.items()},
    }


class _Inside:
    """The checkpoint of one of several trainings: inside that of the run, beside what the finished ones said."""

    def __init__(
        self, checkpoint: Checkpoint, fingerprint: str, mean: _Mean, state: dict[str, Any] | None
    ) -> None:
        self._checkpoint, self._fingerprint, self._mean, self._state = checkpoint, fingerprint, mean, state

    def load(self) -> dict[str, Any] | None:
        return self._state

    def save(self, state: dict[str, Any]) -> None:
        kept = {"mean": self._mean.state_dict(), "training": state}
        save_state(self._checkpoint, self._fingerprint, kept)
