"""Probabilities are true on average, rise with doubt, and a handful of rows claims nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.statistics.rates.probabilities import calibrate, guess_error_probability


def test_calibrate__is_true_on_average_and_monotone():
    rng = np.random.default_rng(0)
    guessed = guess_error_probability((np.arange(5_000) + 0.5) / 5_000, 0.2)
    wrong = rng.random(5_000) < guessed**1.3
    ids = rng.permutation(5_000)[:500]
    fitted = calibrate(guessed, ids, wrong[ids])
    assert (np.diff(fitted) >= 0).all()
    assert abs(fitted.mean() - wrong.mean()) < 0.04
    for part in np.split(np.arange(5_000), 5):
        assert abs(fitted[part].mean() - wrong[part].mean()) < 0.08


def test_calibrate__few_rows_claim_no_certainty():
    guessed = guess_error_probability((np.arange(100) + 0.5) / 100, 0.2)
    one = calibrate(guessed, np.array([99]), np.array([True]))
    assert (one <= 1 - 1 / 3).all()
    none_wrong = calibrate(guessed, np.arange(0, 100, 5), np.zeros(20, dtype=bool))
    assert 0 < none_wrong.mean() < 0.1


@settings(max_examples=30, deadline=None)
@given(st.floats(0.001, 0.95))
def test_guess_error_probability__has_the_wanted_mean(share):
    doubt = (np.arange(2_000) + 0.5) / 2_000
    curve = guess_error_probability(doubt, share)
    assert curve.mean() == pytest.approx(share, abs=1e-3)
    assert (np.diff(curve) >= 0).all()


def test_calibrate__learns_overconfidence():
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.5, 0.99, size=3_000)
    hits = rng.random(3_000) < 0.5 * chance
    ids = np.arange(300)
    fitted = calibrate(chance, ids, hits[ids])
    assert abs(fitted[300:].mean() - hits[300:].mean()) < 0.08
    untouched = calibrate(chance, np.array([], dtype=int), np.array([], dtype=bool))
    np.testing.assert_allclose(untouched, chance, atol=1e-6)


def test_calibrate__a_few_hits_prove_no_certainty():
    chance = np.full(100, 0.9999)
    found = calibrate(chance, np.arange(40), np.ones(40, dtype=bool))
    assert found.max() <= 1 - 1 / 42
