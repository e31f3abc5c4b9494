"""Estimates and intervals of draws that look at a head more often: exact, valid while watched, never too narrow."""

from dataclasses import replace

import numpy as np
import pytest

from auditor.statistics import first_interval, part_intervals
from auditor.statistics.rates.intervals import hypergeometric_interval
from auditor.statistics.rates.noise import (
    NoiseRate,
    noise_rate_from_verified,
)
from auditor.statistics.rates.parts import part_interval
from auditor.statistics.rates.probabilities import calibrate
from auditor.statistics.rates.promises import check_draws, promise
from auditor.statistics.rates.strata import Counts, Stage, exact_range, sequence_range, share
from auditor.statistics.rates.verified import NO_CLASS, UNSURE, Verified
from auditor.statistics.rates.zones import draw_zones
from tests.auditor.statistics.rates.test_promises import N, false_share, score_world

GUESS = NoiseRate(0.02, 0.08, 0.2, "guess", "")


def head_draw(trust, true, seed, *, size=120, guessed=0.08):
    zoned = draw_zones(np.argsort(trust, kind="stable"), guessed, size, np.random.default_rng([seed, 1]))
    return zoned.judged(true[zoned.sample_ids], N)


def test_draw_zones__most_rows_from_the_head_in_mixed_order():
    trust, _, _ = score_world(0)
    ordered = np.argsort(trust)
    zoned = draw_zones(ordered, 0.1, 100, np.random.default_rng(0))
    assert (len(zoned.head), len(zoned.rest), zoned.num_from_head) == (400, 1600, 70)
    np.testing.assert_array_equal(zoned.head, ordered[:400])
    first_half = np.isin(zoned.sample_ids[:50], zoned.head).sum()
    assert 25 < first_half < 45
    assert len(set(zoned.sample_ids)) == 100


@pytest.mark.parametrize(("num", "size"), [(30, 30), (30, 1), (100, 90), (3, 2)])
def test_draw_zones__of_a_few_labels(num, size):
    zoned = draw_zones(np.arange(num), 0.01, size, np.random.default_rng(0))
    assert len(set(zoned.sample_ids)) == size
    assert len(zoned.head) + len(zoned.rest) == num


def watched_range(one, level):
    return sequence_range((one,), level)


def test_exact_range__of_one_zone_is_the_hypergeometric_one_and_known_labels_count_as_they_are():
    one = Counts(sizes=(800,), drawn=(100,), hits=(9,), unsure=(0,))
    low, high = (800 * share for share in hypergeometric_interval(9, 100, 800))
    assert exact_range(one, 0.95) == pytest.approx((low, high))
    known = replace(one, known_hits=40, known_misses=7, known_unsure=3)
    assert (known.total, exact_range(known, 0.95)) == (850, pytest.approx((low + 40, high + 43)))
    assert share([known]) == pytest.approx((40 + 800 * 0.09) / 847)
    watched = sequence_range((known,), 0.95)
    assert watched[0] < low + 40 < high + 43 < watched[1]


def test_exact_range__is_sharper_than_a_uniform_draw_where_zones_tell():
    zoned = Counts(sizes=(450, 450, 4100), drawn=(50, 50, 100), hits=(44, 6, 0), unsure=(0, 0, 0))
    low, high = exact_range(zoned, 0.95)
    fewest, most = hypergeometric_interval(round(200 * share([zoned])), 200, 5000)
    assert share([zoned]) == pytest.approx((450 * 0.88 + 450 * 0.12) / 5000)
    assert high - low < 0.8 * 5000 * (most - fewest)


@pytest.mark.parametrize("of", [exact_range, watched_range])
def test_ranges__unsure_rows_widen_both_ends_and_a_zone_that_nobody_saw_may_hold_anything(of):
    sure = Counts(sizes=(100, 100, 800), drawn=(30, 30, 40), hits=(20, 5, 1), unsure=(0, 0, 0))
    unsure = Counts(sizes=(100, 100, 800), drawn=(30, 30, 40), hits=(17, 5, 0), unsure=(3, 0, 1))
    narrow, wide = of(sure, 0.95), of(unsure, 0.95)
    assert wide[0] < narrow[0]
    assert wide[1] == pytest.approx(narrow[1], abs=10)
    assert of(Counts(sizes=(10, 10, 80), drawn=(5, 5, 0), hits=(5, 0, 0), unsure=(0, 0, 0)), 0.95)[1] > 80
    every = Counts(sizes=(10, 10, 80), drawn=(10, 10, 80), hits=(7, 2, 1), unsure=(0, 0, 0))
    assert of(every, 0.95) == pytest.approx((10, 10), abs=0.1)


