"""Plan, start, watch, cancel and resume audits.

An audit is a row in the catalog from the moment it is planned, and its inputs (labels, trusted set) are
frozen to disk then, so that whatever happens to the process, ``resume`` goes on with the same work and ends
with the same result. The training is a job in a process of its own, started by the app exactly as by the command
line; ``worker`` is what it does.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor import jobs
from auditor.audits import budgets, durations, further
from auditor.audits.budgets import Rung
from auditor.audits.further import Finetune
from auditor.backbones.features import FeatureSource
from auditor.bridges import engine_bridge
from auditor.catalog import audits, datasets, folders
from auditor.catalog import jobs as catalog_jobs
from auditor.catalog.db import session
from auditor.catalog.records import AuditPlan, Dataset, NewAudit, NewEngineRun
from auditor.ground.errors import AuditFailedError
from auditor.ground.files import written_whole
from auditor.ground.names import first_twice
from auditor.ground.settings import settings
from auditor.review import decisions, verifying
from auditor.work import ExecutorChoice

TRUNK = "cross_entropy"
"""The engine on whose early features others train where there is no backbone."""
OF_IMAGES = frozenset({"network", "weights", "augment", "side", "precision"})
"""Settings of an engine that say how it trains on images."""
MAPS = ("umap", "pca")
"""How the map of embeddings is laid out."""
SHORT_S = 180.0
"""Budget below which the map is laid out by PCA: UMAP would take a good part of it."""


@dataclass(frozen=True)
class EngineProgress:
    """Progress of one engine of an audit."""

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
    """Progress of an audit."""

    audit_id: int
    state: str
    """``queued``, ``running``, ``finished``, ``failed``, ``cancelled`` or ``dead`` (can be resumed)."""
    engines: list[EngineProgress]
    seconds_left: float | None
    """For the whole audit (``durations.left``); None while nothing tells how long an engine will take."""
    error: str | None
    preparing: EngineProgress | None = None
    """The embedding of the images by a backbone, while it lasts; ``seconds`` are not counted."""

    @property
    def is_over(self) -> bool:
        """No process is working on it."""
        return self.state in ("finished", "failed", "cancelled", "dead")


def newest_unfinished_audit(dataset_name: str, on: str | None = None) -> int:
    """Return the newest audit of the dataset that can be resumed, which goes on where ``on`` says, if it does.

    Raises:
        AuditFailedError: every audit of it is finished or running, or there is none.
    """
    at_work = ""
    ExecutorChoice.of(on)
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        for audit in audits.of_dataset(open_session, dataset.id):
            state = audits.state(open_session, audit)
            if state in ("cancelled", "failed", "dead", "queued"):
                if on is not None:
                    audits.change(open_session, audit.id, options=replace(audit.options, on=on))
                    open_session.commit()
                return audit.id
            if state == "running":
                at_work = f"; audit {audit.id} is still running"
    raise AuditFailedError(
        f"Dataset {dataset_name!r} has no audit to resume{at_work or '; start a new one'}."
    )


def plan_audit(
    dataset_name: str,
    engines: Sequence[str] | None = None,
    *,
    preset: str = "quick",
    device: str = "auto",
    seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    map_method: str = "umap",
    features: FeatureSource | None = None,
    alone: bool = False,
    finetune: str | None = None,
    budget: float | None = None,
    on: str | None = None,
) -> int:
    """Register an audit and freeze its inputs; nothing runs yet. Returns the audit's id.

    ``options``: by engine, config fields that differ from the preset. ``map_method``: ``"umap"`` or ``"pca"``,
    which lays out a map in a blink where UMAP first compiles for half a minute. ``features``: of a backbone or the
    user's own, on which all engines train instead of the images. ``finetune``: a value of ``Finetune``, who trains
    the backbone of ``features`` further instead, on the images and each for itself.
    ``alone``: only this audit's engines speak in its consensus; else also the latest finished run of every other
    engine, whichever audit it came from. ``budget``: seconds in which the audit should end on an idle machine; it
    takes the place of ``preset`` (see ``budgets``) and never overrules ``options``. ``on``: where it runs
    (``executors.ExecutorChoice``).

    Raises:
        NotFoundError: no such dataset.
        AuditFailedError: an unknown engine, preset, device or config field, labels that cannot be audited,
            nothing to fine-tune, or a disk that has no room for them.
    """
    check_seed(seed)
    if map_method not in MAPS:
        raise AuditFailedError(
            f"There is no map {map_method!r}; use one of {', '.join(MAPS)}.", field="map_method"
        )
    if budget is not None and not 0 < budget < math.inf:
        raise AuditFailedError(f"The budget is {budget:g} s; give more than none.", field="budget")
    if engines is not None and not engines:
        raise AuditFailedError(
            "No engine is named; name one, or none at all for every engine.", field="engines"
        )
    on_features = features is not None
    names = list(engines or [each.name for each in engine_bridge.engine_choices(on_features=on_features)])
    twice = first_twice(names)
    if twice is not None:
        raise AuditFailedError(f"The engine {twice} is named twice; name it once.")
    resolved = engine_bridge.resolve_device(device)
    finetuned = further.meant(finetune, features, resolved)
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        datasets.require_classes(dataset, "this kind of audit")
    labels, trusted = _inputs(dataset)
    chosen = {name: dict(values) for name, values in (options or {}).items()}
    if budget is not None and budget < SHORT_S:
        map_method = "pca"
    set_up_of = partial(_set_up, dataset, device, map_method, features, on)
    if budget is None:
        set_up = set_up_of(finetuned, Rung(names, preset, chosen, ""))
    else:
        rungs = list(
            budgets.rungs(
                names,
                chosen,
                num_rows=dataset.num_samples,
                side=min(max(dataset.height, dataset.width), engine_bridge.CPU_SIDE),
                trunk=TRUNK,
                reduces=resolved == "cpu" and not on_features,
                may_leave_out=engines is None and not options,
            )
        )
        # What nobody asked for goes first where time is short.
        least = finetuned if finetune is not None else Finetune.NONE
        first = [] if least == finetuned else [(finetuned, rungs[0])]
        for each, rung in [*first, *((least, rung) for rung in rungs)]:
            set_up = set_up_of(each, rung)
            if set_up.seconds <= budget:
                break
    within = None if budget is None else {"seconds": budget, "does": set_up.rung.sentence}
    names = set_up.rung.engines
    audit = NewAudit(
        dataset_id=dataset.id,
        preset=set_up.rung.preset,
        device=resolved,
        seed=seed,
        engines=names,
        options=AuditPlan(
            map=map_method,
            estimate=set_up.estimate,
            threads=set_up.places.threads,
            devices=set_up.places.devices,
            budget=within,
            features=None if features is None else features.as_dict(),
            alone=alone,
            heads=set_up.heads,
            further=set_up.further,
            on=on,
        ),
    )
    inputs: dict[str, NDArray[Any]] = {"labels": labels, "trusted": trusted}
    if (weight := verifying.trusted_weight(dataset.id, trusted)) is not None:
        inputs["trusted_weight"] = weight
    return register_audit(dataset, audit, set_up.configs, inputs)


def check_seed(seed: int) -> None:
    """Refuse a seed that is not from 0 to 2^31 - 1.

    Raises:
        AuditFailedError: it is not.
    """
    if not 0 <= seed < 2**31:
        raise AuditFailedError(f"The seed is {seed}; use a whole number from 0 to {2**31 - 1}.")


def register_audit(
    dataset: Dataset,
    audit: NewAudit,
    configs: Mapping[str, Mapping[str, Any]],
    inputs: dict[str, NDArray[Any]],
) -> int:
    """Keep a planned audit with the config of each engine and the arrays that it trains on; returns its id.

    Raises:
        AuditFailedError: a disk that has no room for them.
    """
    runs = [NewEngineRun(engine=name, config=dict(configs[name])) for name in audit.engines]
    abouts = {name: json.dumps(engine_bridge.about(name), ensure_ascii=False) for name in audit.engines}
    # The inputs lie on disk before the audit can be seen: without them it could never be resumed.
    with session() as open_session:
        audit_id = audits.create(open_session, audit, runs)
        with _all_or_nothing(settings().audit_folder(audit_id)) as folder:
            folders.write_manifest(folder, audit.uuid, title=f"audit {audit_id} of {dataset.name}")
            with written_whole(folder / "inputs.npz") as beside, beside.open("wb") as file:
                np.savez_compressed(file, allow_pickle=False, **inputs)
            for name, text in abouts.items():
                with written_whole(folder / f"{name}.json") as beside:
                    beside.write_text(text)
            open_session.commit()
    return audit_id


@dataclass(frozen=True)
class _SetUp:
    """What an audit would do, and how long that should take."""

    rung: Rung
    configs: dict[str, dict[str, Any]]
    heads: list[str]
    further: list[str]
    places: durations.Places
    estimate: dict[str, float]

    @property
    def seconds(self) -> float:
        return durations.until_all_are_done(self.estimate, self.places.threads)


def _set_up(
    dataset: Dataset,
    device: str,
    map_method: str,
    features: FeatureSource | None,
    on: str | None,
    finetuned: Finetune,
    rung: Rung,
) -> _SetUp:
    names, preset, chosen = rung.engines, rung.preset, rung.options
    on_features = features is not None
    heads = [] if on_features else heads_of(names, chosen)
    if heads:
        names = [TRUNK, *(name for name in names if name != TRUNK)]
    train_on = finetuned.engines(names)
    of_backbone = dict.fromkeys(train_on, further.backbone(features, finetuned)) if train_on else {}
    configs = engine_bridge.configs(names, preset, chosen, on_features=on_features, finetuned=of_backbone)
    if heads:
        # What they read has learned every label already: folds would hide nothing.
        once = {name: {"folds": 1} if engine_bridge.has_field(name, "folds") else {} for name in heads}
        of_heads = {name: once[name] | dict(chosen.get(name, {})) for name in heads}
        configs |= engine_bridge.configs(heads, preset, of_heads, on_features=True)
    of_features = [name for name in names if name not in train_on] if on_features else heads
    places = durations.places(names, of_features, [TRUNK] if heads else [], device, on)
    estimate = durations.planned(
        dataset,
        configs,
        device=engine_bridge.resolve_device(device),
        map_method=map_method,
        on_features=of_features,
        source=features,
        places=places,
    )
    return _SetUp(replace(rung, engines=names), configs, heads, train_on, places, estimate)


def heads_of(names: Sequence[str], options: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Engines of ``names`` that train on what the plain engine's network saw early, where no backbone is used.

    Where the plain engine's option ``keeps_features`` is set: all but itself and those whose options are about
    images; else none.
    """
    if TRUNK not in names or not options.get(TRUNK, {}).get("keeps_features", False):
        return []
    return [name for name in names if name != TRUNK and not OF_IMAGES & options.get(name, {}).keys()]


