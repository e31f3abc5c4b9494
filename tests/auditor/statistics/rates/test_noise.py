"""Statements about the whole data set: rates, what is left, pairs and classes nobody can judge."""

import numpy as np
import pytest

from auditor.statistics import Stage, part_intervals
from auditor.statistics.rates.noise import (
    NoiseRate,
    class_reports,
    errors_left,
    noise_rate_from_verified,
)
from auditor.statistics.rates.promises import what_more_buys
from auditor.statistics.rates.verified import NO_CLASS, UNSURE, Decided, Verified
from tests.auditor.statistics.worlds import make_world

NAMES = ["cat", "dog", "owl"]


def test_noise_rate_from_verified__covers_over_300_draws():
    world = make_world(1_000, rate=0.12)
    inside = 0
    for seed in range(300):
        found = noise_rate_from_verified(world.given_labels, world.verify(80, seed))
        inside += found.low <= 0.12 <= found.high
    assert inside >= 0.95 * 300 - 2 * np.sqrt(300 * 0.05 * 0.95)


def test_noise_rate_from_verified__counts_no_class_as_wrong_and_unsure_as_either():
    given = np.zeros(100, dtype=int)
    labels = np.array([0] * 16 + [1, NO_CLASS, UNSURE, UNSURE])
    found = noise_rate_from_verified(given, Verified(np.arange(20), labels))
    assert found.point == pytest.approx(2 / 18)
    assert "2 of 20 labels checked at random are wrong, 2 unsure" in found.sentence
    assert "exact for a sample size fixed beforehand" in found.sentence
    watched = noise_rate_from_verified(given, Verified(np.arange(20), labels, is_watched=True))
    assert watched.low <= found.low
    assert watched.high >= found.high
    assert "valid at every size while you watch" in watched.sentence


def test_noise_rate_from_verified__obeys_arithmetic_after_each_of_sixty_looks():
    """341 labels, 41 of them wrong; people had found 16 of these and 4 right ones; the first 20 drawn are right."""
    true, given = (np.arange(341) < 41).astype(int), np.zeros(341, dtype=int)
    decided = Decided(np.array([*range(16), 100, 101, 102, 103]), np.arange(20) < 16)
    drawn = np.array([*range(200, 220), 20, 21, 22, *range(220, 257)])
    low, high = 16 / 341, 337 / 341
    for num in range(1, 61):
        ids = drawn[:num]
        verified = Verified(ids, true[ids], is_watched=num < 60, num_waiting=60 - num, decided=decided)
        found = noise_rate_from_verified(given, verified)
        num_wrong = 16 + int(true[ids].sum())
        assert low <= found.low <= 41 / 341 <= found.high <= high  # within the last one, and never wider
        assert num_wrong / 341 <= found.low
        assert found.high <= (341 - (num + 20 - num_wrong)) / 341
        low, high = found.low, found.high
        more = what_more_buys(given, verified, 200)
        assert low <= more.rate_low <= more.rate_high <= high
    assert high < 0.18  # the exact one, once the draw is judged to its end
    everything = np.setdiff1d(np.arange(341), decided.sample_ids)
    found = noise_rate_from_verified(given, Verified(everything, true[everything], decided=decided))
    assert (found.low, found.high) == (pytest.approx(41 / 341), pytest.approx(41 / 341))
    # What people find after the draw counts too.
    stage = Stage(np.ones(20, dtype=bool), np.zeros(341, dtype=np.int8))
    later = Verified(drawn[:20], true[drawn[:20]], stages=(stage,), decided=decided)
    assert noise_rate_from_verified(given, later).low == pytest.approx(16 / 341)


def test_noise_rate_from_verified__the_first_verdicts_do_not_throw_the_point_over():
    given = np.zeros(1_000, dtype=int)
    guess = NoiseRate(0.05, 0.09, 0.2, "guess", "")
    one_right = noise_rate_from_verified(given, Verified(np.arange(1), np.array([0])), guess)
    one_wrong = noise_rate_from_verified(given, Verified(np.arange(1), np.array([1])), guess)
    assert one_right.point == pytest.approx(0.09 * 20 / 21)
    assert one_wrong.point == pytest.approx((1 + 0.09 * 20) / 21)
    assert one_right.high > 0.9
    unsure = noise_rate_from_verified(given, Verified(np.arange(60), np.full(60, UNSURE)), guess)
    assert unsure.point == pytest.approx(0.09)
    many = np.arange(500)
    told = noise_rate_from_verified(given, Verified(many, (many % 10 < 3).astype(int)), guess)
    assert told.point == pytest.approx(0.3, abs=0.01)
    # Where the rows leave no room for the guess, it gives way.
    clean = noise_rate_from_verified(given, Verified(np.arange(900), np.zeros(900, dtype=int)), guess)
    assert clean.point == clean.high < 0.002


