"""How long will an audit take? From this machine's earlier runs where there are any, else a rough table."""

from __future__ import annotations

from collections.abc import Sequence

from app import data
from auditor.catalog import audits
from auditor.catalog.db import session
from auditor.catalog.models import DatasetTable

ROUGH_S = {"quick": 45.0, "standard": 600.0, "paper": 7_200.0}
"""Seconds an engine takes for 2,000 grey images of 28 pixels on two CPU cores, by preset."""
ROUGH_WORK = 2_000 * 28 * 28


def seconds(dataset: DatasetTable, engines: Sequence[str], preset: str) -> tuple[float, bool]:
    """(estimated seconds, whether every engine was timed on this machine before)."""
    known = _seconds_a_work(preset)
    work = _work(dataset)
    each = [known[name] * work if name in known else ROUGH_S[preset] * work / ROUGH_WORK for name in engines]
    return sum(each), all(name in known for name in engines)


def _work(dataset: DatasetTable) -> float:
    return float(dataset.num_samples * dataset.height * dataset.width * dataset.channels)


def _seconds_a_work(preset: str) -> dict[str, float]:
    """Seconds a pixel and engine of the newest finished run with that preset."""
    found: dict[str, tuple[int, float]] = {}
    with session() as open_session:
        for dataset in data.all_datasets():
            for audit in audits.of_dataset(open_session, dataset.id or 0)[:5]:
                if audit.preset != preset or audit.id is None:
                    continue
                for run in audits.runs(open_session, audit.id):
                    if run.status == "finished" and audit.id > found.get(run.engine, (0, 0.0))[0]:
                        found[run.engine] = (audit.id, run.seconds / _work(dataset))
    return {engine: rate for engine, (_, rate) in found.items()}
