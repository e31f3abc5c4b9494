"""Which engine finds most errors on *these* images? Errors are planted, engines are run, recovery is measured.

The planted labels live in this process's memory only. They flatter: human errors are harder to find.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor import images, results, simulating, training
from auditor.catalog import audits, datasets
from auditor.catalog.db import session
from auditor.errors import AuditFailedError
from auditor.reports import stored_transition
from auditor.simulating import Tournament, plant_trials, play, tournament


def simulate(
    dataset_name: str,
    *,
    engines: Sequence[str] | None = None,
    rate: float = 0.1,
    seeds: Sequence[int] = (0,),
    preset: str = "quick",
    device: str = "auto",
    options: Mapping[str, Mapping[str, Any]] | None = None,
    on_trial: Callable[[int, int], None] | None = None,
) -> Tournament:
    """Plant errors as the newest audit's models would err, run the engines on them, rank the engines.

    Raises:
        NotFoundError: no audit of this dataset has finished; its predictions say where errors are likely.
        AuditFailedError: an engine is unknown or the rate is out of range.
    """
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        audit = audits.require_finished(open_session, dataset)
        assert dataset.id is not None
        given = datasets.given_labels(open_session, dataset.id)
    assert audit.id is not None
    finished = results.engines_of(audit.id)
    if not finished:
        raise AuditFailedError(f"Audit {audit.id} left no predictions; run a new audit first.")
    names = list(engines or finished)
    configs = training.configs(names, preset, options or {})
    cache = images.image_cache(dataset)

    def judge(labels: NDArray[np.int64], seed: int) -> dict[str, NDArray[np.floating]]:
        num_classes = len(dataset.class_names)
        return {
            name: training.train(
                name, cache, labels, num_classes, config=configs[name], seed=seed, device=device
            ).trust_score
            for name in names
        }

    planted = plant_trials(
        given,
        results.pred_probs(audit.id, finished[0]),
        stored_transition(audit).matrix,
        rate=rate,
        seeds=list(seeds),
    )
    return tournament(play(planted, judge, on_trial=on_trial))


WARNING = simulating.WARNING
