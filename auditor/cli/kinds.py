"""What each kind of job does with its arguments, and what is kept of its result.

Modules are imported inside the functions: no job waits for what only another kind needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from auditor import jobs, kind
from auditor.catalog import datasets, reading
from auditor.catalog import jobs as catalog_jobs
from auditor.catalog.db import ask
from auditor.ground import processes
from auditor.ground.errors import ImportRefusedError
from auditor.ground.settings import settings
from auditor.jobs import KINDS, Job, Reporter

Work = Callable[[Job, Reporter], dict[str, Any] | None]


def run(job_id: int) -> None:
    """Do a job in this process.

    Raises:
        JobRefusedError: another process works on it.
        BaseException: whatever ended the work; the job's row says it in one line.
    """
    jobs.run(job_id, _work)


def _work(job: Job, tell: Reporter) -> dict[str, Any] | None:
    if KINDS[job.kind].goes_on:  # what goes on after a kill is what trains
        processes.yield_to_others()
    return WORK[job.kind](job, tell)


def _import(job: Job, tell: Reporter) -> dict[str, Any]:
    """``source``, ``options`` of ``import_dataset``."""
    from auditor.importing import import_dataset

    try:
        found = import_dataset(
            job.arguments["source"], name=job.name, progress=tell, **job.arguments["options"]
        )
    except KeyboardInterrupt as error:
        is_imported = ask(datasets.exists, job.name)
        if is_imported:  # it was asked to stop while the last transaction ended
            raise ImportRefusedError(f"{job.name} was imported before it could be cancelled.") from error
        raise ImportRefusedError("Cancelled; nothing was imported.") from error
    ask(catalog_jobs.change, job.id, dataset_id=found.dataset_id)
    return {"report": found.stored()}


def _audit(job: Job, tell: Reporter) -> None:
    assert job.audit_id is not None
    from auditor.audits import work_on_audit

    work_on_audit(job.audit_id, tell)


def _compare(job: Job, tell: Reporter) -> dict[str, Any]:
    """``preset``, ``device``, ``policy``, ``max_fdr``, ``audit_id``."""
    from auditor.experiments import train_before_and_after

    found = train_before_and_after(job.name, on_ready=tell.about, on_progress=tell, **job.arguments)
    return {
        "sentence": found.sentence,
        "is_clear": found.difference.is_clear,
        "by_seed": found.by_seed,
        "held_out": found.num_held_out,
        "changed": found.num_changed,
        "notes": found.notes,
    }


def _export(job: Job, tell: Reporter) -> dict[str, Any]:
    """``file``: a name whose ending says what is wanted; ``audit_id``; of classes also ``policy``, ``max_fdr``."""
    out = settings().job_folder(job.id) / job.arguments["file"]
    chosen = {"audit_id": job.arguments["audit_id"], "progress": tell}
    if out.suffix == ".html":
        from auditor.outputs import write_report

        write_report(job.name, out, force=True, **chosen)
        return {"sentence": "The report is written."}
    chosen |= {key: job.arguments[key] for key in ("policy", "max_fdr") if key in job.arguments}
    return {"sentence": kind.of(reading.dataset(job.name)).download(job.name, out, **chosen).sentence}


def _push(job: Job, tell: Reporter) -> dict[str, Any]:
    from auditor.fiftyone_bridge import push_audit

    return asdict(push_audit(job.name, progress=tell))


def _pull(job: Job, tell: Reporter) -> dict[str, Any]:
    from auditor.fiftyone_bridge import pull_decisions

    return asdict(pull_decisions(job.name, reviewer=job.who or "fiftyone", progress=tell))


WORK: dict[str, Work] = {
    "audit": _audit,
    "import": _import,
    "compare": _compare,
    "export": _export,
    "push": _push,
    "pull": _pull,
}
