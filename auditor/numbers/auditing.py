"""An audit of numbers: planned, run in a process of its own, and settled into trust and suggestions.

Layout below ``home/audits/<audit>``: ``inputs.npz`` (numbers, labels and trusted as they were when it was planned),
each engine's arrays (``predicted``, ``deviation``, ``embeddings`` and ``signal_<name>``), and ``numbers/`` with the
suggestions (``predicted``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from auditor import jobs
from auditor.audits import arrays, in_turn, tasks
from auditor.audits.settle import noise_rate_json
from auditor.bridges import engine_bridge
from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.catalog.records import Audit, Dataset, EngineRun, now
from auditor.ground.vocabulary import REGRESSION
from auditor.numbers.judging import judge
from auditor.pictures import cache
from auditor.review import decisions
from auditor.statistics import guess_error_probability

if TYPE_CHECKING:
    from auditor.bridges.engine_bridge import EpochRecord

TOGETHER = "numbers"
"""In place of an engine's name: what all engines say together."""


def plan_audit(dataset_name: str, engines: Sequence[str] | None = None, **choices: Any) -> int:
    """Register an audit of numbers; see ``in_turn.plan_audit``."""
    return in_turn.plan_audit(NUMBERS, dataset_name, engines, **choices)


def steps(audit: Audit, dataset: Dataset, tell: jobs.Reporter) -> None:
    """What an audit of numbers does, for ``worker.work``."""
    in_turn.steps(NUMBERS, audit, dataset, tell)


def _inputs(dataset: Dataset) -> dict[str, NDArray[Any]]:
    numbers, labels, trusted = decisions.numbers_to_train_on(dataset.id)
    return {"numbers": numbers, "labels": labels, "trusted": trusted}


def _train(
    audit: Audit,
    dataset: Dataset,
    run: EngineRun,
    inputs: Mapping[str, NDArray[Any]],
    *,
    features: NDArray[np.floating] | None,
    on_epoch: Callable[[EpochRecord], None],
    checkpoint: engine_bridge.FileCheckpoint,
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    found = engine_bridge.train_numbers(
        run.engine,
        cache.image_cache(dataset) if features is None else None,
        inputs["numbers"],
        features=features,
        config=run.config,
        judged=given_numbers(dataset),
        trusted=inputs["trusted"],
        seed=audit.seed,
        device=audit.device,
        on_epoch=on_epoch,
        checkpoint=checkpoint,
    )
    values: dict[str, NDArray[Any]] = {
        "predicted": found.predicted,
        "deviation": found.deviation,
        "embeddings": found.embeddings,
    }
    values |= {f"signal_{name}": signal for name, signal in found.signals.items()}
    return values, engine_bridge.plain(found.provenance) | {"is_out_of_sample": found.is_out_of_sample}


def given_numbers(dataset: Dataset) -> NDArray[np.float64]:
    """(N,) as they were imported; NaN where there is none."""
    with session() as open_session:
        return datasets.given_numbers(open_session, dataset.id)


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
    rate = noise_rate_json(found.noise_rate)
    summary = {
        "settled_at": now().isoformat(),
        "task": REGRESSION,
        "witnesses": list(audit.engines),
        "num_voters": len(audit.engines),
        "noise_rate": rate,
        "noise_rate_guess": rate,
        "half_width": found.half_width,
        "rows_chose_weights": False,
        "structured_noise": False,
        "error_probability_is_guess": True,
        "num_label_issues": int(found.is_doubtful.sum()),
    }
    in_turn.store(audit.id, columns, summary)


NUMBERS = in_turn.Kind(REGRESSION, _inputs, ("numbers", "labels", "trusted"), _train, settle)
