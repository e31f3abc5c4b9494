"""Several trainings of an engine, each with a part of the labels hidden: one that never saw a label judges it.

A network that learned a wrong label says that it is right. What it says of a label that it did not learn can be
weighed by its likelihood, and trust rests on nothing else where there are folds.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray

from engines.contract import UNLABELED, Checkpoint, EngineResult, EpochRecord, OnEpoch, TrainingData
from engines.shared.checkpoint import load_state, run_fingerprint, save_state
from engines.shared.config import LoopConfig, at_least
from engines.shared.device import derive_seed, resolve_device
from engines.shared.scoring import test_time_margin, trust_from_evidence
from engines.shared.selection import deal_by_class
from engines.shared.work import Work

FOLDS_ON_FEATURES = 5
FOLDS_OF_FINETUNING = 2
"""A network that is trained further judges out of fold too: two see half of the labels each, in the time of one.
Beside the engines on features that is worth .010 AUROC and .047 average precision (3,000 images, human errors)."""
STEPS_ON_FEATURES = 150
"""Steps of a head that pay at least: on 341 photos (features of EfficientNet-lite0, AUROC of one draw) ChoiceNet
finds .92 with 36, .94 with 72 and .94 with 144."""
MOST_STEPS_ON_FEATURES = 40
"""Steps of a head's epoch that pay at most (benchmarks/results/noise_model.md, "Steps on many rows")."""
ONE = "train"
"""Stage of an engine that has one."""
LEAST = float(np.finfo(np.float32).tiny)

T = TypeVar("T", bound=Callable[..., EngineResult])


@dataclass(frozen=True, kw_only=True)
class FoldedConfig(LoopConfig):
    """The shared loop of an engine whose ``train`` is ``out_of_fold``."""

    folds: int = 1
    """Parts of the labels, at least 1: above 1 each part is hidden from one training, which judges it. 5 on
    features (``for_features``), where a training takes seconds."""

    def problems(self) -> list[str]:
        return [*super().problems(), *at_least(self, 1, "folds")]

    def for_features(self) -> Self:
        return dataclasses.replace(
            super().for_features(),
            folds=max(self.folds, FOLDS_ON_FEATURES),
            fewest_steps=STEPS_ON_FEATURES,
            most_steps=MOST_STEPS_ON_FEATURES,
        )

    def for_finetuning(self, network: str, weights: str | None, image_side: int | None = None) -> Self:
        config = super().for_finetuning(network, weights, image_side)
        return dataclasses.replace(config, folds=max(self.folds, FOLDS_OF_FINETUNING))

    def after_first(self, notes: Mapping[str, Any]) -> Self:
        """Return the config of the trainings after the first, which left these ``notes``; engines override it."""
        del notes
        return self

    def work(self, num_rows: int, num_classes: int, *, on_features: bool) -> Work:
        one = self.lengthened(num_rows).work_of_one(num_rows, num_classes, on_features=on_features)
        return Work(max(1, self.folds - 1) * one.trained, self.folds * one.scored)

    def work_of_one(self, num_rows: int, num_classes: int, *, on_features: bool) -> Work:
        """Return ``work`` of one training on all labels; engines override it."""
        return super().work(num_rows, num_classes, on_features=on_features)


def out_of_fold(engine: str) -> Callable[[T], T]:
    """Make the ``train`` of an engine train once a fold (``FoldedConfig``).

    The first training has the run's own seed, and with one fold it is what ``train`` does without this. With more,
    predictions are those of the training that did not see the label (their mean where there is none), trust is the
    rank of their margin, signals are means over the trainings that saw the label, embeddings and notes are the
    first training's, the record holds the epochs of all, and a checkpoint what the finished ones said beside the
    state of the one under way.
    """

    def decorate(train: T) -> T:
        @functools.wraps(train)
        def folded(
            data: TrainingData,
            config: FoldedConfig,
            *,
            seed: int = 0,
            device: str = "auto",
            on_epoch: OnEpoch | None = None,
            checkpoint: Checkpoint | None = None,
        ) -> EngineResult:
            data.require_labels()
            config = config.lengthened(int(data.labeled.sum()))
            count = min(config.folds, int(data.labeled.sum()))
            if count == 1:
                return train(data, config, seed=seed, device=device, on_epoch=on_epoch, checkpoint=checkpoint)
            fold_of = deal_by_class(data.given_labels, count, seed=seed, name="folds")
            verdict, under_way, fingerprint = _Verdict(), None, ""
            if checkpoint is not None:
                fingerprint = run_fingerprint(engine, config, seed, data, resolve_device(device))
                state = load_state(checkpoint, fingerprint)
                if state is not None:
                    verdict.load_state_dict(state["verdict"])
                    under_way = state["training"]
            for number in range(verdict.count, count):
                of_one = config if number == 0 else config.after_first(verdict.notes)
                result = train(
                    hidden(data, fold_of == number),
                    dataclasses.replace(of_one, folds=1),
                    seed=seed_of(seed, number),
                    device=device,
                    on_epoch=None if on_epoch is None else _told(on_epoch, number, count),
                    checkpoint=None
                    if checkpoint is None
                    else _Inside(checkpoint, fingerprint, verdict, under_way),
                )
                under_way = None
                verdict.add(result, (fold_of == number) | ~data.labeled, count)
            return verdict.result(result, data, config, seed)

        return cast(T, folded)

    return decorate


