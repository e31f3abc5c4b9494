"""Audits of labels that are no classes: of masks and of numbers.

What is special about such labels is a ``Kind``; planning is simpler than for classes, and training is the same.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor import jobs
from auditor.audits import executors, worker
from auditor.backbones.features import FeatureSource
from auditor.bridges import engine_bridge
from auditor.catalog import audits, datasets, folders, reading
from auditor.catalog import scores as scoring
from auditor.catalog.db import session
from auditor.catalog.records import Audit, AuditPlan, AuditSummary, Dataset, NewAudit, NewEngineRun
from auditor.ground.errors import AuditFailedError, cannot_write
from auditor.ground.files import written_whole
from auditor.ground.settings import settings
from auditor.ground.vocabulary import LABELS


@dataclass(frozen=True)
class Kind:
    """What is special about an audit of such labels."""

    task: str
    """One of ``vocabulary.TASKS``."""
    inputs: Callable[[Dataset], dict[str, Any]]
    """Arrays that the next audit trains on, frozen when it is planned."""
    given: Callable[[Dataset, Path], Path]
    """The ``.npy`` of what trust is about, as it was imported; the folder is for one that is not there yet."""
    settle: Callable[[Audit, Dataset], None]
    """Combines what the engines said and stores it."""


def plan_audit(
    kind: Kind,
    dataset_name: str,
    engines: Sequence[str] | None = None,
    *,
    preset: str = "quick",
    device: str = "auto",
    seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    features: FeatureSource | None = None,
    on: str | None = None,
) -> int:
    """Register an audit and freeze its inputs; nothing runs yet. Returns the audit's id.

    Raises:
        NotFoundError: no such dataset.
        AuditFailedError: its labels are of another kind; an unknown engine, preset, device or field; a full disk.
    """
    if not 0 <= seed < 2**31:
        raise AuditFailedError(f"The seed is {seed}; use a whole number from 0 to {2**31 - 1}.")
    labels = LABELS[kind.task]
    names = list(engines or engine_bridge.engines_on(labels))
    resolved = engine_bridge.resolve_device(device)
    dataset = reading.dataset(dataset_name)
    if dataset.task != kind.task:
        raise AuditFailedError(f"The labels of {dataset_name} are no {labels}.")
    configs = engine_bridge.configs(
        names, preset, options or {}, labels=labels, on_features=features is not None
    )
    inputs = kind.inputs(dataset)
    audit = NewAudit(
        dataset_id=dataset.id,
        preset=preset,
        device=resolved,
        seed=seed,
        engines=names,
        options=AuditPlan(
            alone=True,
            threads=executors.threads(names, [], resolved, on),
            features=None if features is None else features.as_dict(),
            on=on,
        ),
    )
    runs = [NewEngineRun(engine=name, config=configs[name]) for name in names]
    with session() as open_session:
        audit_id = audits.create(open_session, audit, runs)
        folder = settings().audit_folder(audit_id)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            folders.write_manifest(folder, audit.uuid, title=f"audit {audit_id} of {dataset.name}")
            with written_whole(folder / "inputs.npz") as beside, beside.open("wb") as file:
                np.savez_compressed(file, **inputs)
            for name in names:
                with written_whole(folder / f"{name}.json") as beside:
                    beside.write_text(json.dumps(engine_bridge.about(name), ensure_ascii=False))
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise AuditFailedError(cannot_write(folder, error)) from error
        open_session.commit()
    return audit_id


def newest(name: str, audit_id: int | None = None) -> tuple[Dataset, Audit]:
    """A dataset and its newest finished audit, or that one.

    Raises:
        NotFoundError: no such dataset, or no such finished audit.
    """
    with session() as open_session:
        dataset = datasets.get(open_session, name)
        return dataset, audits.require_finished(open_session, dataset, audit_id)


def steps(kind: Kind, audit: Audit, dataset: Dataset, tell: jobs.Reporter) -> None:
    """What an audit of such labels does, for ``worker.work``: train the engines, then settle."""
    worker.features_for(audit, dataset, tell)
    worker.train(audit, dataset, tell, given=kind.given(dataset, folders.of_audit(audit.id)), task=kind.task)
    kind.settle(audit, dataset)


def store(audit_id: int, columns: dict[str, NDArray[Any]], summary: AuditSummary) -> None:
    """Write an audit's scores and what it says of all labels, patiently where the catalog is busy."""

    def write() -> None:
        with session() as open_session:
            scoring.store(open_session, audit_id, columns)
            audits.change(open_session, audit_id, summary=summary)

    jobs.patiently(write)
