"""The report, the before/after comparison and the tournament, on real digits."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.audits import worker
from auditor.audits.plan import plan_audit
from auditor.catalog import audits, reading, scores
from auditor.catalog.db import session
from auditor.catalog.records import Sample
from auditor.experiments import before_after
from auditor.ground.errors import AuditFailedError, ExportRefusedError, NotFoundError
from auditor.ground.progress import Progress
from auditor.kind import Part
from auditor.outputs import export, report
from auditor.results import queues, settle
from auditor.review import blind, decisions
from tests.auditor.conftest import Run
from tests.helpers import QUICK_OPTIONS, Digits, verify_truthfully

FAST = QUICK_OPTIONS["cross_entropy"]


def test_report__is_one_file_without_outside_addresses(audited: tuple[Digits, int], tmp_path: Path) -> None:
    digits, audit_id = audited
    verify_truthfully(digits, 100)
    settle.settle(audit_id)
    seen: list[Progress] = []
    report.write_report("digits", tmp_path / "report.html", progress=seen.append)
    pictures = [one for one in seen if one.total is not None]
    _, suspects, _ = queues.sizes(reading.audit(audit_id), {"issues": True})
    assert pictures[0].total == suspects > 0
    assert [seen[0].stage, pictures[0].stage, seen[-1].stage] == [
        "computing statements",
        report.READING,
        "drawing the page",
    ]
    text = (tmp_path / "report.html").read_text()
    loaded = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert all(one.startswith(("data:", "#")) or "arxiv" in one or "doi" in one for one in loaded), loaded
    assert "data:image/png;base64," in text
    assert "of 100 labels checked at random are wrong" in text
    assert "more pictures checked at random should narrow the share of wrong labels to" in text
    with pytest.raises(ExportRefusedError, match="exists"):
        report.write_report("digits", tmp_path / "report.html")
    with pytest.raises(NotFoundError, match="no dataset 'none'"):
        report.write_report("none", tmp_path / "other.html")
    assert not (tmp_path / "other.html").exists()


def test_report__a_picture_comes_without_the_edges_of_the_caches_square() -> None:
    square = np.arange(3 * 8 * 8, dtype=np.uint8).reshape(3, 8, 8)
    about: dict[str, Any] = {"dataset_id": 1, "sample_id": 0, "filepath": "a.png", "location": "a.png"}
    wide = Sample(**about, given_label=0, original_width=40, original_height=20)
    np.testing.assert_array_equal(report._without_edges(square, wide), square[:, 2:6])
    assert report._without_edges(square, Sample(**about, given_label=0)) is square, "of unknown size"


def test_report__says_what_was_decided_and_nothing_on_open_suspects(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    assert "decided:" not in report.report("digits")
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        page = scores.page(open_session, audit, scores.SuspectFilter(only_issues=True), limit=60)
    first, second = page.sample_id[:2].tolist()
    decisions.decide(1, first, "relabel", label=5, reviewer="ada")
    decisions.decide(1, second, "multiple", labels=[1, 2], reviewer="ada")
    text = report.report("digits")
    assert corrections_of(text)[:2] == ["5", "1, 2"], "the most suspicious first"
    assert "decided:" not in text, "each picture once"
    waiting, _, _ = queues.sizes(audit, {"undecided": True, "issues": True})
    assert f"{waiting} suspects are not checked yet" in text
    draw = verify_truthfully(digits, 100)
    shown = [i for i in page.sample_id if i in draw.sample_ids and i not in (first, second)]
    assert shown
    # Blind verdicts were decided by people too.
    text = report.report("digits")
    wrong = [i for i in shown if digits.is_wrong[i]]
    assert re.findall("decided: ([^<]*)", text) == ["keep"] * (len(shown) - len(wrong))
    assert corrections_of(text)[2 : 2 + len(wrong)] == [str(digits.true_labels[i]) for i in wrong]


def corrections_of(text: str) -> list[str]:
    """What the section of corrections says is right, in its order."""
    section = text.split('aria-labelledby="corrections"')[1].split("</section>")[0]
    assert section.count("<img") == section.count("<li")
    return re.findall('<strong class="suggested">([^<]*)', section)


def test_outlined__a_line_lies_around_the_pixels_and_not_on_them() -> None:
    square, inside = np.full((1, 9, 9), 100, np.uint8), np.zeros((9, 9), np.bool_)
    inside[4, 4] = True
    drawn = report._outlined(square, Part(inside, "bar", "disc"))
    assert drawn.shape == (3, 9, 9)
    assert drawn[0, 4].tolist() == [100, 100, 0, 255, 100, 255, 0, 100, 100]
    assert report._outlined(square, None) is square


def test_titled__engines_go_by_their_titles(audited: tuple[Digits, int]) -> None:
    said = report._titled(
        reading.audit(audited[1]), "Trust comes from cross_entropy 100 %, my_cross_entropy_2 0 %."
    )
    assert said == "Trust comes from Plain cross-entropy 100 %, my_cross_entropy_2 0 %."


def test_report__says_what_the_trusted_set_changed(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    verify_truthfully(digits, 60)
    second = plan_audit("digits", ["cross_entropy"], options=QUICK_OPTIONS, map_method="pca")
    worker.run_audit(second)
    assert "30 labels that people had confirmed. Against audit 1," in report.report("digits")


def test_before_after__cleaning_many_wrong_labels_helps(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    draw = verify_truthfully(digits, 100)
    blind.record(draw.id, draw.sample_ids[0], "exclude", reviewer="ada")
    held = set(draw.sample_ids)
    for sample_id in np.flatnonzero(digits.is_wrong):
        if int(sample_id) not in held:
            label = int(digits.true_labels[sample_id])
            decisions.decide(1, int(sample_id), "relabel", label=label, reviewer="ada")
    result = before_after.train_before_and_after("digits", seeds=(0,), options=FAST)
    assert result.num_held_out == 99  # what has no true class judges nobody, and is left out once cleaned
    assert result.num_changed == sum(int(i) not in held for i in np.flatnonzero(digits.is_wrong)) + 1
    assert result.by_seed[0][2] >= result.by_seed[0][1] - 0.05
    assert result.difference.low <= result.difference.difference <= result.difference.high
    page = html.unescape(report.report("digits"))
    assert "Trained before and after" in page
    assert result.sentence in page


def test_before_after__refuses_to_conclude_from_nothing(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    with pytest.raises(AuditFailedError, match="0 verified rows are too few to compare"):
        before_after.train_before_and_after("digits", seeds=(0,), options=FAST)
    verify_truthfully(digits, 60)
    with pytest.raises(AuditFailedError, match="No decision changes a label"):
        before_after.train_before_and_after("digits", seeds=(0,), options=FAST)


def test_compare__says_before_training_how_little_differs(audited: tuple[Digits, int], run: Run) -> None:
    digits, _ = audited
    draw = verify_truthfully(digits, 60)
    outside = next(int(i) for i in np.flatnonzero(digits.is_wrong) if i not in draw.sample_ids)
    label = int(digits.true_labels[outside])
    decisions.decide(1, outside, "relabel", label=label, reviewer="ada")
    code, out, err = run("compare", "digits", "--seeds", "1", "--set", "epochs=1", "--set", "network=mlp")
    assert code == 0
    assert "1 training label differs; 60 rows held out. So few changes will hardly show a difference" in err
    assert "1 training label differs; 60 rows were held out." in out


def test_before_after__compares_what_an_automatic_export_would_hold(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    digits, audit_id = audited
    draw = verify_truthfully(digits, 200)
    settle.settle(audit_id)
    told: list[str] = []
    result = before_after.train_before_and_after(
        "digits", seeds=(0,), options=FAST, policy="auto", max_fdr=0.5, on_ready=told.append
    )
    summary = export.export_table("digits", tmp_path / "out.csv", policy="auto", max_fdr=0.5)
    assert result.num_held_out == 200
    # What people found is held out with the other verified rows.
    assert summary.num_by_people == digits.is_wrong[draw.sample_ids].sum()
    assert result.num_changed == summary.num_automatic > 0
    assert told[0].startswith(f"{result.num_changed} training label")
    with pytest.raises(ExportRefusedError, match="The policy .auto. needs a bound"):
        before_after.train_before_and_after("digits", options=FAST, policy="auto")
