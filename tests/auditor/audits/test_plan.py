"""Plan, run, watch, cancel and resume an audit."""

from __future__ import annotations

import errno
import json
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from auditor.audits import plan, worker
from auditor.catalog import audits, db, jobs, scores
from auditor.catalog.db import session
from auditor.catalog.records import Epoch
from auditor.ground.errors import AuditFailedError, NotFoundError
from auditor.ground.settings import settings
from auditor.results import arrays, settle
from auditor.review import decisions
from auditor.work import kinds
from tests.auditor.conftest import Run
from tests.helpers import QUICK_OPTIONS, Digits


def plan_again(**values: object) -> int:
    options = {"cross_entropy": QUICK_OPTIONS["cross_entropy"] | values}
    return plan.plan_audit("digits", ["cross_entropy"], options=options, map_method="pca")


def test_run__finds_the_wrong_labels(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    with session() as open_session:
        table = scores.table(open_session, audit_id)
    suspicious = np.argsort(table["rank"].to_numpy())[:30]
    assert digits.is_wrong[suspicious].mean() > 0.6
    assert sorted(table["rank"]) == list(range(300))
    right = table.suggested_label.to_numpy() == digits.true_labels
    assert right[digits.is_wrong].mean() > 0.7


def test_run__leaves_arrays_curves_and_provenance(audited: tuple[Digits, int]) -> None:
    _, audit_id = audited
    assert arrays.engines_of(audit_id) == ["cross_entropy"]
    assert arrays.pred_probs(audit_id, "cross_entropy").shape == (300, 10)
    assert arrays.map_points(audit_id, "cross_entropy").shape == (300, 2)
    assert "loss" in arrays.signal_names(audit_id, "cross_entropy")
    with session() as open_session:
        epochs = audits.epochs(open_session, audit_id, "cross_entropy")
        run = audits.run(open_session, audit_id, "cross_entropy")
    assert [epoch.epoch for epoch in epochs] == list(range(6))
    assert "train_accuracy" in epochs[-1].metrics
    assert run.provenance["config"]["epochs"] == 6
    overview = plan.audit_overview(audit_id)
    assert (overview.state, overview.seconds_left) == ("finished", 0.0)


def test_evidence__tells_the_sample_s_story(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    wrong = int(np.flatnonzero(digits.is_wrong)[0])
    found = arrays.evidence(audit_id, wrong)
    assert found.given_label == digits.given_labels[wrong]
    assert len(found.top_classes) == 9
    assert len(found.neighbours) == arrays.NUM_NEIGHBOURS
    assert wrong not in found.neighbours
    assert found.verdicts[0].history["loss"]
    assert found.headline
    with pytest.raises(NotFoundError, match="no score for sample 999"):
        arrays.evidence(audit_id, 999)


@pytest.mark.parametrize(
    ("engines", "options", "values", "message"),
    [
        (["magic"], {}, {}, "no engine 'magic'; choose from .*cross_entropy"),
        (["cross_entropy"], {"cross_entropy": {"epoch": 3}}, {}, "no setting 'epoch'; did you mean 'epochs'"),
        (["cross_entropy"], {"cross_entropy": {"epochs": 0}}, {}, "epochs is 0, it must be at least 1"),
        (["cross_entropy"], {}, {"preset": "best"}, "no preset 'best'"),
        (["cross_entropy"], {}, {"device": "tpu"}, "tpu"),
    ],
)
def test_plan__refuses(
    audited: tuple[Digits, int], engines: list[str], options: dict, values: dict, message: str
) -> None:
    with pytest.raises(AuditFailedError, match=message):
        plan.plan_audit("digits", engines, options=options, **values)
    with session() as open_session:
        assert len(audits.of_dataset(open_session, 1)) == 1


def test_plan__a_full_disk_leaves_no_audit_behind(
    audited: tuple[Digits, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: Any, **_: object) -> None:
        file.write(b"PK half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez_compressed", full)
        with pytest.raises(
            AuditFailedError, match="cannot be written .*No space left.*; no audit was started"
        ):
            plan_again()
    assert not settings().audit_folder(2).exists()
    with pytest.raises(AuditFailedError, match="no audit to resume"):
        plan.newest_unfinished_audit("digits")
    (settings().audit_folder(2) / "inputs.npz" / "in the way").mkdir(parents=True)
    assert plan_again() == 3, "a folder that another catalog may know is passed over"
    assert [path.name for path in settings().audit_folder(2).iterdir()] == ["inputs.npz"]
    assert sorted(path.name for path in settings().audit_folder(3).iterdir()) == [
        "cross_entropy.json",
        "inputs.npz",
        "manifest.json",
    ]


def test_run__a_new_audit_changes_no_decision(audited: tuple[Digits, int]) -> None:
    decisions.decide(1, 0, "exclude", reviewer="ada")
    before = decisions.log_frame(1)
    worker.run_audit(plan_again())
    assert decisions.log_frame(1).equals(before)


def test_run__cancelled_and_resumed_gives_the_same_result(
    audited: tuple[Digits, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first = audited
    monkeypatch.setenv("AUDITOR_CHECKPOINT_INTERVAL_S", "0")
    audit_id = plan_again()
    seen = []
    record = audits.record_epoch

    def cancel_in_the_third(open_session: object, epoch: object) -> None:
        record(open_session, epoch)
        seen.append(epoch)
        if len(seen) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(audits, "record_epoch", cancel_in_the_third)
    with pytest.raises(AuditFailedError, match="was cancelled; resumed, it goes on"):
        worker.run_audit(audit_id)
    assert plan.audit_overview(audit_id).state == "cancelled"
    assert plan.newest_unfinished_audit("digits") == audit_id
    worker.run_audit(audit_id)
    assert len(seen) == 6  # three epochs before, three after: none was trained twice
    for name in ("pred_probs", "trust_score", "embeddings", "history_loss"):
        ours, theirs = (arrays.array(one, "cross_entropy", name) for one in (audit_id, first))
        assert np.array_equal(ours, theirs), name


def test_run__a_checkpoint_of_another_network_is_named_and_started_over_when_deleted(
    audited: tuple[Digits, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_CHECKPOINT_INTERVAL_S", "0")
    other, audit_id = plan_again(network="conv3"), plan_again()
    record = audits.record_epoch

    def cancel_at_once(open_session: object, epoch: object) -> None:
        record(open_session, epoch)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(audits, "record_epoch", cancel_at_once)
        with pytest.raises(AuditFailedError, match="was cancelled"):
            worker.run_audit(other)
    left = settings().audit_folder(other) / "cross_entropy.checkpoint"
    place = settings().audit_folder(audit_id) / left.name
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(left, place)
    with pytest.raises(AuditFailedError, match=rf"another engine, config, .* delete it .* It is {place}\."):
        worker.run_audit(audit_id)
    place.unlink()
    worker.run_audit(audit_id)
    assert plan.audit_overview(audit_id).state == "finished"


def test_run__full_disk_is_one_line_and_resumes(
    audited: tuple[Digits, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    audit_id = plan_again()
    store = kinds.store_arrays

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(kinds, "store_arrays", full)
    with pytest.raises(AuditFailedError, match="is full; free some space, then resume. Nothing was lost"):
        worker.run_audit(audit_id)
    assert plan.audit_overview(audit_id).state == "failed"
    assert "full" in (plan.audit_overview(audit_id).error or "")
    monkeypatch.setattr(kinds, "store_arrays", store)
    worker.run_audit(audit_id)
    assert plan.audit_overview(audit_id).state == "finished"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that finds the catalog locked gives up after a tenth of a second."""
    monkeypatch.setattr(db, "WRITE_WAIT_S", 0.1)
    db.close_all()


@contextmanager
def a_long_import(seconds: float) -> Iterator[Callable[[], None]]:
    """What locks the catalog for so long when it is called the first time, as another process would."""
    other = sqlite3.connect(settings().home / "catalog.db", isolation_level=None, check_same_thread=False)
    release = threading.Timer(seconds, other.rollback)

    def begin() -> None:
        if not release.is_alive() and not release.finished.is_set():
            other.execute("BEGIN IMMEDIATE")
            release.start()

    yield begin
    release.join()
    other.close()


def test_run__a_catalog_that_is_locked_for_long_loses_no_epoch(
    audited: tuple[Digits, int], impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit_id, record = plan_again(), audits.record_epoch
    with a_long_import(2.0) as begin:

        def lock_in_the_second(open_session: object, epoch: Epoch) -> None:
            if epoch.epoch == 1:
                begin()
            record(open_session, epoch)

        monkeypatch.setattr(audits, "record_epoch", lock_in_the_second)
        worker.run_audit(audit_id)
    assert plan.audit_overview(audit_id).state == "finished"
    with session() as open_session:
        assert [row.epoch for row in audits.epochs(open_session, audit_id)] == [0, 1, 2, 3, 4, 5]


def test_run__what_ended_it_is_told_once_the_catalog_is_free(
    audited: tuple[Digits, int], impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit_id = plan_again()
    with a_long_import(1.0) as begin:

        def full(*_: object) -> None:
            begin()
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(kinds, "store_arrays", full)
        with pytest.raises(AuditFailedError, match="is full; free some space, then resume"):
            worker.run_audit(audit_id)
    seen = plan.audit_overview(audit_id)
    assert (seen.state, seen.engines[0].status) == ("failed", "failed")


def test_run__second_audit_trusts_what_people_confirmed(audited: tuple[Digits, int]) -> None:
    decisions.decide(1, 0, "keep", reviewer="ada")
    decisions.decide(1, 1, "exclude", reviewer="ada")
    audit_id = plan_again()
    labels, trusted = arrays.trained_labels(audit_id)
    assert trusted[0]
    assert labels[1] == -1
    worker.run_audit(audit_id)
    with session() as open_session:
        table = scores.table(open_session, audit_id)
    assert np.isfinite(table.trust_score[1])  # excluded, and still graded by the label that it was given


def test_resume__refuses_what_is_finished(audited: tuple[Digits, int]) -> None:
    _, audit_id = audited
    with pytest.raises(AuditFailedError, match="is finished; there is nothing to resume"):
        plan.start_audit(audit_id)
    with pytest.raises(AuditFailedError, match="has no audit to resume"):
        plan.newest_unfinished_audit("digits")


def test_resume__what_is_still_running_is_named(audited: tuple[Digits, int]) -> None:
    with session() as open_session:
        job = jobs.create(open_session, "audit", "digits", dataset_id=1, audit_id=plan_again())
        jobs.change(open_session, job, status="running")
    with pytest.raises(AuditFailedError, match=r"no audit to resume; audit 2 is still running\."):
        plan.newest_unfinished_audit("digits")


def test_settle__hears_the_latest_run_of_every_engine(audited: tuple[Digits, int]) -> None:
    _, first = audited
    fast = {"choicenet": {"epochs": 2, "network": "mlp", "views": 1}}
    second = plan.plan_audit("digits", ["choicenet"], options=fast, map_method="pca")
    worker.run_audit(second)
    assert arrays.runs_that_speak(second) == {"choicenet": second, "cross_entropy": first}
    with session() as open_session:
        audit = audits.get(open_session, second)
    assert set(audit.summary.witnesses) == {"choicenet", "cross_entropy"}
    assert arrays.heard_in_words(audit) == "Also used, from earlier audits: cross_entropy (audit 1)."
    np.testing.assert_array_equal(
        arrays.pred_probs(second, "cross_entropy"), arrays.pred_probs(first, "cross_entropy")
    )
    assert {one.engine for one in arrays.evidence(second, 0).verdicts} == {"choicenet", "cross_entropy"}
    third = plan_again(epochs=1)
    worker.run_audit(third)
    assert arrays.runs_that_speak(third) == {"cross_entropy": third, "choicenet": second}
    assert arrays.engines_of(first) == ["cross_entropy"]  # later runs do not change what it said


def test_settle__an_audit_may_speak_for_itself(audited: tuple[Digits, int], run: Run) -> None:
    fast = {"choicenet": {"epochs": 1, "network": "mlp", "views": 1}}
    second = plan.plan_audit("digits", ["choicenet"], options=fast, map_method="pca", alone=True)
    worker.run_audit(second)
    assert arrays.engines_of(second) == ["choicenet"]
    with session() as open_session:
        assert arrays.heard_in_words(audits.get(open_session, second)) == ""
        alone = scores.table(open_session, second)
    # A finished audit can be widened, from the command line too, and restricted again.
    code, out, err = run("runs", "digits", "--with-earlier")
    assert code == 0, err
    assert "cross_entropy: cross_entropy on images, audit 1" in out
    with session() as open_session:
        assert set(audits.get(open_session, second).summary.witnesses) == {"choicenet", "cross_entropy"}
        assert not scores.table(open_session, second).trust_score.equals(alone.trust_score)
    told = json.loads(run("runs", "digits", "--alone", "--json")[1])
    assert (told["audit_id"], told["alone"], [one["name"] for one in told["runs"]]) == (
        second,
        True,
        ["choicenet"],
    )
    with session() as open_session:
        assert scores.table(open_session, second).equals(alone)
    assert "Not heard: 1 run of earlier audits" in run("runs", "digits")[1]


def test_hear__what_speaks_is_what_spoke_where_settling_fails(
    audited: tuple[Digits, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, audit_id = audited
    monkeypatch.setattr(settle, "combine", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        settle.hear(audit_id, alone=True)
    with session() as open_session:
        assert not audits.get(open_session, audit_id).options.alone


def test_verified_rows__what_an_earlier_run_that_speaks_was_told_counts_as_treated(
    audited: tuple[Digits, int],
) -> None:
    decisions.decide(1, 5, "keep", reviewer="ada")
    worker.run_audit(plan_again(epochs=1))
    fast = {"choicenet": {"epochs": 1, "network": "mlp", "views": 1}}
    assert decisions.undo_last(1, "ada") is not None
    third = plan.plan_audit("digits", ["choicenet"], options=fast, map_method="pca")
    assert not arrays.trained_labels(third)[1].any()
    worker.run_audit(third)
    treated = settle.verified_rows(third).treated
    assert treated is not None
    assert np.flatnonzero(treated).tolist() == [5]
