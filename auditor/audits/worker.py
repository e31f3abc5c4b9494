"""The work of an audit, done in this process: every engine, then the consensus.

Each epoch and each finished engine is written immediately to the catalog and to disk.
Whatever ends it (Ctrl-C, a full disk, too little memory, ``kill -9``) leaves a state that the next run goes
on from.
"""

from __future__ import annotations

import contextlib
import shutil
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from auditor import jobs, kind
from auditor.audits import copies, plan, shards
from auditor.backbones import features
from auditor.backbones.features import FeatureSource
from auditor.bridges import backbone_bridge, engine_bridge
from auditor.catalog import audits, datasets, folders
from auditor.catalog import jobs as job_rows
from auditor.catalog.db import ask, session
from auditor.catalog.records import Audit, Dataset, EngineRun, Epoch, now
from auditor.ground.errors import AuditFailedError, CatalogBusyError
from auditor.ground.files import load_array, new_folder_beside, written_whole
from auditor.ground.progress import OnProgress, Progress, Ticker
from auditor.pictures import cache, plain
from auditor.results import arrays, settle
from auditor.work import (
    LAYOUT,
    PUT_IT_BACK,
    Event,
    ExecutorChoice,
    Layout,
    Outcome,
    Train,
    executor_for,
    store_arrays,
)

if TYPE_CHECKING:
    from auditor.bridges.engine_bridge import EpochRecord


def run_audit(audit_id: int, *, progress: OnProgress | None = None) -> None:
    """Do the work of an audit in this process, from wherever an earlier attempt left it; see ``work``.

    ``progress`` hears how far it is.

    Raises:
        JobRefusedError: another process works on it.
        AuditFailedError: it could not be finished; the catalog holds the same text.
    """
    jobs.run(plan.job_of(audit_id), lambda _, tell: work_on_audit(audit_id, tell), progress=progress)


def work_on_audit(audit_id: int, tell: jobs.Reporter) -> None:
    """Do the audit's part of its job: what its kind of labels needs.

    Raises:
        AuditFailedError: it could not be finished; the catalog holds the same text.
    """
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        dataset = datasets.by_id(open_session, audit.dataset_id)
        audits.set_status(open_session, audit_id, "running", started_at=audit.started_at or now(), error=None)
    with explaining(audit_id):
        kind.of(dataset).run(audit, dataset, tell)
        jobs.patiently(lambda: _finish(audit_id))


def run_on_classes(audit: Audit, dataset: Dataset, tell: jobs.Reporter) -> None:
    """Look at the features, let every engine train, and find the consensus."""
    found = features_for(audit, dataset, tell)
    if found is not None:
        _reduce(audit, dataset, found)
    if audit.options.further:
        source = arrays.features_of(audit)
        assert source is not None
        features.check_weights(source)
    given = folders.of_audit(audit.id) / "given.npy"
    with session() as open_session, written_whole(given) as beside, beside.open("wb") as file:
        np.save(file, datasets.given_labels(open_session, dataset.id))
    if found is not None:
        _first_list(audit, dataset, tell, given)
        _look_at_features(audit, dataset, tell)
    train_engines(audit, dataset, tell, given=given)
    jobs.patiently(lambda: settle.settle(audit.id))


def _first_list(audit: Audit, dataset: Dataset, tell: jobs.Reporter, given: Path) -> None:
    """Rank by the noise model alone, seconds after the features: nobody waits for the map and the engines."""
    with session() as open_session:
        runs = [audits.run(open_session, audit.id, name) for name in audit.engines]
    first = audit.engines[0]
    if (
        len(runs) > 1
        and engine_bridge.needs_features(first)
        and all(run.status != "finished" for run in runs)
    ):
        with contextlib.suppress(AuditFailedError):  # it is tried again among the others, which go on
            train_engines(audit, dataset, tell, given=given, only=first)
            jobs.patiently(lambda: settle.settle(audit.id))


