"""What was found and what is left: the same numbers wherever they are shown, and advice that they carry."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from auditor.catalog import audits, scores
from auditor.catalog.db import session
from auditor.catalog.records import AuditSummary
from auditor.ground.wording import no_suspects
from auditor.outputs import report
from auditor.results import progress, settle, statements
from auditor.review import blind, decisions, drawing
from auditor.statistics.rates.noise import ErrorsLeft
from tests.auditor.catalogs import change_sample
from tests.auditor.conftest import Run
from tests.helpers import Digits, verify_truthfully

DATASET = 1


def review(sample_ids: list[int], decision: str) -> None:
    """Decide the same on each, five seconds apart."""
    began = datetime.now(tz=UTC) - timedelta(hours=1)
    for place, sample_id in enumerate(sample_ids):
        moment = began + timedelta(seconds=5 * place)
        decisions.decide(DATASET, sample_id, decision, reviewer="ada", at=moment)


def test_progress__counts_found_errors(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    before = progress.progress(DATASET, audit_id)
    review(np.flatnonzero(digits.is_wrong)[:4].tolist(), "exclude")
    decisions.decide(DATASET, int(np.flatnonzero(~digits.is_wrong)[0]), "keep", reviewer="ada")
    after = progress.progress(DATASET, audit_id)
    assert (after.decided, after.found, after.hit_rate) == (5, 4, 0.8)
    assert (before.left.kind, after.left.point) == ("guess", before.left.point - 4)
    assert after.advice.startswith("How many wrong labels are left is not known. 20 labels checked at random")


def test_progress__says_what_classes_and_the_report_say(audited: tuple[Digits, int], run: Run) -> None:
    digits, audit_id = audited
    draw = verify_truthfully(digits, 100)
    settle.settle(audit_id)
    outside = [i for i in np.flatnonzero(digits.is_wrong).tolist() if i not in draw.sample_ids]
    review(outside[:3], "exclude")
    said = statements.statements(statements.load(audit_id)).errors_left
    seen = progress.progress(DATASET, audit_id)
    assert said.kind == "interval"
    assert said.found == int(digits.is_wrong[draw.sample_ids].sum()) + 3
    assert (seen.left, seen.found, seen.decided) == (said, said.found, 103)
    assert seen.advice.startswith(f"About {said.point} wrong labels are left ({said.low} to {said.high}); ")
    status = json.loads(run("status", "digits", "--json")[1])
    assert status["found"] == said.found
    assert status["left"]["sentence"] == said.sentence
    assert status["decisions"] == {"keep": 103 - said.found, "relabel": said.found - 3, "exclude": 3}
    text = run("status", "digits")[1]
    assert f"; {said.found} wrong labels found" in text
    assert seen.advice in text


def test_end__says_what_the_last_ones_were_and_that_nothing_stands_out(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    assert progress.progress(DATASET, audit_id).end.startswith("Next: export")
    review(np.flatnonzero(digits.is_wrong)[:6].tolist(), "exclude")
    review(np.flatnonzero(~digits.is_wrong)[:4].tolist(), "keep")
    seen = progress.progress(DATASET, audit_id)
    assert seen.end == (
        "Of the last 10 checked labels 6 were wrong. The list goes on: of the next "
        "40 up to about 24 may be wrong too."
    )
    verified = replace(seen.left, low=0, point=2, high=14, kind="interval")
    assert replace(seen, left=verified).end.endswith(" About 2 wrong labels may be left (0 to 14).")
    assert replace(seen, left=replace(verified, point=0)).end.endswith(
        " At most 14 wrong labels may be left."
    )
    for sample_id in np.flatnonzero(~digits.is_wrong)[4:20].tolist():
        decisions.decide(DATASET, sample_id, "keep", reviewer="ada")
    # The list falls: what lies further back says nothing of the next ones.
    assert "Of the last 20 checked labels 3 were wrong" in progress.progress(DATASET, audit_id).end
    pooled, ranked = (
        no_suspects(0, is_order_alone=AuditSummary(weights=weights).is_order_alone)
        for weights in ({"a": 1.0}, {})
    )
    assert pooled == "Nothing stands out. Check some at random to be sure."
    assert "an order and no cut" in ranked
    assert replace(seen, num_suspects=0).end == seen.nothing == ranked


def test_no_suspects__every_surface_says_that_people_found_errors_all_the_same(
    audited: tuple[Digits, int],
) -> None:
    digits, audit_id = audited
    with session() as open_session:
        summary = audits.get(open_session, audit_id).summary
        quiet = replace(summary, num_label_issues=0, stands_out=False, weights={"cross_entropy": 1.0})
        audits.change(open_session, audit_id, summary=quiet)
    assert "Nothing stands out. Check some at random" in report.report("digits")
    review(np.flatnonzero(digits.is_wrong)[:2].tolist(), "exclude")
    said = "Nothing stood out by itself, but people found 2 wrong labels: look at the first of the list"
    assert said in report.report("digits")
    assert progress.progress(DATASET, audit_id).nothing.startswith(said)
    with session() as open_session:
        assert statements.no_suspects(audits.get(open_session, audit_id)).startswith(said)


def test_moves__are_counts_of_what_people_found_and_of_what_the_queue_holds(
    audited: tuple[Digits, int],
) -> None:
    digits, audit_id = audited
    draw = verify_truthfully(digits, 150)
    settle.settle(audit_id)
    given, true = digits.given_labels, digits.true_labels
    outside = [i for i in np.flatnonzero(digits.is_wrong).tolist() if i not in draw.sample_ids]
    decisions.decide(DATASET, outside[0], "relabel", label=int(true[outside[0]]), reviewer="ada")
    decisions.decide(DATASET, outside[1], "exclude", reviewer="ada")  # of no class: in no pair
    known = {*draw.sample_ids, outside[0]}
    found = Counter((int(given[i]), int(true[i])) for i in known if digits.is_wrong[i])
    moves = statements.statements(statements.load(audit_id)).moves
    assert {(one.given, one.right): one.found for one in moves if one.found} == found
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        for one in moves:
            where = scores.SuspectFilter(one.given, one.right, only_issues=True, only_undecided=True)
            assert scores.count(open_session, audit, where) == one.suspected
    sampled = [one for one in moves if one.interval is not None]
    assert sampled
    for one in sampled:
        low, high = one.interval
        assert one.found <= low <= ((given == one.given) & (true == one.right)).sum() <= high
        assert high <= (given == one.given).sum()


def test_noise_rate__is_read_again_only_after_something_was_said(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    draw = drawing.draw("digits", 40)
    first, second = draw.sample_ids[:2]
    blind.record(draw.id, first, "label", label=int(digits.true_labels[first]), reviewer="ada")
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
    before = progress.noise_rate(audit)
    assert progress.noise_rate(audit) is before
    review([10, 11], "exclude")
    assert progress.noise_rate(audit).low >= 2 / 300
    before = progress.noise_rate(audit)
    blind.record(draw.id, second, "exclude", reviewer="ada")
    after = progress.noise_rate(audit)
    assert after == statements.noise_rate_now(audit)
    assert after.point > before.point
    blind.undo(draw.id, second, reviewer="ada")
    assert progress.noise_rate(audit) == before
    decisions.decide(DATASET, first, "unreadable", reviewer="bob")  # contradicts the verdict
    contradicted = progress.noise_rate(audit)
    assert contradicted == statements.noise_rate_now(audit) != before


def test_progress__one_verdict_does_not_advise_to_stop(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    draw = drawing.draw("digits", 1)
    label = int(digits.given_labels[draw.sample_ids[0]])
    blind.record(draw.id, draw.sample_ids[0], "label", label=label, reviewer="ada")
    seen = progress.progress(DATASET, audit_id)
    assert (seen.left.low, seen.left.kind) == (0, "interval")
    assert seen.left.point > 0  # the guess of the predictions still counts
    assert seen.left.high > 200
    assert f"left (0 to {seen.left.high})" in seen.advice
    assert "stopping" not in seen.advice


def test_progress__few_hits_alone_do_not_advise_to_stop(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    review(np.flatnonzero(~digits.is_wrong)[:50].tolist(), "keep")
    seen = progress.progress(DATASET, audit_id)
    assert seen.left.high > 3
    assert seen.advice.startswith(
        "0 % of the last 50 were wrong. How many wrong labels are left is not known."
    )
    assert "stopping" not in seen.advice


def test_what_a_few_looks_tell__of_many_and_of_the_last_ones() -> None:
    assert progress.what_a_few_looks_tell(341).endswith("at most 17 % of all that nobody checked are")
    assert progress.what_a_few_looks_tell(12).startswith("12 labels are all that nobody checked")


@pytest.mark.parametrize("kind", ["interval", "guess"])
def test_progress__everything_looked_at_is_a_reason_to_stop(audited: tuple[Digits, int], kind: str) -> None:
    digits, audit_id = audited
    draw = verify_truthfully(digits, 300) if kind == "interval" else None
    if draw is None:
        review(np.flatnonzero(~digits.is_wrong).tolist(), "keep")
        review(np.flatnonzero(digits.is_wrong).tolist(), "exclude")
    seen = progress.progress(DATASET, audit_id)
    assert isinstance(seen.left, ErrorsLeft)
    assert (seen.found, seen.left.high, seen.left.kind) == (30, 0, kind)
    said = {
        "interval": "No wrong label should be left; stopping is reasonable.",
        "guess": "Every label in question is checked.",
    }
    assert seen.advice == said[kind]


def test_progress__not_sure_leaves_the_hit_rate_alone(audited: tuple[Digits, int]) -> None:
    _, audit_id = audited
    review([1, 2, 3], "exclude")
    review([4, 5, 6], "unsure")
    seen = progress.progress(DATASET, audit_id)
    assert (seen.decided, seen.found, seen.hit_rate) == (6, 3, 1.0)


def test_progress__without_verified_rows_nothing_is_said_of_what_comes_or_is_left(
    audited: tuple[Digits, int],
) -> None:
    _, audit_id = audited
    seen = progress.progress(DATASET, audit_id)
    assert seen.advice == (
        "How many wrong labels are left is not known. 20 labels checked at random tell more: if none of them is "
        "wrong, at most 17 % of all that nobody checked are."
    )
    assert "about" not in seen.left.sentence
    assert "is not known (guesses say " in progress.left_in_words(seen.left)


def test_progress__a_queue_speaks_for_itself(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    verify_truthfully(digits, 100)
    settle.settle(audit_id)
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        rows = scores.page(open_session, audit, scores.SuspectFilter(), limit=300)
    whole = progress.progress(DATASET, audit_id)
    part = progress.progress(DATASET, audit_id, queue=rows.tail(12))
    assert part.left == whole.left
    assert "left in the whole dataset (" in part.advice
    assert part.advice.endswith("of the next 12 should be wrong.")
    assert "in this queue, " in part.advice
    assert part.advice.split("; ")[1] != whole.advice.split("; ")[1]
    nothing = progress.progress(DATASET, audit_id, queue=rows.head(0))
    assert nothing.advice.endswith("; this queue has no undecided suspect.")


def test_progress__a_share_is_never_a_certainty_that_rounding_made(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    verify_truthfully(digits, 100)
    settle.settle(audit_id)
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        rows = scores.page(open_session, audit, scores.SuspectFilter(), limit=20)
    seen = progress.progress(DATASET, audit_id, queue=rows.assign(error_probability=0.998))
    assert "in this queue, more than 99 % of the next 20 should be wrong" in seen.advice


def test_findings__a_label_that_the_source_trusts_is_not_in_question(audited: tuple[Digits, int]) -> None:
    _, audit_id = audited
    change_sample(9, trusted=True)
    review([8, 9], "exclude")
    assert progress.progress(DATASET, audit_id).found == 1


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (None, "of the labels are wrong"),
        ((0, 0, 2, 9, "interval"), "of the labels are wrong"),
        ((9, 0, 0, 0, "interval"), "of the labels were wrong as given, none is left"),
        ((9, 0, 1, 9, "interval"), "of the labels were wrong as given, about 1 is left (0 to 9)"),
        ((9, 8, 24, 39, "interval"), "of the labels were wrong as given, about 24 are left (8 to 39)"),
        ((9, 0, 0, 14, "interval"), "of the labels were wrong as given, at most 14 are left"),
        ((9, 0, 24, 39, "guess"), "of the labels were wrong as given"),
    ],
)
def test_wrong_in_words__what_people_corrected_was_wrong_as_given(left: Any, said: str) -> None:
    assert progress.wrong_in_words("labels", left and ErrorsLeft(*left, "")) == said
