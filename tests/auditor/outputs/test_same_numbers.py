"""Numbers that name the same thing are one number on every surface of one home (the table in docs/trust.md)."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from app.server import bench
from app.session import readers, words
from auditor import api
from auditor.audits import progress, settle, statements
from auditor.catalog import audits, scores
from auditor.catalog.db import session
from auditor.fiftyone_bridge import fields
from auditor.outputs.report import report
from auditor.review import decisions
from tests.auditor.conftest import Run
from tests.helpers import Digits, verify_truthfully


@pytest.fixture(params=["nothing verified", "a uniform draw", "a draw from the head"])
def worked_on(audited: tuple[Digits, int], request: pytest.FixtureRequest) -> tuple[Digits, int]:
    """A home in which people judged a draw, or none, and then reviewed suspects."""
    digits, audit_id = audited
    if request.param != "nothing verified":
        verify_truthfully(digits, 80, purpose="rate" if "uniform" in request.param else "promises")
        settle.settle(audit_id)
    top = np.argsort(statements.load(audit_id).trust_score, kind="stable")[:25]
    for sample_id in top.tolist():
        decision = "exclude" if digits.is_wrong[sample_id] else "keep"
        decisions.decide(1, sample_id, decision, reviewer="ada")
    return digits, audit_id


def test_every_surface_says_the_same(worked_on: tuple[Digits, int], run: Run, tmp_path: Path) -> None:
    _, audit_id = worked_on
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        suspects = scores.count(open_session, audit, scores.SuspectFilter(only_issues=True))
        queue = scores.count(open_session, audit, scores.SuspectFilter(only_issues=True, only_undecided=True))
    said = statements.statements(statements.load(audit_id))
    page = report("digits")
    listed = json.loads(run("status", "digits", "--json")[1])
    home = readers.status(readers.dataset("digits"))
    bench_says = progress.progress(1, audit_id)

    # Suspects: the catalog, the summary, FiftyOne, the export, the class table and the Python interface.
    assert run("export", "digits", "--out", tmp_path / "out.csv")[0] == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        exported = sum(row["is_label_issue"].lower() == "true" for row in csv.DictReader(file))
    fiftyone = fields.load("digits").values["is_label_issue"]
    assert suspects > 0
    assert {audit.summary["num_label_issues"], exported, sum(fiftyone)} == {suspects}
    in_table = api.Dataset("digits").suspects(suspects)
    assert len(in_table) == suspects
    told = json.loads(run("suspects", "digits", "--top", str(suspects), "--json")[1])
    assert [row["sample_id"] for row in told["suspects"]] == in_table.sample_id.tolist()

    # The queue: the page that the bench serves holds what the catalog counts.
    served = bench.queue({"audit": audit_id, "where": {"issues": True, "undecided": True}, "limit": 240})
    assert len(served["items"]) == queue < suspects

    # Wrong labels found: bench, Home, the command line, the statements and the report.
    assert {bench_says.found, home.found, listed["found"]} == {said.errors_left.found}
    assert f"{said.errors_left.found:,} wrong labels found so far" in page

    # What is left and the noise rate.
    assert home.left == bench_says.left == said.errors_left
    assert listed["left"]["sentence"] == said.errors_left.sentence
    assert said.errors_left.sentence in page
    assert home.noise is not None
    assert home.noise.sentence == said.noise_rate.sentence == listed["sentences"][0]
    assert said.noise_rate.sentence.replace("&", "&amp;") in page
    assert bench_says.advice == listed["sentences"][1]
    if said.noise_rate.kind == "interval":
        assert f"{said.errors_left.point:,}" in bench_says.advice
        assert words.count(said.errors_left.point) in said.errors_left.sentence


def test_without_verified_rows_no_surface_claims_more(audited: tuple[Digits, int], run: Run) -> None:
    _, audit_id = audited
    texts = [
        report("digits"),
        run("status", "digits")[1],
        run("suspects", "digits")[1],
        progress.progress(1, audit_id).advice,
        json.dumps(bench.queue({"audit": audit_id, "limit": 60})["items"]),
    ]
    for text in texts:
        assert not re.search(r"stopping is reasonable|should be wrong|likely wrong|0 % and 0 %", text)
    assert "evidence against it" in texts[0]
    assert "evidence against it" in texts[4]
