"""The product as a library: ``import auditor; auditor.open("photos").suspects()``."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlmodel import Session

from auditor.audits import own_models, plan, statements, worker
from auditor.backbones import features as feature_files
from auditor.backbones import own_features as tables_of_features
from auditor.catalog import audits, datasets, folders, jobs, records
from auditor.catalog.db import session
from auditor.errors import AuditFailedError, ImportRefusedError, JobRefusedError
from auditor.importing import imports
from auditor.jobs import KINDS
from auditor.outputs import export as exporting
from auditor.settings import settings

FIFTYONE = "fiftyone:"
"""How a source of features begins that lies in FiftyOne."""


class Dataset:
    """A handle on one imported dataset; every call reads the catalog afresh."""

    def __init__(self, name: str) -> None:
        with session() as open_session:
            self._row = datasets.get(open_session, name)

    @property
    def name(self) -> str:
        """Name of the dataset."""
        return self._row.name

    @property
    def table(self) -> records.Dataset:
        """The dataset's row in the catalog."""
        return self._row

    def audit(
        self,
        engines: Sequence[str] | None = None,
        *,
        preset: str = "quick",
        device: str = "auto",
        seed: int = 0,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        map_method: str = "umap",
        backbone: str | None = None,
        weights: str | Path | None = None,
        backbone_size: int | None = None,
        views: int | None = None,
        finetune: bool = False,
        features: NDArray[np.floating] | str | Path | None = None,
        features_column: str | None = None,
    ) -> int:
        """Train the engines in this process and score every label; returns the audit's id.

        ``backbone``: a pretrained network such as ``"timm:mobilenetv3_large_100"`` on whose features the engines
        train, with ``weights`` from a file; default one whose weights are here, ``"none"``: from scratch. It gets
        images of ``backbone_size`` pixels (default: as its weights want them) in ``views`` views each (default: 4).
        ``finetune``: every engine trains the backbone too, on the images. ``features``: your own in its place, see
        ``own_features``.

        Raises:
            ImportRefusedError: features that do not fit the dataset; names the row and the remedy.
            AuditFailedError: it could not be finished; ``worker.run(id)`` goes on with it.
        """
        source: feature_files.FeatureSource | None
        if features is not None:
            if backbone is not None:
                raise AuditFailedError("features replace a backbone; give one of the two.")
            source = own_features(self.name, features, column=features_column)
        else:
            source = feature_files.choose(
                backbone,
                None if weights is None else Path(weights),
                side=backbone_size,
                views=views or feature_files.DEFAULT_VIEWS,
            )
        audit_id = plan.plan(
            self.name,
            engines,
            preset=preset,
            device=device,
            seed=seed,
            options=options,
            map_method=map_method,
            features=source,
            finetune=finetune,
        )
        worker.run(audit_id)
        return audit_id

    def add_pred_probs(
        self, source: str | Path | NDArray[np.floating], *, name: str | None = None
    ) -> own_models.Added:
        """Hear your own model's probabilities as one more witness of later audits; see ``own_predictions.add``."""
        return own_models.add(self.name, source, name=name)

    def suspects(
        self,
        top: int | None = None,
        *,
        max_fdr: float | None = None,
        audit_id: int | None = None,
        split: str | None = None,
    ) -> pd.DataFrame:
        """Labels by suspicion, the most suspicious first, with class names.

        Of the newest finished audit or of ``audit_id``; only of one ``split`` where it is named.
        ``max_fdr`` keeps those of which on average at most that share is falsely flagged; none where nothing can be
        promised. What can be said about them is in ``attrs["statement"]``.

        Columns: sample_id, filepath, given_label, suggested_label, trust_score, error_probability,
        suggested_probability, is_label_issue, agreement, decision, reviewer.

        Raises:
            NotFoundError: no audit of this dataset has finished, or no sample is of that split.
            AuditFailedError: ``max_fdr`` is outside (0, 1).
        """
        with session() as open_session:
            audit = audits.require_finished(open_session, self._row, audit_id)
        listed = statements.suspects(audit, top=top or self._row.num_samples, max_fdr=max_fdr, split=split)
        page = listed.page
        names = dict(enumerate(self._row.class_names))
        for column in ("given_label", "suggested_label"):
            page[column] = page[column].map(names)
        kept = ["sample_id", "filepath", "given_label", "suggested_label", "trust_score", "error_probability"]
        kept += ["suggested_probability", "is_label_issue", "agreement", "decision", "reviewer"]
        found = page[kept]
        found.attrs["statement"] = listed.statement
        return found

    def export(
        self,
        path: str | Path,
        *,
        policy: str = "reviewed",
        max_fdr: float | None = None,
        audit_id: int | None = None,
        force: bool = False,
    ) -> exporting.ExportSummary:
        """Write the cleaned table; see ``exporting.export``."""
        return exporting.export(
            self.name, Path(path), policy=policy, max_fdr=max_fdr, audit_id=audit_id, force=force
        )

    def to_fiftyone(self, *, to: str | None = None, replace: bool = False) -> Any:
        """Create or update the FiftyOne dataset of this audit and return it (a ``fiftyone.Dataset``).

        Our own MongoDB runs until this process ends; ``to`` and ``replace`` as in ``fiftyone_sync.push``.

        Raises:
            NotFoundError: no audit of this dataset has finished.
            FiftyOneError: FiftyOne or MongoDB cannot be used.
        """
        from auditor.fiftyone_bridge import sync

        sync.push(self.name, to=to, replace=replace)
        return sync.load(self.name)


