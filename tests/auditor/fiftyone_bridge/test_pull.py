"""Decisions made in FiftyOne come back as reviews: once, with who and when, and nothing is lost."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from auditor.catalog import datasets, reviews
from auditor.catalog.db import session
from auditor.fiftyone_bridge import actions, sync
from auditor.ground.errors import FiftyOneError
from auditor.outputs import export
from auditor.review import decisions
from tests.helpers import Digits


def standing() -> dict[int, tuple[str, int | None, str]]:
    with session() as open_session:
        dataset = datasets.get(open_session, "digits")
        found = reviews.decisions(open_session, dataset.id)
    return {i: (row.decision, row.label, row.reviewer) for i, row in found.items()}


def tag(target: Any, sample_id: int, *tags: str) -> None:
    for one in tags:
        target.match({"sample_index": sample_id}).tag_samples(one)


def edit(target: Any, sample_id: int, label: str, field: str = "ground_truth") -> None:
    sample = target.one({"sample_index": sample_id})
    sample[field].label = label
    sample.save()


def at(target: Any, sample_id: int, field: str) -> Any:
    return target.match({"sample_index": sample_id}).values(field)[0]


def pull(reviewer: str = "ann") -> sync.Pulled:
    return sync.pull_decisions("digits", reviewer=reviewer)


def other(digits: Digits, sample_id: int) -> int:
    return (int(digits.given_labels[sample_id]) + 1) % 10


def test_pull__tags_and_labels_come_back_once(
    pushed: Any, audited: tuple[Digits, int], tmp_path: Path
) -> None:
    digits, _ = audited
    began = datetime.now(tz=UTC) - timedelta(seconds=1)
    tag(pushed, 0, "keep")
    tag(pushed, 1, "exclude", "look at this")
    edit(pushed, 2, str(other(digits, 2)))
    edit(pushed, 3, "zebra")
    edit(pushed, 5, str(other(digits, 5)), "cleaned")
    tag(pushed, 4, "keep", "exclude")
    pulled = pull()
    assert pulled.counts == {"keep": 1, "exclude": 2, "relabel": 2}
    expected = {
        0: ("keep", None, "ann"),
        1: ("exclude", None, "ann"),
        2: ("relabel", other(digits, 2), "ann"),
        4: ("exclude", None, "ann"),
        5: ("relabel", other(digits, 5), "ann"),
    }
    assert standing() == expected
    assert [(one.sample_id, one.kind) for one in pulled.listed] == [(3, "unknown"), (4, "contradiction")]
    log = decisions.log_frame(1)
    assert all(began <= when <= datetime.now(tz=UTC) for when in log.created_at)
    again = pull("bob")
    assert (again.counts, again.num_same) == ({}, 0)
    assert len(decisions.log_frame(1)) == len(log)
    assert at(pushed, 3, "ground_truth.label") == "zebra"  # listed, not taken, not touched
    assert set(at(pushed, 1, "tags")) >= {"exclude", "look at this"}
    export.export_table("digits", tmp_path / "out.csv")
    table = pd.read_csv(tmp_path / "out.csv")
    assert table.cleaned_label[2] == other(digits, 2)
    assert table.action[:5].tolist() == ["keep", "exclude", "relabel", "keep", "exclude"]
    sync.push_audit("digits")
    assert at(pushed, 2, "ground_truth.label") == str(other(digits, 2))  # theirs: we never write there again
    assert at(pushed, 2, "cleaned.label") == at(pushed, 2, "ground_truth.label")
    assert at(pushed, 5, "ground_truth.label") == str(digits.given_labels[5])
    assert [at(pushed, i, "cleaned.label") for i in (1, 4)] == [None, None]
    assert pull().counts == {}
    assert (
        len(pushed.load_saved_view("suspected mislabels").match({"sample_index": {"$in": [0, 1, 2, 4, 5]}}))
        == 0
    )


def test_pull__both_sides_changed(pushed: Any) -> None:
    decisions.decide(1, 0, "keep", reviewer="bob")  # ours first, theirs later
    time.sleep(0.01)
    tag(pushed, 0, "exclude")
    tag(pushed, 1, "exclude")  # theirs first, ours later
    time.sleep(0.01)
    decisions.decide(1, 1, "keep", reviewer="bob")
    decisions.decide(1, 2, "keep", reviewer="bob")  # the same on both sides
    tag(pushed, 2, "keep")
    pulled = pull()
    assert {one.sample_id: one.kind for one in pulled.listed} == {0: "both changed", 1: "both changed"}
    assert "keep by bob" in pulled.listed[1].text
    assert "exclude" in pulled.listed[1].text
    assert pulled.num_same == 1
    assert standing() == {0: ("exclude", None, "ann"), 1: ("keep", None, "bob"), 2: ("keep", None, "bob")}
    log = decisions.log_frame(1)
    assert log[log.sample_id == 1].decision.tolist() == ["keep", "exclude", "undo"]  # nothing is lost
    assert "keep" in at(pushed, 1, "tags")
    assert "exclude" not in at(pushed, 1, "tags")
    assert pull().counts == {}


def test_pull__what_waits_survives_a_push(pushed: Any, audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    tag(pushed, 0, "exclude")
    edit(pushed, 1, str(other(digits, 1)))
    made = at(pushed, 0, "last_modified_at")
    assert sync.push_audit("digits").num_waiting == 2
    assert at(pushed, 1, "ground_truth.label") == str(other(digits, 1))
    assert pull().counts == {"exclude": 1, "relabel": 1}
    log = decisions.log_frame(1)
    assert log[log.sample_id == 0].created_at.iloc[0].replace(tzinfo=None) == made.replace(tzinfo=None)


def test_pull__a_tag_taken_off_takes_back(pushed: Any) -> None:
    decisions.decide(1, 0, "keep", reviewer="bob")
    sync.push_audit("digits")
    pushed.match({"sample_index": 0}).untag_samples("keep")
    assert pull().counts == {"undo": 1}
    assert standing() == {}
    assert pull().counts == {}


def test_pull__never_pushed(database: Any, audited: tuple[Digits, int]) -> None:
    with pytest.raises(FiftyOneError, match="`auditor fiftyone digits push` does it"):
        pull()


def test_act__the_same_as_in_our_app(pushed: Any) -> None:
    index = pushed.match_tags("label_issue").sort_by("suspicion_rank").values("sample_index")[:3]
    ids = [at(pushed, i, "id") for i in index]
    actions.act(pushed, ids[:2], "relabel", reviewer="ann")
    actions.act(pushed, ids[2:], "keep", reviewer="ann")
    suggested = [int(at(pushed, i, "suggested.label")) for i in index[:2]]
    assert standing() == {
        index[0]: ("relabel", suggested[0], "ann"),
        index[1]: ("relabel", suggested[1], "ann"),
        index[2]: ("keep", None, "ann"),
    }
    assert at(pushed, index[0], "review.label") == str(suggested[0])
    assert at(pushed, index[0], "cleaned.label") == str(suggested[0])
    assert pull().counts == {}
    assert actions.act(pushed, ids[:1], "undo", reviewer="ann") == "Took back 1 sample."
    assert index[0] not in standing()
    actions.act(pushed, [], "undo", reviewer="ann")  # the latest step: the keep
    assert list(standing()) == [index[1]]
    tags = {tag for tags in pushed.values("tags") for tag in tags}
    assert tags == {"label_issue", "relabel"}
    with pytest.raises(FiftyOneError, match="Select samples first"):
        actions.act(pushed, [], "keep", reviewer="ann")


def test_act__what_was_tagged_by_hand_is_recorded_first(pushed: Any) -> None:
    tag(pushed, 0, "exclude")
    actions.act(pushed, [at(pushed, 0, "id")], "keep", reviewer="bob")
    assert decisions.log_frame(1).decision.tolist() == ["exclude", "keep"]
    assert standing() == {0: ("keep", None, "bob")}
