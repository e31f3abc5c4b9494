"""Run engines on a dataset: plan, start, watch, cancel, resume. The only bridge to ``engines``.

An audit is a row in the catalog from the moment it is planned, and its inputs (labels, trusted set) are
frozen to disk then, so that whatever happens to the process, ``resume`` goes on with the same work and ends
with the same result. Training runs in a process of its own, started by the app exactly as by the command
line; it writes a heartbeat, every epoch and every finished engine as it goes. ``engines`` (and so torch) is
imported inside functions: only that process pays for it.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
from numpy.typing import NDArray

from auditor import consensus, embedding, images, results, reviewing
from auditor.catalog import audits, datasets
from auditor.catalog.db import session
from auditor.catalog.models import AuditTable, DatasetTable, EngineRunTable, EpochTable, now
from auditor.errors import AuditFailedError
from auditor.settings import settings

if TYPE_CHECKING:
    from engines.contract import EngineSpec, EpochRecord, SignalSpec

DEFAULT_ENGINES = ("cross_entropy", "coteaching", "umn", "l2b", "choicenet")
PRESETS = ("quick", "standard", "paper")
CHECKPOINT_INTERVAL_S = 10.0
"""Least time between two checkpoint files: small epochs would otherwise be spent on writing."""


@dataclass(frozen=True)
class EngineChoice:
    """One engine as a menu shows it."""

    name: str
    title: str
    paper: str
    uses_trusted: bool
    signals: Mapping[str, SignalSpec]


@dataclass(frozen=True)
class EngineProgress:
    """Where one engine of an audit stands."""

    engine: str
    status: str
    stage: str
    progress: float
    """0 to 1."""
    seconds: float
    seconds_left: float | None
    error: str | None


@dataclass(frozen=True)
class AuditOverview:
    """Where an audit stands."""

    audit_id: int
    state: str
    """``queued``, ``running``, ``finished``, ``failed``, ``cancelled`` or ``dead`` (can be resumed)."""
    engines: list[EngineProgress]
    seconds_left: float | None
    """For the whole audit, once every engine that is under way has finished an epoch."""
    error: str | None

    @property
    def is_over(self) -> bool:
        """No process is working on it."""
        return self.state in ("finished", "failed", "cancelled", "dead")


def engine_choices() -> list[EngineChoice]:
    """Every engine of the registry in the order of ``DEFAULT_ENGINES``."""
    from engines.registry import ENGINES

    names = [name for name in DEFAULT_ENGINES if name in ENGINES]
    names += [name for name in ENGINES if name not in names]
    specs = [ENGINES[name] for name in names]
    return [EngineChoice(s.name, s.title, s.paper, s.uses_trusted, dict(s.signals)) for s in specs]


def machine() -> tuple[dict[str, str], str]:
    """Versions of what training runs on, and the device that ``auto`` means here."""
    from engines.device import describe_device, resolve_device, versions

    device = resolve_device("auto")
    return versions(), str(device) if device.type == "cpu" else f"{device} {describe_device(device)}"


def newest_unfinished(dataset_name: str) -> int:
    """The newest audit of the dataset that can be resumed.

    Raises:
        AuditFailedError: every audit of it is finished or running, or there is none.
    """
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        assert dataset.id is not None
        for audit in audits.of_dataset(open_session, dataset.id):
            if audits.state(audit) in ("cancelled", "failed", "dead", "queued"):
                assert audit.id is not None
                return audit.id
    raise AuditFailedError(f"Dataset {dataset_name!r} has no audit to resume; start one without --resume.")


def plan(
    dataset_name: str,
    engines: Sequence[str] | None = None,
    *,
    preset: str = "quick",
    device: str = "auto",
    seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    map_method: str = "umap",
) -> int:
    """Register an audit and freeze its inputs; nothing runs yet. Returns the audit's id.

    ``options``: by engine, config fields that differ from the preset. ``map_method``: ``"umap"`` or ``"pca"``,
    which lays out a map in a blink where UMAP first compiles for half a minute.

    Raises:
        NotFoundError: no such dataset.
        AuditFailedError: an unknown engine, preset, device or config field, or labels that cannot be audited.
    """
    names = list(engines or [choice.name for choice in engine_choices()])
    configs = _configs(names, preset, options or {})
    resolved = _resolve_device(device)
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        assert dataset.id is not None
        audit = AuditTable(
            dataset_id=dataset.id,
            preset=preset,
            device=resolved,
            seed=seed,
            engines=names,
            options={"map": map_method},
        )
        runs = [EngineRunTable(audit_id=0, engine=name, config=_plain(configs[name])) for name in names]
        audit_id = audits.create(open_session, audit, runs)
    labels, trusted = _inputs(dataset)
    folder = settings().audit_folder(audit_id)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "inputs.npz", labels=labels, trusted=trusted)
    for name in names:
        (folder / f"{name}.json").write_text(json.dumps(_about(name), ensure_ascii=False))
    return audit_id


def start_in_background(audit_id: int) -> int:
    """Start the audit in a process of its own, which outlives its parent; returns the process id."""
    folder = settings().audit_folder(audit_id)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "worker.log").open("ab") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "auditor", "worker", str(audit_id)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    with session() as open_session:
        started = psutil.Process(worker.pid).create_time()
        audits.set_status(
            open_session,
            audit_id,
            "queued",
            pid=worker.pid,
            process_started=started,
            cancel_requested=False,
            error=None,
        )
    # Reap the child when it ends; without this it would stay a zombie of a long-lived parent.
    threading.Thread(target=worker.wait, daemon=True).start()
    return worker.pid


def resume(audit_id: int) -> int:
    """Go on with an audit that was cancelled, failed or killed; returns the process id.

    Raises:
        AuditFailedError: it is finished or still running.
    """
    with session() as open_session:
        state = audits.state(audits.get(open_session, audit_id))
    if state in ("running", "finished"):
        raise AuditFailedError(f"Audit {audit_id} is {state}; there is nothing to resume.")
    return start_in_background(audit_id)


def cancel(audit_id: int) -> None:
    """Ask a running audit to stop after its current epoch; what it reached is kept."""
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        audit.cancel_requested = True
        open_session.add(audit)


def overview(audit_id: int) -> AuditOverview:
    """Where the audit and each of its engines stand, with the time left."""
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        runs = audits.runs(open_session, audit_id)
    rows = [
        EngineProgress(
            run.engine, run.status, run.stage, run.progress, run.seconds, audits.seconds_left(run), run.error
        )
        for run in runs
    ]
    lefts = [row.seconds_left for row in rows]
    total = None if any(left is None for left in lefts) else float(sum(left or 0.0 for left in lefts))
    return AuditOverview(audit_id, audits.state(audit), rows, total, audit.error)


def run(audit_id: int) -> None:
    """Do the work of an audit in this process, from wherever an earlier attempt left it.

    Raises:
        AuditFailedError: it could not be finished; the catalog holds the same text.
    """
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        dataset = open_session.get(DatasetTable, audit.dataset_id)
        assert dataset is not None
        audits.set_status(
            open_session,
            audit_id,
            "running",
            pid=os.getpid(),
            process_started=psutil.Process().create_time(),
            started_at=audit.started_at or now(),
            heartbeat_at=now(),
            error=None,
        )
    with _Heartbeat(audit_id) as heartbeat, _explaining(audit_id):
        for name in audit.engines:
            _run_engine(audit, dataset, name, heartbeat)
        consensus.settle(audit_id)
        with session() as open_session:
            audits.set_status(open_session, audit_id, "finished", finished_at=now(), pid=None)


class FileCheckpoint:
    """An engine's state as one file: written beside, flushed, renamed, so that it is whole or absent."""

    def __init__(self, path: Path, *, min_interval_s: float = CHECKPOINT_INTERVAL_S) -> None:
        self.path = path
        self._min_interval_s = min_interval_s
        self._saved_at = -float("inf")

    def load(self) -> dict[str, Any] | None:
        """The last saved state, or None."""
        from engines.checkpoint import deserialize_state

        return deserialize_state(self.path.read_bytes()) if self.path.exists() else None

    def save(self, state: dict[str, Any]) -> None:
        """Keep ``state`` unless the last one is younger than the interval."""
        from engines.checkpoint import serialize_state

        if time.monotonic() - self._saved_at < self._min_interval_s:
            return
        beside = self.path.with_suffix(".writing")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            file.write(serialize_state(state))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)
        self._saved_at = time.monotonic()

    def remove(self) -> None:
        """Delete the file once the result stands."""
        self.path.unlink(missing_ok=True)