@pytest.mark.parametrize(("rate", "size"), [(0.03, 80), (0.15, 80), (0.4, 150)])
def test_noise_rate__of_head_draws_is_unbiased_and_its_interval_covers(rate, size):
    covered, watched, points, truths, naive = [], [], [], [], []
    for seed in range(60):
        trust, given, true = score_world(seed, rate=rate)
        verified = head_draw(trust, true, seed, size=size)
        found = noise_rate_from_verified(given, verified, GUESS)
        truth = (given != true).mean()
        covered.append(found.low <= truth <= found.high)
        if seed % 3 == 0:
            watching = noise_rate_from_verified(given, replace(verified, is_watched=True), GUESS)
            watched.append(watching.low <= truth <= watching.high)
        points.append(found.interval.point)
        truths.append(truth)
        naive.append(verified.is_wrong(given).mean())
    error = np.array(points) - truths
    assert np.mean(covered) >= 0.94
    assert np.mean(watched) >= 0.97
    assert abs(error.mean()) <= 3 * error.std() / np.sqrt(60)
    assert np.mean(naive) > np.mean(truths) + 0.05, "the head must hold more errors for this to mean anything"


def test_noise_rate__uniform_and_head_draws_pool():
    covered, width, alone = [], [], []
    for seed in range(80):
        trust, given, true = score_world(seed)
        rng = np.random.default_rng([seed, 2])
        first = rng.permutation(N)[:100]
        left = np.setdiff1d(np.argsort(trust, kind="stable"), first, assume_unique=True)
        zoned = draw_zones(left, 0.1, 100, rng)
        ids = np.concatenate([first, zoned.sample_ids])
        is_second = np.arange(200) >= 100
        stages = (Stage(~is_second, np.zeros(N, dtype=np.int8)), zoned.stage(N, is_second))
        both = Verified(ids, true[ids], is_watched=True, stages=stages)
        found = noise_rate_from_verified(given, both)
        truth = (given != true).mean()
        covered.append(found.low <= truth <= found.high)
        width.append(found.high - found.low)
        one = noise_rate_from_verified(given, Verified(first, true[first], is_watched=True))
        alone.append(one.high - one.low)
    assert np.mean(covered) >= 0.95
    assert np.mean(width) < np.mean(alone)


def in_strata(trust, true, seed, *, size=200, guessed=0.15, **roles):
    """A uniform draw, with the strata of a ranking that stood before it."""
    strata_of = np.ones(N, dtype=np.int8)
    strata_of[np.argsort(trust)[: round(guessed * N)]] = 0
    ids = np.random.default_rng([seed, 5]).permutation(N)[:size]
    return Verified(ids, true[ids], strata=strata_of, **roles)


@pytest.mark.parametrize(("gap", "least", "most"), [(3.0, 0.7, 0.9), (0.0, 1.0, 1.15)])
def test_part_interval__strata_of_an_earlier_ranking_sharpen_a_uniform_draw(gap, least, most):
    """Even where the ranking knows nothing it costs little, and where people are unsure both ends hold."""
    covered, unsure_covered, widths, plain = [], [], [], []
    whole = np.ones(N, dtype=bool)
    for seed in range(200):  # with few cells, which only widen the intervals
        trust, given, true = score_world(seed, gap=gap)
        truth = (given != true).mean()
        verified = in_strata(trust, true, seed)
        wrong = verified.is_wrong(given)
        found = part_interval(whole, verified, wrong, cells=24)
        covered.append(found.low <= truth <= found.high)
        widths.append(found.high - found.low)
        alone = first_interval(int(wrong.sum()), 200, N)
        plain.append(alone.high - alone.low)
        is_unsure = np.random.default_rng(seed).random(200) < np.where(wrong, 0.2, 0.02)
        doubted = replace(verified, true_labels=np.where(is_unsure, UNSURE, verified.true_labels))
        wide = part_interval(whole, doubted, doubted.is_wrong(given), cells=16)
        unsure_covered.append(wide.low <= truth <= wide.high)
    assert np.mean(covered) >= 0.94
    assert np.mean(unsure_covered) >= 0.95
    assert least < np.mean(widths) / np.mean(plain) < most


