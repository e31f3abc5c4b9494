"""Labels that are no classes: an audit of them is planned simply, trains, and is settled."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor import jobs
from auditor.audits import check_seed, features_for, register_audit, train_engines
from auditor.backbones.features import FeatureSource
from auditor.bridges import engine_bridge
from auditor.catalog import audits, folders, reading, scores
from auditor.catalog.db import session
from auditor.catalog.records import Audit, AuditPlan, AuditSummary, Dataset, NewAudit, now
from auditor.labels.usual import Usual
from auditor.results import arrays
from auditor.results.settle import noise_rate_json
from auditor.statistics import NoiseRate
from auditor.work import store_arrays, threads_by_engine


class Others(Usual):
    """Masks or numbers."""

    @abstractmethod
    def inputs(self, dataset: Dataset) -> dict[str, NDArray[Any]]:
        """Return the arrays that the next audit trains on, frozen when it is planned."""

    @abstractmethod
    def given(self, dataset: Dataset, place: Path) -> Path:
        """Return the ``.npy`` of what trust is about, as it was imported; a new one lies in ``place``."""

    def pretrained(
        self, dataset: Dataset, engines: Sequence[str], options: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, engine_bridge.Pretrained]:
        """Return the pretrained network that each engine begins with, by engine; none of them unless overridden."""
        del dataset, engines, options
        return {}

    @abstractmethod
    def settle(self, audit: Audit, dataset: Dataset) -> None:
        """Combine what the engines said and store it."""

    def plan(
        self,
        dataset_name: str,
        engines: Sequence[str] | None = None,
        *,
        preset: str = "quick",
        device: str = "auto",
        seed: int = 0,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        features: FeatureSource | None = None,
        on: str | None = None,
        **of_classes: Any,
    ) -> int:
        """Plan it; ``of_classes`` are left, see ``unused``."""
        del of_classes
        check_seed(seed)
        names = list(engines or engine_bridge.engines_on(self.words))
        resolved = engine_bridge.resolve_device(device)
        dataset = reading.dataset(dataset_name)
        configs = engine_bridge.configs(
            names,
            preset,
            options or {},
            labels=self.words,
            on_features=features is not None,
            finetuned=self.pretrained(dataset, names, options or {}),
        )
        audit = NewAudit(
            dataset_id=dataset.id,
            preset=preset,
            device=resolved,
            seed=seed,
            engines=names,
            options=AuditPlan(
                alone=True,
                threads=threads_by_engine(names, [], resolved, on),
                features=None if features is None else features.as_dict(),
                on=on,
            ),
        )
        return register_audit(dataset, audit, configs, self.inputs(dataset))

    def run(self, audit: Audit, dataset: Dataset, tell: jobs.Reporter) -> None:
        """Train the engines, then settle."""
        features_for(audit, dataset, tell)
        train_engines(audit, dataset, tell, given=self.given(dataset, folders.of_audit(audit.id)))
        self.settle(audit, dataset)

    def store(
        self, audit: Audit, together: dict[str, Any], columns: dict[str, Any], rate: NoiseRate, **more: Any
    ) -> None:
        """Write what all engines say ``together``, the scores and the summary; a busy catalog is waited for."""
        store_arrays(arrays.engine_folder(audit.id, self.words), together)
        none = np.zeros(len(columns["rank"]), np.int64)
        zeros = {"agreement": none} | dict.fromkeys(("disagreement", "suggested_probability"), none * 0.0)
        summary = AuditSummary(
            settled_at=now().isoformat(),
            task=self.task,
            witnesses=list(audit.engines),
            noise_rate=noise_rate_json(rate),
            error_probability_is_guess=True,
            num_label_issues=int(columns["is_label_issue"].sum()),
            **more,
        )

        def write() -> None:
            with session() as open_session:
                scores.store(open_session, audit.id, zeros | columns)
                audits.change(open_session, audit.id, summary=summary)

        jobs.patiently(write)
