"""The promise holds over many worlds, breaks when its one condition is broken, and says so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor import calibration
from auditor.calibration import (
    benjamini_hochberg,
    calibrate_error_probability,
    calibrate_suggestions,
    check_exchangeable,
    conformal_p_values,
    guess_error_probability,
    promise,
    promises,
    what_more_buys,
)
from auditor.errors import VerificationError
from auditor.evidence import UNSURE, Verified

N = 2_000


def score_world(seed, rate=0.15, gap=2.0):
    """Trust scores of one world: right labels normal, wrong ones ``gap`` lower; 10 classes."""
    rng = np.random.default_rng(seed)
    true = rng.integers(10, size=N)
    wrong = rng.random(N) < rate
    given_labels = np.where(wrong, (true + 1) % 10, true)
    return rng.normal(size=N) - gap * wrong, given_labels, true


def false_share(flags, given_labels, true):
    return float((given_labels == true)[flags].mean()) if flags.any() else 0.0


def test_promise__false_share_over_200_worlds():
    shares = {q: [] for q in (0.05, 0.1, 0.2)}
    kept = dict.fromkeys(shares, 0)
    for seed in range(200):
        trust, given_labels, true = score_world(seed)
        ids = np.random.default_rng([seed, 1]).permutation(N)[:200]
        for q, found in promises(trust, given_labels, Verified(ids, true[ids]), levels=tuple(shares)).items():
            shares[q].append(false_share(found.flags, given_labels, true))
            kept[q] += found.is_kept
    for q, seen in shares.items():
        assert np.mean(seen) <= q + 2 * np.std(seen) / np.sqrt(len(seen))
    assert kept[0.2] > 150, "a promise that flags nothing would keep anything"
    assert np.mean(shares[0.2]) > 0.1, "the rule wastes most of what it is allowed"


def test_promise__is_conformal_with_benjamini_hochberg():
    trust, given_labels, true = score_world(3)
    ids = np.random.default_rng(0).permutation(N)[:300]
    verified = Verified(ids, true[ids])
    found = promise(trust, given_labels, verified, 0.2)
    right = ids[~verified.is_wrong(given_labels)]
    rest = np.setdiff1d(np.arange(N), ids)
    level = 0.2 * (len(ids) + 1) / (len(right) + 1)
    rejected = benjamini_hochberg(conformal_p_values(-trust[right], -trust[rest]), level)
    assert found.num_flags > 0
    np.testing.assert_array_equal(np.flatnonzero(found.flags), rest[rejected])


def test_promise__trusted_rows_break_it():
    """A trusted row is trained on as right, so it looks less doubtful than its like: the promise fails."""
    honest, broken = [], []
    for seed in range(150):
        trust, given_labels, true = score_world(seed, rate=0.3)
        ids = np.random.default_rng([seed, 1]).permutation(N)[:60]
        trusted = np.arange(60) % 2 == 1
        trust[ids[trusted]] += 1.0
        told = promise(trust, given_labels, Verified(ids, true[ids], trusted=trusted), 0.2)
        honest.append(false_share(told.flags, given_labels, true))
        untold = promise(trust, given_labels, Verified(ids, true[ids]), 0.2)
        broken.append(false_share(untold.flags, given_labels, true))
    standard_error = np.std(broken) / np.sqrt(len(broken))
    assert np.mean(honest) <= 0.2 + 2 * np.std(honest) / np.sqrt(len(honest))
    assert np.mean(broken) > 0.2 + 3 * standard_error


def test_promise__refuses_trusted_rows_as_calibration():
    trust, given_labels, true = score_world(0)
    ids = np.arange(0, N, 10)
    verified = Verified(ids, true[ids], trusted=np.arange(len(ids)) == 3)
    with pytest.raises(VerificationError, match=r"sample 30 was trained on as trusted.*1 such"):
        promise(trust, given_labels, verified, 0.1, calibrating=np.ones(len(ids), dtype=bool))


def test_promise__refuses_rows_from_the_top_of_the_list():
    trust, given_labels, true = score_world(0)
    ids = np.argsort(trust)[:200]
    found = promise(trust, given_labels, Verified(ids, true[ids]), 0.2)
    assert not found.is_kept
    assert not found.flags.any()
    assert "cannot be a random sample: their trust scores differ" in found.sentence


def test_check_exchangeable__finds_one_class_and_one_corner():
    trust, given_labels, _ = score_world(0)
    trust = np.random.default_rng(5).permutation(trust)  # scores say nothing here
    one_class = np.flatnonzero(given_labels == 3)
    assert check_exchangeable(trust, given_labels, one_class).verdict == "refused"
    corner = check_exchangeable(trust, given_labels, np.arange(200))
    assert corner.verdict == "refused"
    assert "crowd together" in corner.sentence


def test_check_exchangeable__rarely_doubts_random_rows():
    trust, given_labels, _ = score_world(0)
    verdicts = [
        check_exchangeable(trust, given_labels, np.random.default_rng(s).permutation(N)[:150]).verdict
        for s in range(300)
    ]
    assert verdicts.count("refused") <= 2
    assert verdicts.count("doubtful") <= 9


def test_promise__without_verified_rows():
    trust, given_labels, _ = score_world(0)
    for verified in (None, Verified(np.array([], dtype=int), np.array([], dtype=int))):
        found = promise(trust, given_labels, verified, 0.1)
        assert not found.flags.any()
        assert "Nothing can be promised without verified rows" in found.sentence


def test_promise__too_few_rows_say_so():
    trust, given_labels, true = score_world(0)
    ids = np.random.default_rng(0).permutation(N)[:20]
    found = promise(trust, given_labels, Verified(ids, true[ids]), 0.05)
    assert not found.is_kept
    assert "Nothing can be promised at 5 %: 20 calibrating rows" in found.sentence


def test_promise__never_flags_verified_or_unlabeled_rows():
    trust, given_labels, true = score_world(1)
    given_labels[:100] = -1
    trust[:100] = np.nan
    ids = 100 + np.random.default_rng(0).permutation(N - 100)[:300]
    found = promise(trust, given_labels, Verified(ids, true[ids]), 0.3)
    assert found.num_flags == found.flags.sum() > 0
    assert not found.flags[ids].any()
    assert not found.flags[:100].any()
    np.testing.assert_array_equal(trust[found.flags] < found.threshold, True)


def test_promise__unsure_rows_make_it_stricter():
    trust, given_labels, true = score_world(1)
    ids = np.random.default_rng(0).permutation(N)[:400]
    labels = true[ids].copy()
    sure = promise(trust, given_labels, Verified(ids, labels), 0.2)
    labels[np.flatnonzero(labels != given_labels[ids])[:15]] = UNSURE
    unsure = promise(trust, given_labels, Verified(ids, labels), 0.2)
    assert unsure.num_flags < sure.num_flags


def test_promise__refuses_percent_for_share():
    trust, given_labels, true = score_world(1)
    with pytest.raises(ValueError, match=r"use 0\.1 for 10 %"):
        promise(trust, given_labels, Verified(np.arange(9), true[:9]), 10)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 0.5), st.booleans())
def test_promise__grows_with_q(seed, q, with_ties):
    trust, given_labels, true = score_world(seed)
    trust = np.round(trust, 1) if with_ties else trust
    ids = np.random.default_rng(seed).permutation(N)[:300]
    found = promises(trust, given_labels, Verified(ids, true[ids]), levels=(q, 1.2 * q))
    assert found[q].num_flags <= found[1.2 * q].num_flags
    for level, one in found.items():
        assert one.num_flags == one.flags.sum()
        assert one.expected_false <= level * one.num_flags + 1e-9


def test_conformal_p_values__by_hand():
    p_values = conformal_p_values(np.array([1.0, 2.0, 3.0]), np.array([0.5, 2.0, 9.0]))
    np.testing.assert_allclose(p_values, [1.0, 3 / 4, 1 / 4])


def test_benjamini_hochberg__by_hand():
    rejected = benjamini_hochberg(np.array([0.04, 0.01, 0.03, 0.9]), 0.06)
    # Steps .015 .03 .045 .06: the third p-value (.04 <= .045) carries all before it.
    assert rejected.tolist() == [True, True, True, False]
    assert not benjamini_hochberg(np.array([0.5, 0.9]), 0.1).any()


def test_what_more_buys__tightens():
    trust, given_labels, true = score_world(2)
    ids = np.random.default_rng(0).permutation(N)[:100]
    verified = Verified(ids, true[ids])
    few, many = (what_more_buys(trust, given_labels, verified, n, q=0.1) for n in (10, 1000))
    assert many.rate_high - many.rate_low < few.rate_high - few.rate_low
    assert many.smallest_share < few.smallest_share
    assert many.chance_of_any >= few.chance_of_any
    assert "1000 more rows" in many.sentence


def test_calibrate_error_probability__is_true_on_average_and_monotone():
    rng = np.random.default_rng(0)
    doubt = (np.arange(5_000) + 0.5) / 5_000
    truth = calibration.guess_error_probability(doubt, 0.2) ** 1.3
    wrong = rng.random(5_000) < truth
    ids = rng.permutation(5_000)[:500]
    fitted = calibrate_error_probability(doubt, ids, wrong[ids])
    assert (np.diff(fitted) >= 0).all()
    assert abs(fitted.mean() - wrong.mean()) < 0.04
    for part in np.split(np.arange(5_000), 5):
        assert abs(fitted[part].mean() - wrong[part].mean()) < 0.08


def test_calibrate_error_probability__few_rows_claim_no_certainty():
    doubt = (np.arange(100) + 0.5) / 100
    one = calibrate_error_probability(doubt, np.array([99]), np.array([True]))
    assert (one <= 1 - 1 / 3).all()
    none_wrong = calibrate_error_probability(doubt, np.arange(0, 100, 5), np.zeros(20, dtype=bool))
    assert 0 < none_wrong.mean() < 0.1


@settings(max_examples=30, deadline=None)
@given(st.floats(0.001, 0.95))
def test_guess_error_probability__has_the_wanted_mean(share):
    doubt = (np.arange(2_000) + 0.5) / 2_000
    curve = guess_error_probability(doubt, share)
    assert curve.mean() == pytest.approx(share, abs=1e-3)
    assert (np.diff(curve) >= 0).all()


def test_calibrate_suggestions__learns_overconfidence():
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.5, 0.99, size=3_000)
    hits = rng.random(3_000) < 0.5 * chance
    ids = np.arange(300)
    fitted = calibrate_suggestions(chance, ids, hits[ids])
    assert abs(fitted[300:].mean() - hits[300:].mean()) < 0.08
    untouched = calibrate_suggestions(chance, np.array([], dtype=int), np.array([], dtype=bool))
    np.testing.assert_allclose(untouched, chance, atol=1e-6)
