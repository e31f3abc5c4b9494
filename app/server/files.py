"""Files that a job made, to take home."""

from __future__ import annotations

from pathlib import Path

from auditor.catalog import jobs
from auditor.catalog.db import ask
from auditor.ground.errors import NotFoundError
from auditor.ground.settings import settings

MIME = {
    ".csv": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".html": "text/html",
    ".zip": "application/zip",
}
"""What an export's file is, by its ending."""


def of_job(job_id: int) -> Path:
    """The file of a finished export.

    Raises:
        NotFoundError: there is no such job, it is no finished export, or its file is gone.
    """
    job = ask(jobs.get, job_id)
    name = Path(str(job.arguments.get("file", ""))).name
    path = settings().job_folder(job_id) / name
    if job.kind != "export" or job.status != "finished" or path.suffix not in MIME or not path.is_file():
        raise NotFoundError(f"Job {job_id} has no file to download; make it again.")
    return path