def features_for(audit: Audit, dataset: Dataset, tell: jobs.Reporter) -> NDArray[np.floating] | None:
    """The audit's features, computed where they are not there yet."""
    source = arrays.features_of(audit)
    if source is None:
        return None
    if source.weights is None or features.is_complete(dataset.id, source):
        return features.load(dataset.id, source)
    for part in source.each:
        if not features.is_complete(dataset.id, part):
            _embed(audit, dataset, part, tell)
    if source.parts:
        features.join(dataset.id, source)
    return features.load(dataset.id, source)


def _embed(audit: Audit, dataset: Dataset, source: FeatureSource, tell: jobs.Reporter) -> None:
    """Let one backbone see the images that it has not seen yet."""
    ticker = Ticker(tell, f"{plan.EMBEDDING} with {source.name}", dataset.num_samples)
    images, device = cache.image_cache_path(dataset), audit.device
    if ExecutorChoice.of(audit.options.on).is_ray:
        executor = executor_for(audit.options.on)
        shards.embed(dataset.id, images, source, executor, device=device, on_rows=ticker.at)
    else:
        features.embed(dataset.id, images, source, device=device, on_rows=lambda done, _: ticker.at(done))


def _reduce(audit: Audit, dataset: Dataset, found: NDArray[np.floating]) -> None:
    """Keep the directions of the features that are worth reading, once an audit: all else reads these."""
    folder = arrays.engine_folder(audit.id, arrays.REDUCED)
    if folder.exists():
        return
    labels, _ = arrays.trained_labels(audit.id)
    with new_folder_beside(folder) as building:
        backbone_bridge.reduce_features(found, labels, len(dataset.class_names), building / "features.npy")
        building.rename(folder)


def _look_at_features(audit: Audit, dataset: Dataset, tell: jobs.Reporter) -> None:
    """The map, the neighbours and the near copies by the features' first view, once an audit."""
    folder = arrays.engine_folder(audit.id, arrays.FEATURES)
    if (folder / "neighbours.npy").exists():
        return
    tell(Progress(plan.LAYING_OUT, 0, len(audit.engines), None))
    spec = Layout(
        features=str(arrays.reduced_file(audit.id)),
        out=str(folder.with_name(LAYOUT)),
        draws=audit.options.map,
    )
    executor_for(audit.options.on).run([spec], _Unheard(tell))
    drawn, near = (
        load_array(Path(spec.out) / f"{name}.npy", remedy=PUT_IT_BACK) for name in ("map", "neighbours")
    )
    pairs = copies.find(cache.image_cache(dataset), near)
    jobs.patiently(lambda: copies.add(dataset, pairs))
    plain.light_and_sharp(dataset)  # a queue asks for it, and then would wait
    store_arrays(folder, {"map": drawn, "neighbours": near})
    shutil.rmtree(spec.out, ignore_errors=True)


class _Unheard:
    """Listens to a task that says nothing on the way; where it fails, the audit does."""

    def __init__(self, tell: jobs.Reporter) -> None:
        self._tell = tell

    def started(self, task: str) -> None:
        """See ``Listener``."""

    def heard(self, event: Event) -> None:
        """See ``Listener``."""

    def ended(self, outcome: Outcome) -> None:
        """See ``Listener``."""
        if outcome.result is None:
            raise AuditFailedError(outcome.error or "")

    def tick(self) -> None:
        """See ``Listener``."""
        self._tell.stop_if_asked()


def _finish(audit_id: int) -> None:
    """Say that the audit is done."""
    ask(audits.set_status, audit_id, "finished", finished_at=now())


def train_engines(
    audit: Audit,
    dataset: Dataset,
    tell: jobs.Reporter,
    *,
    given: Path,
    only: str | None = None,
) -> None:
    """Let an executor train every engine that is not finished, and write down what it hears.

    Args:
        audit: planned.
        dataset: that it is about.
        tell: hears how far all engines are.
        given: ``.npy`` of the labels that trust is about.
        only: the one engine to train now; None: all.

    Raises:
        AuditFailedError: an engine failed; the others are finished.
    """
    with session() as open_session:
        runs = [audits.run(open_session, audit.id, name) for name in audit.engines]
    left = [run for run in runs if run.status != "finished" and only in (None, run.engine)]
    specs = _specs(audit, dataset, left, given)
    listener = _Recording(audit, tell, runs, specs)
    if specs:
        listener.tell()
        executor_for(audit.options.on).run(specs, listener)
    if listener.errors:
        raise AuditFailedError(" ".join(dict.fromkeys(listener.errors)))


