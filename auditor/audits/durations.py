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


def seconds(
    dataset: Dataset, engines: Sequence[str], preset: str, *, on_features: bool = False
) -> tuple[float, bool]:
    """(estimated seconds, whether every engine was timed on this machine before)."""
    with session() as open_session:
        known = timed_before(open_session, dataset, preset, on_features=on_features)
    rough = ROUGH_S[preset] * _work(dataset) / ROUGH_WORK
    if on_features:
        rough = ROUGH_FEATURES_S[preset] * dataset.num_samples / ROUGH_SAMPLES
    return sum(known.get(name, rough) for name in engines), all(name in known for name in engines)


def timed_before(
    open_session: Session,
    dataset: Dataset,
    preset: str,
    device: str | None = None,
    *,
    on_features: bool = False,
) -> dict[str, float]:
    """Seconds for the dataset by engine, from its newest finished run with that preset (and device).

    Runs on features and on images are told apart: the former depend on the number of samples alone.
    """
    known = {}
    for run, audit, trained_on in audits.finished_runs(open_session, preset, device):
        if ("features" in audit.options) != on_features:
            continue
        share = dataset.num_samples / trained_on.num_samples
        known[run.engine] = run.seconds * (share if on_features else _work(dataset) / _work(trained_on))
    return known


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
        on_features = "features" in audit.options
        known = timed_before(open_session, dataset, audit.preset, audit.device, on_features=on_features)
    if begun:
        mean = sum(run.seconds + begun[run.engine] for run in runs if run.engine in begun) / len(begun)
        known = dict.fromkeys(waiting, mean) | known
    if any(engine not in known for engine in waiting):
        return None
    return float(sum(begun.values()) + sum(known[engine] for engine in waiting))


def _work(dataset: Dataset) -> float:
    return float(dataset.num_samples * dataset.height * dataset.width * dataset.channels)
