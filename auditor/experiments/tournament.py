"""Which engine finds most errors on *these* images? Errors are planted, engines are run, recovery is measured.

The planted labels are never in the catalog: a training gets them in a file that is gone when it is done. They
flatter: human errors are harder to find.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits import arrays, experiment_results
from auditor.bridges import engine_bridge
from auditor.catalog import reading, reviews
from auditor.catalog.db import session
from auditor.experiments.kept_trainings import Trained, Training, Trainings
from auditor.experiments.simulation import Judge, Tournament, plant_trials, play, tournament
from auditor.ground import vocabulary
from auditor.ground.errors import AuditFailedError
from auditor.ground.progress import OnProgress
from auditor.review import decisions, random_sample


def simulate(
    dataset_name: str,
    *,
    engines: Sequence[str] | None = None,
    rate: float = 0.1,
    seeds: Sequence[int] = (0,),
    preset: str = "quick",
    device: str = "auto",
    options: Mapping[str, Mapping[str, Any]] | None = None,
    on_progress: OnProgress | None = None,
) -> Tournament:
    """Plant errors as the newest audit's models would err, run the engines on them, rank the engines.

    Engines train on the images, also where that audit trained on features; by default those of it which can.

    Errors are planted on the labels that the next audit would train on, what people corrected as corrected;
    on nothing that a person confirmed or found wrong, and these rows do not count either. Stopped and started
    again, it goes on where it stopped.

    Raises:
        NotFoundError: no audit of this dataset has finished; its predictions say where errors are likely.
        AuditFailedError: an engine is unknown, the rate is out of range, a training failed or was stopped.
    """
    dataset, audit = reading.audited(dataset_name)
    finished = arrays.engines_of(audit.id)
    if not finished:
        raise AuditFailedError(f"Audit {audit.id} has no predictions; run a new audit first.")
    names = list(engines or _that_train_on_images(finished))
    configs = engine_bridge.configs(names, preset, options or {})
    labels, trusted, settled = _ground(dataset.id)
    planted = plant_trials(
        labels,
        [arrays.pred_probs(audit.id, engine) for engine in finished],
        np.array(audit.summary["transition"]["matrix"], dtype=np.float64),  # None becomes NaN
        rate=rate,
        seeds=list(seeds),
        keep=settled,
    )
    trainings = Trainings(dataset, "simulate", device=device, on_progress=on_progress)
    asked = [
        Training(name, errors.labels, configs[name], seed, trusted)
        for seed, errors in planted
        for name in dict.fromkeys(names)
    ]
    trained = dict(zip(((one.engine, id(one.labels)) for one in asked), trainings.train(asked), strict=True))
    played = tournament(play(planted, {name: _judge(name, trained) for name in names}))
    if len(finished) == 1 and finished[0] in names and len(names) > 1:
        alone = f" The likely classes are those of {finished[0]} alone, which takes part itself."
        played = dataclasses.replace(played, warning=played.warning + alone)
    experiment_results.keep(
        dataset.id, "simulate", [*(one.sentence for one in played.rounds), played.warning]
    )
    trainings.forget()
    return played


def _that_train_on_images(engines: Sequence[str]) -> list[str]:
    """Those that a tournament can train: it plants its errors on the images, not on an audit's features.

    Raises:
        AuditFailedError: none of them can.
    """
    able = {choice.name for choice in engine_bridge.engine_choices(on_features=False)}
    found = [name for name in dict.fromkeys(map(arrays.engine_of, engines)) if name in able]
    if not found:
        raise AuditFailedError(
            f"{' and '.join(engines)} cannot be compared on images; name other engines.", field="engines"
        )
    return found


def _ground(dataset_id: int) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """(N,) labels of the next audit, (N,) those it trusts, (N,) those with nothing left to find.

    Settled is what an audit trusts, and what people found wrong but the next audit still trains on as given (the
    half of a draw that calibrates): called right, such a row would count against the engine that sees it.
    """
    labels, trusted = decisions.labels_to_train_on(dataset_id)
    settled = trusted.copy()
    with session() as open_session:
        decided = reviews.decisions(open_session, dataset_id)
    for sample_id, row in decided.items():
        if row.decision in vocabulary.FOUND_WRONG and labels[sample_id] != row.label:
            settled[sample_id] = True
    verified = random_sample.standing(dataset_id)
    settled[verified.sample_ids[verified.is_wrong(labels)]] = True
    return labels, trusted, settled


def _judge(name: str, trained: Mapping[tuple[str, int], Trained]) -> Judge:
    def judge(labels: NDArray[np.int64], _: int) -> tuple[NDArray[np.floating], float]:
        one = trained[name, id(labels)]
        return one.trust, one.seconds

    return judge