def test_part_interval__strata_are_used_by_sizes_alone_and_only_for_a_draw_judged_to_its_end():
    trust, given, true = score_world(0, gap=3.0)
    whole = np.ones(N, dtype=bool)

    def is_used(**changes):
        verified = in_strata(trust, true, 0, **changes)
        wrong = verified.is_wrong(given)
        plain = part_interval(whole, replace(verified, strata=None), wrong)
        return part_interval(whole, verified, wrong) != plain

    assert is_used()
    assert not is_used(guessed=0.04)  # 8 of 200 rows are expected there
    assert is_used(guessed=0.05)
    assert not is_used(is_watched=True)
    verified = in_strata(trust, true, 0)
    of_class = part_interval(given == 3, verified, verified.is_wrong(given))
    assert of_class == part_interval(given == 3, replace(verified, strata=None), verified.is_wrong(given))
    assert part_intervals(given, verified, verified.is_wrong(given), 10)[3] == of_class


def test_part_intervals__of_each_class_cover():
    covered, empty = [], 0
    for seed in range(80):
        trust, given, true = score_world(seed)
        verified = head_draw(trust, true, seed)
        label = seed % 10  # one class a world: their intervals are what takes long
        few = np.where(given == label, given, -1)
        found = part_intervals(few, verified, verified.is_wrong(given), 11)
        truth = (true != given)[given == label].mean()
        covered.append(found[label].low <= truth <= found[label].high)
        empty += found[10].num_rows
    assert np.mean(covered) >= 0.94
    assert empty == 0


@pytest.mark.parametrize("with_ties", [False, True])
def test_promise__inside_a_head_keeps_its_rate_and_finds_more(with_ties):
    shares, recall, uniform = [], [], []
    for seed in range(200):
        trust, given, true = score_world(seed, rate=0.1, gap=3.0)
        trust = np.round(trust, 1) if with_ties else trust
        wrong = given != true
        verified = head_draw(trust, true, seed, size=100)
        told = promise(trust, given, verified, 0.1)
        assert not (told.flags & ~verified.backing_pool).any()
        shares.append(false_share(told.flags, given, true))
        recall.append((told.flags & wrong).sum() / wrong.sum())
        ids = np.random.default_rng([seed, 3]).permutation(N)[:100]
        uniform.append(
            (promise(trust, given, Verified(ids, true[ids]), 0.1).flags & wrong).sum() / wrong.sum()
        )
    assert np.mean(shares) <= 0.1 + 2 * np.std(shares) / np.sqrt(200)
    assert np.mean(recall) > np.mean(uniform) + 0.2
    assert "from the 320 most suspicious labels, and about these alone" in told.sentence


def test_promise__of_a_tiny_head_and_of_unsure_judges_keeps_its_rate():
    shares, taken = [], []
    for seed in range(200):
        trust, given, true = score_world(seed, rate=0.02, gap=3.0)
        zoned = draw_zones(np.argsort(trust, kind="stable"), 0.02, 40, np.random.default_rng([seed, 1]))
        is_unsure = np.random.default_rng(seed).random(40) < 0.3
        for found, said in ((shares, UNSURE), (taken, NO_CLASS)):
            verdicts = np.where(is_unsure, said, true[zoned.sample_ids])
            told = promise(trust, given, zoned.judged(verdicts, N), 0.2)
            found.append(false_share(told.flags, given, true))
    assert 0 < np.mean(shares) <= 0.2
    assert np.mean(taken) > 0.2, "counted as wrong, what nobody could tell breaks the promise"


def test_promise__and_interval_hold_where_a_second_reviewer_errs_and_what_differs_counts_as_unsure():
    shares, covered, taken = [], [], []
    for seed in range(200):
        trust, given, true = score_world(seed, rate=0.15, gap=3.0)
        zoned = draw_zones(np.argsort(trust, kind="stable"), 0.15, 80, np.random.default_rng([seed, 1]))
        rng = np.random.default_rng([seed, 6])
        errs = (rng.random(80) < 0.4) & (rng.random(80) < 0.2)  # looks twice, and sees another class
        first = true[zoned.sample_ids]
        truth = (given != true).mean()
        verified = zoned.judged(np.where(errs, UNSURE, first), N)
        # In few cells, which only widens it, because an exact interval takes long.
        whole = np.ones(N, dtype=bool)
        if seed % 4 == 0:
            rate = part_interval(whole, verified, verified.is_wrong(given), cells=16)
            covered.append(rate.low <= truth <= rate.high)
        shares.append(false_share(promise(trust, given, verified, 0.2).flags, given, true))
        # Whoever judged last counts alone: errors then look like wrong labels, and the promise is too good.
        last = zoned.judged(np.where(rng.random(80) < 0.2, (first + 3) % 10, first), N)
        taken.append(false_share(promise(trust, given, last, 0.2).flags, given, true))
    assert np.mean(shares) <= 0.2 + 2 * np.std(shares) / np.sqrt(200)
    assert np.mean(covered) >= 0.95
    assert np.mean(taken) > 0.2, "what people see decides what can be promised"


