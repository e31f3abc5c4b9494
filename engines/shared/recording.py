"""The record of a run while it goes: one line an epoch, and the history of its signals, thinned evenly."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from engines.contract import MAX_SNAPSHOTS, EpochRecord, OnEpoch
from engines.shared.device import Stopwatch


class Recorder:
    """Collects epoch records and signal snapshots, and tells ``on_epoch`` of each.

    Memory: at most 50 snapshots of N float16 a signal, whatever the number of epochs. When the snapshots
    are full, every other one is dropped and only every other epoch is kept from then on; the last epoch is
    always among them.
    """

    def __init__(self, on_epoch: OnEpoch | None, num_samples: int, total_epochs_of_work: int) -> None:
        self._on_epoch = on_epoch
        self._num_samples = num_samples
        self._total = max(1, total_epochs_of_work)
        self._records: list[EpochRecord] = []
        self._snapshots: list[dict[str, NDArray[np.float16]]] = []
        self._last: dict[str, NDArray[np.float16]] | None = None
        self._stride = 1
        self._seen = 0
        self._watch = Stopwatch()

    def epoch(
        self,
        stage: str,
        epoch: int,
        num_epochs: int,
        losses: Mapping[str, float],
        metrics: Mapping[str, float],
        signals: Mapping[str, ArrayLike] | None = None,
        *,
        save: Callable[[], None] | None = None,
    ) -> None:
        """Record one epoch (0-based in its stage), run ``save``, then tell ``on_epoch``.

        ``signals``: (N,) arrays by name, the same names every time. ``save`` (usually the checkpoint) runs
        when the record is in the history and before ``on_epoch`` hears of it, so that whoever stops the run
        from ``on_epoch`` finds this epoch saved.
        """
        snapshot = self._keep(signals) if signals else {}
        record = EpochRecord(
            stage=stage,
            epoch=epoch,
            num_epochs=num_epochs,
            progress=min(1.0, (len(self._records) + 1) / self._total),
            seconds=self._watch.lap(),
            losses={name: float(value) for name, value in losses.items()},
            metrics={name: float(value) for name, value in metrics.items()},
        )
        self._records.append(record)
        if save is not None:
            save()
        if self._on_epoch is not None:
            self._on_epoch(dataclasses.replace(record, signals=snapshot))

    def _keep(self, signals: Mapping[str, ArrayLike]) -> dict[str, NDArray[np.float16]]:
        """Take the snapshot into the history if it is this epoch's turn; returns what was taken."""
        snapshot = {name: _float16(values, self._num_samples, name) for name, values in signals.items()}
        is_turn = self._seen % self._stride == 0
        self._seen += 1
        self._last = None if is_turn else snapshot
        if not is_turn:
            return {}
        self._snapshots.append(snapshot)
        # One place stays free for the last epoch.
        if len(self._snapshots) > MAX_SNAPSHOTS - 1:
            self._snapshots = self._snapshots[::2]
            if (self._seen - 1) % (2 * self._stride):
                self._last = snapshot
            self._stride *= 2
        return snapshot

    @property
    def history(self) -> tuple[EpochRecord, ...]:
        """Every epoch so far, without signals (those are in ``signal_history``)."""
        return tuple(self._records)

    @property
    def seconds(self) -> float:
        """Wall time of all recorded epochs, those before a resume included."""
        return sum(record.seconds for record in self._records)

    @property
    def signal_history(self) -> dict[str, NDArray[np.float16]]:
        """(E, N) float16 by name, E at most 50, evenly thinned, the last epoch last."""
        rows = [*self._snapshots, *([self._last] if self._last is not None else [])]
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]} if rows else {}

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint: plain values and tensors."""
        return {
            "records": [_plain(record) for record in self._records],
            "snapshots": [_as_tensors(row) for row in self._snapshots],
            "last": None if self._last is None else _as_tensors(self._last),
            "stride": self._stride,
            "seen": self._seen,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        self._records = [EpochRecord(**record) for record in state["records"]]
        self._snapshots = [_as_arrays(row) for row in state["snapshots"]]
        self._last = None if state["last"] is None else _as_arrays(state["last"])
        self._stride, self._seen = int(state["stride"]), int(state["seen"])
        self._watch = Stopwatch()


def _float16(values: ArrayLike, num_samples: int, name: str) -> NDArray[np.float16]:
    array = np.asarray(values)
    if array.shape != (num_samples,):
        raise ValueError(f"signal {name!r} is {array.shape}, it must be ({num_samples},).")
    limit = np.finfo(np.float16).max
    return np.clip(array, -limit, limit).astype(np.float16)


def _plain(record: EpochRecord) -> dict[str, Any]:
    fields = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    return {**fields, "losses": dict(record.losses), "metrics": dict(record.metrics), "signals": {}}


def _as_tensors(row: Mapping[str, NDArray[np.float16]]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(values) for name, values in row.items()}


def _as_arrays(row: Mapping[str, Tensor]) -> dict[str, NDArray[np.float16]]:
    return {name: values.numpy() for name, values in row.items()}
