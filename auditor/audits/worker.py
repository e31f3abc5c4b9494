"""The work of an audit, done in this process: every engine, then the consensus.

Each epoch and each finished engine is written immediately to the catalog and to disk.
Whatever ends it (Ctrl-C, a full disk, too little memory, ``kill -9``) leaves a state that the next run goes
on from.
"""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from auditor import engine_bridge, jobs
from auditor.audits import arrays as results
from auditor.audits import copies, embedding, plan, settle
from auditor.backbones import features
from auditor.catalog import audits, datasets, folders
from auditor.catalog import jobs as job_rows
from auditor.catalog.db import session
from auditor.catalog.records import Audit, Dataset, Epoch, now
from auditor.errors import AuditFailedError, CatalogBusyError
from auditor.pictures import cache
from auditor.progress import Progress, Ticker
from auditor.statistics import trust_in_given

if TYPE_CHECKING:
    from auditor.engine_bridge import EpochRecord


def run(audit_id: int) -> None:
    """Do the work of an audit in this process, from wherever an earlier attempt left it.

    Raises:
        JobRefusedError: another process works on it.
        AuditFailedError: it could not be finished; the catalog holds the same text.
    """
    jobs.run(plan.job_of(audit_id), lambda _, tell: work(audit_id, tell))


def work(audit_id: int, tell: jobs.Reporter) -> None:
    """The audit's part of its job.

    Raises:
        AuditFailedError: it could not be finished; the catalog holds the same text.
    """
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        dataset = datasets.by_id(open_session, audit.dataset_id)
        audits.set_status(open_session, audit_id, "running", started_at=audit.started_at or now(), error=None)
    with explaining(audit_id):
        found = _features(audit, dataset, tell)
        if found is not None:
            _look_at_features(audit, dataset, found, tell)
        if audit.options.get("finetune"):
            source = results.features_of(audit)
            assert source is not None
            features.check_weights(source)
        for done, name in enumerate(audit.engines):
            seen = found
            if name in audit.options.get("heads", []):
                seen = results.array(audit.id, plan.TRUNK, "features")
            _run_engine(audit, dataset, name, seen, partial(_tell, tell, audit, done))
        jobs.patiently(lambda: settle.settle(audit_id))
        jobs.patiently(lambda: finish(audit_id))


def _features(audit: Audit, dataset: Dataset, tell: jobs.Reporter) -> NDArray[np.floating] | None:
    """The audit's features, computed where they are not there yet."""
    source = results.features_of(audit)
    if source is None:
        return None
    if source.weights is None or features.is_complete(dataset.id, source):
        return features.load(dataset.id, source)
    ticker = Ticker(tell, f"{plan.EMBEDDING} with {source.name}", dataset.num_samples)
    return features.embed(
        dataset.id,
        cache.image_cache_path(dataset),
        source,
        device=audit.device,
        on_rows=lambda done, _: ticker.at(done),
    )


def _look_at_features(
    audit: Audit, dataset: Dataset, found: NDArray[np.floating], tell: jobs.Reporter
) -> None:
    """The map, the neighbours and the near copies by the features' first view, once an audit."""
    folder = results.engine_folder(audit.id, results.FEATURES)
    if (folder / "neighbours.npy").exists():
        return
    tell(Progress("laying out the map", 0, len(audit.engines), None))
    points = np.asarray(found[:, 0], dtype=np.float32)
    near = embedding.neighbor_table(points, num_neighbors=results.NEIGHBOURS)
    pairs = copies.find(cache.image_cache(dataset), near)
    jobs.patiently(lambda: copies.add(dataset, pairs))
    drawn = embedding.map_2d(points, quick=audit.options.get("map") == "pca")
    results.store(folder, {"map": drawn, "neighbours": near})


def _tell(tell: jobs.Reporter, audit: Audit, done: int, part: float) -> None:
    """``part`` of the engine under way is done, after ``done`` engines; ``durations`` knows the time left."""
    tell(Progress(f"training {audit.engines[done]}", done + part, len(audit.engines), None))


def finish(audit_id: int) -> None:
    """Say that the audit is done."""
    with session() as open_session:
        audits.set_status(open_session, audit_id, "finished", finished_at=now())


