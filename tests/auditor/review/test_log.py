"""One log of reviews and blind verdicts, and the people who differ in it."""

from __future__ import annotations

import pytest

from auditor.review import blind, decisions, drawing
from auditor.review import log as decision_log
from tests.helpers import Digits

DATASET = 1


def test_entries__verdicts_and_their_undos_stand_among_the_reviews(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    given = digits.given_labels
    draw = drawing.draw("digits", 2)
    kept, corrected = draw.sample_ids
    other = int((given[corrected] + 1) % 10)
    assert decision_log.entries(DATASET).empty
    decisions.decide(DATASET, kept, "exclude", reviewer="bob")
    blind.record(draw.id, kept, "label", label=int(given[kept]), reviewer="ada")
    blind.record(draw.id, corrected, "label", label=other, reviewer="ada")
    blind.undo(draw.id, corrected, reviewer="ada")
    decisions.decide_many(DATASET, [(corrected, "relabel", other)], reviewer="bob", audit_id=audit_id)
    log = decision_log.entries(DATASET)
    assert log.review_kind.tolist() == ["suspect", "blind", "blind", "blind", "suspect"]
    assert log.decision.tolist() == ["exclude", "keep", "relabel", "undo", "relabel"]
    assert log.sample_id.tolist() == [kept, kept, corrected, corrected, corrected]
    assert log.label.fillna(-1).tolist() == [-1, -1, other, -1, other]
    assert log.reverts[3] == log.id[2]
    told = decision_log.with_samples(DATASET, log)
    assert told.filepath.tolist() == [f"images/{sample:04d}.png" for sample in log.sample_id]
    assert told.given_label.tolist() == given[log.sample_id].tolist()


@pytest.mark.parametrize("is_undone", [False, True])
def test_conflicts__a_review_and_a_verdict_of_two_people_differ(
    audited: tuple[Digits, int], is_undone: bool
) -> None:
    draw = drawing.draw("digits", 1)
    sample = draw.sample_ids[0]
    decisions.decide(DATASET, sample, "keep", reviewer="bob")
    blind.record(draw.id, sample, "exclude", reviewer="ada")
    if is_undone:
        blind.undo(draw.id, sample, reviewer="ada")
    table = decision_log.conflicts(DATASET)
    rows = list(zip(table.reviewer, table.decision, table.review_kind, table.stands, strict=True))
    both = [("bob", "keep", "suspect", False), ("ada", "exclude", "blind", False)]
    assert rows == ([] if is_undone else both)


def test_conflicts__verdicts_of_two_people_differ(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    draw = drawing.draw("digits", 2)
    first, second = draw.sample_ids
    wrong = int((digits.given_labels[first] + 1) % 10)
    blind.record(draw.id, first, "label", label=wrong, reviewer="ada")
    blind.record(draw.id, first, "label", label=(wrong + 1) % 10, reviewer="bob")
    for name in ("ada", "bob"):
        blind.record(draw.id, second, "label", label=wrong, reviewer=name)
    table = decision_log.conflicts(DATASET)
    assert table.sample_id.tolist() == [first, first]
    assert table.reviewer.tolist() == ["ada", "bob"]
    assert table.label.tolist() == [wrong, (wrong + 1) % 10]
