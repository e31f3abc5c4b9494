"""Intervals cover as often as they say: enumerated where possible, simulated where the order matters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from auditor.ground.wording import percent
from auditor.statistics.rates.intervals import (
    clopper_pearson,
    confidence_sequence,
    hypergeometric_interval,
    rate_interval,
)


def test_clopper_pearson__known_value():
    # Published example of the method: 10 of 20 at 95 %.
    assert clopper_pearson(10, 20) == pytest.approx((0.2720, 0.7280), abs=5e-5)
    assert clopper_pearson(0, 20)[0] == 0.0
    assert clopper_pearson(20, 20)[1] == 1.0


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_clopper_pearson__covers_every_share(level):
    ranges = np.array([clopper_pearson(k, 40, level=level) for k in range(41)])
    for share in np.linspace(0.005, 0.995, 67):
        inside = (ranges[:, 0] <= share) & (share <= ranges[:, 1])
        assert stats.binom.pmf(np.arange(41), 40, share)[inside].sum() >= level


def test_hypergeometric_interval__covers_every_population():
    population, rows, level = 120, 30, 0.9
    ranges = np.array([hypergeometric_interval(k, rows, population, level=level) for k in range(rows + 1)])
    for hits in range(population + 1):
        share = hits / population
        inside = (ranges[:, 0] <= share + 1e-12) & (share - 1e-12 <= ranges[:, 1])
        chance = stats.hypergeom.pmf(np.arange(rows + 1), population, hits, rows)
        assert chance[inside].sum() >= level


def test_hypergeometric_interval__is_a_point_when_all_rows_are_known():
    assert hypergeometric_interval(7, 50, 50) == (7 / 50, 7 / 50)


def test_hypergeometric_interval__is_inside_the_endless_one():
    low, high = hypergeometric_interval(12, 200, 400)
    endless_low, endless_high = clopper_pearson(12, 200)
    assert endless_low < low < 12 / 200 < high < endless_high


def watched_misses(num_paths, interval, looks, population=400, hits=60):
    """Share of drawing orders in which any look's interval loses the true share."""
    rng = np.random.default_rng(1)
    items = np.arange(population) < hits
    known = {}
    missed = 0
    for _ in range(num_paths):
        found = np.cumsum(rng.permutation(items))
        for rows in looks:
            key = (int(found[rows - 1]), rows)
            known.setdefault(key, interval(*key))
            low, high = known[key]
            if not low <= hits / population <= high:
                missed += 1
                break
    return missed / num_paths


LOOKS = range(10, 300, 15)


def test_confidence_sequence__holds_at_every_look():
    def interval(hits, rows):
        return confidence_sequence(hits, rows, population=400, level=0.9)

    assert watched_misses(400, interval, LOOKS) <= 0.1


def test_confidence_sequence__does_what_the_exact_interval_cannot():
    def interval(hits, rows):
        return hypergeometric_interval(hits, rows, 400, level=0.9)

    assert watched_misses(100, interval, LOOKS) > 0.2


def test_confidence_sequence__by_hand():
    # One hit in one row: the mixture gives it 1/2, so every share above .05 / 2 stays.
    assert confidence_sequence(1, 1) == pytest.approx((0.025, 1.0))
    # Drawn from 50 rows, the share is M / 50 and the first M above .025 * 50 is 2.
    assert confidence_sequence(1, 1, population=50) == (2 / 50, 1.0)


def test_confidence_sequence__is_wider_and_shrinks():
    exact, sequence = clopper_pearson(20, 200), confidence_sequence(20, 200)
    assert sequence[0] < exact[0] < 0.1 < exact[1] < sequence[1]
    longer = confidence_sequence(200, 2000)
    assert longer[1] - longer[0] < sequence[1] - sequence[0]
    assert confidence_sequence(0, 0) == (0.0, 1.0)


def test_confidence_sequence__without_replacement_ends_in_a_point():
    assert confidence_sequence(7, 50, population=50) == (7 / 50, 7 / 50)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 200))
def test_rate_interval__holds_the_share_seen(hits, misses, unseen):
    rows = hits + misses
    for watched in (False, True):
        for population in (None, rows + unseen):
            interval = rate_interval(hits, rows, population=population, is_watched=watched)
            assert 0.0 <= interval.low <= interval.high <= 1.0
            assert interval.kind == ("sequence" if watched else "exact")
            if rows and population is None:
                assert interval.low <= interval.point <= interval.high


def test_rate_interval__unsure_rows_only_widen():
    plain, unsure = rate_interval(10, 100), rate_interval(10, 100, num_unsure=5)
    assert unsure.low == plain.low
    assert unsure.high == rate_interval(15, 100).high > plain.high


def test_rate_interval__refuses_impossible_counts():
    with pytest.raises(ValueError, match=r"5 hits among 4 rows"):
        rate_interval(5, 4)
    with pytest.raises(ValueError, match=r"40 rows drawn from 30"):
        rate_interval(5, 40, population=30)


def test_percent__never_rounds_to_certainty():
    assert [percent(x) for x in (0, 0.0001, 0.05, 0.123, 0.997, 1.0)] == [
        "0 %",
        "less than 0.1 %",
        "5 %",
        "12 %",
        "more than 99 %",
        "100 %",
    ]
    assert percent(float("nan")) == "unknown"
