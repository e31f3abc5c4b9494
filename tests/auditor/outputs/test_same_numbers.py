"""Numbers with one name are one number on every surface of one home (the table in docs/architecture.md)."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.server import bench
from app.session import readers, words
from auditor import api
from auditor.catalog import audits, scores
from auditor.catalog.db import session
from auditor.fiftyone_bridge import fields
from auditor.ground.wording import percent
from auditor.outputs.report import report
from auditor.results import arrays, progress, ranking, settle, statements
from auditor.review import decisions
from tests.auditor.conftest import Run
from tests.helpers import Digits, verify_truthfully

ROOT = Path(__file__).parents[3]
EXPECTED = "likely wrong"
"""A column on Classes and in the report."""


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
    ranking.after_verdicts(audit_id)
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
    assert {audit.summary.num_label_issues, exported, sum(fiftyone)} == {suspects}
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


@pytest.fixture
def told(run: Run) -> Callable[..., Any]:
    """What a command that must end well says with ``--json``."""

    def tell(*words_of_it: str) -> Any:
        code, out, err = run(*words_of_it, "--json")
        assert code == 0, err
        return json.loads(out)

    return tell


def test_every_command_python_and_fiftyone_count_the_same(
    worked_on: tuple[Digits, int], told: Callable[..., Any], tmp_path: Path
) -> None:
    _, audit_id = worked_on
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
    standing = statements.load(audit_id)
    said, promised = statements.statements(standing), statements.promises(standing)
    status, data = told("status", "digits"), api.Dataset("digits")
    loaded = fields.load("digits")
    columns = loaded.values

    # Suspects: how many, which, and what is said of each.
    listed = told("suspects", "digits", "--top", "25")
    table = data.scores()
    assert listed["total"] == len(data) == len(table)
    assert {int(table.is_label_issue.sum()), int(data.to_datalab().is_label_issue.sum())} == {
        sum(columns["is_label_issue"])
    }
    for row in listed["suspects"]:
        at = row["sample_id"]
        assert row["rank"] == columns["suspicion_rank"][at]
        said_of_it = [row["trust_score"], table.trust_score[at], float(standing.trust_score[at])]
        assert said_of_it == pytest.approx([columns["trust_score"][at]] * 3, abs=1e-6)
        if not audit.summary.error_probability_is_guess:
            assert row["error_probability"] == pytest.approx(columns["error_probability"][at], abs=1e-6)
        assert row["agreement"] == columns["engines_against"][at]

    # What was found wrong: the log, the export, FiftyOne's labels.
    exported = told("export", "digits", "--out", str(tmp_path / "cleaned.csv"))
    assert status["found"] == said.errors_left.found == exported["num_by_people"] > 0
    assert exported["num_relabel"] + exported["num_exclude"] == status["found"]
    assert exported["num_by_people"] == data.export(tmp_path / "again.csv").num_by_people
    decided = sum(status["decisions"].values())
    assert decided == sum(one is not None for one in loaded.reviews)

    # The noise rate and what is left.
    assert dataclasses.asdict(data.noise_rate()) == dataclasses.asdict(said.noise_rate)
    assert data.statements().errors_left == said.errors_left
    left = dataclasses.asdict(said.errors_left)
    assert status["left"] == left

    # Promises: each level's list is as long everywhere; blind verdicts that are handed in again say the same.
    in_python = data.promises().set_index("max_fdr")
    for q, promise in promised.items():
        assert told("suspects", "digits", "--max-fdr", str(q))["total"] == promise.num_flags
        assert in_python.num_flagged[q] == promise.num_flags
        assert in_python.sentence[q] == promise.sentence
    if status["drawn"]:
        file = str(tmp_path / "draw.csv")
        assert told("verify", "digits", "--draw-id", "1", "--out", file)["judged"] == status["judged"]
        again = told("verify", "digits", "--apply", file)
        assert again["noise_rate"]["sentence"] == said.noise_rate.sentence
        assert [one["num_flags"] for one in again["promises"]] == [one.num_flags for one in promised.values()]

    # Who speaks.
    names = [one.name for one in arrays.speaking_runs(audit_id)]
    assert names == audit.summary.witnesses == [one["engine"] for one in status["audits"][0]["engines"]]


def test_every_screen_shows_the_same(worked_on: tuple[Digits, int]) -> None:
    _, audit_id = worked_on
    status = readers.status(readers.dataset("digits"))
    said = statements.statements(statements.load(audit_id))
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        waiting = scores.SuspectFilter(only_issues=True, only_undecided=True)
        queue = scores.count(open_session, audit, waiting)
    where = {"audit": audit_id, "where": {"issues": True, "undecided": True}}
    assert bench.queue_size(where)["total"] == queue
    assert bench.progress(where)["found"] == status.found == said.errors_left.found
    known = said.errors_left.point if said.errors_left.has_middle else None
    assert bench.progress(where)["expected_left"] == known
    assert int(readers.score_table(audit).is_label_issue.sum()) == audit.summary.num_label_issues
    assert readers.findings(audit).said.errors_left == said.errors_left
    home = screen("home")
    assert f"{status.found} wrong" in home
    if said.noise_rate.kind == "interval":
        left = said.errors_left
        point, high = words.plural(left.point, "wrong label"), words.plural(left.high, "wrong label")
        below_the_bar = f"About {point} left" if left.has_middle else f"At most {high} left"
        above_it = progress.left_in_words(left).partition(" (")[0]
        assert (below_the_bar in home) != (above_it in home.replace("*", "")), "once"
        low, high = words.percent(said.noise_rate.low), words.percent(said.noise_rate.high)
        wrong = "of the labels were wrong as given" if left.found else "of the labels are wrong"
        assert f"Between **{low}** and **{high}** {wrong}" in screen("verify")
    assert f"**{status.found}** of {status.dataset.num_samples:,} labels" in screen("export")


def screen(name: str) -> str:
    """What a screen says, read by a person called ada."""
    page = opened(name)
    bars = [one.proto.body for one in page.get("html")]
    return "\n".join([*bars, *(str(one.value) for one in [*page.subheader, *page.markdown, *page.caption])])


def opened(name: str) -> AppTest:
    """A screen that a person called ada has open."""
    page = AppTest.from_file(str(ROOT / "app" / "frame.py"), default_timeout=240)
    page.session_state["reviewer"] = "ada"
    if name != "home":
        page.switch_page(f"screens/{name}.py")
    page.run()
    assert not page.exception
    return page


def test_without_verified_rows_no_surface_claims_more(audited: tuple[Digits, int], run: Run) -> None:
    _, audit_id = audited
    texts = [
        report("digits"),
        run("status", "digits")[1],
        run("suspects", "digits")[1],
        progress.progress(1, audit_id).advice,
        json.dumps(bench.queue({"audit": audit_id, "limit": 60})["items"]),
        json.dumps([bench.card({"audit": audit_id, "sample": sample}) for sample in range(5)]),
        *(screen(name) for name in ("home", "suspects", "classes", "engines", "verify", "export")),
    ]
    claims = r"stopping is reasonable|should be wrong|expected (to be )?wrong|0 % and 0 %|likely wrong"
    for text in texts:
        assert not re.search(rf"{claims}|% if (it is )?wrong|\b(error|suggested)Prob", text)
    for place in (0, 4):
        assert re.search(r"\d of \d engines say otherwise|the engine (says otherwise|agrees)", texts[place])
    # What the engines say of one sample is in words too, verified rows or not.
    assert "evidence)" in texts[5]
    assert "%" not in texts[5]

    # Nor does a number that nothing backs reach a sheet, a table or FiftyOne: it would pass for a probability.
    assert EXPECTED not in shares_in_tables()
    loaded = fields.load("digits")
    assert set(loaded.values["error_probability"]) == set(loaded.confidence) == {None}


def test_with_verified_rows_the_shares_are_shown(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    verify_truthfully(digits, 200)
    settle.settle(audit_id)
    page = report("digits")
    assert "% likely wrong" in page
    assert f">{EXPECTED}</th>" in page
    item = bench.queue({"audit": audit_id, "limit": 1})["items"][0]
    with session() as open_session:
        row = scores.table(open_session, audit_id).iloc[item["sample"]]
    assert item["odds"] == f"{percent(row.error_probability)} likely wrong"
    assert EXPECTED in shares_in_tables()
    loaded = fields.load("digits")
    assert loaded.values["error_probability"][item["sample"]] == pytest.approx(
        row.error_probability, abs=1e-6
    )
    assert loaded.confidence[item["sample"]] == pytest.approx(row.suggested_probability, abs=1e-6)


def shares_in_tables() -> set[str]:
    """The columns of the tables on Classes."""
    return {str(name) for one in opened("classes").dataframe for name in one.value.columns}


def test_comparison_counts_what_the_other_surfaces_count(
    audited: tuple[Digits, int], told: Callable[..., Any], tmp_path: Path
) -> None:
    digits, audit_id = audited
    draw = verify_truthfully(digits, 80)
    settle.settle(audit_id)
    ranked = np.argsort(statements.load(audit_id).trust_score, kind="stable")
    top = ranked[~np.isin(ranked, draw.sample_ids)][:25]
    for sample_id in top.tolist():
        decision = "exclude" if digits.is_wrong[sample_id] else "keep"
        decisions.decide(1, sample_id, decision, reviewer="ada")
    fast = ["--set", "cross_entropy.epochs=1", "--set", "cross_entropy.network=mlp"]

    # Before and after cleaning: held out are the judged rows; what differs are the labels that the export changes.
    short = [word.removeprefix("cross_entropy.") for word in fast]
    compared = told("compare", "digits", "--seeds", "1", *short)
    assert compared["num_held_out"] == told("status", "digits")["judged"] == len(draw.sample_ids)
    told("export", "digits", "--out", str(tmp_path / "cleaned.csv"))
    with (tmp_path / "cleaned.csv").open(newline="") as file:
        changed = [int(row["sample_id"]) for row in csv.DictReader(file) if row["action"] != "keep"]
    assert compared["num_changed"] == len(set(changed) - set(draw.sample_ids)) > 0
    page = report("digits")
    assert compared["statement"] in page
