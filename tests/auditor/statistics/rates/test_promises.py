"""The promise holds over many worlds, breaks when its one condition is broken, and says so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.statistics.rates.noise import noise_rate_from_verified
from auditor.statistics.rates.promises import check_exchangeable, promise, promises, what_more_buys
from auditor.statistics.rates.verified import UNSURE, Decided, Verified

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


def conformal_p_values(right_doubt, doubt):
    """(1 + right rows at least as doubtful) / (n + 1) for every doubt (Vovk; Bates et al. 2023), one by one."""
    return np.array([(1 + np.count_nonzero(right_doubt >= each)) / (len(right_doubt) + 1) for each in doubt])


def benjamini_hochberg(p_values, level):
    """The rejections of the step-up procedure at ``level`` (Benjamini and Hochberg 1995)."""
    ordered = np.sort(p_values)
    passes = np.flatnonzero(ordered <= level * np.arange(1, len(ordered) + 1) / len(ordered))
    return p_values <= ordered[passes[-1]]


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
    assert "close together" in corner.sentence


def test_check_exchangeable__rarely_doubts_random_rows():
    trust, given_labels, _ = score_world(0)
    verdicts = [
        check_exchangeable(trust, given_labels, np.random.default_rng(s).permutation(N)[:150]).verdict
        for s in range(300)
    ]
    assert verdicts.count("refused") <= 2
    assert verdicts.count("doubtful") <= 9


def test_check_exchangeable__ties_do_not_make_random_rows_suspect():
    trust, given_labels, _ = score_world(0)
    trust[: N // 2] = 0.5  # half of all rows share one score
    for seed in range(50):
        ids = np.random.default_rng(seed).permutation(N)[:200]
        assert check_exchangeable(trust, given_labels, ids).verdict != "refused"
    assert check_exchangeable(trust, given_labels, np.argsort(trust)[:100]).verdict == "refused"


def reviewed_and_trained_again(seed, *, verified=400, reviewed=300):
    """A second audit: the top of the first list was settled, and settled labels look right from now on."""
    trust, given_labels, _ = score_world(seed, rate=0.2)
    ids = np.random.default_rng([seed, 1]).permutation(N)[:verified]
    top = np.setdiff1d(np.argsort(trust)[:reviewed], ids)
    settled = np.zeros(N, dtype=bool)
    settled[top] = True
    return np.where(settled, 5.0, trust), given_labels, ids, settled


def test_check_exchangeable__what_a_review_changed_does_not_speak_against_the_draw():
    refused_all = 0
    for seed in range(50):
        trust, given_labels, ids, settled = reviewed_and_trained_again(seed)
        check = check_exchangeable(trust, given_labels, ids, treated=settled)
        assert check.verdict == "ok", check.sentence
        refused_all += check_exchangeable(trust, given_labels, ids).verdict == "refused"
        from_the_top = np.argsort(np.where(settled, np.inf, trust))[:100]
        assert check_exchangeable(trust, given_labels, from_the_top, treated=settled).verdict == "refused"
    assert refused_all > 10, "without knowing what was treated, honest draws are refused"


def test_promise__changes_count_wrong_suggestions_as_false():
    about_flags, about_changes, kept = [], [], 0
    for seed in range(150):
        trust, given_labels, true = score_world(seed, rate=0.3, gap=3.0)
        rng = np.random.default_rng([seed, 2])
        suggested = np.where((rng.random(N) < 0.8) & (given_labels != true), true, (true + 5) % 10)
        ids = rng.permutation(N)[:300]
        verified = Verified(ids, true[ids])
        for found, options in ((about_flags, {}), (about_changes, {"suggested_labels": suggested})):
            told = promise(trust, given_labels, verified, 0.25, **options)
            wrong_change = (suggested != true)[told.flags]
            found.append(wrong_change.mean() if told.flags.any() else 0.0)
        kept += told.is_kept
        assert not told.flags[suggested == given_labels].any()
        assert not told.is_kept or "can be changed" in told.sentence
    assert np.mean(about_changes) <= 0.25 + 2 * np.std(about_changes) / np.sqrt(150)
    assert kept > 100
    assert np.mean(about_flags) > 0.25, "a promise about flags alone is none about changes"


def test_promise__with_every_row_verified_says_so():
    trust, given_labels, true = score_world(0)
    told = promise(trust, given_labels, Verified(np.arange(N), true), 0.2)
    assert "Every label is checked" in told.sentence


def test_promise__without_verified_rows():
    trust, given_labels, _ = score_world(0)
    for verified in (None, Verified(np.array([], dtype=int), np.array([], dtype=int))):
        found = promise(trust, given_labels, verified, 0.1)
        assert not found.flags.any()
        assert "Nothing can be promised yet" in found.sentence


def test_promise__too_few_rows_say_so():
    trust, given_labels, true = score_world(0)
    ids = np.random.default_rng(0).permutation(N)[:20]
    found = promise(trust, given_labels, Verified(ids, true[ids]), 0.05)
    assert not found.is_kept
    assert "Nothing can be promised at 5 %: with 20 labels checked at random" in found.sentence


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


def first_kept(trust, given_labels, true, order, q):
    """Look after every ten rows, and take the first list that is promised."""
    for size in range(10, 201, 10):
        ids = order[:size]
        found = promise(trust, given_labels, Verified(ids, true[ids]), q)
        if found.is_kept:
            break
    return found


def test_promise__a_list_taken_as_soon_as_it_looks_good_breaks_it():
    shares = []
    for seed in range(100):
        trust, given_labels, true = score_world(seed, rate=0.3, gap=1.0)
        order = np.random.default_rng([seed, 1]).permutation(N)
        shares.append(
            false_share(first_kept(trust, given_labels, true, order, 0.2).flags, given_labels, true)
        )
    assert np.mean(shares) > 0.2 + 3 * np.std(shares) / np.sqrt(len(shares))


def test_promise__rests_on_a_draw_that_is_judged_to_its_end():
    trust, given_labels, true = score_world(0, rate=0.3)
    ids = np.random.default_rng(1).permutation(N)[:300]
    none = Verified(ids, true[ids], backing=np.zeros(300, dtype=bool), num_waiting=12)
    told = promise(trust, given_labels, none, 0.2)
    assert not told.is_kept
    assert "is checked (12 of its rows wait" in told.sentence
    first = Verified(ids, true[ids], backing=np.arange(300) < 200)
    told = promise(trust, given_labels, first, 0.2)
    assert "200 labels were checked at random" in told.sentence
    assert not told.flags[ids].any()


def test_promise__of_every_further_draw_holds_for_itself():
    """Who sees nothing draws twice as many, until something is promised: each of the lists keeps its rate."""
    shares = {100: [], 200: [], 400: []}
    for seed in range(300):
        trust, given_labels, true = score_world(seed, rate=0.1)
        order, start = np.random.default_rng([seed, 1]).permutation(N), 0
        for size, found in shares.items():
            ids = order[: start + size]
            backing = np.arange(len(ids)) >= start
            told = promise(trust, given_labels, Verified(ids, true[ids], backing=backing), 0.2)
            found.append(false_share(told.flags, given_labels, true))
            start += size
            if told.is_kept:
                break
    assert 40 < len(shares[400]) < len(shares[200]) < 300
    for found in shares.values():
        assert np.mean(found) <= 0.2 + 2 * np.std(found) / np.sqrt(len(found))


def test_what_more_buys__tightens_and_is_never_wider_than_today():
    _, given, true = score_world(2)
    ids = np.random.default_rng(0).permutation(N)
    for size in (20, 60, 250):
        seen = Verified(ids[:size], true[ids[:size]])
        now = noise_rate_from_verified(given, seen)
        more = [what_more_buys(given, seen, num) for num in (10, 100, 1000)]
        spans = [now.high - now.low, *(one.rate_high - one.rate_low for one in more)]
        assert spans == sorted(spans, reverse=True)
        assert now.low <= more[0].rate_low <= more[0].rate_high <= now.high
        assert spans[-1] < spans[0]
        assert "1,000 more pictures checked at random should narrow" in more[-1].sentence


def test_what_more_buys__drawn_labels_that_were_decided_meanwhile_still_wait():
    given = np.arange(12) % 3
    nothing = np.zeros(0, dtype=np.int64)
    decided = Decided(np.array([4]), np.array([True]))
    more = what_more_buys(given, Verified(nothing, nothing, num_waiting=12, decided=decided), 20)
    assert more.num_more == 12
    assert 0.0 <= more.rate_low <= more.rate_high <= 1.0


def test_what_more_buys__rows_that_wait_come_first_and_their_end_is_forecast_as_it_comes():
    _, given, true = score_world(2)
    ids = np.random.default_rng(0).permutation(N)[:250]
    verdicts = true[ids].copy()
    verdicts[::5] = UNSURE
    told = what_more_buys(
        given, Verified(ids[:200], verdicts[:200], is_watched=True, num_waiting=50), num_more=7
    )
    end = noise_rate_from_verified(given, Verified(ids, verdicts))
    assert told.num_more == 50
    assert (told.rate_low, told.rate_high) == pytest.approx((end.low, end.high), abs=0.03)


def test_what_more_buys__before_the_first_and_after_the_last_row():
    _, given, true = score_world(2)
    none = Verified(np.array([], dtype=int), np.array([], dtype=int))
    first = what_more_buys(given, none, 100)
    assert 0.05 < (first.rate_high - first.rate_low) / 2 < 0.2
    assert "to within" in first.sentence
    last = what_more_buys(given, Verified(np.arange(N), true), 100)
    assert (last.num_more, last.rate_low) == (0, last.rate_high)
    assert "Every label is checked" in last.sentence
    rest = what_more_buys(given, Verified(np.arange(N - 30), true[:-30]), 100)
    assert rest.num_more == 30
