"""An audit whose process is killed at any moment is shown as dead, resumes, and ends with the same result."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

from auditor import jobs
from auditor.audits import plan as auditing
from auditor.audits import worker
from auditor.catalog import audits
from auditor.catalog.db import session
from auditor.results import arrays
from tests.helpers import WAIT_S, Digits, wait_for_end

OPTIONS = {"cross_entropy": {"epochs": 60, "network": "mlp", "views": 2}}


def plan() -> int:
    return auditing.plan_audit("digits", ["cross_entropy"], options=OPTIONS, map_method="pca")


def wait_for_epochs(audit_id: int, count: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        with session() as open_session:
            if len(audits.epochs(open_session, audit_id)) >= count:
                return
        time.sleep(0.05)
    raise AssertionError(f"audit {audit_id} did not reach epoch {count}")


def kill_at_epoch(num_epochs: int, audit_id: int) -> None:
    job_id = auditing.start_audit(audit_id)
    wait_for_epochs(audit_id, num_epochs)
    pid = jobs.overview(job_id).job.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_for_end(pid)
    assert auditing.audit_overview(audit_id).state == "dead"


def test_kill__twice_resumes_to_the_same_bits(
    audited: tuple[Digits, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_CHECKPOINT_INTERVAL_S", "0")
    whole, killed = plan(), plan()
    worker.run_audit(whole)
    kill_at_epoch(1, killed)
    kill_at_epoch(12, killed)
    auditing.start_audit(killed)
    last = auditing.wait_for_audit(killed, lambda _: None, every_s=0.1)
    assert last.state == "finished", last.error
    for name in ("pred_probs", "trust_score", "embeddings", "map", "history_margin"):
        ours, theirs = (arrays.array(one, "cross_entropy", name) for one in (killed, whole))
        assert np.array_equal(ours, theirs), name


def test_cancel__stops_a_background_audit(audited: tuple[Digits, int]) -> None:
    options = {"cross_entropy": {"epochs": 5000, "network": "mlp"}}
    audit_id = auditing.plan_audit("digits", ["cross_entropy"], options=options, map_method="pca")
    auditing.start_audit(audit_id)
    wait_for_epochs(audit_id, 1)
    auditing.cancel_audit(audit_id)
    last = auditing.wait_for_audit(audit_id, lambda _: None, every_s=0.1)
    assert last.state == "cancelled"
    assert last.error is None