def _run_engine(
    audit: Audit,
    dataset: Dataset,
    name: str,
    found: NDArray[np.floating] | None,
    tell: Callable[[float], None],
) -> None:
    audit_id = audit.id
    with session() as open_session:
        row = audits.run(open_session, audit_id, name)
    if row.status == "finished":
        return
    tell(row.progress)
    jobs.patiently(lambda: begin(audit_id, name))
    checkpoint = engine_bridge.FileCheckpoint(folders.of_audit(audit.id) / f"{name}.checkpoint")
    watch = EpochWatch(audit.id, name, tell, cache.true_labels(dataset), row.seconds)
    labels, trusted = results.trained_labels(audit.id)
    with session() as open_session:
        given = datasets.given_labels(open_session, audit.dataset_id)
    if audit.options.get("finetune") and not engine_bridge.needs_features(name):
        found = None
    result = engine_bridge.train(
        name,
        cache.image_cache(dataset) if found is None else None,
        labels,
        len(dataset.class_names),
        config=row.config,
        trusted=trusted,
        trusted_weight=results.trusted_weight(audit.id),
        features=found,
        seed=audit.seed,
        device=audit.device,
        on_epoch=watch,
        checkpoint=checkpoint,
    )
    arrays: dict[str, NDArray[Any]] = {
        "pred_probs": result.pred_probs,
        "trust_score": trust_in_given(result.trust_score, result.pred_probs, given, labels),
        "embeddings": result.embeddings,
    }
    if found is None or results.features_of(audit) is None:  # of features there is one map for all engines
        arrays["map"] = embedding.map_2d(result.embeddings, quick=audit.options.get("map") == "pca")
    if name == audit.engines[0] and results.features_of(audit) is None:  # whose neighbours a card shows
        arrays["neighbours"] = embedding.neighbor_table(result.embeddings, num_neighbors=results.NEIGHBOURS)
    if result.features is not None:
        arrays["features"] = result.features
    arrays |= {f"signal_{key}": values for key, values in result.signals.items()}
    arrays |= {f"history_{key}": values for key, values in result.signal_history.items()}
    results.store(results.engine_folder(audit.id, name), arrays)
    provenance = engine_bridge.plain(result.provenance) | {"is_out_of_sample": result.is_out_of_sample}
    jobs.patiently(lambda: watch.finish(provenance))
    checkpoint.remove()


def begin(audit_id: int, engine: str) -> None:
    """Say that the engine is under way."""
    with session() as open_session:
        audits.set_run(open_session, audit_id, engine, status="running", error=None)


class EpochWatch:
    """Writes each epoch to the catalog and stops the run when somebody asked for it."""

    def __init__(
        self,
        audit_id: int,
        engine: str,
        tell: Callable[[float], None],
        true_labels: NDArray[np.int64] | None,
        seconds: float,
    ) -> None:
        self._audit_id, self._engine, self._tell = audit_id, engine, tell
        self._earlier, self._began = seconds, time.monotonic()
        self._waiting: list[Epoch] = []
        self._is_right: NDArray[np.bool_] | None = None
        if true_labels is not None:
            labels, _ = results.trained_labels(audit_id)
            self._is_right = labels == true_labels

    @property
    def seconds(self) -> float:
        """Training time over all attempts."""
        return self._earlier + time.monotonic() - self._began

    def __call__(self, record: EpochRecord) -> None:
        metrics: dict[str, float | None] = {key: float(value) for key, value in record.metrics.items()}
        if self._is_right is not None and "selected" in record.signals:
            kept = np.nan_to_num(np.asarray(record.signals["selected"], dtype=np.float64))
            if kept.sum() > 0:
                metrics["label_precision"] = float((kept * self._is_right).sum() / kept.sum())
        self._waiting.append(
            Epoch(
                audit_id=self._audit_id,
                engine=self._engine,
                stage=record.stage,
                epoch=record.epoch,
                num_epochs=record.num_epochs,
                progress=record.progress,
                seconds=record.seconds,
                losses={key: float(value) for key, value in record.losses.items()},
                metrics=metrics,
            )
        )
        # Where another process keeps the catalog locked, training goes on; the next epoch takes this one along.
        with contextlib.suppress(CatalogBusyError):
            self._write(progress=record.progress, stage=record.stage)
        self._tell(record.progress)

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
                f"Audit {self._audit_id} was cancelled; `--resume` continues where it stopped."
            ) from error
        text = engine_bridge.remedy(error)
        if text is None:
            traceback.print_exc()
            log = jobs.log_file(plan.job_of(self._audit_id))
            text = f"{type(error).__name__}: {error} (details in {log}); `--resume` tries again."
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
