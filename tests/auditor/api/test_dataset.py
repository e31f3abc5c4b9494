"""The product as a library: what a notebook sees."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import auditor
from auditor import api
from auditor.audits import plan
from auditor.catalog import audits, jobs
from auditor.catalog.db import ask, session
from auditor.catalog.records import now
from auditor.ground.errors import (
    AuditFailedError,
    AuditorError,
    ImportRefusedError,
    NotFoundError,
    ReviewError,
)
from auditor.ground.progress import Progress
from auditor.jobs import control
from auditor.results import own_models, settle
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
    assert promised.attrs["statement"].startswith(f"{len(promised)} top suspects: on average")
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
        assert "my model" in audits.get(open_session, audit_id).summary.witnesses
    with pytest.raises(ImportRefusedError, match=r"my model holds an array of shape \(300, 9\)"):
        photos.add_pred_probs(probs[:, :9], name="my model")


def test_datalab__goes_both_ways(audited: tuple[Digits, int]) -> None:
    """With the real Datalab on probabilities that know the true labels."""
    cleanlab = pytest.importorskip("cleanlab", reason="cleanlab is not installed")
    digits, audit_id = audited
    photos = auditor.open("digits")
    probs = np.full((300, 10), 0.01)
    probs[np.arange(300), digits.true_labels] = 0.91
    given = photos.samples().given_label.astype(int).to_numpy()
    lab = cleanlab.Datalab({"y": given}, label_name="y", task="classification", verbosity=0)
    lab.find_issues(pred_probs=probs, issue_types={"label": {}})
    assert photos.add_datalab(lab) == own_models.Added("datalab", 300, 300)
    heard = own_models.load(photos.table.id)["datalab"]
    np.testing.assert_allclose(heard.sum(axis=1), 1, atol=1e-5)
    theirs = lab.get_issues("label")
    np.testing.assert_allclose(heard[np.arange(300), given], theirs.label_score, atol=1e-6)
    assert heard.argmax(axis=1).tolist() == theirs.predicted_label.tolist()
    settle.settle(audit_id)
    with session() as open_session:
        assert "datalab" in audits.get(open_session, audit_id).summary.witnesses
    assert list(photos.to_datalab().columns) == list(theirs.columns)


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("given_label", "3", "row 7: given_label is '3' and '7' here"),
        ("predicted_label", "ten", "row 7: predicted_label is 'ten' and no class"),
        ("label_score", 1.5, "row 7: label_score is 1.5, outside 0..1"),
    ],
)
def test_add_datalab__issues_of_something_else_are_refused(
    audited: tuple[Digits, int], column: str, value: object, says: str
) -> None:
    photos = auditor.open("digits")
    issues = photos.to_datalab()
    issues["predicted_label"] = issues["given_label"] = "0"
    issues["given_label"] = photos.samples().given_label
    issues[column] = issues[column].astype(object)
    issues.loc[7, column] = value
    with pytest.raises(ImportRefusedError, match=says):
        photos.add_datalab(issues)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda photos: photos.export("there.csv"), "force"),
        (lambda photos: photos.report("there.html"), "force"),
        (lambda photos: photos.export("out.csv", policy="auto"), "max_fdr"),
        (lambda photos: photos.export("out.csv", max_fdr=0.1), "policy"),
        (lambda photos: photos.export("out.csv", links=True), "links"),
        (lambda photos: photos.audit("cross_entropy", map_method="tsne"), "map_method"),
        (lambda photos: photos.audit("cross_entropy", budget=-1.0), "budget"),
        (lambda photos: photos.audit("cross_entropy", on="rya"), "on"),
        (lambda photos: photos.resume(on="rya"), "on"),
        (lambda photos: photos.compare(on="rya"), "on"),
        (lambda photos: photos.audit([]), "engines"),
        (lambda photos: photos.audit("cross_entropy", weights="a.pth"), "backbone"),
        (lambda _: auditor.import_dataset("labels.csv", name="other"), "label_column"),
        (lambda _: auditor.import_dataset("labels.csv", name="other", task="detect"), "task"),
    ],
)
def test_errors__name_the_argument_of_python_and_no_option(
    audited: tuple[Digits, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Any,
    argument: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("there.csv", "there.html"):
        (tmp_path / name).write_text("mine")
    (tmp_path / "labels.csv").write_text("path,left,right\na.png,cat,dog\n")
    with pytest.raises(AuditorError) as refused:
        call(auditor.open("digits"))
    assert refused.value.__notes__ == [f"The argument: {argument}"]
    assert "--" not in str(refused.value)
    assert (tmp_path / "there.csv").read_text() == "mine"


@pytest.mark.usefixtures("audited")
def test_audit__can_be_watched_and_gone_on_with() -> None:
    """Stopped by whoever watches; ``resume`` ends it, where it is told to."""
    photos, stages = auditor.open("digits"), list[str]()

    def stop(at: Progress) -> None:
        stages.append(at.stage)
        raise KeyboardInterrupt

    quick = {"cross_entropy": {"epochs": 1, "network": "mlp", "views": 1}}
    options: dict[str, Any] = {"options": quick, "map_method": "pca", "backbone": "none"}
    with pytest.raises((AuditFailedError, KeyboardInterrupt)):
        photos.audit("cross_entropy", progress=stop, on="processes:1", **options)
    assert stages
    assert ask(audits.get, 2).options.on == "processes:1"
    with pytest.raises(AuditFailedError, match="no executor 'nonsense'"):
        photos.resume(on="nonsense")
    assert photos.resume(on="processes:2", progress=False) == 2
    assert ask(audits.get, 2).options.on == "processes:2"
    assert photos.audits().status.tolist() == ["finished", "finished"]
    with pytest.raises(AuditFailedError, match="no audit to resume"):
        photos.resume()


def test_remove_and_move__of_a_handle(home: Path, tmp_path: Path) -> None:
    images = np.zeros((4, 8, 8), np.uint8) + np.arange(4, dtype=np.uint8)[:, None, None] * 60
    photos = auditor.from_arrays(images, ["x", "y"] * 2, name="d", workers=1)
    with pytest.raises(AuditorError, match="does not hold the images of 'd'"):
        photos.move(tmp_path)
    photos.remove()
    assert auditor.datasets().empty


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

    monkeypatch.setattr(control.subprocess, "Popen", start)
    with pytest.raises(InterruptedError):
        plan.start_audit(audit_id)


def test_dataset__shows_itself(audited: tuple[Digits, int]) -> None:
    dataset = auditor.open("digits")
    assert repr(dataset) == "auditor.Dataset('digits': 300 images, 10 classes, audit 1)"
    assert len(dataset) == 300
    shown = dataset._repr_html_()
    assert "<table>" in shown
    assert "cross_entropy" in shown
    listed = auditor.datasets()
    assert (listed.name.tolist(), listed.num_samples.tolist()) == (["digits"], [300])
    assert auditor.__version__
    assert dataset.audits().audit_id.tolist() == [1]


@pytest.mark.usefixtures("home")
def test_dataset__text_of_a_users_file_is_no_html(tmp_path: Path) -> None:
    images = np.zeros((4, 8, 8), np.uint8) + np.arange(4, dtype=np.uint8)[:, None, None] * 60
    dataset = auditor.from_arrays(images, ["<b>x</b>", "y"] * 2, name="d", workers=1)
    assert "<b>x" not in dataset._repr_html_()
    assert "&lt;b&gt;x" in dataset._repr_html_()


def test_dataset__tables_in_the_datasets_order(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    dataset = auditor.open("digits")
    given = [str(label) for label in digits.given_labels]
    table = dataset.scores()
    assert table.given_label.tolist() == given
    assert table.sample_id.tolist() == list(range(300))
    assert dataset.samples().given_label.tolist() == given
    assert table.sort_values("rank").trust_score.is_monotonic_increasing
    assert sorted(table["rank"]) == list(range(1, len(table) + 1))  # as the command line counts
    probs = dataset.pred_probs()
    assert probs.columns.tolist() == [str(i) for i in range(10)]
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-4)
    assert len(dataset.embeddings()) == 300
    assert "cross_entropy_trust" in dataset.signals().columns
    assert dataset.to_datalab().label_score.equals(table.trust_score)
    with pytest.raises(NotFoundError, match="has no engine 'umn'; it has cross_entropy"):
        dataset.pred_probs("umn")


def test_dataset__review_and_undo(audited: tuple[Digits, int]) -> None:
    dataset = auditor.open("digits")
    dataset.review(0, "relabel", "7", reviewer="ann")
    dataset.review(1, "exclude", reviewer="ann")
    assert dataset.reviews().decision.tolist() == ["relabel", "exclude"]
    assert dataset.undo(reviewer="ann")
    assert dataset.reviews().decision.tolist() == ["relabel", "exclude", "undo"]
    assert not dataset.undo(reviewer="bob")
    with pytest.raises(ReviewError, match="has no class 'seven'"):
        dataset.review(2, "relabel", "seven")
    with pytest.raises(ReviewError, match="sample_id is 1.5; give a whole number"):
        dataset.review(1.5, "keep")  # type: ignore[arg-type]


def test_dataset__draw_and_verify(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    dataset = auditor.open("digits")
    drawn = dataset.draw(20)
    for row in drawn.itertuples():
        dataset.verify(row.draw_id, row.sample_id, str(digits.true_labels[row.sample_id]), reviewer="ada")
    rate = dataset.noise_rate()
    assert 0 < rate.low <= rate.high < 1
    promised = dataset.promises()
    assert promised.columns.tolist() == ["max_fdr", "num_flagged", "sentence"]
    assert dataset.statements().noise_rate.sentence == rate.sentence