class _Heartbeat:
    """Says every two seconds that the audit lives and hears whether somebody wants it to stop."""

    def __init__(self, audit_id: int) -> None:
        self._audit_id = audit_id
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self.cancelled = False

    def __enter__(self) -> _Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._stop.wait(audits.HEARTBEAT_S):
            with session() as open_session:
                self.cancelled = audits.beat(open_session, self._audit_id) or self.cancelled


def _run_engine(audit: AuditTable, dataset: DatasetTable, name: str, heartbeat: _Heartbeat) -> None:
    from engines.registry import ENGINES

    assert audit.id is not None
    with session() as open_session:
        row = audits.run(open_session, audit.id, name)
        if row.status == "finished":
            return
        row.status, row.error = "running", None
        open_session.add(row)
    spec = ENGINES[name]
    interval = float(os.environ.get("AUDITOR_CHECKPOINT_INTERVAL_S", CHECKPOINT_INTERVAL_S))
    checkpoint = FileCheckpoint(
        settings().audit_folder(audit.id) / f"{name}.checkpoint", min_interval_s=interval
    )
    watch = _EpochWatch(audit.id, name, heartbeat, images.true_labels(dataset), row.seconds)
    result = spec.train(
        _training_data(audit.id, dataset),
        spec.config_type(**row.config),
        seed=audit.seed,
        device=audit.device,
        on_epoch=watch,
        checkpoint=checkpoint,
    )
    arrays: dict[str, NDArray[Any]] = {
        "pred_probs": result.pred_probs,
        "trust_score": result.trust_score,
        "embeddings": result.embeddings,
        "map": embedding.map_2d(result.embeddings, quick=audit.options.get("map") == "pca"),
    }
    arrays |= {f"signal_{key}": values for key, values in result.signals.items()}
    arrays |= {f"history_{key}": values for key, values in result.signal_history.items()}
    results.store(results.engine_folder(audit.id, name), arrays)
    with session() as open_session:
        row = audits.run(open_session, audit.id, name)
        row.status, row.progress, row.seconds = "finished", 1.0, watch.seconds
        row.provenance = _plain(result.provenance) | {"is_out_of_sample": result.is_out_of_sample}
        open_session.add(row)
    checkpoint.remove()


