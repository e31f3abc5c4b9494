"""Intervals cover as often as they say: enumerated where possible, simulated where the order matters."""

import numpy as np
import pytest
from scipy import stats

from auditor.ground.wording import percent
from auditor.statistics.rates.intervals import (
    confidence_sequence,
    hypergeometric_interval,
)


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
        return confidence_sequence(hits, rows, 400, level=0.9)

    assert watched_misses(400, interval, LOOKS) <= 0.1


def test_confidence_sequence__does_what_the_exact_interval_cannot():
    def interval(hits, rows):
        return hypergeometric_interval(hits, rows, 400, level=0.9)

    assert watched_misses(100, interval, LOOKS) > 0.2


def test_confidence_sequence__by_hand():
    # One hit in one row: the mixture gives it 1/2, so every share above .05 / 2 stays: M / 50 from M = 2.
    assert confidence_sequence(1, 1, 50) == (2 / 50, 1.0)


def test_confidence_sequence__is_wider_and_shrinks():
    exact, sequence = hypergeometric_interval(20, 200, 4_000), confidence_sequence(20, 200, 4_000)
    assert sequence[0] < exact[0] < 0.1 < exact[1] < sequence[1]
    longer = confidence_sequence(200, 2000, 4_000)
    assert longer[1] - longer[0] < sequence[1] - sequence[0]
    assert confidence_sequence(0, 0, 4_000) == hypergeometric_interval(0, 0, 4_000) == (0.0, 1.0)


def test_confidence_sequence__without_replacement_ends_in_a_point():
    assert confidence_sequence(7, 50, 50) == (7 / 50, 7 / 50)


@pytest.mark.parametrize("of", [hypergeometric_interval, confidence_sequence])
def test_intervals__refuse_impossible_counts(of):
    with pytest.raises(ValueError, match=r"5 hits among 4 rows"):
        of(5, 4, 10)
    with pytest.raises(ValueError, match=r"40 rows drawn from 30"):
        of(5, 40, 30)


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