@contextmanager
def _all_or_nothing(folder: Path) -> Iterator[Path]:
    """The folder of a new audit; where the block fails it is gone again, unless it was there before.

    Raises:
        AuditFailedError: it cannot be written (a full disk, no rights).
    """
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
    except BaseException as error:
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        raise AuditFailedError(
            f"{folder} cannot be written ({error.strerror or error}); no audit was started. Free some space, "
            "or set AUDITOR_HOME to a folder that you can write to."
        ) from error


def start_audit(audit_id: int) -> int:
    """Start an audit, or go on with one that was cancelled, failed or killed, in a process of its own.

    Returns the number of its job.

    Raises:
        AuditFailedError: it is finished, or a process works on it.
    """
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        job, state = catalog_jobs.of_audit(open_session, audit_id), audits.state(open_session, audit)
        dataset = datasets.by_id(open_session, audit.dataset_id)
    if state == "finished" or (job is not None and state in ("running", "queued")):
        raise AuditFailedError(f"Audit {audit_id} is {state}; there is nothing to resume.")
    if job is None:
        return jobs.start("audit", dataset.name, dataset_id=dataset.id, audit_id=audit_id)
    jobs.resume(job.id)
    return job.id


def job_of(audit_id: int) -> int:
    """The job of an audit, whose work this process is about to do; a new one where it has none."""
    with session() as open_session:
        if (job := catalog_jobs.of_audit(open_session, audit_id)) is not None:
            return job.id
        audit = audits.get(open_session, audit_id)
        dataset = datasets.by_id(open_session, audit.dataset_id)
        return catalog_jobs.create(
            open_session, "audit", dataset.name, dataset_id=dataset.id, audit_id=audit_id
        )