def _specs(audit: Audit, dataset: Dataset, runs: Sequence[EngineRun], given: Path) -> list[Train]:
    """Return what is left to train, as tasks."""
    if not runs:
        return []
    place = folders.of_audit(audit.id)
    source = arrays.features_of(audit)
    heads = audit.options.heads
    features_file, is_laid_out = None, kind.of(dataset).is_laid_out
    if source is not None:
        features_file = str(arrays.reduced_file(audit.id) if is_laid_out else _raw(dataset, source))
    images = str(cache.image_cache_path(dataset))
    truth = cache.folder(dataset) / cache.TRUE_LABELS
    waits = {run.engine for run in runs}
    specs: list[Train] = []
    for run in runs:
        seen = features_file
        if run.engine in heads:
            seen = str(arrays.engine_folder(audit.id, plan.TRUNK) / "features.npy")
        if run.engine in audit.options.further:
            seen = None
        has_own_map = is_laid_out and (seen is None or source is None)  # of features all engines have one
        spec = Train(
            name=run.engine,
            engine=run.engine,
            config=run.config,
            num_classes=len(dataset.class_names),
            inputs=str(place / "inputs.npz"),
            out=str(place / run.engine),
            checkpoint=str(place / f"{run.engine}.checkpoint"),
            images=images if seen is None else None,
            features=seen,
            given=str(given),
            task=dataset.task,
            truth=str(truth) if truth.exists() else None,
            draws=audit.options.map if has_own_map else None,
            finds_neighbours=has_own_map and run.engine == audit.engines[0] and source is None,  # for cards
            seed=audit.seed,
            device=audit.options.devices.get(run.engine, audit.device),
            threads=audit.options.threads.get(run.engine),
            after=(plan.TRUNK,) if run.engine in heads and plan.TRUNK in waits else (),
        )
        specs.append(spec)
    if any(spec.images is not None for spec in specs):
        cache.image_cache(dataset)  # says in words where it is gone or damaged
    return specs


def _raw(dataset: Dataset, source: FeatureSource) -> Path:
    """The file of a backbone's features as they are."""
    features.load(dataset.id, source)
    return features.folder(dataset.id, source) / "features.npy"


def begin(audit_id: int, engine: str) -> None:
    """Say that the engine is under way."""
    ask(audits.set_run, audit_id, engine, status="running", error=None)


class _Recording:
    """Writes what the audit's tasks say to the catalog, and stops them when somebody asked for it."""

    def __init__(
        self,
        audit: Audit,
        tell: jobs.Reporter,
        runs: Sequence[EngineRun],
        specs: Sequence[Train],
    ) -> None:
        self.errors: list[str] = []
        self._audit, self._tell = audit, tell
        self._done = {run.engine: 1.0 if run.status == "finished" else run.progress for run in runs}
        self._specs = {spec.name: spec for spec in specs}
        self._at_work: list[str] = []
        self._watches: dict[str, EpochWatch] = {}
        self._earlier = {run.engine: run.seconds for run in runs}

    def started(self, task: str) -> None:
        """See ``Listener``."""
        engine = self._specs[task].engine
        if engine not in self._watches:
            jobs.patiently(lambda: begin(self._audit.id, engine))
            self._watches[engine] = EpochWatch(self._audit.id, engine, self._earlier[engine])
        self._watches[engine].started()
        self._at_work.append(task)
        self.tell()

    def heard(self, event: Event) -> None:
        """See ``Listener``."""
        engine = self._specs[event.task].engine
        self._watches[engine](event)
        self._done[engine] = event.progress
        self.tell()

    def ended(self, outcome: Outcome) -> None:
        """See ``Listener``."""
        spec = self._specs[outcome.task]
        if outcome.task in self._at_work:
            self._at_work.remove(outcome.task)
        watch = self._watches.get(spec.engine)
        if watch is not None:
            watch.ended()
        if outcome.result is None:
            self._failed(spec.engine, outcome)
        elif watch is not None:
            provenance = outcome.result["provenance"]
            jobs.patiently(lambda: watch.finish(provenance))
            self._done[spec.engine] = 1.0
        self.tell()

    def _failed(self, engine: str, outcome: Outcome) -> None:
        """Say why."""
        text = outcome.error or ""
        if not outcome.is_explained:
            log = jobs.log_file(plan.job_of(self._audit.id))
            text = f"{text} (details in {log}); resume the audit to try again."
        self.errors.append(text)
        jobs.patiently(lambda: self._set(engine, status="failed", error=text))

    def tick(self) -> None:
        """See ``Listener``."""
        self.tell()

    def tell(self) -> None:
        """Tell how far all engines are; ``durations`` knows the time left."""
        at_work = {self._specs[task].engine for task in self._at_work}
        names = [name for name in self._audit.engines if name in at_work]
        stage = f"{plan.TRAINING} {', '.join(names)}" if names else plan.TRAINING
        self._tell(Progress(stage, sum(self._done.values()), len(self._audit.engines), None))

    def _set(self, engine: str, **values: Any) -> None:
        ask(audits.set_run, self._audit.id, engine, **values)