def hidden(data: TrainingData, rows: NDArray[np.bool_]) -> TrainingData:
    """Return the data with the labels of ``rows`` (N,) taken away; as it is where no two classes would be left."""
    labels = np.where(rows, UNLABELED, data.given_labels)
    if len(np.unique(labels[labels != UNLABELED])) < 2:
        return data
    return dataclasses.replace(data, given_labels=labels, trusted=data.trusted_mask & ~rows)


def seed_of(seed: int, number: int) -> int:
    """The seed of training ``number`` (from 0) of a run: its own, then others that follow from it."""
    return seed if number == 0 else derive_seed(seed, "training", number) % 2**31


def _renamed(record: EpochRecord, number: int, count: int) -> EpochRecord:
    """An epoch of training ``number`` as one of the whole run."""
    stage = f"fold {number + 1}" + ("" if record.stage == ONE else f", {record.stage}")
    return dataclasses.replace(record, stage=stage, progress=(number + record.progress) / count)


def _told(on_epoch: OnEpoch, number: int, count: int) -> OnEpoch:
    return lambda record: on_epoch(_renamed(record, number, count))


class _Verdict:
    """What the finished trainings said: sums of their arrays, and how many know each value (are not NaN there)."""

    def __init__(self) -> None:
        self.count = 0
        self._sums: dict[str, NDArray[np.float64]] = {}
        self._known: dict[str, NDArray[np.int32]] = {}
        self._embeddings = np.empty((0, 0), dtype=np.float32)
        self.notes: dict[str, Any] = {}
        """The first training's."""
        self._history: list[EpochRecord] = []
        self._seconds, self._peak_bytes = 0.0, 0

    def add(self, result: EngineResult, judged: NDArray[np.bool_], count: int) -> None:
        """Take in the next training, of ``count``, and what it predicts of the rows (N,) that it did not see."""
        for name, values in _arrays(result, judged).items():
            known = ~np.isnan(values)
            self._sums[name] = self._sums.get(name, 0.0) + np.where(known, values, 0).astype(np.float64)
            self._known[name] = self._known.get(name, 0) + known.astype(np.int32)
        if self.count == 0:
            self._embeddings, self.notes = result.embeddings, dict(result.provenance.notes)
        self._history += [_renamed(record, self.count, count) for record in result.history]
        self._seconds += result.provenance.seconds
        self._peak_bytes = max(self._peak_bytes, result.provenance.peak_memory_bytes)
        self.count += 1

    def result(self, last: EngineResult, data: TrainingData, config: FoldedConfig, seed: int) -> EngineResult:
        """Return what all say together; ``last``: what the last one said."""
        with np.errstate(invalid="ignore"):
            means = {name: total / self._known[name] for name, total in self._sums.items()}
        probs = means["pred_probs"].astype(np.float32)
        probs /= probs.sum(axis=1, keepdims=True)
        margin = test_time_margin(np.log(np.maximum(probs, LEAST)), data.given_labels)
        return dataclasses.replace(
            last,
            pred_probs=probs,
            trust_score=trust_from_evidence(margin),
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
                notes={**self.notes, "folds": self.count},
            ),
            is_out_of_sample=True,
        )

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint: plain values and tensors."""
        return {
            "count": self.count,
            "sums": {name: torch.from_numpy(values) for name, values in self._sums.items()},
            "known": {name: torch.from_numpy(values) for name, values in self._known.items()},
            "embeddings": torch.from_numpy(self._embeddings),
            "notes": self.notes,
            "history": [dataclasses.asdict(record) for record in self._history],
            "seconds": self._seconds,
            "peak_bytes": self._peak_bytes,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        self.count, self.notes = state["count"], state["notes"]
        self._sums = {name: values.numpy() for name, values in state["sums"].items()}
        self._known = {name: values.numpy() for name, values in state["known"].items()}
        self._embeddings = state["embeddings"].numpy()
        self._history = [EpochRecord(**record) for record in state["history"]]
        self._seconds, self._peak_bytes = state["seconds"], state["peak_bytes"]


def _arrays(result: EngineResult, judged: NDArray[np.bool_]) -> dict[str, NDArray[np.floating]]:
    """Return what is averaged, by name; the same names and shapes in every training of a run."""
    return {
        "pred_probs": np.where(judged[:, None], result.pred_probs, np.float32("nan")),
        **{f"signal {name}": values for name, values in result.signals.items()},
        **{f"history {name}": values for name, values in result.signal_history.items()},
    }


class _Inside:
    """The checkpoint of one of several trainings: inside that of the run, beside what the finished ones said."""

    def __init__(
        self, checkpoint: Checkpoint, fingerprint: str, verdict: _Verdict, state: dict[str, Any] | None
    ) -> None:
        self._checkpoint, self._fingerprint, self._verdict, self._state = (
            checkpoint,
            fingerprint,
            verdict,
            state,
        )

    def load(self) -> dict[str, Any] | None:
        return self._state

    def save(self, state: dict[str, Any]) -> None:
        kept = {"verdict": self._verdict.state_dict(), "training": state}
        save_state(self._checkpoint, self._fingerprint, kept)
