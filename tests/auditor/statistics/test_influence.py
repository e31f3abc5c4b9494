"""Whether a suggestion in view moves verdicts: exact where chance dealt the looks, silent where nobody can tell."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.statistics.influence import influence


def test_influence__by_hand_and_in_words() -> None:
    found = influence((30, 40), (12, 40))
    assert found is not None
    assert found.p_value < 0.001
    assert found.low > 1
    assert "more labels are found wrong with it" in found.sentence
    assert "30 of 40 looks (75 %), without: 12 of 40 looks (30 %)" in found.sentence
    turned = influence((12, 40), (30, 40))
    assert turned is not None
    assert turned.high == pytest.approx(1 / found.low)
    assert "fewer labels" in turned.sentence
    same = influence((15, 40), (14, 40))
    assert same is not None
    assert same.low < 1 < same.high
    assert "Nothing shows" in same.sentence
    assert influence((19, 19), (20, 40)) is None
    everything = influence((40, 40), (40, 40))
    assert everything is not None
    assert everything.p_value == 1.0
    assert "at least 0" in everything.sentence


def test_influence__without_any_the_test_errs_as_often_as_it_says_and_the_interval_covers() -> None:
    """Chance deals 120 labels of a head, of which 70 look wrong to everybody, to 50 blind and 70 shown looks."""
    early, late, covered = 0, 0, 0
    wrong = np.arange(120) < 70
    for seed in range(400):
        dealt = np.random.default_rng(seed).permutation(wrong)
        found = influence((int(dealt[50:].sum()), 70), (int(dealt[:50].sum()), 50))
        assert found is not None
        early += found.p_value < 0.05
        late += "seems to move" in found.sentence
        covered += found.low <= 1 <= found.high
    assert early <= 0.05 * 400 + 2 * np.sqrt(400 * 0.05 * 0.95)
    assert late <= 0.01 * 400 + 2 * np.sqrt(400 * 0.01 * 0.99)
    assert covered >= 0.95 * 400 - 2 * np.sqrt(400 * 0.05 * 0.95)
