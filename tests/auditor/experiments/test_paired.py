"""Paired comparisons: by hand, by simulation, and honest about what cannot be told."""

import numpy as np
import pytest
from scipy import stats

from auditor.experiments.paired import compare_accuracy
from auditor.ground.errors import AuditFailedError


def rights(both, only_first, only_second, neither):
    first = np.repeat([True, True, False, False], [both, only_first, only_second, neither])
    second = np.repeat([True, False, True, False], [both, only_first, only_second, neither])
    return first, second


def test_compare_accuracy__mcnemar_by_hand():
    found = compare_accuracy(*rights(80, 12, 2, 6), names=("l2b", "umn"))
    assert (found.first_value, found.second_value) == (0.92, 0.82)
    assert found.difference == pytest.approx(0.10)
    # Twelve of fourteen differing rows: twice the upper tail of a fair coin.
    assert found.p_value == pytest.approx(2 * stats.binom.sf(11, 14, 0.5))
    assert found.low > 0
    assert found.is_clear
    assert found.sentence.startswith("l2b is better than umn (accuracy 0.920 and 0.820 on the same 100 rows")


def test_compare_accuracy__names_the_better_side_either_way():
    found = compare_accuracy(*rights(80, 2, 12, 6), names=("l2b", "umn"))
    assert found.sentence.startswith("umn is better than l2b")


def test_compare_accuracy__too_small_to_tell():
    found = compare_accuracy(*rights(90, 4, 2, 4))
    assert not found.is_clear
    assert found.low < 0 < found.high
    assert "too small to tell" in found.sentence
    same = compare_accuracy(*rights(50, 0, 0, 50))
    assert (same.difference, same.p_value) == (0.0, 1.0)
    assert same.low < 0 < same.high


def test_compare_accuracy__interval_covers_and_test_rarely_errs():
    rng = np.random.default_rng(0)
    cells = np.array([0.6, 0.1, 0.1, 0.2])
    inside = clear = 0
    for _ in range(400):
        found = compare_accuracy(*rights(*rng.multinomial(150, cells)))
        inside += found.low <= 0 <= found.high
        clear += found.is_clear
    assert inside >= 0.95 * 400 - 2 * np.sqrt(400 * 0.05 * 0.95)
    assert clear <= 0.05 * 400


def test_compare_accuracy__refuses_other_rows():
    with pytest.raises(AuditFailedError, match=r"first has \(2,\) rows, second \(3,\)"):
        compare_accuracy(np.ones(2, bool), np.ones(3, bool))
    with pytest.raises(AuditFailedError, match="no held-out row to compare first and second"):
        compare_accuracy(np.ones(0, bool), np.ones(0, bool))


def test_compare_accuracy__weighs_rows_by_what_they_stand_for():
    """Of the head's rows the second side gains; each row of the rest stands for ten labels, and there it loses."""
    first, second = rights(80, 20, 30, 20)
    weights = np.where(first & ~second, 10.0, 1.0)
    found = compare_accuracy(first, second, weights=weights)
    total = 20 * 10 + 130
    assert found.difference == pytest.approx((200 - 30) / total)
    assert found.first_value == pytest.approx((80 + 200) / total)
    assert found.low > 0
    assert found.is_clear
    plain = compare_accuracy(first, second)
    assert plain.difference < 0
    assert compare_accuracy(first, second, weights=np.full(150, 2.0)) == plain


def test_compare_accuracy__weighted_intervals_cover():
    covered, clear = 0, 0
    rng = np.random.default_rng(0)
    for _ in range(300):
        in_head = np.arange(150) < 100
        helps = rng.random(150) < np.where(in_head, 0.3, 0.1)
        hurts = ~helps & (rng.random(150) < np.where(in_head, 0.2, 0.1 / 0.9))
        weights = np.where(in_head, 0.1, 1.8)  # a tenth of the samples is the head
        found = compare_accuracy(helps, hurts, weights=weights)
        truth = 0.1 * (0.3 - 0.7 * 0.2)
        covered += found.low <= truth <= found.high
        clear += found.is_clear
    assert covered >= 0.93 * 300
    assert clear <= 0.1 * 300