def own_features(
    name: str, source: NDArray[np.floating] | str | Path, *, column: str | None = None
) -> feature_files.FeatureSource:
    """Keep a user's own features of dataset ``name``, for audits in place of a backbone's.

    Args:
        name: of the dataset.
        source: an (N, D) or (N, V, D) array in the dataset's order, or an ``.npy`` of one; a ``.csv``, ``.tsv`` or
            ``.parquet`` with ``sample_id`` or paths; ``column:NAME``, columns imported with the dataset; or a field
            of FiftyOne: ``fiftyone:FIELD`` of the dataset that was imported, ``fiftyone:OTHER/FIELD`` of another.
        column: of a table: one with lists, or what the names of several columns begin with.

    Raises:
        NotFoundError: no such dataset.
        FiftyOneError: FiftyOne cannot be used.
        ImportRefusedError: what is there does not fit the dataset; names the row and the remedy.
    """
    if isinstance(source, str) and source.startswith(FIFTYONE):
        if column is not None:
            raise ImportRefusedError(f"{source} names its field already; leave the column out.")
        from auditor.fiftyone_bridge import own_features as fields_of_fiftyone

        return fields_of_fiftyone.add(name, source)
    return tables_of_features.add(name, source, column=column)


def open_dataset(name: str) -> Dataset:
    """The dataset of that name (``auditor.open``).

    Raises:
        NotFoundError: there is none.
    """
    return Dataset(name)


def import_dataset(source: str | Path, *, name: str, **options: Any) -> Dataset:
    """Import a source and return its handle; options as in ``importing.import_dataset``."""
    imports.import_dataset(source, name=name, **options)
    return Dataset(name)


BUSY = {
    "running": "cancel it first",
    # One that was planned and never started counts as dead after a while of silence (``audits.state``).
    "queued": "cancel it as soon as it runs, or wait a minute where nobody started it",
}
"""What to do about an audit that keeps a dataset from being removed, by its state."""


def remove(name: str) -> None:
    """Forget a dataset with its audits, decisions and files of ours; the source is not touched.

    Raises:
        AuditFailedError: an audit of it is running, or about to.
        JobRefusedError: another job of it is.
    """
    with session() as open_session:
        dataset = datasets.owned(open_session, name)
        datasets.lock(open_session, dataset.id)  # in SQLite nobody starts an audit after this look at them
        _refuse_busy(open_session, dataset.id, name)
        datasets.remove(open_session, dataset.id)
        others = datasets.sources(open_session)
    folders.delete(settings().dataset_folder(dataset.id), dataset.uuid)
    for audit_id, uuid in dataset.audits.items():
        folders.delete(settings().audit_folder(audit_id), uuid)
    gone = [settings().job_folder(job_id) for job_id in dataset.jobs]
    upload = _upload_of(dataset.source)
    if upload is not None and upload not in [_upload_of(other) for other in others]:
        gone.append(upload)
    for folder in gone:
        shutil.rmtree(folder, ignore_errors=True)


def _refuse_busy(open_session: Session, dataset_id: int, name: str) -> None:
    """Refuse to remove what somebody works on; a row that is damaged keeps nobody from removing it."""
    try:
        for audit in audits.of_dataset(open_session, dataset_id):
            if (state := audits.state(open_session, audit)) in ("queued", "running"):
                raise AuditFailedError(f"Audit {audit.id} of {name} is {state}; {BUSY[state]}.")
        for job in jobs.find(open_session, dataset_id=dataset_id):
            if (state := jobs.state(job)) in jobs.AT_WORK:
                raise JobRefusedError(f"{KINDS[job.kind].title} of {name} is {state}; cancel it first.")
    except (ValueError, TypeError):
        return


def _upload_of(source: str) -> Path | None:
    """The folder of the upload that a dataset was imported from; None for a source of the user's own."""
    folder = Path(source).parent
    return folder if folder.parent == settings().uploads else None