class _EpochWatch:
    """Writes each epoch to the catalog and stops the run when somebody asked for it."""

    def __init__(
        self,
        audit_id: int,
        engine: str,
        heartbeat: _Heartbeat,
        true_labels: NDArray[np.int64] | None,
        seconds: float,
    ) -> None:
        self._audit_id, self._engine, self._heartbeat = audit_id, engine, heartbeat
        self._earlier, self._began = seconds, time.monotonic()
        self._is_right: NDArray[np.bool_] | None = None
        if true_labels is not None:
            labels, _ = results.trained_labels(audit_id)
            self._is_right = labels == true_labels

    @property
    def seconds(self) -> float:
        """Training time over all attempts."""
        return self._earlier + time.monotonic() - self._began

    def __call__(self, record: EpochRecord) -> None:
        from engines.contract import TrainingCancelled

        metrics = {key: float(value) for key, value in record.metrics.items()}
        if self._is_right is not None and "selected" in record.signals:
            kept = np.nan_to_num(np.asarray(record.signals["selected"], dtype=np.float64))
            if kept.sum() > 0:
                metrics["label_precision"] = float((kept * self._is_right).sum() / kept.sum())
        with session() as open_session:
            audits.record_epoch(
                open_session,
                EpochTable(
                    audit_id=self._audit_id,
                    engine=self._engine,
                    stage=record.stage,
                    epoch=record.epoch,
                    num_epochs=record.num_epochs,
                    progress=record.progress,
                    seconds=record.seconds,
                    losses={key: float(value) for key, value in record.losses.items()},
                    metrics=metrics,
                ),
            )
            row = audits.run(open_session, self._audit_id, self._engine)
            row.progress, row.seconds, row.stage = record.progress, self.seconds, record.stage
            open_session.add(row)
        if self._heartbeat.cancelled:
            raise TrainingCancelled("cancelled on request")


