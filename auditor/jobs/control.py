"""Start, watch, cancel, go on with and forget jobs, from any process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Any

from auditor.catalog import datasets, jobs
from auditor.catalog.db import ask, session
from auditor.catalog.jobs import Job
from auditor.catalog.records import now
from auditor.ground.errors import JobRefusedError, NotFoundError
from auditor.ground.processes import started
from auditor.ground.settings import settings
from auditor.jobs.running import log_file


@dataclass(frozen=True)
class Kind:
    """What all jobs of a kind have in common."""

    title: str
    goes_on: bool
    """An attempt after a kill or a cancel goes on where the work was; otherwise it starts over."""
    survives_kill: bool = False
    """One that was killed goes on where it was, though one that was cancelled or failed does not."""


KINDS = {
    "audit": Kind("Audit", goes_on=True),
    "import": Kind("Import", goes_on=False, survives_kill=True),
    "compare": Kind("Comparison", goes_on=True),
    "export": Kind("Export", goes_on=False),
    "push": Kind("Push to FiftyOne", goes_on=False),
    "pull": Kind("Pull from FiftyOne", goes_on=False),
}


@dataclass(frozen=True)
class Overview:
    """A job and what a person should be told about it."""

    job: Job
    state: str
    """``waiting``, ``running``, ``finished``, ``failed``, ``cancelled`` or ``dead``."""

    @property
    def title(self) -> str:
        """Return what a person calls it: ``Export of photos``."""
        return f"{KINDS[self.job.kind].title} of {self.job.name}"

    @property
    def is_over(self) -> bool:
        """Nobody works on it."""
        return self.state not in jobs.AT_WORK

    @property
    def goes_on(self) -> bool:
        """The next attempt goes on where this one was."""
        return KINDS[self.job.kind].goes_on

    @property
    def error(self) -> str | None:
        """Return why it ended without a result, in one line with the remedy."""
        if self.state != "dead":
            return self.job.error
        if self.goes_on:
            return "Its process is gone; resume it, or forget it."
        how = ", it goes on where it was" if KINDS[self.job.kind].survives_kill else ""
        return f"Its process is gone; start it again{how}, or forget it."


def start(
    kind: str,
    name: str,
    *,
    dataset_id: int | None = None,
    audit_id: int | None = None,
    arguments: dict[str, Any] | None = None,
    who: str | None = None,
) -> int:
    """Start a job about the dataset ``name``; returns its id. ``arguments`` are those of ``auditor.cli.kinds``.

    Raises:
        JobRefusedError: there is no such kind.
        NotFoundError: the dataset was removed.
    """
    if kind not in KINDS:
        raise JobRefusedError(f"There is no kind of job {kind!r}; there are {', '.join(KINDS)}.")
    with session() as open_session:
        if dataset_id is not None:
            datasets.lock(open_session, dataset_id)
            if not datasets.has(open_session, dataset_id):
                raise NotFoundError(f"The dataset {name!r} was removed; there is nothing to work on.")
        job_id = jobs.create(
            open_session,
            kind,
            name,
            dataset_id=dataset_id,
            audit_id=audit_id,
            arguments=arguments or {},
            who=who,
        )
    _start_process(job_id)
    return job_id


def overview(job_id: int) -> Overview:
    """Return how far a job is.

    Raises:
        NotFoundError: there is no such job.
    """
    seen = _seen(job_id)
    # A process may write its last words and end between our look at its row and our look for the process.
    return _seen(job_id) if seen.state == "dead" else seen


def _seen(job_id: int) -> Overview:
    job = ask(jobs.get, job_id)
    return Overview(job, jobs.state(job))


def listed(*kinds: str, dataset_id: int | None = None) -> list[Overview]:
    """Jobs of these kinds that nobody forgot, the newest first; only of one dataset where it is named."""
    found = ask(jobs.find, *kinds, dataset_id=dataset_id)
    return [Overview(job, jobs.state(job)) for job in found]


def cancel(job_id: int) -> None:
    """Ask a job to stop; it does so at its next report of progress and leaves nothing half done."""
    ask(jobs.change, job_id, cancel_requested=True)


def resume(job_id: int) -> None:
    """Start a job again that failed, was cancelled or killed.

    Raises:
        JobRefusedError: it is finished, or somebody works on it.
        NotFoundError: there is no such job.
    """
    with session() as open_session:
        jobs.lock(open_session, job_id)
        job = jobs.get(open_session, job_id)
        seen = Overview(job, jobs.state(job))
        if not seen.is_over or seen.state == "finished":
            raise JobRefusedError(f"{seen.title} is {seen.state}; there is nothing to resume.")
        # The process of the earlier attempt says nothing about the one that is about to start.
        fresh = {"pid": None, "heartbeat_at": now(), "cancel_requested": False, "error": None}
        jobs.change(open_session, job_id, status="waiting", **fresh)
    _start_process(job_id)


def remove(job_id: int) -> None:
    """Forget a job with its log and the files that it made.

    Raises:
        JobRefusedError: somebody works on it.
    """
    with session() as open_session:
        jobs.lock(open_session, job_id)
        job = jobs.get(open_session, job_id)
        seen = Overview(job, jobs.state(job))
        if not seen.is_over:
            raise JobRefusedError(f"{seen.title} is {seen.state}; cancel it first.")
        jobs.remove(open_session, job_id)
    shutil.rmtree(settings().job_folder(job_id), ignore_errors=True)


def _start_process(job_id: int) -> None:
    """The process outlives this one."""
    log_file(job_id).parent.mkdir(parents=True, exist_ok=True)
    with log_file(job_id).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "auditor", "job", str(job_id)],
            env={**os.environ, "AUDITOR_HOME": str(settings().home)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    # Other hosts see no process, and it needs a while to speak for itself.
    ask(
        jobs.change,
        job_id,
        pid=process.pid,
        host=jobs.this_host(),
        process_started=started(process.pid),
        heartbeat_at=now(),
    )
    # Reap the child when it ends; without this it would stay a zombie of a long-lived parent.
    threading.Thread(target=process.wait, daemon=True).start()
