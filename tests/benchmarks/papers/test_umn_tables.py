"""The published ways to call a label wrong by ε."""

from __future__ import annotations

import numpy as np

from benchmarks.papers.umn_tables import flag_by_mixture, flag_by_threshold, identify


def test_flag_rules__by_hand() -> None:
    assert flag_by_threshold([0.04, 0.06, np.nan]).tolist() == [False, True, False]
    two_modes = np.array([1e-5, 2e-5, 1.5e-5, 1e-5, 0.3, 0.4, np.nan])
    assert flag_by_mixture(two_modes).tolist() == [False] * 4 + [True] * 2 + [False]


def test_identify__names_every_rule() -> None:
    signals = {
        "epsilon": np.array([1e-5, 1e-5, 0.4], dtype=np.float32),
        "networks_disagree": np.array([0, 1, np.nan], dtype=np.float32),
    }
    found = identify(signals, np.array([0.0, 0.2, 0.3], dtype=np.float32))
    assert found["final_argmax"].tolist() == [False, True, False]
    assert found["final_threshold"].tolist() == [False, True, True]
    assert found["gmm"].tolist() == [False, False, True]
