"""What the bench asks for, called as its routes call it, on a real audit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.server import bench, geometry
from app.session import readers
from auditor.catalog import audits, datasets, reviews, scores
from auditor.catalog.db import ask, session
from auditor.ground.errors import NotFoundError, ReviewError
from auditor.ground.wording import percent
from auditor.pictures import cache, plain
from auditor.results import arrays, queues, settle
from auditor.review import decisions
from auditor.work.embedding import mean_distances
from tests.app.conftest import NUM_SAMPLES, NUM_TEST, verify_sixty

pytestmark = pytest.mark.usefixtures("copied_home")
DATASET_ID = AUDIT_ID = 1


def first_items(count: int = 3, **where: Any) -> list[dict[str, Any]]:
    return bench.queue({"audit": AUDIT_ID, "where": where, "limit": count})["items"]


def verdict(item: dict[str, Any], decision: str, **more: Any) -> dict[str, Any]:
    return {
        "token": f"t{item['sample']}{decision}",
        "dataset": DATASET_ID,
        "audit": AUDIT_ID,
        "sample": item["sample"],
        "reviewer": "Ada",
        "seen": item["review"],
        "decision": decision,
        **more,
    }


def standing(sample: int) -> str | None:
    with session() as open_session:
        row = reviews.standing(open_session, DATASET_ID, sample)
    return row.decision if row else None


def test_queue__pages_follow_without_gap_or_overlap() -> None:
    first = first_items(50)
    second = bench.queue({"audit": AUDIT_ID, "where": {}, "after": first[-1]["rank"], "limit": 50})["items"]
    assert [item["rank"] for item in first + second] == list(range(100))


def test_add_class__a_label_can_be_changed_to_it_at_once() -> None:
    item = first_items(1)[0]
    names = bench.add_class({"dataset": DATASET_ID, "name": "wolf"})["classNames"]
    assert (len(names), names[-1]) == (11, "wolf")
    (said,) = bench.record({"verdicts": [verdict(item, "relabel", label=10)]})["results"]
    assert "error" not in said
    assert standing(item["sample"]) == "relabel"
    with pytest.raises(ReviewError, match="has a class 'Wolf' already"):
        bench.add_class({"dataset": DATASET_ID, "name": "Wolf"})


def test_queue__filters_by_pair_and_hides_what_is_decided() -> None:
    top = first_items(1)[0]
    same_pair = first_items(240, given=top["given"], suggested=top["suggested"])
    assert {(item["given"], item["suggested"]) for item in same_pair} == {(top["given"], top["suggested"])}
    bench.record({"verdicts": [verdict(top, "keep")]})
    assert top["sample"] not in [item["sample"] for item in first_items(240, undecided=True)]
    assert [item["sample"] for item in first_items(240, decided=True)] == [top["sample"]]


def test_queue__of_one_split() -> None:
    of_test = first_items(240, split="test")
    assert sorted(item["sample"] for item in of_test) == list(range(NUM_SAMPLES - NUM_TEST, NUM_SAMPLES))
    assert bench.queue_size({"audit": AUDIT_ID, "where": {"split": "test"}})["total"] == NUM_TEST
    by_files = first_items(240, split="test", sort="files")
    assert [item["sample"] for item in by_files] == list(range(NUM_SAMPLES - NUM_TEST, NUM_SAMPLES))
    where = {"split": "test", "sort": "files"}
    behind = bench.queue({"audit": AUDIT_ID, "where": where, "after": by_files[2]["sample"], "limit": 2})
    assert behind["items"] == by_files[3:5]


def test_queue_size__counts_what_the_pages_hold() -> None:
    top = first_items(1)[0]
    pair = {"given": top["given"], "suggested": top["suggested"]}
    for where in ({}, {"undecided": True, "issues": True}, pair):
        assert bench.queue_size({"audit": AUDIT_ID, "where": where})["total"] == len(
            first_items(240, **where)
        )
    bench.record({"verdicts": [verdict(top, "keep")]})
    left = bench.queue_size({"audit": AUDIT_ID, "where": {"undecided": True}})
    assert left == {"total": 239, "whole": 240, "checked": 1}
    # Where one engine disagrees is known only page by page.
    assert bench.queue_size({"audit": AUDIT_ID, "where": {"engine": "choicenet"}})["total"] is None


def test_queue__shows_where_one_engine_sees_another_class() -> None:
    items = first_items(240, engine="choicenet")
    probs = arrays.pred_probs(AUDIT_ID, "choicenet")
    assert all(probs[item["sample"]].argmax() != item["given"] for item in items)
    with session() as open_session:
        given = datasets.given_labels(open_session, DATASET_ID)
    assert len(items) == int((np.asarray(probs).argmax(axis=1) != given).sum())


def test_queue__finds_the_planted_errors_first() -> None:
    with session() as open_session:
        dataset = datasets.list_all(open_session)[0]
        given = datasets.given_labels(open_session, DATASET_ID)
    truth = cache.true_labels(dataset)
    assert truth is not None
    wrong = given != truth
    hits = [wrong[item["sample"]] for item in first_items(24)]
    assert np.mean(hits) > 3 * wrong.mean()


def test_card__tells_the_whole_story() -> None:
    sample = first_items(1)[0]["sample"]
    story = bench.card({"audit": AUDIT_ID, "sample": sample})
    assert len(story["engines"]) == 2
    assert all(engine["sentence"] for engine in story["engines"])
    assert len(story["neighbours"]) == 8
    assert len(story["classes"]) == len(set(story["classes"])) > 1
    assert {one["given"] for one in story["exemplars"]["given"]} == {first_items(1)[0]["given"]}


def test_card__a_neighbour_that_a_person_changed_has_its_new_label() -> None:
    sample = first_items(1)[0]["sample"]
    asked = {"audit": AUDIT_ID, "sample": sample}
    first = bench.card(asked)["neighbours"][0]
    assert first["label"] == first["given"]
    label = (first["given"] + 1) % 10
    bench.record({"verdicts": [verdict({**first, "review": None}, "relabel", label=label)]})
    assert bench.card(asked)["neighbours"][0] == {**first, "label": label}


def test_queue__without_random_samples_an_item_says_how_many_engines_disagree() -> None:
    for item in first_items(60):
        story = bench.card({"audit": AUDIT_ID, "sample": item["sample"]})
        against = sum(engine["predicted"] != item["given"] for engine in story["engines"])
        assert item["odds"] == f"{against} of {len(story['engines'])} engines say otherwise"


def test_card__unknown_sample_is_refused() -> None:
    with pytest.raises(NotFoundError, match="no score for sample 9999"):
        bench.card({"audit": AUDIT_ID, "sample": 9999})


def test_record__verdict_is_in_the_database_and_twice_is_once() -> None:
    item = first_items(1)[0]
    first = bench.record({"verdicts": [verdict(item, "relabel", label=item["suggested"])]})["results"][0]
    again = bench.record({"verdicts": [verdict(item, "relabel", label=item["suggested"])]})["results"][0]
    assert standing(item["sample"]) == "relabel"
    assert first["review"] == again["review"]
    assert len(decisions.log_frame(DATASET_ID)) == 1


def test_record__one_bad_verdict_does_not_hold_up_the_others() -> None:
    good, bad = first_items(2)
    answer = bench.record({"verdicts": [verdict(bad, "relabel", label=77), verdict(good, "exclude")]})
    assert "outside 0..9" in answer["results"][0]["error"]
    assert standing(good["sample"]) == "exclude"
    assert standing(bad["sample"]) is None


def test_record__another_reviewers_verdict_is_told_unless_it_was_seen() -> None:
    item = first_items(1)[0]
    theirs = bench.record({"verdicts": [verdict(item, "keep") | {"reviewer": "Grace"}]})["results"][0]
    unseen = bench.record({"verdicts": [verdict(item, "exclude")]})["results"][0]
    assert (unseen["conflict"]["reviewer"], unseen["conflict"]["decision"]) == ("Grace", "keep")
    seen = first_items(1)[0]
    assert seen["review"] == unseen["review"]
    told = bench.record({"verdicts": [verdict(seen, "keep") | {"reviewer": "Grace"}]})["results"][0]
    assert told["conflict"] is None
    assert theirs["review"] < told["review"]


def test_record__ones_own_verdict_from_another_window_is_told_unless_it_was_seen() -> None:
    item = first_items(1)[0]
    first = bench.record({"verdicts": [verdict(item, "relabel", label=item["suggested"])]})["results"][0]
    assert first["conflict"] is None
    stale = bench.record({"verdicts": [verdict(item, "keep")]})["results"][0]
    told = {"decision": "relabel", "label": item["suggested"], "labels": None, "reviewer": "Ada"}
    assert stale["conflict"] == told | {"review": first["review"]}
    assert standing(item["sample"]) == "keep"
    again = bench.record({"verdicts": [verdict(first_items(1)[0], "exclude")]})["results"][0]
    assert again["conflict"] is None


@pytest.mark.parametrize("decision", ["unsure", "none", "unreadable"])
def test_record__verdicts_beyond_right_and_wrong(decision: str) -> None:
    item = first_items(1)[0]
    bench.record({"verdicts": [verdict(item, decision)]})
    assert first_items(1)[0]["decision"] == decision


def test_record__several_classes_are_kept() -> None:
    item = first_items(1)[0]
    bench.record({"verdicts": [verdict(item, "multiple", labels=[2, 5])]})
    assert first_items(1)[0]["labels"] == [2, 5]


def test_undo__takes_back_own_decisions_newest_first() -> None:
    one, two = first_items(2)
    bench.record({"verdicts": [verdict(one, "keep"), verdict(two, "exclude")]})
    assert bench.undo({"audit": AUDIT_ID, "reviewer": "Ada"})["items"][0]["sample"] == two["sample"]
    assert bench.undo({"audit": AUDIT_ID, "reviewer": "Ada"})["items"][0]["decision"] is None
    assert bench.undo({"audit": AUDIT_ID, "reviewer": "Ada"})["items"] == []
    assert standing(one["sample"]) is None


def test_queue__deals_out_what_nobody_else_looks_at() -> None:
    def page(reviewer: str, **more: Any) -> list[int]:
        asked = {
            "audit": AUDIT_ID,
            "where": {"undecided": True},
            "limit": 6,
            "reviewer": reviewer,
            "ahead": 3,
        }
        return [item["sample"] for item in bench.queue({**asked, **more})["items"]]

    ranked = [item["sample"] for item in first_items(12)]
    assert page("Ada") == ranked[:6]
    assert page("Bob") == ranked[3:9]
    answer = bench.lease({"dataset": DATASET_ID, "reviewer": "Ada", "samples": ranked[2:7]})
    assert answer["held"] == {str(one): "Bob" for one in ranked[3:6]}
    assert page("Carol")[0] == ranked[7]
    few = {"undecided": True, "share": [1, 120]}
    assert bench.queue({"audit": AUDIT_ID, "where": few, "reviewer": "Ada", "ahead": 60})["elsewhere"] == []
    empty = bench.queue({"audit": AUDIT_ID, "where": few, "reviewer": "Bob"})
    assert (empty["items"], empty["elsewhere"]) == ([], ["Ada"])


def test_queue__a_page_that_a_guest_had_asked_for_holds_nothing_once_the_guest_has_a_name() -> None:
    asked = {"audit": AUDIT_ID, "where": {"undecided": True}, "limit": 6, "ahead": 6}
    guest = {**asked, "reviewer": "Guest 5ee1"}
    ranked = [item["sample"] for item in bench.queue(guest)["items"]]
    queues.leave("Guest 5ee1")
    bench.queue(guest)  # asked before, dealt afterwards
    bench.lease({"dataset": DATASET_ID, "reviewer": "Guest 5ee1", "samples": ranked})
    assert [item["sample"] for item in bench.queue({**asked, "reviewer": "Ada"})["items"]] == ranked


def test_queue__shares_meet_nowhere_and_leave_nothing_out() -> None:
    parts = [{i["sample"] for i in first_items(240, share=[part, 3])} for part in (1, 2, 3)]
    assert sum(len(part) for part in parts) == len(set.union(*parts)) == len(first_items(240))


def test_queue__by_a_person_by_path_and_by_number() -> None:
    one, two = first_items(2)
    bench.record({"verdicts": [verdict(one, "keep")]})
    bench.record({"verdicts": [verdict(two, "keep") | {"reviewer": "Bob"}]})
    assert [item["sample"] for item in first_items(9, by="Bob")] == [two["sample"]]
    assert [item["sample"] for item in first_items(9, search="#17")] == [17]
    assert [item["sample"] for item in first_items(9, search="S/0017.p")] == [17]


def test_queue__those_like_a_sample_are_its_nearest_with_the_same_given_label() -> None:
    one = first_items(1)[0]
    found = first_items(90, search=f"~{one['sample']}")
    assert {item["given"] for item in found} == {one["given"]}
    points = arrays.embeddings(1, arrays.nearness_of(1)).astype(np.float64)
    with session() as open_session:
        same = np.flatnonzero(datasets.given_labels(open_session, 1) == one["given"])
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    near = same[np.argsort(-unit[same] @ unit[one["sample"]], kind="stable")]
    assert len(near) > 10
    assert {item["sample"] for item in found} == set(near[: queues.MOST_ALIKE + 1].tolist())
    assert first_items(9, search="~999999") == first_items(9, search="~x") == []


def test_progress__tells_who_was_overruled_once() -> None:
    item = first_items(1)[0]
    bench.record({"verdicts": [verdict(item, "keep")]})
    newest = bench.progress({"audit": AUDIT_ID, "reviewer": "Ada", "since": None})["newest"]
    sample = item["sample"]
    asked = {"audit": AUDIT_ID, "since": newest, "samples": [sample, sample + 1]}
    assert bench.newest(asked) == {"newest": newest, "decided": {}}, "nothing new, so nothing is looked up"
    seen = bench.newest(asked | {"since": newest - 1})["decided"]
    assert {key: (one["decision"], one["reviewer"]) for key, one in seen.items()} == {
        str(sample): ("keep", "Ada")
    }
    bench.record({"verdicts": [verdict(item, "exclude") | {"reviewer": "Bob"}]})
    told = bench.progress({"audit": AUDIT_ID, "reviewer": "Ada", "since": newest})
    assert [(one["sample"], one["reviewer"]) for one in told["overruled"]] == [(item["sample"], "Bob")]
    assert bench.progress({"audit": AUDIT_ID, "reviewer": "Ada", "since": told["newest"]})["overruled"] == []
    assert bench.progress({"audit": AUDIT_ID, "reviewer": "Bob", "since": newest})["overruled"] == []
    assert [one["sample"] for one in first_items(9, disputed=True)] == [item["sample"]]
    bench.record({"verdicts": [verdict(item, "exclude") | {"reviewer": "Carol", "ruling": True}]})
    assert first_items(9, disputed=True) == []


def test_progress__counts_and_gives_no_number_of_what_is_left_before_a_random_sample() -> None:
    items = first_items(4)
    bench.record({"verdicts": [verdict(item, "exclude" if i else "keep") for i, item in enumerate(items)]})
    after = bench.progress({"audit": AUDIT_ID})
    assert (after["decided"], after["found"], after["latest"]) == (4, 3, (3, 4))
    assert after["expected_left"] is None
    assert not after["isLittleLeft"], "nobody knows it"
    assert after["sentence"]


def test_progress__little_is_left_once_all_that_the_random_sample_speaks_of_is_settled() -> None:
    verify_sixty()
    settle.settle(AUDIT_ID)
    assert not bench.progress({"audit": AUDIT_ID})["isLittleLeft"]
    bench.record({"verdicts": [verdict(item, "keep") for item in first_items(240) if not item["decision"]]})
    assert bench.progress({"audit": AUDIT_ID})["isLittleLeft"]


def test_queue__what_is_hardly_likelier_wrong_than_right_is_doubtful_once_it_is_known() -> None:
    assert not any(one["isDoubtful"] for one in first_items(240)), "a guess makes nothing doubtful"
    verify_sixty()
    settle.settle(AUDIT_ID)
    with session() as open_session:
        error = scores.columns(open_session, AUDIT_ID, ["error_probability"])["error_probability"]
    items = first_items(240)
    doubtful = {one["sample"] for one in items if one["isDoubtful"]}
    assert doubtful == {one["sample"] for one in items if error[one["sample"]] < bench.DOUBTFUL}
    assert 0 < len(doubtful) < len(items)


def test_queue__an_item_says_whether_it_is_a_suspect() -> None:
    suspects = {one["sample"] for one in first_items(240, issues=True)}
    items = first_items(240)
    assert {one["sample"] for one in items if one["isSuspect"]} == suspects
    assert 0 < len(suspects) < len(items)


def test_progress__what_comes_next_is_that_of_the_queue() -> None:
    verify_sixty()
    settle.settle(AUDIT_ID)

    def told(**where: Any) -> str:
        return bench.progress({"audit": AUDIT_ID, "where": {"undecided": True, **where}})["sentence"]

    items = first_items(240)
    with session() as open_session:
        audit = audits.get(open_session, AUDIT_ID)
        points = np.asarray(arrays.map_points(AUDIT_ID, "cross_entropy"))
    with session() as open_session:
        error = scores.columns(open_session, AUDIT_ID, ["error_probability"])["error_probability"]
    rare = min(items, key=lambda item: error[item["sample"]])
    near = [
        [float(x) for x in points[rare["sample"]] + step] for step in ((-1, -1), (1, -1), (1, 1), (-1, 1))
    ]
    region = {"engine": "cross_entropy", "polygon": near}
    inside = [item for item in items if item["sample"] in queues.inside(audit, region)]
    whole, part = told(), told(region=region)
    assert bench.progress({"audit": AUDIT_ID})["expected_left"] > 0
    assert "in the whole dataset" not in whole
    assert "of the next 50 should be wrong" in whole
    assert "left in the whole dataset (" in part
    left = [item for item in inside if not item["decision"]]
    share = percent(float(error[[item["sample"] for item in left[:50]]].mean()))
    assert "in this queue, " in part
    assert f"{share} of the next {min(50, len(left))} should be wrong" in part
    assert told(given=None, issues=False) == whole
    assert "in this queue, " in told(engine="choicenet")


def test_map_bytes__row_i_is_sample_i() -> None:
    packed = bench.map_bytes(AUDIT_ID, "cross_entropy")
    count = int(np.frombuffer(packed[:4], "<u4")[0])
    with session() as open_session:
        given = datasets.given_labels(open_session, DATASET_ID)
    column = np.frombuffer(packed, "<u2", count, offset=20 + 8 * count)
    assert count == len(given)
    assert column.tolist() == given.tolist()


def test_map_bytes__of_many_samples_the_worst_and_some_of_every_place_travel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench, "MOST_DRAWN", 40)
    packed = bench.map_bytes(AUDIT_ID, "cross_entropy")
    count, total = np.frombuffer(packed[:8], "<u4").tolist()
    samples = np.frombuffer(packed, "<u4", count, offset=20).tolist()
    with session() as open_session:
        table = scores.table(open_session, AUDIT_ID)
    worst = table[table.is_label_issue & (table["rank"] < 20)].sample_id
    assert total == len(table)
    assert set(worst) < set(samples)
    assert len(worst) < count <= 40
    points = np.asarray(arrays.map_points(AUDIT_ID, "cross_entropy"))
    assert set(geometry.stratified(points, 20).tolist()) <= set(samples)


def test_map_bytes__a_part_of_the_map_brings_all_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "MOST_DRAWN", 40)
    points = np.asarray(arrays.map_points(AUDIT_ID, "cross_entropy"))
    low, high = np.quantile(points, [0.2, 0.7], axis=0)
    inside = np.flatnonzero(((points >= low) & (points <= high)).all(axis=1))
    for most, is_whole in ((200_000, True), (10, False)):
        monkeypatch.setattr(bench, "MOST_IN_VIEW", most)
        packed = bench.map_bytes(AUDIT_ID, "cross_entropy", (*low.tolist(), *high.tolist()))
        count, total = np.frombuffer(packed[:8], "<u4").tolist()
        samples = np.frombuffer(packed, "<u4", count, offset=20).tolist()
        assert total == len(points)
        assert set(samples) <= set(inside.tolist())
        assert (len(samples) == len(inside)) == is_whole


def test_map_bytes__decisions_reviewers_and_splits_travel_by_name(copied_home: Path) -> None:
    assert copied_home.exists()
    said = {3: "unreadable", 7: "keep", 11: "unreadable"}
    for sample, decision in said.items():
        decisions.decide(DATASET_ID, sample, decision, reviewer="ada")
    splits = {i: "train" if i < 180 else "test" for i in range(240)}
    for tag, expected in (("review", said), ("reviewer", dict.fromkeys(said, "ada")), ("split", splits)):
        packed = bench.map_bytes(AUDIT_ID, "cross_entropy", tag=tag)
        count = int(np.frombuffer(packed[:4], "<u4")[0])
        before = 20 + 14 * count
        column = np.frombuffer(packed[before : before + count], np.uint8).tolist()
        names = json.loads(packed[before + count :])
        assert {i: names[code] for i, code in enumerate(column) if code != geometry.UNDECIDED} == expected


def test_map_bytes__a_label_is_what_a_person_made_it(copied_home: Path) -> None:
    assert copied_home.exists()
    given = ask(datasets.given_labels, DATASET_ID)
    now = given.copy()
    now[5] = (given[5] + 1) % 3
    decisions.decide(DATASET_ID, 5, "relabel", label=int(now[5]), reviewer="ada")
    decisions.decide(DATASET_ID, 6, "keep", reviewer="ada")
    packed = bench.map_bytes(AUDIT_ID, "cross_entropy")
    column = np.frombuffer(packed, "<u2", len(given), offset=20 + 8 * len(given))
    assert column.tolist() == now.tolist()
    assert readers.classes_of(DATASET_ID, [5, 6, 7]) == {i: int(now[i]) for i in (5, 6, 7)}


def test_inside__a_polygon_around_everything_selects_every_sample(copied_home: Path) -> None:
    assert copied_home.exists()
    region = {"engine": "cross_entropy", "polygon": [[-1e6, -1e6], [1e6, -1e6], [1e6, 1e6], [-1e6, 1e6]]}
    items = first_items(300, region=region)
    assert sorted(item["sample"] for item in items) == list(range(240))


def test_contains__even_odd_rule_on_a_concave_polygon() -> None:
    horseshoe = np.array([[0, 0], [3, 0], [3, 3], [2, 3], [2, 1], [1, 1], [1, 3], [0, 3]], dtype=float)
    points = np.array([[0.5, 2], [1.5, 2], [2.5, 2], [1.5, 0.5], [5, 5]])
    assert queues.contains(horseshoe, points).tolist() == [True, False, True, True, False]


def test_contains__two_points_enclose_nothing() -> None:
    assert not queues.contains(np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[0.5, 0.5]])).any()


def test_stratified__every_place_has_its_share_and_never_nothing() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(5_000, 2)), rng.normal(loc=6, size=(1_000, 2)), [[30.0, 30.0]]])
    chosen = geometry.stratified(points.astype(np.float32), 3_000)
    assert 2_500 < len(chosen) <= 3_000
    assert (np.diff(chosen) > 0).all()
    assert len(points) - 1 in chosen
    assert 0.7 < (chosen < 5_000).mean() < 0.9
    assert len(geometry.stratified(points[:7], 7)) == 7


def test_cards__one_pair_of_classes_by_expected_corrections_and_what_waits_is_passed_over() -> None:
    asked = {"audit": 1, "reviewer": "ada", "where": {"undecided": True}}
    seen: list[tuple[int, int]] = []
    shown: list[int] = []
    expected: list[float] = []
    whole = bench.queue_size({"audit": 1, "where": {"undecided": True, "issues": True}})["total"]
    while (answer := bench.cards({**asked, "passed": shown}))["pair"] is not None:
        pair = (answer["pair"]["given"], answer["pair"]["suggested"])
        assert pair == (None, None) or {(one["given"], one["suggested"]) for one in answer["items"]} == {pair}
        assert bench.LEAST_ON_CARD <= len(answer["items"]) <= bench.MOST_ON_CARD
        assert not {one["sample"] for one in answer["items"]} & set(shown)
        if pair not in seen:
            expected.append(answer["pair"]["expected"])
            assert answer["pair"]["count"] >= len(answer["items"])
        if pair == (None, None):
            assert answer["pair"]["count"] == whole - len(shown)
        seen.append(pair)
        shown += [one["sample"] for one in answer["items"]]
    assert len(set(seen)) == 3
    assert seen[-1] == (None, None), "what is on no card of its own pair comes on mixed ones"
    assert expected.pop() > 0
    assert expected == sorted(expected, reverse=True)
    first = bench.cards(asked)
    on_cards = sum(count for count in _pairs(1) if count >= bench.LEAST_ON_CARD)
    assert (first["cards"], first["singles"]) == (len(set(seen)) - 1, whole - on_cards)


def test_queue__pictures_that_are_conspicuous_for_themselves() -> None:
    points, near = (
        arrays.embeddings(1, arrays.nearness_of(1)),
        arrays.array(1, arrays.nearness_of(1), "neighbours"),
    )
    away = mean_distances(points, near)

    def samples(pictures: str) -> list[int]:
        asked = {"audit": 1, "where": {"pictures": pictures}, "limit": 300}
        found = [one["sample"] for one in bench.queue(asked)["items"]]
        assert bench.queue_size(asked)["total"] == len(found)
        return found

    lone = samples("outliers")
    assert len(lone) == queues.LEAST_LONE
    assert away[lone].min() >= np.delete(away, lone).max()
    with session() as open_session:
        copies = datasets.duplicates(open_session, 1)
        light, sharp = plain.light_and_sharp(datasets.by_id(open_session, 1)).T
    assert sorted(samples("copies")) == sorted(copies.sample_id)
    half = queues.LEAST_LONE // 2
    assert set(samples("dim")) == {*np.argsort(light)[:half], *np.argsort(sharp)[:half]}


def _pairs(audit_id: int) -> list[int]:
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        return scores.pair_counts(open_session, audit, scores.SuspectFilter(only_issues=True))[
            "count"
        ].tolist()


def test_cards__what_somebody_else_looks_at_or_decided_is_on_none() -> None:
    asked = {"audit": 1, "where": {"undecided": True}}
    theirs = [one["sample"] for one in bench.cards({**asked, "reviewer": "ada"})["items"]]
    verdict = {
        "dataset": 1,
        "audit": 1,
        "sample": theirs[0],
        "reviewer": "ada",
        "decision": "keep",
        "token": "t",
    }
    assert "error" not in bench.record({"verdicts": [verdict]})["results"][0]
    mine = bench.cards({**asked, "reviewer": "bob"})
    assert mine["pair"] is not None
    assert not {one["sample"] for one in mine["items"]} & set(theirs)
    assert not {one["sample"] for one in bench.cards({**asked, "reviewer": "ada"})["items"]} & {theirs[0]}