class EpochWatch:
    """Writes each epoch of one engine to the catalog."""

    def __init__(self, audit_id: int, engine: str, seconds: float) -> None:
        self._audit_id, self._engine = audit_id, engine
        self._spent = seconds
        self._began: float | None = None
        self._waiting: list[Epoch] = []

    def started(self) -> None:
        """An attempt begins."""
        self._began = time.monotonic()

    def ended(self) -> None:
        """The attempt is over."""
        self._spent, self._began = self.seconds, None

    @property
    def seconds(self) -> float:
        """Training time over all attempts."""
        return self._spent + (0.0 if self._began is None else time.monotonic() - self._began)

    def __call__(self, event: Event | EpochRecord) -> None:
        """Write an epoch of the run."""
        self._waiting.append(
            Epoch(
                audit_id=self._audit_id,
                engine=self._engine,
                stage=event.stage,
                epoch=event.epoch,
                num_epochs=event.num_epochs,
                progress=event.progress,
                seconds=event.seconds,
                losses=dict(event.losses),
                metrics=dict(event.metrics),
            )
        )
        # Where another process keeps the catalog locked, training goes on; the next epoch takes this one along.
        with contextlib.suppress(CatalogBusyError):
            self._write(progress=event.progress, stage=event.stage)

    def finish(self, provenance: dict[str, Any]) -> None:
        """Say that the engine is done, and write the epochs that a locked catalog kept waiting."""
        self._write(status="finished", progress=1.0, provenance=provenance)

    def _write(self, **values: Any) -> None:
        with session() as open_session:
            for epoch in self._waiting:
                audits.record_epoch(open_session, epoch)
            audits.set_run(open_session, self._audit_id, self._engine, seconds=self.seconds, **values)
        self._waiting.clear()


class explaining:  # noqa: N801 - reads as a statement
    """Turns whatever ends an audit into its status and one line with the remedy."""

    def __init__(self, audit_id: int) -> None:
        self._audit_id = audit_id

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            return
        if engine_bridge.is_cancelled(error):
            self._end("cancelled", None)
            raise AuditFailedError(
                f"Audit {self._audit_id} was cancelled; resumed, it goes on where it stopped."
            ) from error
        text = engine_bridge.remedy(error)
        if text is None:
            traceback.print_exc()
            log = jobs.log_file(plan.job_of(self._audit_id))
            text = f"{type(error).__name__}: {error} (details in {log}); resume the audit to try again."
        self._end("failed", text)
        raise AuditFailedError(text) from error

    def _end(self, status: str, error: str | None) -> None:
        jobs.patiently(lambda: self._write(status, error))

    def _write(self, status: str, error: str | None) -> None:
        job_id = plan.job_of(self._audit_id)
        with session() as open_session:
            if job_rows.is_taken(open_session, job_id):  # its status is what another process says now
                return
            audits.set_status(open_session, self._audit_id, status, error=error)
            for row in audits.runs(open_session, self._audit_id):
                if row.status == "running":
                    audits.set_run(open_session, self._audit_id, row.engine, status=status, error=error)
