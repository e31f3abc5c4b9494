"""Decisions: recorded at once, append-only, undone by a row, never overwritten by anybody or anything."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from auditor.catalog import audits, reviews, scores
from auditor.catalog.db import session
from auditor.ground.errors import AuditorError, NotFoundError, ReviewError
from auditor.outputs import export
from auditor.review import blind, decision_files, decisions, drawing, verifying
from auditor.review import log as decision_log
from tests.helpers import Digits, suggestions, verify_truthfully

DATASET = 1


def standing(sample_id: int) -> tuple[str, int | None, str] | None:
    with session() as open_session:
        row = reviews.standing(open_session, DATASET, sample_id)
    return None if row is None else (row.decision, row.label, row.reviewer)


def test_decide__stands_at_once(audited: tuple[Digits, int]) -> None:
    decisions.decide(DATASET, 3, "relabel", label=7, reviewer="ada")
    assert standing(3) == ("relabel", 7, "ada")


def test_decide__relabel_to_the_given_label_is_keep(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    decisions.decide(DATASET, 3, "relabel", label=int(digits.given_labels[3]), reviewer="ada")
    assert standing(3) == ("keep", None, "ada")


def test_decide__resent_decision_adds_nothing(audited: tuple[Digits, int]) -> None:
    first = decisions.decide(DATASET, 3, "keep", reviewer="ada")
    second = decisions.decide(DATASET, 3, "keep", reviewer="ada")
    assert first.review_id == second.review_id
    assert len(decisions.log_frame(DATASET)) == 1


def test_decide__two_reviewers_are_both_kept_and_the_later_stands(audited: tuple[Digits, int]) -> None:
    decisions.decide(DATASET, 3, "keep", reviewer="ada")
    decided = decisions.decide(DATASET, 3, "exclude", reviewer="bob")
    assert decided.conflict is not None
    assert (decided.conflict.reviewer, decided.conflict.decision) == ("ada", "keep")
    assert standing(3) == ("exclude", None, "bob")
    table = decision_log.conflicts(DATASET)
    assert table.reviewer.tolist() == ["ada", "bob"]
    assert table.stands.tolist() == [False, True]


@pytest.mark.parametrize(
    ("decision", "values", "message"),
    [
        ("maybe", {}, "'maybe' is no decision"),
        ("relabel", {}, "needs the corrected label"),
        ("relabel", {"label": 10}, r"Class 10 of sample 3 is outside 0\.\.9"),
        ("multiple", {"labels": [1]}, "needs at least two different classes"),
    ],
)
def test_decide__refuses(audited: tuple[Digits, int], decision: str, values: dict, message: str) -> None:
    with pytest.raises(ReviewError, match=message):
        decisions.decide(DATASET, 3, decision, reviewer="ada", **values)
    assert len(decisions.log_frame(DATASET)) == 0


def test_decide__needs_a_name_and_a_sample(audited: tuple[Digits, int]) -> None:
    with pytest.raises(ReviewError, match="reviewer's name"):
        decisions.decide(DATASET, 3, "keep", reviewer="  ")
    with pytest.raises(NotFoundError, match="no sample 9999"):
        decisions.decide(DATASET, 9999, "keep", reviewer="ada")


def test_undo_last__restores_what_stood_before(audited: tuple[Digits, int]) -> None:
    decisions.decide(DATASET, 3, "keep", reviewer="ada")
    decisions.decide(DATASET, 3, "exclude", reviewer="bob")
    assert [row.sample_id for row in decisions.undo_last(DATASET, "bob")] == [3]
    assert standing(3) == ("keep", None, "ada")
    assert [row.sample_id for row in decisions.undo_last(DATASET, "ada")] == [3]
    assert standing(3) is None
    assert decisions.undo_last(DATASET, "ada") == []
    assert len(decisions.log_frame(DATASET)) == 4


def test_decide_many__all_or_nothing(audited: tuple[Digits, int]) -> None:
    with pytest.raises(ReviewError, match="Class 44"):
        decisions.decide_many(DATASET, [(1, "keep", None), (2, "relabel", 44)], reviewer="ada")
    assert standing(1) is None


def top(audit_id: int, count: int, **where: object) -> list[tuple[int, int]]:
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        queue = scores.SuspectFilter(only_undecided=True, **where)
        return suggestions(scores.page(open_session, audit, queue, limit=count))


def test_decide_many__is_undone_in_one_step(audited: tuple[Digits, int]) -> None:
    _, audit_id = audited
    changes = [(sample_id, "relabel", label) for sample_id, label in top(audit_id, 20)]
    batch = decisions.decide_many(DATASET, changes, reviewer="ada", audit_id=audit_id)
    log = decisions.log_frame(DATASET)
    assert (log.decision == "relabel").sum() == 20
    assert decisions.undo_batch(DATASET, batch, "ada") == 20
    assert decisions.undo_batch(DATASET, batch, "ada") == 0
    assert decisions.batches(DATASET).undone.tolist() == [20]
    assert decisions.outcomes(DATASET) == {}


def test_page__a_blind_verdict_stands_as_decided(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    draw = drawing.draw("digits", 3, seed=0)
    kept, corrected, waiting = draw.sample_ids
    given = digits.given_labels
    other = int((given[corrected] + 1) % 10)
    decisions.decide(DATASET, kept, "unsure", reviewer="bob")
    blind.record(draw.id, kept, "label", label=int(given[kept]), reviewer="ada")
    blind.record(draw.id, corrected, "label", label=other, reviewer="ada")
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        decided = scores.page(open_session, audit, scores.SuspectFilter(only_decided=True)).set_index(
            "sample_id"
        )
        still_open = scores.page(open_session, audit, scores.SuspectFilter(only_undecided=True), limit=300)
    assert set(decided.index) == {kept, corrected}
    assert decided.decision[kept] == "keep"
    assert (decided.decision[corrected], decided.decided_label[corrected]) == ("relabel", other)
    assert set(still_open.sample_id) == set(range(300)) - {kept, corrected}
    assert waiting in set(still_open.sample_id)


def test_labels_to_train_on__corrections_are_trusted_and_exclusions_unlabeled(
    audited: tuple[Digits, int],
) -> None:
    digits, _ = audited
    new = int((digits.given_labels[5] + 1) % 10)
    decisions.decide(DATASET, 5, "relabel", label=new, reviewer="ada")
    decisions.decide(DATASET, 6, "keep", reviewer="ada")
    decisions.decide(DATASET, 7, "exclude", reviewer="ada")
    decisions.decide(DATASET, 8, "unsure", reviewer="ada")
    labels, trusted = decisions.labels_to_train_on(DATASET)
    assert labels[5] == new
    assert labels[7] == -1
    assert labels[[6, 8]].tolist() == digits.given_labels[[6, 8]].tolist()
    assert np.flatnonzero(trusted).tolist() == [5, 6]


def test_labels_to_train_on__calibrating_rows_stay_as_given(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    draw = drawing.draw("digits", 20, seed=1)
    for sample_id in draw.sample_ids:
        label = int(digits.true_labels[sample_id])
        decisions.decide(DATASET, sample_id, "unsure", reviewer="ada")
        blind.record(draw.id, sample_id, "label", label=label, reviewer="ada")
    labels, trusted = decisions.labels_to_train_on(DATASET)
    even, odd = draw.sample_ids[::2], draw.sample_ids[1::2]
    assert labels[even].tolist() == digits.given_labels[even].tolist()
    assert not trusted[even].any()
    assert labels[odd].tolist() == digits.true_labels[odd].tolist()
    assert trusted[odd].all()


def test_outcomes__no_blind_verdict_overrules_a_look_and_two_people_are_in_dispute(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    digits, _ = audited
    draw = drawing.draw("digits", 7, seed=1)
    kept, own, others, same, unsure, reviewed, twice = draw.sample_ids
    given = digits.given_labels
    other = [int((given[one] + 1) % 10) for one in range(300)]
    decisions.decide(DATASET, own, "relabel", label=other[own], reviewer="ada")
    for one in (others, same):
        decisions.decide(DATASET, one, "relabel", label=other[one], reviewer="bob")
    decisions.decide(DATASET, unsure, "exclude", reviewer="bob")
    for one in (kept, own, others, reviewed, twice):
        blind.record(draw.id, one, "label", label=int(given[one]), reviewer="ada")
    blind.record(draw.id, same, "label", label=other[same], reviewer="ada")
    blind.record(draw.id, unsure, "unsure", reviewer="ada")
    blind.record(draw.id, twice, "label", label=other[twice], reviewer="eve")
    decisions.decide(DATASET, reviewed, "exclude", reviewer="bob")
    found = {i: (row.decision, row.label, row.reviewer) for i, row in decisions.outcomes(DATASET).items()}
    assert found == {
        kept: ("keep", None, "ada"),
        own: ("relabel", other[own], "ada"),
        others: ("disputed", None, "bob"),
        same: ("relabel", other[same], "bob"),
        unsure: ("exclude", None, "bob"),
        reviewed: ("exclude", None, "bob"),
        twice: ("disputed", None, "eve"),
    }
    assert set(decision_log.disputed(DATASET)) == {own, others, unsure, reviewed, twice}
    assert verifying.rows(DATASET).is_unsure.tolist() == [False, True, True, False, True, True, True]
    out = tmp_path / "out.csv"
    summary = export.export_table("digits", out)
    assert (summary.num_relabel, summary.num_exclude, summary.num_disputed) == (2, 2, 2)
    assert "2 labels on which people differ stay as they are" in summary.sentence
    rows = pd.read_csv(out, dtype=str, keep_default_na=False).set_index("sample_id")
    assert rows.review_decision[str(others)] == "disputed"
    assert rows.cleaned_label[str(others)] == rows.given_label[str(others)]
    # It comes back as no decision, and the same word once more, by somebody who looks, ends it.
    decision_files.apply_file("digits", out, reviewer="eve")
    assert decisions.outcomes(DATASET)[others].decision == "disputed"
    decisions.decide(DATASET, others, "relabel", label=other[others], reviewer="bob", source="ruling")
    assert decisions.outcomes(DATASET)[others].label == other[others]
    assert others not in decision_log.disputed(DATASET)
    blind.undo(draw.id, twice, reviewer="eve")
    assert twice not in decisions.outcomes(DATASET)  # it waits to be judged afresh


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_apply_file__twice_changes_nothing(audited: tuple[Digits, int], tmp_path: Path) -> None:
    path = write(
        tmp_path / "decisions.csv",
        "filepath,cleaned_label,review_decision,review_labels,reviewer,reviewed_at\n"
        "images/0000.png,4,relabel,,bob,2026-01-02T03:04:05+00:00\n"
        "images/0001.png,,exclude,,,\n"
        "images/0002.png,,multiple,1|2,,\n"
        "images/0003.png,,,,,\n",
    )
    counts = decision_files.apply_file("digits", path, reviewer="ada")
    assert counts == {"unchanged": 0, "relabel": 1, "exclude": 1, "multiple": 1}
    assert standing(0) == ("relabel", 4, "bob")
    assert standing(1) == ("exclude", None, "ada")
    assert decision_files.apply_file("digits", path, reviewer="ada")["unchanged"] == 3
    assert len(decisions.log_frame(DATASET)) == 3


def test_apply_file__older_decision_does_not_replace_a_later_one(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    decisions.decide(DATASET, 0, "keep", reviewer="ada")
    old = (datetime.now(tz=UTC) - timedelta(days=1)).isoformat()
    path = write(
        tmp_path / "old.csv", f"sample_id,review_decision,reviewed_at,reviewer\n0,exclude,{old},bob\n"
    )
    assert decision_files.apply_file("digits", path) == {"unchanged": 0, "older": 1}
    assert standing(0) == ("keep", None, "ada")


def test_apply_file__the_later_of_two_rows_on_one_sample_stands(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    rows = "0,exclude,2026-01-02T10:00:00,bob\n0,keep,2026-01-01T10:00:00,ada\n"
    path = write(tmp_path / "two.csv", "sample_id,review_decision,reviewed_at,reviewer\n" + rows)
    decision_files.apply_file("digits", path)
    assert standing(0) == ("exclude", None, "bob")


def test_apply_file__other_classes_of_multiple_are_a_change(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    head = "sample_id,review_decision,review_labels\n"
    decision_files.apply_file("digits", write(tmp_path / "a.csv", head + "0,multiple,1|2\n"), reviewer="ada")
    same = write(tmp_path / "b.csv", head + "0,multiple,2|1\n")
    assert decision_files.apply_file("digits", same, reviewer="ada") == {"unchanged": 1}
    other = write(tmp_path / "c.csv", head + "0,multiple,2|3\n")
    assert decision_files.apply_file("digits", other, reviewer="ada") == {"unchanged": 0, "multiple": 1}
    unnamed = write(tmp_path / "d.csv", head + "0,multiple,\n")
    assert decision_files.apply_file("digits", unnamed, reviewer="ada") == {"unchanged": 1}
    with session() as open_session:
        assert reviews.standing(open_session, DATASET, 0).labels == [2, 3]


def edited_export(path: Path, sample_id: int, **cells: str) -> Path:
    """An export in which somebody changed cells of one row."""
    export.export_table("digits", path)
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    for column, text in cells.items():
        table.loc[sample_id, column] = text
    table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("cells", "decision", "label"),
    [
        ({"review_decision": "exclude"}, "exclude", None),
        ({"cleaned_label": "{other}"}, "relabel", "{other}"),
    ],
)
def test_apply_file__an_exported_row_that_was_edited_is_a_decision_of_now(
    audited: tuple[Digits, int], tmp_path: Path, cells: dict[str, str], decision: str, label: str | None
) -> None:
    given = int(audited[0].given_labels[0])
    first, other = (given + 1) % 10, (given + 2) % 10
    decisions.decide(DATASET, 0, "relabel", label=first, reviewer="ada")
    decisions.decide(DATASET, 1, "exclude", reviewer="ada")
    cells = {column: text.format(other=other) for column, text in cells.items()}
    path = edited_export(tmp_path / "out.csv", 0, **cells)
    edited_at = datetime.now(tz=UTC)
    counts = decision_files.apply_file("digits", path, reviewer="bob")
    assert counts == {"unchanged": 1, decision: 1}
    # Bob changed it, whatever name the export holds for the decision before.
    assert standing(0) == (decision, None if label is None else other, "bob")
    with session() as open_session:
        assert reviews.standing(open_session, DATASET, 0).created_at >= edited_at
    assert decision_files.apply_file("digits", path, reviewer="bob") == {"unchanged": 2}


def test_apply_file__an_edited_row_that_names_its_reviewer_keeps_the_name(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    decisions.decide(DATASET, 0, "keep", reviewer="ada")
    path = edited_export(tmp_path / "out.csv", 0, review_decision="exclude", reviewer="eve")
    decision_files.apply_file("digits", path, reviewer="bob")
    assert standing(0) == ("exclude", None, "eve")


def test_apply_file__an_edited_export_stays_out_of_the_way_of_a_later_decision(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    decisions.decide(DATASET, 0, "keep", reviewer="ada")
    path = edited_export(tmp_path / "out.csv", 0, review_decision="exclude")
    decisions.decide(DATASET, 0, "unreadable", reviewer="eve")
    assert decision_files.apply_file("digits", path, reviewer="bob") == {"unchanged": 0, "older": 1}
    assert standing(0) == ("unreadable", None, "eve")


def test_apply_file__a_clock_that_went_back_changes_no_order(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    ahead = datetime.now(tz=UTC) + timedelta(days=1)
    decisions.decide(DATASET, 0, "keep", reviewer="ada", at=ahead)
    stale = edited_export(tmp_path / "stale.csv", 1)
    path = edited_export(tmp_path / "out.csv", 0, review_decision="exclude")
    assert decision_files.apply_file("digits", path, reviewer="bob") == {"unchanged": 0, "exclude": 1}
    assert decision_files.apply_file("digits", stale) == {"unchanged": 0, "older": 1}
    timeless = write(tmp_path / "new.csv", "sample_id,review_decision\n0,unreadable\n")
    assert decision_files.apply_file("digits", timeless, reviewer="eve") == {"unchanged": 0, "unreadable": 1}
    assert standing(0) == ("unreadable", None, "eve")


def test_log__a_clock_that_went_back_changes_no_order(audited: tuple[Digits, int]) -> None:
    ahead = datetime.now(tz=UTC) + timedelta(days=1)
    draw = verify_truthfully(audited[0], 20, seed=1)
    sample_id = draw.sample_ids[0]
    with session() as open_session:
        first = reviews.log(open_session, DATASET, sample_id)[0]
    looks = [replace(first, kind="suspect", reviewer="ann", decision="exclude", label=None, created_at=ahead)]
    assert reviews.counting([*looks, replace(first, id=first.id + 1, decision="keep")]).decision == "disputed"
    decisions.decide(DATASET, 0, "keep", reviewer="ada", at=ahead)
    decisions.decide(DATASET, 0, "exclude", reviewer="ada")
    decisions.decide(DATASET, 0, "exclude", reviewer="bob")
    assert 0 not in decision_log.conflicts(DATASET).sample_id.tolist()


def test_apply_file__blind_verdicts_of_an_export_do_not_become_reviews(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    digits, _ = audited
    draw = verify_truthfully(digits, 20, seed=1)
    edited = draw.sample_ids[3]
    path = edited_export(tmp_path / "out.csv", edited, review_decision="exclude")
    assert decision_files.apply_file("digits", path, reviewer="bob") == {"unchanged": 19, "exclude": 1}
    assert decisions.log_frame(DATASET).sample_id.tolist() == [edited]
    assert standing(edited) == ("exclude", None, "bob")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "needs the columns review_decision"),
        ("sample_id,review_decision\n999,keep\n", "row 2: sample_id '999' is not in the dataset"),
        ("sample_id,review_decision,cleaned_label\n1,relabel,cat\n", "row 2: 'cat' is none of the classes"),
        (
            "sample_id,review_decision,cleaned_label,review_labels\n0,relabel,{given},4\n",
            "row 2: relabel to '{given}', which is the given label; write the right class into cleaned_label",
        ),
        ("filepath,review_decision\nnope.png,keep\n", "row 2: 'nope.png' is not in the dataset"),
        (
            "sample_id,review_decision\n1,keep\n2,perhaps\n",
            "bad.csv, row 3: 'perhaps' is no decision; use one",
        ),
        # A decision that nobody knows is a typo, however old it says it is.
        (
            "sample_id,review_decision,reviewed_at\n1,relable,2001-01-01\n",
            "bad.csv, row 2: 'relable' is no decision",
        ),
        ("sample_id,review_decision,reviewed_at\n1,keep,yesterday\n", "no ISO 8601 time"),
        (
            "sample_id,review_decision,reviewer\n1,keep,a\0b\n",
            "bad.csv, row 2: the reviewer holds the character NUL",
        ),
        (
            "sample_id,review_decision,review_labels\n1,multiple,3|3\n",
            "bad.csv, row 2: multiple on sample 1 needs at least two different classes",
        ),
        ("sample_id,review_decision\n0,keep\n7,multiple\n", "bad.csv, row 3: multiple on sample 7 needs"),
        (
            "sample_id,review_decision\n1,keep\n2,keep\n1,exclude\n",
            "rows 2 and 4: they decide differently on sample 1, and no reviewed_at says which is the later",
        ),
    ],
)
def test_apply_file__refuses_the_whole_file(
    audited: tuple[Digits, int], tmp_path: Path, text: str, message: str
) -> None:
    given = str(audited[0].given_labels[0])
    path = write(tmp_path / "bad.csv", text.replace("{given}", given))
    with pytest.raises(AuditorError, match=message.replace("{given}", given)):
        decision_files.apply_file("digits", path, reviewer="ada")
    assert len(decisions.log_frame(DATASET)) == 0