def cancel_audit(audit_id: int) -> None:
    """Ask a running audit to stop after its current epoch; what it reached is kept."""
    jobs.cancel(job_of(audit_id))


def audit_overview(audit_id: int) -> AuditOverview:
    """Progress of the audit and of each of its engines, with the time left."""
    seen = _seen(audit_id)
    # A process may write its last words and end between our look at its rows and our look for the process.
    return _seen(audit_id) if seen.state == "dead" else seen


def _seen(audit_id: int) -> AuditOverview:
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        runs = audits.runs(open_session, audit_id)
        job = catalog_jobs.of_audit(open_session, audit_id)
        state = audits.state(open_session, audit)
    preparing, ahead = _preparing(job), 0.0
    begun = [run.engine for run in runs if run.status != "queued" or run.progress]
    if len(begun) == 1 < len(runs) and engine_bridge.needs_features(begun[0]):
        ahead = audit.options.estimate.get(durations.MAP, 0.0)  # after the first list, before the others
    if not begun:
        stage, done, seconds_left = "", 0.0, None
        if job is not None:
            stage, done, seconds_left = _stage(job.stage), job.progress, job.seconds_left
        ahead = durations.before(audit, stage, done, seconds_left)
        if preparing is not None and seconds_left is not None:
            rest = durations.before(audit, durations.EMBEDDING, 1.0, None)
            preparing = replace(preparing, seconds_left=ahead - rest)
    total, each = durations.left(audit, runs, ahead=ahead), durations.left_of(audit, runs)
    rows = [
        EngineProgress(
            run.engine,
            run.status,
            run.stage,
            run.progress,
            run.seconds,
            each[run.engine],
            run.error,
        )
        for run in runs
    ]
    # The job may have failed before the audit's work; what runs has at most the error of an earlier attempt.
    error = audit.error or (None if job is None else job.error)
    error = None if state in ("queued", "running", "cancelled") else error
    return AuditOverview(audit_id, state, rows, total, error, preparing)