class _explaining:  # noqa: N801 - reads as a statement
    """Turns whatever ends an audit into its status and one line with the remedy."""

    def __init__(self, audit_id: int) -> None:
        self._audit_id = audit_id

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        from engines.contract import EngineError, TrainingCancelled

        if error is None:
            return
        if isinstance(error, (TrainingCancelled, KeyboardInterrupt)):
            self._end("cancelled", None)
            raise AuditFailedError(
                f"Audit {self._audit_id} was cancelled; `--resume` goes on where it stopped."
            ) from error
        text = _remedy(error)
        expected = isinstance(error, (EngineError, AuditFailedError)) or text is not None
        if not expected:
            traceback.print_exc()
            log = settings().audit_folder(self._audit_id) / "worker.log"
            text = f"{type(error).__name__}: {error} (details in {log}); `--resume` tries again."
        text = text or str(error)
        self._end("failed", text)
        raise AuditFailedError(text) from error

    def _end(self, status: str, error: str | None) -> None:
        with session() as open_session:
            audits.set_status(
                open_session, self._audit_id, status, error=error, pid=None, cancel_requested=False
            )
            for row in audits.runs(open_session, self._audit_id):
                if row.status == "running":
                    row.status, row.error = status, error
                    open_session.add(row)


def _remedy(error: BaseException) -> str | None:
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"The disk of {settings().home} is full; free some space, then resume. Nothing was lost."
    if isinstance(error, MemoryError) and not str(error):
        return "Not enough memory; choose a smaller batch_size or resident=no (streamed), then resume."
    return None


def _configs(names: Sequence[str], preset: str, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    from engines.contract import EngineInputError
    from engines.registry import ENGINES

    unknown = [name for name in [*names, *options] if name not in ENGINES]
    if unknown:
        raise AuditFailedError(f"There is no engine {unknown[0]!r}; choose from {', '.join(ENGINES)}.")
    if preset not in PRESETS:
        raise AuditFailedError(f"There is no preset {preset!r}; choose from {', '.join(PRESETS)}.")
    configs = {}
    for name in names:
        config = ENGINES[name].config_type.preset(preset)
        fields = {field.name for field in dataclasses.fields(config)}
        wrong = [key for key in options.get(name, {}) if key not in fields]
        if wrong:
            raise AuditFailedError(
                f"Engine {name} has no setting {wrong[0]!r}; it has {', '.join(sorted(fields))}."
            )
        try:
            configs[name] = dataclasses.replace(config, **options.get(name, {}))
        except EngineInputError as error:
            raise AuditFailedError(str(error)) from error
    return configs


def _resolve_device(device: str) -> str:
    from engines.contract import EngineError
    from engines.device import resolve_device

    try:
        return str(resolve_device(device))
    except EngineError as error:
        raise AuditFailedError(str(error)) from error


def _inputs(dataset: DatasetTable) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    assert dataset.id is not None
    labels, trusted = reviewing.labels_to_train_on(dataset.id)
    if not (labels >= 0).any():
        raise AuditFailedError(f"Dataset {dataset.name!r} has no labels at all; there is nothing to audit.")
    return labels, trusted


def _training_data(audit_id: int, dataset: DatasetTable) -> Any:
    from engines.contract import TrainingData

    labels, trusted = results.trained_labels(audit_id)
    return TrainingData(
        images=images.image_cache(dataset),
        given_labels=labels,
        num_classes=len(dataset.class_names),
        trusted=trusted,
    )


def _about(name: str) -> dict[str, Any]:
    from engines.registry import ENGINES

    spec: EngineSpec = ENGINES[name]
    signals = {key: dataclasses.asdict(signal) for key, signal in spec.signals.items()}
    return {"title": spec.title, "paper": spec.paper, "signals": signals}


def _plain(config: Any) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config), default=_json_value))
    return plain


def _json_value(value: Any) -> Any:
    if isinstance(value, (np.integer, np.floating, np.bool_)):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


OnProgress = Callable[[AuditOverview], None]


def follow(audit_id: int, on_progress: OnProgress, *, every_s: float = 0.5) -> AuditOverview:
    """Watch an audit that runs elsewhere until nothing works on it any more; returns the last overview."""
    while True:
        seen = overview(audit_id)
        on_progress(seen)
        if seen.is_over:
            return seen
        time.sleep(every_s)
