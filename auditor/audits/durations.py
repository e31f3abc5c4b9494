"""How long will an audit take? From this machine's earlier runs where there are any, else a rough table."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session

from auditor.catalog import audits, datasets
from auditor.catalog.db import session
from auditor.catalog.records import Audit, Dataset, EngineRun

ROUGH_S = {"quick": 45.0, "standard": 600.0, "paper": 7_200.0}
"""Seconds an engine takes for 2,000 grey images of 28 pixels on two CPU cores, by preset."""
ROUGH_WORK = 2_000 * 28 * 28
ROUGH_FEATURES_S = {"quick": 10.0, "standard": 60.0, "paper": 300.0}
"""Seconds an engine takes for 25,000 rows of features on one CPU core, by preset."""
ROUGH_SAMPLES = 25_000
ROUGH_FINETUNING_S = {"quick": 1_000.0, "standard": 3_000.0, "paper": 30_000.0}
"""Seconds an engine takes to train a small backbone further on 2,000 images of 224 pixels on two CPU cores."""
ROUGH_FINETUNED = 2_000


def seconds(
    dataset: Dataset,
    engines: Sequence[str],
    preset: str,
    *,
    on_features: bool = False,
    finetuned: str | None = None,
) -> tuple[float, bool]:
    """(estimated seconds, whether every engine was timed on this machine before).

    ``finetuned``: name of the backbone that the engines train further.
    """
    with session() as open_session:
        known = timed_before(
            open_session, dataset, preset, on_features=on_features and not finetuned, finetuned=finetuned
        )
    rough = ROUGH_S[preset] * _work(dataset) / ROUGH_WORK
    if finetuned:
        rough = ROUGH_FINETUNING_S[preset] * dataset.num_samples / ROUGH_FINETUNED
    elif on_features:
        rough = ROUGH_FEATURES_S[preset] * dataset.num_samples / ROUGH_SAMPLES
    return sum(known.get(name, rough) for name in engines), all(name in known for name in engines)


def timed_before(
    open_session: Session,
    dataset: Dataset,
    preset: str,
    device: str | None = None,
    *,
    on_features: bool = False,
    finetuned: str | None = None,
) -> dict[str, float]:
    """Seconds for the dataset by engine, from its newest finished run with that preset (and device).

    Runs on features, on images and with a backbone that was trained further are told apart: the first and the last
    depend on the number of samples and not on the size of the images.
    """
    known = {}
    for run, audit, trained_on in audits.finished_runs(open_session, preset, device):
        if (_on_features(audit), _finetuned(audit)) != (on_features, finetuned):
            continue
        share = dataset.num_samples / trained_on.num_samples
        by_samples = on_features or finetuned is not None
        known[run.engine] = run.seconds * (share if by_samples else _work(dataset) / _work(trained_on))
    return known


def _finetuned(audit: Audit) -> str | None:
    """The backbone that the audit's engines train further."""
    return audit.options["features"]["name"] if audit.options.get("finetune") else None


def _on_features(audit: Audit) -> bool:
    return "features" in audit.options and not audit.options.get("finetune")


def left(open_session: Session, audit: Audit, runs: Sequence[EngineRun]) -> float | None:
    """Seconds until all of the audit's runs are done; None where nothing tells.

    A run without an epoch is taken to last as long as its engine did here before; where it never ran here, as
    long as this audit's other runs on average.
    """
    begun = {run.engine: run_left for run in runs if (run_left := audits.seconds_left(run)) is not None}
    waiting = [run.engine for run in runs if run.engine not in begun]
    known: dict[str, float] = {}
    if waiting:
        dataset = datasets.by_id(open_session, audit.dataset_id)
        known = timed_before(
            open_session,
            dataset,
            audit.preset,
            audit.device,
            on_features=_on_features(audit),
            finetuned=_finetuned(audit),
        )
    if begun:
        mean = sum(run.seconds + begun[run.engine] for run in runs if run.engine in begun) / len(begun)
        known = dict.fromkeys(waiting, mean) | known
    if any(engine not in known for engine in waiting):
        return None
    return float(sum(begun.values()) + sum(known[engine] for engine in waiting))


def _work(dataset: Dataset) -> float:
    return float(dataset.num_samples * dataset.height * dataset.width * dataset.channels)