def rate_between(low, point, high, kind="interval"):
    return NoiseRate(low, point, high, kind, "")


def test_errors_left__subtracts_what_was_found():
    left = errors_left(rate_between(0.08, 0.1, 0.13), 1_000, num_found_wrong=60, num_found_right=40)
    assert (left.found, left.low, left.point, left.high) == (60, 20, 40, 70)
    assert left.sentence == "60 wrong labels found so far; about 40 are left (20 to 70)."


def test_errors_left__verdicts_bound_the_interval():
    left = errors_left(rate_between(0.08, 0.1, 0.13), 1_000, num_found_wrong=120, num_found_right=875)
    assert (left.low, left.point, left.high) == (0, 0, 5)
    done = errors_left(rate_between(0.0, 0.1, 1.0, "guess"), 50, num_found_wrong=20, num_found_right=30)
    assert (done.low, done.high) == (0, 0)
    assert done.sentence == "20 wrong labels found so far; every label in question is checked."
    open_guess = errors_left(rate_between(0.0, 0.1, 1.0, "guess"), 50, num_found_wrong=2, num_found_right=0)
    assert open_guess.sentence.endswith("how many are left is not known (guesses say 0 to 48).")


def test_errors_left__covers_whatever_was_reviewed():
    inside = 0
    for seed in range(200):
        world = make_world(800, rate=0.15, seed=seed)
        verified = world.verify(100, seed)
        reviewed = np.zeros(800, dtype=bool)
        reviewed[verified.sample_ids] = True
        reviewed[np.flatnonzero(world.is_wrong)[:70]] = True
        found, right = (world.is_wrong & reviewed).sum(), (~world.is_wrong & reviewed).sum()
        rate = noise_rate_from_verified(world.given_labels, verified)
        left = errors_left(rate, 800, num_found_wrong=int(found), num_found_right=int(right))
        inside += left.low <= world.is_wrong.sum() - found <= left.high
    assert inside >= 0.95 * 200 - 2 * np.sqrt(200 * 0.05 * 0.95)


def test_class_reports__verified_rows_show_a_swap_that_the_networks_learned():
    true = np.repeat([0, 1, 2], 200)
    given = np.array([1, 0, 2])[true]
    doubtful = np.zeros(600, dtype=bool)
    ids = np.random.default_rng(0).permutation(600)[:150]
    verified = Verified(ids, true[ids])
    intervals = part_intervals(given, verified, verified.is_wrong(given), 3)
    reports = class_reports(given, np.zeros(600), doubtful, 3, intervals=intervals)
    assert [one.cannot_be_judged for one in reports] == [True, True, False]
    assert "verified labels are wrong" in reports[0].why


def test_class_reports__says_what_cannot_be_judged():
    given = np.repeat([0, 1, 2], [100, 100, 9])
    suggested = np.where(np.arange(209) % 4 == 0, 1 - np.minimum(given, 1), given)
    suggested[given == 2] = 2
    doubtful = suggested != given
    reports = class_reports(given, np.full(209, 0.1), doubtful, 3)
    assert [report.cannot_be_judged for report in reports] == [False, False, True]
    assert "only 9 samples carry this label" in reports[2].why
    assert reports[0].expected_wrong == pytest.approx(10.0)


def test_class_reports__a_doubtful_class_and_a_sound_one():
    given = np.repeat([0, 1], 50)
    doubtful = np.arange(100) < 30
    ids = np.arange(0, 100, 10)
    intervals = part_intervals(given, Verified(ids, given[ids]), doubtful[ids], 3)
    first, second, third = class_reports(given, np.full(100, np.nan), doubtful, 3, intervals=intervals)
    assert "the engines doubt 60 % of its labels" in first.why
    assert (second.cannot_be_judged, second.why) == (False, "")
    assert (first.interval.num_hits, second.interval.num_hits) == (3, 0)
    assert third.interval is None
