"""The trainings of a comparison or a tournament: each is kept until all are done, so that a kill costs little.

What goes into a training names its file. The same work started again finds what is finished, goes on with what
was under way and trains only the rest.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.bridges import engine_bridge
from auditor.catalog import folders
from auditor.catalog.records import Dataset
from auditor.ground.errors import AuditFailedError
from auditor.ground.files import written_whole
from auditor.ground.progress import OnProgress, Progress
from auditor.pictures import cache

FORGET_AFTER_S = 7 * 86_400.0
"""How long trainings are kept that nobody came back to."""
GO_ON = "start the same again"
SECONDS = "seconds_before"
"""Where a checkpoint keeps what the training took so far."""


@dataclass(frozen=True, eq=False)
class Trained:
    """What one training says of every sample."""

    trust: NDArray[np.float32]
    """(N,), high = the label it was trained on looks right."""
    predicted: NDArray[np.int64]
    """(N,) the most likely class."""
    seconds: float
    """What it took, over all attempts."""


class Trainings:
    """``total`` trainings on the images of one dataset.

    Args:
        kind: of the work; different work keeps its trainings apart.
        device: ``auto``, ``cpu`` or ``cuda``.
        on_progress: called after each epoch and each training; the one under way counts as its share.

    Raises:
        AuditFailedError: there is no such device.
    """

    def __init__(
        self,
        dataset: Dataset,
        kind: str,
        total: int,
        *,
        device: str = "auto",
        on_progress: OnProgress | None = None,
    ) -> None:
        self._dataset, self._total, self._on_progress = dataset, total, on_progress
        self._device = engine_bridge.resolve_device(device)
        self._folder = folders.of_dataset(dataset.id) / f"{kind}-unfinished"
        self._used: list[Path] = []
        self._seconds = 0.0
        for path in self._folder.glob("*"):
            with suppress(FileNotFoundError):  # whoever else runs such work clears up too
                if time.time() - path.stat().st_mtime > FORGET_AFTER_S:
                    path.unlink()

    def train(
        self,
        engine: str,
        labels: NDArray[np.int64],
        *,
        config: Mapping[str, Any],
        seed: int,
        trusted: NDArray[np.bool_] | None = None,
    ) -> Trained:
        """Train one engine on (N,) labels, or return what a run before it left.

        Raises:
            AuditFailedError: it was stopped, or cannot be trained; what was reached is kept.
        """
        path = self._folder / f"{self._digest(config, [engine, seed], labels, trusted)}.npz"
        if path.exists():
            with np.load(path) as kept:
                trained = Trained(kept["trust"], kept["predicted"], float(kept["seconds"]))
        else:
            run = partial(
                engine_bridge.train,
                engine,
                cache.image_cache(self._dataset),
                labels,
                len(self._dataset.class_names),
                config=config,
                trusted=trusted,
                seed=seed,
                device=self._device,
            )
            trained = self._run_and_keep(path, engine, run)
        self._used.append(path)
        self._seconds += trained.seconds
        self._tell(engine, 0.0, 0.0)
        return trained

    def forget(self) -> None:
        """All is done and said: remove what was kept, with what a kill left beside it."""
        for path in self._used:
            for kept in self._folder.glob(f"*{path.stem}*"):
                kept.unlink(missing_ok=True)

    def _run_and_keep(
        self, path: Path, engine: str, run: Callable[..., engine_bridge.EngineResult]
    ) -> Trained:
        checkpoint = _TimedCheckpoint(path.with_suffix(".checkpoint"))
        try:
            result = run(
                on_epoch=lambda record: self._tell(engine, record.progress, checkpoint.seconds),
                checkpoint=checkpoint,
            )
            trained = Trained(
                np.asarray(result.trust_score, dtype=np.float32),
                np.asarray(result.pred_probs.argmax(axis=1), dtype=np.int64),
                checkpoint.seconds,
            )
            with written_whole(path) as beside, beside.open("wb") as file:
                np.savez(file, trust=trained.trust, predicted=trained.predicted, seconds=trained.seconds)
        except (Exception, KeyboardInterrupt) as error:
            text = (
                self._stopped
                if engine_bridge.is_cancelled(error)
                else engine_bridge.remedy(error, go_on=GO_ON)
            )
            if text is None:
                raise
            raise AuditFailedError(text) from error
        checkpoint.remove()
        return trained

    @property
    def _stopped(self) -> str:
        done = f"Stopped after {len(self._used)} of {self._total} trainings"
        return f"{done}; {GO_ON} and it continues where it stopped."

    def _tell(self, engine: str, part: float, seconds: float) -> None:
        """``part`` of the training under way is done and took ``seconds``."""
        if self._on_progress is None:
            return
        done, spent = len(self._used) + part, self._seconds + seconds
        left = spent * (self._total - done) / done if done else None
        self._on_progress(Progress(f"training {engine}", done, self._total, left))

    def _digest(self, config: Mapping[str, Any], asked: list[Any], *arrays: NDArray[Any] | None) -> str:
        """Names a training by all that its result depends on: what an upgrade would change is not taken over."""
        versions, _ = engine_bridge.machine()
        weights = Path(str(config.get("weights") or ""))
        made_of = [
            *(asked, dict(config), self._device, versions, metadata.version("label-auditor")),
            *(self._dataset.id, str(self._dataset.created_at)),
            weights.stat().st_mtime_ns if weights.is_file() else None,
        ]
        digest = hashlib.blake2b(digest_size=16)
        digest.update(json.dumps(made_of, sort_keys=True).encode())
        for array in arrays:
            digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


class _TimedCheckpoint(engine_bridge.FileCheckpoint):
    """Remembers with the state how long the training has taken, over all attempts."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._earlier, self._began = 0.0, time.perf_counter()

    @property
    def seconds(self) -> float:
        """Training time so far."""
        return self._earlier + time.perf_counter() - self._began

    def load(self) -> dict[str, Any] | None:
        state = super().load()
        if state is not None:
            self._earlier = state.pop(SECONDS)
        return state

    def save(self, state: dict[str, Any]) -> None:
        super().save({**state, SECONDS: self.seconds})
