"""Paired comparisons: by hand, by simulation, and honest about what cannot be told."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from auditor.comparing import compare_accuracy, compare_rankings, rank_by_accuracy, rank_by_detection
from auditor.errors import AuditFailedError


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


def ranking_world(seed, gap_first=1.5, gap_second=1.5, size=200):
    rng = np.random.default_rng(seed)
    wrong = np.arange(size) < size // 4
    shared = rng.normal(size=size)
    first = shared + rng.normal(size=size) - gap_first * wrong
    second = shared + rng.normal(size=size) - gap_second * wrong
    return first, second, wrong


def test_compare_rankings__areas_agree_with_sklearn():
    first, second, wrong = ranking_world(0)
    first = np.round(first, 1)  # ties
    found = compare_rankings(first, second, wrong)
    assert found.first_value == pytest.approx(roc_auc_score(wrong, -first))
    assert found.second_value == pytest.approx(roc_auc_score(wrong, -second))


def test_compare_rankings__interval_covers_equal_engines():
    inside = sum(
        found.low <= 0 <= found.high for found in (compare_rankings(*ranking_world(s)) for s in range(300))
    )
    assert inside >= 0.95 * 300 - 2 * np.sqrt(300 * 0.05 * 0.95) - 3


def test_compare_rankings__sees_a_clear_winner_and_identity():
    first, second, wrong = ranking_world(0, gap_first=4.0)
    assert compare_rankings(first, second, wrong, names=("a", "b")).sentence.startswith("a is better than b")
    assert not compare_rankings(first, first, wrong).is_clear


def test_compare_rankings__needs_rows_of_both_kinds():
    with pytest.raises(AuditFailedError, match="3 wrong and 47 right verified rows cannot rank engines"):
        compare_rankings(np.arange(50.0), np.arange(50.0), np.arange(50) < 3)


def test_rank_by_accuracy__best_first_and_corrected():
    labels = np.zeros(400, dtype=int)
    rng = np.random.default_rng(0)
    predicted = {
        name: (rng.random(400) > share).astype(int) for name, share in (("a", 0.6), ("b", 0.9), ("c", 0.88))
    }
    close, far = rank_by_accuracy(predicted, labels)
    assert ({close.first, close.second}, far.second) == ({"b", "c"}, "a")
    assert not close.is_clear
    assert far.is_clear
    with pytest.raises(AuditFailedError, match="needs two engines"):
        rank_by_accuracy({"a": labels}, labels)


def test_rank_by_detection__holm_keeps_ties_ties():
    first, second, wrong = ranking_world(1, gap_first=3.0, gap_second=0.5)
    near, far = rank_by_detection({"weak": second, "strong": first, "twin": first + 1e-9}, wrong)
    assert (far.first, far.second) == (near.first, "weak")
    assert far.is_clear
    assert not near.is_clear
