"""The work of a job, done in this process: its row says at any moment how far it is and that it lives."""

from __future__ import annotations

import json
import os
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from auditor.bridges import engine_bridge
from auditor.catalog import jobs
from auditor.catalog.db import session
from auditor.catalog.jobs import Job
from auditor.catalog.records import now
from auditor.ground.errors import AuditorError, CatalogBusyError, JobRefusedError
from auditor.ground.processes import BETWEEN_FORKS, between_forks, started
from auditor.ground.progress import OnProgress, Progress
from auditor.ground.settings import settings

TICK_S = 0.4
"""How long progress may wait until it is written."""
PATIENCE_S = 900.0
"""How long a job waits for a locked catalog with what it must write; a large import locks it for minutes."""
BUSY_PAUSE_S = 0.5


class Cancelled(KeyboardInterrupt):
    """Somebody asked the job to stop: to the work it is a Ctrl-C."""


class TakenOver(Cancelled):
    """Another process took this one for dead and goes on with its job (this machine slept, for example)."""


def log_file(job_id: int) -> Path:
    """Return what the job's processes printed."""
    return settings().job_folder(job_id) / "log.txt"


def run(
    job_id: int,
    work: Callable[[Job, Reporter], dict[str, Any] | None],
    *,
    progress: OnProgress | None = None,
) -> None:
    """Do a job's work in this process. Its result, JSON values, or what ended it is in its row afterwards.

    ``progress`` hears too how far it is.

    Raises:
        JobRefusedError: another process works on it.
        BaseException: whatever ended the work.
    """
    job = _take(job_id)
    with Reporter(job_id, progress) as report:
        try:
            report.stop_if_asked()
            result = work(job, report)
        except BaseException as error:
            if isinstance(error, TakenOver):  # the row is another process's now
                raise
            status, text = _explained(job_id, error)
            rows = [(one.file, one.row, one.text) for one in getattr(error, "problems", [])]
            told = {"problems": rows, "field": getattr(error, "field", None)}
            patiently(lambda: _end(job_id, status, error=text, result=told))
            raise
        patiently(lambda: _end(job_id, "finished", result=result))


def patiently(write: Callable[[], object]) -> None:
    """Do a write that cannot be left out; while another process keeps the catalog locked, try again."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            write()
            return
        except CatalogBusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(BUSY_PAUSE_S)


class Reporter:
    """Takes the work's progress, and raises ``Cancelled`` there once somebody asked the job to stop.

    A thread writes it to the job's row together with the heartbeat, so that the work never waits for the catalog:
    it may hold the catalog's lock itself.
    """

    def __init__(self, job_id: int, also: OnProgress | None = None) -> None:
        self._job_id, self._also = job_id, also
        self._newest: Progress | None = None
        self._should_stop = False
        self._is_lost = False
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=BETWEEN_FORKS, daemon=True)

    def __call__(self, progress: Progress) -> None:
        """Take note of how far the work is."""
        self._newest = progress
        if self._also is not None:
            self._also(progress)
        self.stop_if_asked()

    def about(self, text: str) -> None:
        """Something that a person should know while the work runs."""
        with suppress(AuditorError), session() as open_session:
            jobs.change(open_session, self._job_id, result={"about": text})

    def stop_if_asked(self) -> None:
        """Raise ``Cancelled`` once somebody asked the job to stop, or does it himself by now."""
        if self._is_lost:
            raise TakenOver
        if self._should_stop:
            raise Cancelled

    def __enter__(self) -> Reporter:
        self._beat()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        written, last = self._newest, time.monotonic()
        while not self._end.wait(TICK_S):
            newest = self._newest
            if newest is written and time.monotonic() - last < jobs.HEARTBEAT_S:
                continue
            self._beat()
            written, last = newest, time.monotonic()

    def _beat(self) -> None:
        at = self._newest
        values = {} if at is None else vars(at)
        try:
            with between_forks(), session() as open_session:
                self._should_stop = jobs.beat(open_session, self._job_id, **values) or self._should_stop
                self._is_lost = jobs.is_taken(open_session, self._job_id)
        except AuditorError:
            return  # a catalog that is locked for a moment; the next beat tries again


def _take(job_id: int) -> Job:
    """Make this process the one that works on the job."""
    mine = {"pid": os.getpid(), "host": jobs.this_host()}
    with session() as open_session:
        jobs.lock(open_session, job_id)
        job = jobs.get(open_session, job_id)
        is_mine = (job.pid, job.host) == (mine["pid"], mine["host"])
        if job.pid is not None and not is_mine and job.status in jobs.AT_WORK and jobs.lives(job):
            where = f" on {job.host.split()[0]}" if job.host else ""
            what = f"Audit {job.audit_id}" if job.audit_id is not None else f"Job {job_id}"
            raise JobRefusedError(f"{what} is already running as process {job.pid}{where}.")
        jobs.change(
            open_session,
            job_id,
            status="running",
            process_started=started(),
            cancel_requested=job.cancel_requested and job.status == "waiting",
            started_at=now(),
            heartbeat_at=now(),
            finished_at=None,
            stage="",
            done=0.0,
            total=None,
            seconds_left=None,
            error=None,
            result=None,
            **mine,
        )
    return job


def _end(job_id: int, status: str, *, error: str | None = None, result: dict[str, Any] | None = None) -> None:
    # Neither catalog takes NaN as JSON.
    plain = json.loads(json.dumps(result, default=str), parse_constant=lambda _: None)
    with session() as open_session:
        jobs.lock(open_session, job_id)
        if jobs.is_taken(open_session, job_id):
            raise TakenOver
        jobs.change(
            open_session,
            job_id,
            status=status,
            error=error,
            result=plain,
            finished_at=now(),
            pid=None,
            cancel_requested=False,
            seconds_left=None,
        )


def _explained(job_id: int, error: BaseException) -> tuple[str, str]:
    """The status after that error, and one line for a person."""
    if isinstance(error, KeyboardInterrupt):
        return "cancelled", "Cancelled."
    status = "cancelled" if isinstance(error.__cause__, KeyboardInterrupt) else "failed"
    text = str(error) if isinstance(error, AuditorError) else None
    text = text or engine_bridge.remedy(error, go_on="start it again")
    if text is None:
        traceback.print_exc()
        text = f"{type(error).__name__}: {error} (details in {log_file(job_id)})"
    return status, " ".join(text.split())