TRAINING = "training"
"""How the stage begins in which engines train."""
EMBEDDING = "embedding images"
"""How the stage begins in which a backbone sees the images."""
LAYING_OUT = "laying out the map"
"""The stage after it and the first list."""


def _stage(text: str) -> str:
    """The stage of ``durations.BEFORE`` that a job is at; empty before the first."""
    if text.startswith(EMBEDDING):
        return durations.EMBEDDING
    return durations.MAP if text == LAYING_OUT else durations.START if text.startswith(TRAINING) else ""


def _preparing(job: catalog_jobs.Job | None) -> EngineProgress | None:
    """The embedding of the images while it lasts."""
    if job is None or not job.stage.startswith(EMBEDDING):
        return None
    status = "running" if job.status in catalog_jobs.AT_WORK else job.status
    return EngineProgress("features", status, job.stage, job.progress, 0.0, job.seconds_left, None)


def _inputs(dataset: Dataset) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    labels, trusted = decisions.labels_to_train_on(dataset.id)
    if not (labels >= 0).any():
        raise AuditFailedError(f"Dataset {dataset.name!r} has no labels at all; there is nothing to audit.")
    return labels, trusted


OnProgress = Callable[[AuditOverview], None]


def wait_for_audit(audit_id: int, on_progress: OnProgress, *, every_s: float = 0.5) -> AuditOverview:
    """Watch an audit that runs elsewhere until nothing works on it any more; returns the last overview."""
    while True:
        seen = audit_overview(audit_id)
        on_progress(seen)
        if seen.is_over:
            return seen
        time.sleep(every_s)
