"""Jobs in real processes: how far they are, how they end, and what is known once a process is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pytest
from PIL import Image

from auditor import api, jobs
from auditor.audits import plan, worker
from auditor.catalog import audits as catalog_audits
from auditor.catalog import datasets
from auditor.catalog import jobs as catalog_jobs
from auditor.catalog.db import session
from auditor.cli import kinds
from auditor.ground.errors import AuditFailedError, JobRefusedError, NotFoundError
from auditor.ground.processes import BETWEEN_FORKS, may_fork, started
from auditor.ground.progress import Progress
from auditor.ground.settings import settings
from auditor.jobs import Job, Overview, Reporter
from auditor.review import decisions, verifying
from tests.auditor.sample_pictures import write_folder
from tests.helpers import WAIT_S, Digits, verify_truthfully


def wait_for(job_id: int, what: str, condition: Callable[[Overview], bool]) -> Overview:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if condition(seen := jobs.overview(job_id)):
            return seen
        time.sleep(0.02)
    raise AssertionError(f"{what}: {jobs.overview(job_id)}, {jobs.log_file(job_id).read_text()}")


def end_of(job_id: int) -> Overview:
    return wait_for(job_id, "its end", lambda seen: seen.is_over)


def start_import(source: Path, name: str = "photos", **options: Any) -> int:
    return jobs.start("import", name, arguments={"source": str(source), "options": options, "upload": None})


def start_export(file: str = "out.csv", **changed: Any) -> int:
    chosen = {"file": file, "policy": "reviewed", "max_fdr": None, "audit_id": None} | changed
    return jobs.start("export", "digits", dataset_id=1, arguments=chosen)


def heavy_folder(place: Path, count: int = 2000) -> Path:
    """One large picture under so many names, in two classes: it takes a while to decode."""
    for name in ("cat", "dog"):
        (place / name).mkdir(parents=True)
    Image.effect_noise((900, 900), 60).save(place / "cat" / "0.jpg")
    for i in range(1, count):
        os.link(place / "cat" / "0.jpg", place / ("cat", "dog")[i % 2] / f"{i}.jpg")
    return place


def kill(seen: Overview) -> None:
    assert seen.job.pid is not None
    os.kill(seen.job.pid, signal.SIGKILL)


def exists(name: str) -> bool:
    with session() as open_session:
        return datasets.exists(open_session, name)


def test_start__an_import_says_how_far_it_is_and_is_cancelled_without_a_trace(
    home: Path, tmp_path: Path
) -> None:
    job_id = start_import(heavy_folder(tmp_path / "set"), workers=1)  # several are done before one has looked
    seen = wait_for(job_id, "decoding", lambda one: one.job.stage == "decoding" and one.job.done > 0)
    assert (seen.state, seen.job.total) == ("running", 2000)
    assert 0 < seen.job.progress < 1
    assert seen.job.seconds_left is not None
    jobs.cancel(job_id)
    seen = end_of(job_id)
    assert (seen.state, seen.error) == ("cancelled", "Cancelled; nothing was imported.")
    assert not exists("photos")
    assert list((home / "datasets").iterdir()) == []


def test_resume__an_import_that_was_killed_starts_over(home: Path, tmp_path: Path) -> None:
    job_id = start_import(write_folder(tmp_path / "set", 400), workers=1)
    kill(wait_for(job_id, "its process", lambda one: one.state == "running"))
    seen = end_of(job_id)
    assert seen.state == "dead"
    assert "start it again" in (seen.error or "")
    jobs.resume(job_id)
    seen = end_of(job_id)
    assert (seen.state, seen.error) == ("finished", None)
    assert (seen.job.result or {})["report"]["num_samples"] == 400
    assert seen.job.dataset_id == api.open_dataset("photos").table.id
    with pytest.raises(JobRefusedError, match="Import of photos is finished; there is nothing to resume"):
        jobs.resume(job_id)
    api.remove("photos")
    with pytest.raises(NotFoundError, match=f"no job {job_id}"):
        jobs.overview(job_id)


def test_remove__forgets_a_killed_job_with_its_files_but_none_at_work(home: Path, tmp_path: Path) -> None:
    job_id = start_import(heavy_folder(tmp_path / "set"))
    seen = wait_for(job_id, "its process", lambda one: one.state == "running")
    for refused in (jobs.remove, jobs.resume):
        with pytest.raises(JobRefusedError, match="Import of photos is running; "):
            refused(job_id)
    with pytest.raises(JobRefusedError, match=f"already running as process {seen.job.pid} on "):
        kinds.run(job_id)
    kill(seen)
    assert end_of(job_id).state == "dead"
    assert settings().job_folder(job_id).exists()
    jobs.remove(job_id)
    assert jobs.listed() == []
    assert not settings().job_folder(job_id).exists()


def test_start__two_jobs_at_once_make_their_own_files(audited: tuple[Digits, int]) -> None:
    table, sheet = start_export("out.parquet"), start_export("out.csv")
    assert [end_of(one).error for one in (table, sheet)] == [None, None]
    ours = pd.read_parquet(settings().job_folder(table) / "out.parquet")
    theirs = pd.read_csv(settings().job_folder(sheet) / "out.csv")
    assert ours.cleaned_label.tolist() == theirs.cleaned_label.astype(str).tolist()
    assert [seen.job.id for seen in jobs.listed("export", dataset_id=1)] == [sheet, table]
    assert jobs.listed("export", dataset_id=2) == jobs.listed("push") == []


def test_start__a_report_is_an_export_too(audited: tuple[Digits, int]) -> None:
    job_id = start_export("report.html")
    assert end_of(job_id).error is None
    assert "digits" in (settings().job_folder(job_id) / "report.html").read_text()


def test_error__a_refusal_is_one_line_and_names_the_rows(audited: tuple[Digits, int], tmp_path: Path) -> None:
    refused = end_of(start_export(policy="auto"))
    assert refused.state == "failed"
    assert (refused.error or "").startswith("The policy 'auto' needs a bound")
    source = write_folder(tmp_path / "set", 4)
    bad = next(source.rglob("*.png"))
    bad.write_bytes(b"no image")
    refused = end_of(start_import(source))
    assert bad.name in (refused.error or "")
    assert [Path(file).name for file, _, _ in (refused.job.result or {})["problems"]] == [bad.name]
    assert (refused.job.result or {})["field"] == "skip_bad"
    with pytest.raises(JobRefusedError, match="no kind of job 'magic'; there are audit, import"):
        jobs.start("magic", "digits")


def test_error__what_nobody_expected_names_the_log(audited: tuple[Digits, int]) -> None:
    seen = end_of(jobs.start("export", "digits", dataset_id=1))  # without its arguments
    assert seen.error == f"KeyError: 'file' (details in {jobs.log_file(seen.job.id)})"
    assert "Traceback" in jobs.log_file(seen.job.id).read_text()


def test_dataset__is_not_removed_under_a_job_and_takes_its_jobs_along(audited: tuple[Digits, int]) -> None:
    def work(job: Job, _: Reporter) -> None:
        with pytest.raises(JobRefusedError, match="Export of digits is running; cancel it first"):
            api.remove("digits")
        (settings().job_folder(job.id)).mkdir(parents=True)

    with session() as open_session:
        job_id = catalog_jobs.create(open_session, "export", "digits", dataset_id=1)
    jobs.run(job_id, work)
    api.remove("digits")
    assert jobs.listed() == []
    assert not settings().job_folder(job_id).exists()
    with pytest.raises(NotFoundError, match="'digits' was removed"):
        start_export()
    assert jobs.listed() == []


def test_run__a_job_whose_row_is_gone_stops(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_jobs, "HEARTBEAT_S", 0.0)
    with session() as open_session:
        job_id = catalog_jobs.create(open_session, "export", "digits")

    def work(_: Job, tell: Reporter) -> None:
        with session() as open_session:
            catalog_jobs.remove(open_session, job_id)
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            tell(Progress("waiting", 0, None, None))
            time.sleep(0.01)

    with pytest.raises(jobs.Cancelled):
        jobs.run(job_id, work)
    assert jobs.listed() == []


def test_run__a_job_that_was_cancelled_before_it_began_does_nothing(home: Path) -> None:
    with session() as open_session:
        job_id = catalog_jobs.create(open_session, "export", "digits")
    jobs.cancel(job_id)
    with pytest.raises(jobs.Cancelled):
        jobs.run(job_id, lambda *_: pytest.fail("it did something"))
    assert jobs.overview(job_id).state == "cancelled"
    jobs.run(job_id, lambda *_: {"number": float("nan")})  # the wish to cancel it is over
    assert jobs.overview(job_id).job.result == {"number": None}


def test_cancel__ends_a_comparison_that_goes_on_later(audited: tuple[Digits, int]) -> None:
    verify_truthfully(audited[0], 60)
    held = set(verifying.rows(1).sample_ids.tolist())
    decisions.decide(1, next(i for i in range(300) if i not in held), "exclude", reviewer="Ada")
    chosen = {"preset": "standard", "device": "cpu", "policy": "reviewed", "max_fdr": None, "audit_id": 1}
    job_id = jobs.start("compare", "digits", dataset_id=1, arguments=chosen)
    seen = wait_for(job_id, "training", lambda one: one.job.stage == "training cross_entropy")
    assert "1 training label differs" in (seen.job.result or {})["about"]
    jobs.cancel(job_id)
    seen = end_of(job_id)
    assert seen.state == "cancelled"
    assert seen.goes_on
    assert (seen.error or "").startswith("Stopped after 0 of 6 trainings; start the same again")


def test_audit__its_job_says_how_far_it_is_and_a_second_process_is_refused(
    audited: tuple[Digits, int],
) -> None:
    options = {"cross_entropy": {"epochs": 5000, "network": "mlp"}}
    audit_id = plan.plan_audit("digits", ["cross_entropy"], options=options, map_method="pca")
    job_id = plan.start_audit(audit_id)
    seen = wait_for(job_id, "an epoch", lambda one: one.job.done > 0)
    assert seen.job.stage == "training cross_entropy"
    assert plan.audit_overview(audit_id).state == "running"
    with pytest.raises(JobRefusedError, match=f"Audit {audit_id} is already running as process"):
        worker.run_audit(audit_id)
    with pytest.raises(AuditFailedError, match=f"Audit {audit_id} is running; "):
        plan.start_audit(audit_id)
    assert psutil.pid_exists(seen.job.pid or 0)
    plan.cancel_audit(audit_id)
    assert end_of(job_id).state == plan.audit_overview(audit_id).state == "cancelled"


@pytest.mark.parametrize("is_audit", [False, True])
def test_overview__a_process_that_ends_while_we_look_is_not_dead(
    audited: tuple[Digits, int], monkeypatch: pytest.MonkeyPatch, is_audit: bool
) -> None:
    audit_id = plan.plan_audit("digits", ["cross_entropy"], map_method="pca")
    job_id = plan.job_of(audit_id)
    with session() as open_session:
        values = {"status": "running", "pid": os.getpid(), "host": catalog_jobs.this_host()}
        catalog_jobs.change(open_session, job_id, process_started=started(), **values)
        catalog_audits.set_status(open_session, audit_id, "running")

    def ends(*_: object) -> bool:
        with session() as open_session:
            catalog_audits.set_status(open_session, audit_id, "cancelled")
            catalog_jobs.change(open_session, job_id, status="cancelled", pid=None)
        return False

    monkeypatch.setattr(catalog_jobs, "process_lives", ends)
    assert (plan.audit_overview(audit_id) if is_audit else jobs.overview(job_id)).state == "cancelled"


def test_state__a_number_that_went_to_another_process_is_dead(home: Path) -> None:
    with session() as open_session:
        job_id = catalog_jobs.create(open_session, "export", "digits")
    for began, state in ((started(), "waiting"), (started() - 3600, "dead")):
        with session() as open_session:
            values = {"pid": os.getpid(), "host": catalog_jobs.this_host(), "process_started": began}
            catalog_jobs.change(open_session, job_id, **values)
        assert jobs.overview(job_id).state == state


def test_started__does_not_move_when_the_clock_is_set() -> None:
    if not psutil.LINUX:
        pytest.skip("elsewhere the system keeps the moment itself")
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert 0 < started() < since_boot
    with pytest.raises(psutil.NoSuchProcess):
        started(4_194_303)


def test_run__a_job_that_another_host_went_on_with_stops_and_writes_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_jobs, "HEARTBEAT_S", 0.0)
    with session() as open_session:
        job_id = catalog_jobs.create(open_session, "export", "digits")
    elsewhere = {"pid": 7, "host": "box pid:[1] boot", "stage": "theirs"}

    def work(_: Job, tell: Reporter) -> None:
        with session() as open_session:
            catalog_jobs.change(open_session, job_id, **elsewhere)
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            tell(Progress("ours", 0, None, None))
            time.sleep(0.01)

    with pytest.raises(jobs.TakenOver):
        jobs.run(job_id, work)
    assert (jobs.overview(job_id).job.status, jobs.overview(job_id).job.stage) == ("running", "theirs")

    def change_hands(*_: object) -> None:
        with session() as open_session:
            catalog_jobs.change(open_session, job_id, **elsewhere)

    jobs.cancel(job_id)
    with session() as open_session:
        catalog_jobs.change(open_session, job_id, pid=None, cancel_requested=False)
    with pytest.raises(jobs.TakenOver):  # at the very end, too
        jobs.run(job_id, change_hands)
    assert jobs.overview(job_id).job.status == "running"


def test_start__the_job_outlives_the_process_that_started_it(audited: tuple[Digits, int]) -> None:
    chosen = {"file": "out.csv", "policy": "reviewed", "max_fdr": None, "audit_id": None}
    code = (
        f"from auditor import jobs; print(jobs.start('export', 'digits', dataset_id=1, arguments={chosen}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert end_of(int(done.stdout)).state == "finished"


def test_may_fork__only_beside_threads_that_wait_for_forks() -> None:
    ended = threading.Event()

    def beside(name: str) -> bool:
        thread = threading.Thread(target=ended.wait, name=name)
        thread.start()
        try:
            return may_fork()
        finally:
            ended.set()
            thread.join()
            ended.clear()

    waiting = (threading.current_thread().name, BETWEEN_FORKS)
    others = [one.name for one in threading.enumerate() if one.name not in waiting]
    assert beside("another") is False
    assert beside(BETWEEN_FORKS) is (not others)


def test_export__tells_of_every_row(audited: tuple[Digits, int], tmp_path: Path) -> None:
    from auditor.outputs import export

    for write, out in ((export.export_table, tmp_path / "out.csv"), (export.export_tree, tmp_path / "tree")):
        seen: list[Progress] = []
        write("digits", out, progress=seen.append)
        assert [one.total for one in seen] == [300] * len(seen)
        assert (seen[0].done, seen[-1].done) == (0, 300)
        assert seen[-1].seconds_left == 0
        assert bool(np.all(np.diff([one.done for one in seen]) > 0))
