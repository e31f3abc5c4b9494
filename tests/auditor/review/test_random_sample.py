"""Random draws, blind verdicts, and what they allow to be said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from auditor.audits import worker
from auditor.audits.plan import plan_audit
from auditor.catalog import audits, draws, scores
from auditor.catalog.db import session
from auditor.catalog.records import NewDraw
from auditor.ground.errors import VerificationError
from auditor.results import progress, settle, statements
from auditor.review import blind, decisions, drawing, verifying
from auditor.statistics import NoiseRate, share_for_head
from auditor.statistics.rates.verified import NO_CLASS, UNSURE
from tests.auditor.catalogs import add_dataset, change_sample
from tests.helpers import QUICK_OPTIONS, Digits, verify_truthfully


def test_draw__same_seed_same_samples_and_draws_never_overlap(audited: tuple[Digits, int]) -> None:
    first = drawing.draw("digits", 50, seed=0)
    second = drawing.draw("digits", 50, seed=0)
    assert len(set(first.sample_ids) | set(second.sample_ids)) == 100


def test_draw__refuses_more_than_there_are(audited: tuple[Digits, int]) -> None:
    with pytest.raises(VerificationError, match="301 samples cannot be drawn; 300 labeled"):
        drawing.draw("digits", 301)


def test_draw__leaves_out_what_somebody_decided_and_counts_it_as_it_is(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    wrong, right = (
        np.flatnonzero(digits.is_wrong)[:16].tolist(),
        np.flatnonzero(~digits.is_wrong)[:4].tolist(),
    )
    for one in wrong:
        decisions.decide(1, one, "relabel", label=int(digits.true_labels[one]), reviewer="ada")
    for one in right:
        decisions.decide(1, one, "keep", reviewer="ada")
    decisions.decide(1, int(np.flatnonzero(~digits.is_wrong)[4]), "unsure", reviewer="ada")  # decides nothing
    assert drawing.num_left(1) == 280
    with pytest.raises(
        VerificationError, match="280 labeled samples are left that nobody drew before or decided"
    ):
        drawing.draw("digits", 281)
    for purpose in ("rate", "promises"):
        draw = verify_truthfully(digits, 100, purpose=purpose)
        assert not set(draw.sample_ids) & {*wrong, *right}
    known = verifying.rows(1).decided
    assert known is not None
    assert known.sample_ids.tolist() == sorted([*wrong, *right])
    assert known.sample_ids[known.is_wrong].tolist() == wrong
    rate = statements.noise_rate(statements.load(audit_id))
    assert "beside 16 of 20 that people had checked" in rate.sentence
    assert 16 / 300 <= rate.low <= 0.1 <= rate.high


def test_next_command__asks_for_no_more_rows_than_there_are(audited: tuple[Digits, int]) -> None:
    command = "auditor verify digits --draw {} --out sample.csv"
    assert drawing.next_command("digits") == command.format(100)
    drawing.draw("digits", 140)
    assert drawing.next_command("digits") == command.format(160)
    drawing.draw("digits", 160)
    assert drawing.next_command("digits") == ""


def test_standing__holds_the_latest_verdict(audited: tuple[Digits, int]) -> None:
    draw = drawing.draw("digits", 4, seed=0)
    a, b, c, _ = draw.sample_ids
    blind.record(draw.id, a, "label", label=2, reviewer="ada")
    blind.record(draw.id, a, "label", label=3, reviewer="ada")
    blind.record(draw.id, b, "exclude", reviewer="ada")
    blind.record(draw.id, c, "unsure", reviewer="ada")
    found = verifying.rows(1)
    assert found.sample_ids.tolist() == [a, b, c]
    assert found.true_labels.tolist() == [3, NO_CLASS, UNSURE]
    assert found.is_watched
    blind.undo(draw.id, a, reviewer="ada")
    assert (draw.id, a) in blind.pending(1)


def test_standing__a_sample_that_was_passed_over_counts_as_unsure(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    draw = drawing.draw("digits", 6, seed=0)
    for place in (0, 2, 3):
        sample_id = draw.sample_ids[place]
        label = int(digits.true_labels[sample_id])
        blind.record(draw.id, sample_id, "label", label=label, reviewer="ada")
    found = verifying.rows(1)
    assert found.sample_ids.tolist() == draw.sample_ids[:4]  # the last two wait, nobody passed them over
    assert np.flatnonzero(found.is_unsure).tolist() == [1]


def test_record__a_suspect_cannot_be_smuggled_in(audited: tuple[Digits, int]) -> None:
    draw = drawing.draw("digits", 4, seed=0)
    outsider = next(i for i in range(300) if i not in draw.sample_ids)
    with pytest.raises(VerificationError, match="not part of draw"):
        blind.record(draw.id, outsider, "label", label=1, reviewer="ada")


def test_reviews_of_suspects_are_never_counted_as_random(audited: tuple[Digits, int]) -> None:
    decisions.decide(1, 5, "exclude", reviewer="ada")
    assert verifying.rows(1).size == 0


def test_promises__realised_rate_and_interval(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    verify_truthfully(digits, 150)
    settle.settle(audit_id)
    standing = statements.load(audit_id)
    rate = statements.noise_rate(standing)
    assert rate.kind == "interval"
    assert rate.low <= 0.10 <= rate.high
    at_20 = statements.promises(standing)[0.20]
    assert not at_20.flags[standing.verified.sample_ids].any()
    if at_20.is_kept:
        assert (~digits.is_wrong[at_20.flags]).mean() <= 0.5


def test_promises__without_verified_rows_nothing_is_promised(audited: tuple[Digits, int]) -> None:
    _, audit_id = audited
    promise = statements.promises(statements.load(audit_id))[0.1]
    assert not promise.is_kept
    assert "Nothing can be promised yet" in promise.sentence
    assert statements.noise_rate(statements.load(audit_id)).kind == "guess"


def test_statements__found_errors_come_from_reviews_and_verdicts(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    draw = verify_truthfully(digits, 60)
    wrong_drawn = int(digits.is_wrong[draw.sample_ids].sum())
    outside = [i for i in np.flatnonzero(digits.is_wrong) if i not in draw.sample_ids][:3]
    for sample_id in outside:
        decisions.decide(1, int(sample_id), "exclude", reviewer="ada")
    found = statements.statements(statements.load(audit_id))
    assert found.errors_left.found == wrong_drawn + 3
    assert len(found.classes) == 10


def test_statements__a_class_for_an_unlabeled_sample_is_no_error_found(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    change_sample(9, given_label=-1)
    before = statements.statements(statements.load(audit_id)).errors_left
    decisions.decide(1, 9, "relabel", label=int(digits.true_labels[9]), reviewer="ada")
    after = statements.statements(statements.load(audit_id)).errors_left
    assert (after.found, after.point) == (before.found, before.point) == (0, before.point)
    assert progress.progress(1, audit_id).found == 0


def test_statements__taken_back_verdicts_leave_the_guess(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    guess = statements.noise_rate(statements.load(audit_id))
    draw = verify_truthfully(digits, 60)
    settle.settle(audit_id)
    standing = statements.load(audit_id)
    assert statements.noise_rate(standing).kind == "interval"
    for sample_id in draw.sample_ids:
        blind.undo(draw.id, sample_id, reviewer="ada")
    standing = statements.load(audit_id)
    assert statements.noise_rate(standing) == guess
    assert statements.noise_rate_now(standing.audit) == guess


def test_second_audit__reviewed_suspects_do_not_refuse_the_sample(audited: tuple[Digits, int]) -> None:
    """The loop that the product exists for: verify, review the list, audit again, and the promise still stands."""
    digits, audit_id = audited
    draw = verify_truthfully(digits, 100)
    order = np.argsort(statements.load(audit_id).trust_score)
    for sample_id in (int(i) for i in order[:60] if i not in draw.sample_ids):
        label = int(digits.true_labels[sample_id])
        decisions.decide(1, sample_id, "relabel", label=label, reviewer="ada")
    excluded = int(order[70])
    decisions.decide(1, excluded, "exclude", reviewer="ada")
    second = plan_audit("digits", ["cross_entropy"], options=QUICK_OPTIONS, map_method="pca")
    worker.run_audit(second)
    standing = statements.load(second)
    assert standing.is_random_sample, standing.exchangeability.sentence
    assert statements.noise_rate(standing).kind == "interval"
    # What was corrected or excluded is still graded by the label that it was given.
    assert np.isfinite(standing.trust_score).all()
    corrected = [i for i in order[:60] if digits.is_wrong[i] and i not in draw.sample_ids]
    assert np.mean(standing.trust_score[corrected]) < 0.3
    with session() as open_session:
        page = scores.page(
            open_session, audits.get(open_session, second), scores.SuspectFilter(only_decided=True), limit=200
        )
    assert excluded in page.sample_id.tolist()


def test_noise_rate__rows_from_the_top_of_the_list_are_refused(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    trust = statements.load(audit_id).trust_score
    top = np.argsort(trust)[:60]
    with session() as open_session:
        drawn = draws.add(
            open_session, NewDraw(dataset_id=1, seed=0, size=60, sample_ids=[int(i) for i in top])
        )
    for sample_id in top:
        label = int(digits.true_labels[sample_id])
        blind.record(drawn.id, int(sample_id), "label", label=label, reviewer="ada")
    standing = statements.load(audit_id)
    rate = statements.noise_rate(standing)
    assert rate.kind == "guess"
    assert "cannot be a random sample" in rate.sentence
    assert not any(promise.is_kept for promise in statements.promises(standing).values())


def test_load__a_sample_that_two_draws_hold_is_refused(audited: tuple[Digits, int]) -> None:
    _, audit_id = audited
    for _ in range(2):
        with session() as open_session:
            drawn = draws.add(open_session, NewDraw(dataset_id=1, seed=0, size=1, sample_ids=[7]))
        blind.record(drawn.id, 7, "unsure", reviewer="ada")
    with pytest.raises(VerificationError, match="a verified sample occurs twice"):
        statements.load(audit_id)


def test_standing__an_enlarged_sample_is_a_watched_one(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    verify_truthfully(digits, 20)
    assert not verifying.rows(1).is_watched
    verify_truthfully(digits, 20)
    assert verifying.rows(1).is_watched


def test_standing__promises_rest_on_the_largest_draw_that_is_judged_to_its_end(
    audited: tuple[Digits, int],
) -> None:
    digits, audit_id = audited
    first = verify_truthfully(digits, 60)
    second = drawing.draw("digits", 100)
    for sample_id in second.sample_ids[:-1]:
        blind.record(second.id, sample_id, "label", label=int(digits.true_labels[sample_id]), reviewer="ada")
    found = verifying.rows(1)
    assert found.num_waiting == 1
    np.testing.assert_array_equal(found.sample_ids[found.backing_mask], first.sample_ids)
    blind.record(second.id, second.sample_ids[-1], "unsure", reviewer="ada")
    found = verifying.rows(1)
    np.testing.assert_array_equal(found.sample_ids[found.backing_mask], second.sample_ids)
    assert found.num_waiting == 0
    # A verdict that is taken back leaves a row that waits, and the smaller draw backs again.
    blind.undo(second.id, second.sample_ids[-1], reviewer="ada")
    assert verifying.rows(1).backing_mask.sum() == 60
    blind.undo(first.id, first.sample_ids[-1], reviewer="ada")
    promise = statements.promises(statements.load(audit_id))[0.2]
    assert not promise.is_kept
    assert "is checked (2 of its rows wait" in promise.sentence


def test_standing__a_verdict_that_a_later_review_contradicts_counts_as_unsure(
    audited: tuple[Digits, int],
) -> None:
    digits, _ = audited
    draw = verify_truthfully(digits, 100)
    wrong = [i for i in draw.sample_ids if digits.is_wrong[i]]
    right = next(i for i in draw.sample_ids if not digits.is_wrong[i])
    decisions.decide(1, wrong[0], "keep", reviewer="bob")
    decisions.decide(1, wrong[1], "relabel", label=int(digits.true_labels[wrong[1]]), reviewer="bob")
    decisions.decide(1, right, "unsure", reviewer="bob")
    found = verifying.rows(1)
    assert found.sample_ids[found.is_unsure].tolist() == [wrong[0]]
    # Judged blind once more, two people are in dispute, until somebody looks.
    blind.record(draw.id, wrong[0], "unsure", reviewer="ada")
    label = int(digits.true_labels[wrong[0]])
    blind.record(draw.id, wrong[0], "label", label=label, reviewer="ada")
    assert verifying.rows(1).is_unsure.sum() == 1
    decisions.decide(1, wrong[0], "relabel", label=label, reviewer="eve")
    assert not verifying.rows(1).is_unsure.any()


def test_draw__for_promises_keeps_its_zones_and_chances(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    assert [drawing.usual_purpose("digits", size) for size in (59, 60)] == ["rate", "promises"]
    draw = verify_truthfully(digits, 40, purpose="promises")
    head, rest = draw.zones
    order = np.argsort(statements.load(audit_id).trust_score, kind="stable")
    assert (draw.purpose, draw.audit_id) == ("promises", audit_id)
    np.testing.assert_array_equal(np.sort(draw.head), np.sort(order[: head["size"]]))
    assert (head["drawn"], rest["drawn"]) == (28, 12)
    assert head["probability"] == pytest.approx(28 / head["size"])
    assert rest["probability"] == pytest.approx(12 / (300 - head["size"]))
    assert len(set(draw.head) & set(draw.sample_ids)) == 28
    found = verifying.rows(1)
    assert found.backing_mask.sum() == 28
    assert "of audit 1" in found.backing_words
    in_head = np.isin(found.sample_ids, draw.head)
    assert found.weights[~in_head].min() > found.weights[in_head].max()
    more = drawing.draw("digits", 30, purpose="promises")
    assert not set(more.sample_ids) & set(draw.sample_ids)


def test_trusted_weight__drawn_rows_stand_for_their_zone_and_picked_ones_for_themselves(
    audited: tuple[Digits, int],
) -> None:
    digits, _ = audited
    verify_truthfully(digits, 20)
    _, trusted = decisions.labels_to_train_on(1)
    assert verifying.trusted_weight(1, trusted) is None
    draw = verify_truthfully(digits, 40, purpose="promises")
    picked = next(i for i in range(300) if i not in verifying.rows(1).sample_ids)
    decisions.decide(1, picked, "keep", reviewer="ada")
    _, trusted = decisions.labels_to_train_on(1)
    weight = verifying.trusted_weight(1, trusted)
    assert weight is not None
    assert weight[picked] == 1
    in_head = [i for i in draw.sample_ids if trusted[i] and i in draw.head]
    in_rest = [i for i in draw.sample_ids if trusted[i] and i not in draw.head]
    assert weight[in_rest].min() > weight[in_head].max() > 1


def test_draw__for_the_rate_keeps_what_the_ranking_thought_wrong(audited: tuple[Digits, int]) -> None:
    """The ranking of the moment of the draw: what a later one learns from the verdicts may not sharpen them."""
    digits, audit_id = audited
    drawn = verify_truthfully(digits, 120)
    assert (drawn.audit_id, drawn.head, drawing.zones_in_words(drawn)) == (audit_id, [], "")
    with session() as open_session:
        share = share_for_head(NoiseRate(**audits.get(open_session, audit_id).summary.noise_rate))
        ranking = drawing.ranked(open_session, audits.get(open_session, audit_id), np.arange(300))
    assert drawn.likely_wrong == ranking[: round(share * 300)].tolist()
    verified = verifying.rows(1)
    assert verified.strata is not None
    assert np.flatnonzero(verified.strata == 0).tolist() == sorted(drawn.likely_wrong)
    assert np.count_nonzero(verified.strata == 1) == 300 - len(drawn.likely_wrong)
    before = statements.noise_rate(statements.load(audit_id))
    drawing.draw("digits", 20, seed=1)
    after = statements.noise_rate(statements.load(audit_id))
    assert (after.low, after.high) == (before.low, before.high)  # what the first draw said stays said


def test_draw__for_promises_needs_a_ranking(home: Path) -> None:
    add_dataset("few", num=40)
    assert drawing.usual_purpose("few", 200) == "rate"
    with pytest.raises(VerificationError, match=r"No audit has ranked the labels of few.*draw for the rate"):
        drawing.draw("few", 10, purpose="promises")
    with pytest.raises(VerificationError, match="A draw for 'fun' is unknown; use one of rate, promises"):
        drawing.draw("few", 10, purpose="fun")
    assert not drawing.draw("few", 10).likely_wrong


def test_statements__of_a_head_draw_are_about_the_whole_set_and_the_promise_about_the_head(
    audited: tuple[Digits, int],
) -> None:
    digits, audit_id = audited
    draw = verify_truthfully(digits, 120, purpose="promises")
    settle.settle(audit_id)
    standing = statements.load(audit_id)
    assert standing.is_random_sample, standing.exchangeability.sentence
    rate = statements.noise_rate(standing)
    assert rate.low <= digits.is_wrong.mean() <= rate.high
    assert "most of them from the most suspicious" in rate.sentence
    at_20 = statements.promises(standing)[0.20]
    assert not at_20.is_kept or set(np.flatnonzero(at_20.flags)) <= set(draw.head)
    said = statements.statements(standing)
    assert sum(one.interval.num_rows for one in said.classes if one.interval) == 120


def test_standing__a_uniform_draw_and_one_from_the_head_pool(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    verify_truthfully(digits, 60)
    verify_truthfully(digits, 60, purpose="promises")
    verified = verifying.rows(1)
    assert [bool((stage.zones > 0).any()) for stage in verified.stages] == [False, True]
    rate = statements.noise_rate(statements.load(audit_id))
    assert rate.low <= digits.is_wrong.mean() <= rate.high
    assert rate.interval is not None
    assert rate.interval.kind == "sequence"
