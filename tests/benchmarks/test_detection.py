"""The detection benchmark scores a published signal the way its paper reads it, not the way we found it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.detection import published_trust
from engines.registry import ENGINES

VALUES = np.array([0.0, 0.2, 0.9], dtype=np.float32)


@pytest.mark.parametrize(
    ("engine", "signal"),
    [
        ("umn", "epsilon"),
        ("umn", "networks_disagree"),
        ("l2b", "beta"),
        ("l2b", "harmful"),
        ("coteaching", "rejected"),
    ],
)
def test_published_trust__high_was_published_as_suspect(engine: str, signal: str) -> None:
    np.testing.assert_array_equal(published_trust(ENGINES[engine].signals[signal], VALUES), -VALUES)


@pytest.mark.parametrize(
    ("engine", "signal"),
    # The ChoiceNet paper says nothing of π₁ and of ρ of the image as detectors: they stay as they are.
    [("l2b", "alpha"), ("umn", "guider_probability"), ("choicenet", "pi_1"), ("choicenet", "rho_x")],
)
def test_published_trust__clean_or_not_said_stays(engine: str, signal: str) -> None:
    np.testing.assert_array_equal(published_trust(ENGINES[engine].signals[signal], VALUES), VALUES)


def test_as_published__does_not_change_what_people_are_told() -> None:
    epsilon = ENGINES["umn"].signals["epsilon"]
    assert (epsilon.high_means, epsilon.as_published) == ("neither", "suspect")
    readings = {spec.published_high_means for one in ENGINES.values() for spec in one.signals.values()}
    assert readings == {None, "suspect", "clean"}