def test_promise__of_a_later_audit_is_about_the_old_head_and_keeps_its_rate():
    """The second ranking is another one; its promise is still about the first head."""
    shares, outside = [], 0
    for seed in range(200):
        trust, given, true = score_world(seed, rate=0.15)
        verified = head_draw(trust, true, seed, size=100)
        later = trust + np.random.default_rng([seed, 4]).normal(size=N)
        told = promise(later, given, verified, 0.2)
        shares.append(false_share(told.flags, given, true))
        outside += int((told.flags & ~verified.backing_pool).sum())
    assert outside == 0
    assert np.mean(shares) <= 0.2 + 2 * np.std(shares) / np.sqrt(200)


def test_promise__labels_that_people_moved_between_audits_neither_calibrate_nor_break_it():
    """Half of the draw and the most suspicious labels are corrected, and the next audit learns what people said."""
    shares, naive, num_moved, refused = [], [], [], 0
    for seed in range(200):
        trust, given, true = score_world(seed, rate=0.15)
        verified = head_draw(trust, true, seed, size=100)
        calibrating = np.arange(100) % 2 == 0
        moved = np.zeros(N, dtype=bool)
        moved[np.argsort(trust)[:60]] = True  # reviewed suspects
        moved[verified.sample_ids] = ~calibrating  # and what was drawn, but for the half that calibrates
        corrected = moved & (given != true)
        num_moved.append(corrected.sum())
        # An engine trusts what it was told, and sees the others a little better for it.
        later = 1.2 * trust + 0.3 * np.random.default_rng([seed, 4]).normal(size=N)
        later = np.where(moved, np.where(corrected, -6.0, 6.0), later)
        second = replace(verified, trusted=~calibrating, treated=moved)
        told = promise(later, given, second, 0.2)
        refused += "Nothing is promised." in told.sentence
        shares.append(false_share(told.flags, given, true))
        # As if the next audit had been told nothing: right rows that it was told of make the list look clean.
        blind = promise(later, given, verified, 0.2)
        naive.append(false_share(blind.flags & ~moved, given, true))
    assert np.mean(num_moved) > 60
    assert refused <= 6
    assert 0 < np.mean(shares) <= 0.2 + 2 * np.std(shares) / np.sqrt(200)
    assert np.mean(naive) > np.mean(shares)


def test_check_draws__of_a_head_is_random_and_one_from_its_top_is_not():
    refused = 0
    for seed in range(200):
        trust, given, true = score_world(seed)
        verified = head_draw(trust, true, seed)
        refused += check_draws(trust, given, verified, np.ones(120, dtype=bool)).verdict != "ok"
    assert refused <= 6
    top = np.argsort(trust)[:84]
    rest = verified.sample_ids[~verified.backing_mask]
    ids = np.concatenate([top, rest])
    picked = Verified(ids, true[ids], stages=(Stage(np.ones(len(ids), bool), verified.stages[0].zones),))
    assert check_draws(trust, given, picked, np.ones(len(ids), dtype=bool)).verdict == "refused"


def test_calibrate__by_weights_speaks_of_all_labels():
    weighed, plain = [], []
    for seed in range(30):
        trust, _, true = score_world(seed)
        verified = head_draw(trust, true, seed, size=200)
        # Half of the head is wrong and nothing of the rest, and the doubt says nothing: only the share is left.
        is_wrong = verified.backing_mask & (np.arange(200) % 2 == 0)
        doubt = np.full(N, 0.5)
        weighed.append(calibrate(doubt, verified.sample_ids, is_wrong, weights=verified.weights)[0])
        plain.append(calibrate(doubt, verified.sample_ids, is_wrong)[0])
    head = verified.backing_pool.mean()
    assert np.mean(weighed) == pytest.approx(head / 2, abs=0.03)
    assert np.mean(plain) > head / 2 + 0.1


def test_share__of_a_small_set_whose_head_is_all_of_it():
    zones = np.array([0, 0, 0, 1, 1, 1], dtype=np.int8)  # no rest is left for a third zone
    rows = np.ones(6, dtype=bool)
    ids, true = np.arange(6), np.array([1, 1, 1, 0, 0, 0])
    verified = Verified(ids, true, stages=(Stage(rows, zones),))
    found = part_interval(rows, verified, true == 1)
    assert found.estimate == pytest.approx(0.5)
