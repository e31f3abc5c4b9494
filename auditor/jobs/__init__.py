"""Jobs: work in processes of its own. Each has a row, a heartbeat, progress, cancel, and a result or an error.

The process is ``python -m auditor job ID``; what each kind does is in ``auditor.cli.kinds``. It outlives whoever
started it, and what it printed lies in ``home/jobs/<id>/log.txt``, beside the files that it made.
"""

from auditor.catalog.jobs import Job
from auditor.jobs.control import KINDS, Overview, cancel, listed, overview, remove, resume, start
from auditor.jobs.running import Cancelled, Reporter, TakenOver, log_file, patiently, run

__all__ = [
    "KINDS",
    "Cancelled",
    "Job",
    "Overview",
    "Reporter",
    "TakenOver",
    "cancel",
    "listed",
    "log_file",
    "overview",
    "patiently",
    "remove",
    "resume",
    "run",
    "start",
]
