"""The product as a library: what a notebook sees."""

from __future__ import annotations

import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import auditor
from auditor import api
from auditor.audits import own_models, plan, settle
from auditor.catalog import audits, jobs
from auditor.catalog.db import session
from auditor.catalog.records import now
from auditor.errors import AuditFailedError, ImportRefusedError, NotFoundError
from tests.auditor.catalogs import add_dataset, queued_audit
from tests.helpers import Digits, verify_truthfully


def test_suspects__as_few_as_asked_for_or_as_many_as_are_promised(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    photos = auditor.open("digits")
    assert photos.suspects(5).trust_score.is_monotonic_increasing
    assert len(photos.suspects()) == 300
    assert len(photos.suspects(max_fdr=0.5)) == 0
    assert "Nothing can be promised" in photos.suspects(max_fdr=0.5).attrs["statement"]
    verify_truthfully(digits, 150)
    settle.settle(audit_id)
    promised = photos.suspects(max_fdr=0.5)
    assert 0 < len(promised) < 300
    assert promised.trust_score.is_monotonic_increasing
    assert promised.attrs["statement"].startswith(f"{len(promised)} labels flagged")
    assert photos.suspects(2, max_fdr=0.5).equals(promised.head(2))


def test_suspects_and_export__of_an_earlier_audit(audited: tuple[Digits, int], tmp_path: Path) -> None:
    photos = auditor.open("digits")
    assert len(photos.suspects(3, audit_id=audited[1])) == 3
    with pytest.raises(NotFoundError, match="77"):
        photos.suspects(audit_id=77)
    with pytest.raises(NotFoundError, match="77"):
        photos.export(tmp_path / "out.csv", audit_id=77)


def test_add_pred_probs__an_array_becomes_a_witness(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    photos = auditor.open("digits")
    probs = np.full((300, 10), 0.01)
    probs[np.arange(300), digits.true_labels] = 0.91
    assert photos.add_pred_probs(probs, name="my model") == own_models.Added("my model", 300, 300)
    settle.settle(audit_id)
    with session() as open_session:
        assert "my model" in audits.get(open_session, audit_id).summary["witnesses"]
    with pytest.raises(ImportRefusedError, match=r"my model holds an array of shape \(300, 9\)"):
        photos.add_pred_probs(probs[:, :9], name="my model")


def silent_audit(**values: Any) -> int:
    """A queued audit of dataset 1 that was planned a minute ago; ``values`` are columns of its job, if any."""
    audit = queued_audit(created_at=now() - timedelta(minutes=1))
    with session() as open_session:
        audit_id = audits.create(open_session, audit, [])
        if values:
            job_id = jobs.create(open_session, "audit", "few", dataset_id=1, audit_id=audit_id)
            jobs.change(open_session, job_id, **values)
    return audit_id


@pytest.mark.parametrize(
    "values",
    [{"pid": os.getpid(), "host": jobs.this_host()}, {"heartbeat_in": timedelta(minutes=5)}],
    ids=["its process starts", "about to start"],
)
def test_remove__refuses_while_an_audit_waits_for_its_process(home: Path, values: dict[str, Any]) -> None:
    add_dataset()
    if "heartbeat_in" in values:  # from now on, not from when the tests were collected
        values = {"heartbeat_at": now() + values["heartbeat_in"]}
    audit_id = silent_audit(**values)
    with pytest.raises(AuditFailedError, match="Audit 1 of few is queued; cancel it"):
        api.remove("few")
    job_id = plan.job_of(audit_id)
    with session() as open_session:
        jobs.change(open_session, job_id, status="cancelled")
        audits.set_status(open_session, audit_id, "cancelled")
    api.remove("few")


def test_remove__an_abandoned_audit_keeps_nobody(home: Path) -> None:
    add_dataset()
    silent_audit()
    silent_audit(pid=4_194_303, host=jobs.this_host())
    api.remove("few")
    with pytest.raises(NotFoundError):
        auditor.open("few")


def test_remove__refuses_while_an_earlier_audit_is_started_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset()
    audit_id = silent_audit(pid=4_194_303, host=jobs.this_host())  # killed

    def start(*_: object, **__: object) -> None:
        with pytest.raises(AuditFailedError, match="is queued"):
            api.remove("few")
        raise InterruptedError

    monkeypatch.setattr(subprocess, "Popen", start)
    with pytest.raises(InterruptedError):
        plan.start(audit_id)
