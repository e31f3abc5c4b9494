"""An audit of numbers: planned, run in a process of its own, and settled into trust and suggestions.

Layout below ``home/audits/<audit>``: ``inputs.npz`` (numbers, labels and trusted as they were when it was planned),
each engine's arrays (``predicted``, ``deviation``, ``embeddings`` and ``signal_<name>``), and ``numbers/`` with the
suggestions (``predicted``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor import jobs
from auditor.audits import arrays, kinds, tasks
from auditor.audits.settle import noise_rate_json
from auditor.catalog import datasets
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, AuditSummary, Dataset, now
from auditor.ground.files import written_whole
from auditor.ground.vocabulary import REGRESSION
from auditor.numbers.judging import judge
from auditor.review import decisions
from auditor.statistics import guess_error_probability

TOGETHER = "numbers"
"""In place of an engine's name: what all engines say together."""


def plan_audit(dataset_name: str, engines: Sequence[str] | None = None, **choices: Any) -> int:
    """Register an audit of numbers; see ``kinds.plan_audit``."""
    return kinds.plan_audit(NUMBERS, dataset_name, engines, **choices)


def steps(audit: Audit, dataset: Dataset, tell: jobs.Reporter) -> None:
    """What an audit of numbers does, for ``worker.work``."""
    kinds.steps(NUMBERS, audit, dataset, tell)


def _inputs(dataset: Dataset) -> dict[str, NDArray[Any]]:
    numbers, labels, trusted = decisions.numbers_to_train_on(dataset.id)
    return {"numbers": numbers, "labels": labels, "trusted": trusted}


def _given(dataset: Dataset, place: Path) -> Path:
    with written_whole(place / "given.npy") as beside, beside.open("wb") as file:
        np.save(file, given_numbers(dataset))
    return place / "given.npy"


def given_numbers(dataset: Dataset) -> NDArray[np.float64]:
    """(N,) as they were imported; NaN where there is none."""
    return ask(datasets.given_numbers, dataset.id)


def settle(audit: Audit, dataset: Dataset) -> None:
    """Combine what the engines predict; store suggestions, scores and the audit's summary."""
    given = given_numbers(dataset)
    found = judge(given, [arrays.array(audit.id, name, "predicted") for name in audit.engines])
    tasks.store(arrays.engine_folder(audit.id, TOGETHER), {"predicted": found.predicted})
    num, rank = len(given), arrays.ranks(found.trust)
    probability = guess_error_probability(1 - (rank + 0.5) / num, found.noise_rate.point)
    columns = {
        "rank": rank,
        "given_label": np.where(np.isnan(given), -1, 0),
        "trust_score": found.trust,
        "error_probability": np.where(np.isnan(given), np.nan, probability),
        "is_label_issue": found.is_doubtful,
        "suggested_label": np.full(num, -1),
        "suggested_probability": np.zeros(num),
        "agreement": found.num_against,
        "disagreement": np.zeros(num),
    }
    summary = AuditSummary(
        settled_at=now().isoformat(),
        task=REGRESSION,
        witnesses=list(audit.engines),
        noise_rate=noise_rate_json(found.noise_rate),
        half_width=found.half_width,
        error_probability_is_guess=True,
        num_label_issues=int(found.is_doubtful.sum()),
    )
    kinds.store(audit.id, columns, summary)


NUMBERS = kinds.Kind(REGRESSION, _inputs, _given, settle)
