"""How much each engine contradicts, counted by hand."""

from __future__ import annotations

import numpy as np

from app.panels import engines_ran


def test_contradictions__counts_shares_of_the_labeled_and_what_people_checked() -> None:
    given = np.array([0, 0, 1, 1, -1])
    predicted = {"one": np.array([1, 0, 0, 1, 1]), "other": np.array([1, 0, 1, 0, 0])}
    right, wrong = np.zeros(5, bool), np.zeros(5, bool)
    wrong[[0, 1]], right[3] = True, True
    found = engines_ran.contradictions(predicted, given, right, wrong)
    assert found == {"one": (0.5, 1, 1), "other": (0.5, 1, 2)}
