"""The trainings of a comparison: each is kept until all are done, so that a kill costs little.

They are tasks of whichever executor is chosen, one after another, side by side or on a cluster. What goes into a
training names its file. The same work started again finds what is finished, goes on with what was under way and
trains only the rest.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.bridges import engine_bridge
from auditor.catalog import folders
from auditor.catalog.records import Dataset
from auditor.ground.errors import AuditFailedError
from auditor.ground.files import load_array, written_whole
from auditor.ground.progress import OnProgress, Progress
from auditor.pictures import cache
from auditor.work import Event, Outcome, Train, executor_for, threads_by_engine

FORGET_AFTER_S = 7 * 86_400.0
"""How long trainings are kept that nobody came back to."""
GO_ON = "start the same again"


@dataclass(frozen=True, eq=False)
class Training:
    """One engine on one set of labels."""

    engine: str
    labels: NDArray[np.int64]
    """(N,)"""
    config: Mapping[str, Any]
    seed: int
    trusted: NDArray[np.bool_] | None = None
    """(N,) labels that are surely right; None = none is."""


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
    """Trainings on the images of one dataset.

    Args:
        kind: of the work; different work keeps its trainings apart.
        device: ``auto``, ``cpu`` or ``cuda``.
        on: where they train (``executors.ExecutorChoice``).
        on_progress: called after each epoch and each training, and several times a second between; those under way
            count as their share. What it raises stops all.

    Raises:
        AuditFailedError: there is no such device.
    """

    def __init__(
        self,
        dataset: Dataset,
        kind: str,
        *,
        device: str = "auto",
        on: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._dataset, self._on, self._on_progress = dataset, on, on_progress
        self._device = engine_bridge.resolve_device(device)
        self._folder = folders.of_dataset(dataset.id) / f"{kind}-unfinished"
        self._used: set[Path] = set()
        for path in self._folder.glob("*"):
            with suppress(FileNotFoundError):  # whoever else runs such work clears up too
                if time.time() - path.stat().st_mtime > FORGET_AFTER_S:
                    _remove(path)

    def train(self, trainings: Sequence[Training]) -> list[Trained]:
        """Do all of them, except what a run before left, and return what each says.

        Raises:
            AuditFailedError: it was stopped, or one cannot be trained; what was reached is kept.
        """
        paths = [self._folder / f"{self._digest(one)}.npz" for one in trainings]
        self._used |= set(paths)
        waiting = {path: one for path, one in zip(paths, trainings, strict=True) if not path.exists()}
        watch = _Watch(self._folder, len(set(paths)), self._on_progress)
        # By all of them, so that those of a run that goes on compute as the others did.
        threads = threads_by_engine([path.stem for path in dict.fromkeys(paths)], [], self._device, self._on)
        try:
            specs = [self._spec(path, one, threads.get(path.stem)) for path, one in waiting.items()]
            watch.begin(specs)
            executor_for(self._on).run(specs, watch)
        except (Exception, KeyboardInterrupt) as error:
            text = (
                watch.stopped
                if engine_bridge.is_cancelled(error)
                else engine_bridge.remedy(error, go_on=GO_ON)
            )
            if text is None:
                raise
            raise AuditFailedError(text) from error
        return [_kept(path) for path in paths]

    def forget(self) -> None:
        """All is done and said: remove what was kept, with what a kill left beside it."""
        for path in self._used:
            for kept in self._folder.glob(f"*{path.stem}*"):
                _remove(kept)

    def _spec(self, path: Path, one: Training, threads: int | None) -> Train:
        """The task of one training; its inputs are written."""
        inputs = path.with_suffix(".inputs")
        trusted = np.zeros(len(one.labels), dtype=bool) if one.trusted is None else one.trusted
        if not inputs.exists():  # a store knows what was reached by the file
            with written_whole(inputs) as beside, beside.open("wb") as file:
                np.savez(file, labels=one.labels, trusted=trusted)
        return Train(
            name=path.stem,
            engine=one.engine,
            config=one.config,
            num_classes=len(self._dataset.class_names),
            inputs=str(inputs),
            out=str(path.with_suffix("")),
            checkpoint=str(path.with_suffix(".checkpoint")),
            images=str(cache.image_cache_path(self._dataset)),
            seed=one.seed,
            device=self._device,
            threads=threads,
        )

    def _digest(self, one: Training) -> str:
        """Names a training by all that its result depends on: what an upgrade would change is not taken over."""
        versions, _ = engine_bridge.machine()
        weights = Path(str(one.config.get("weights") or ""))
        made_of = [
            *(
                [one.engine, one.seed],
                dict(one.config),
                self._device,
                versions,
                metadata.version("label-auditor"),
            ),
            *(self._dataset.id, str(self._dataset.created_at)),
            weights.stat().st_mtime_ns if weights.is_file() else None,
        ]
        digest = hashlib.blake2b(digest_size=16)
        digest.update(json.dumps(made_of, sort_keys=True).encode())
        for array in (one.labels, one.trusted):
            digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


class _Watch:
    """A ``Listener``: keeps what each training says, and tells how far all are.

    A training that fails stops the others: without it there is no answer.
    """

    def __init__(self, folder: Path, total: int, on_progress: OnProgress | None) -> None:
        self._folder, self._total, self._on_progress = folder, total, on_progress
        self._specs: dict[str, Train] = {}
        self._shares: dict[str, float] = {}
        self._num_done = self._num_before = 0
        self._began = time.monotonic()

    def begin(self, specs: Sequence[Train]) -> None:
        """Those to do; all others were done before."""
        self._specs = {spec.name: spec for spec in specs}
        self._num_done = self._num_before = self._total - len(specs)
        self.tick()

    def started(self, task: str) -> None:
        """See ``Listener``."""
        self._shares.setdefault(task, 0.0)

    def heard(self, event: Event) -> None:
        """See ``Listener``."""
        self._shares[event.task] = event.progress
        self.tick()

    def ended(self, outcome: Outcome) -> None:
        """See ``Listener``."""
        if outcome.result is None:
            again = "" if outcome.is_explained else f"; {GO_ON} to try again."
            raise AuditFailedError(f"{outcome.error}{again}")
        self._keep(self._specs[outcome.task], float(outcome.result["provenance"]["seconds"]))
        self._shares.pop(outcome.task, None)
        self._num_done += 1
        self.tick()

    def tick(self) -> None:
        """See ``Listener``."""
        if self._on_progress is None:
            return
        done = self._num_done + sum(self._shares.values())
        gained = done - self._num_before
        left = (time.monotonic() - self._began) * (self._total - done) / gained if gained else None
        engines = dict.fromkeys(self._specs[task].engine for task in self._shares)
        self._on_progress(Progress(f"training {', '.join(engines)}".strip(), done, self._total, left))

    @property
    def stopped(self) -> str:
        """Return what whoever stopped it is told."""
        done = f"Stopped after {self._num_done} of {self._total} trainings"
        return f"{done}; {GO_ON} and it continues where it stopped."

    def _keep(self, spec: Train, seconds: float) -> None:
        """Of all that the task left, what is asked of it."""
        out = Path(spec.out)
        trust, chances = (
            load_array(out / f"{name}.npy", remedy=GO_ON) for name in ("trust_score", "pred_probs")
        )
        path = self._folder / f"{spec.name}.npz"
        with written_whole(path) as beside, beside.open("wb") as file:
            np.savez(
                file,
                trust=np.asarray(trust, dtype=np.float32),
                predicted=np.asarray(chances.argmax(axis=1), dtype=np.int64),
                seconds=seconds,
            )
        for left in (out, Path(spec.inputs), Path(spec.checkpoint)):
            _remove(left)


def _kept(path: Path) -> Trained:
    with np.load(path) as kept:
        return Trained(kept["trust"], kept["predicted"], float(kept["seconds"]))


def _remove(path: Path) -> None:
    """A file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
