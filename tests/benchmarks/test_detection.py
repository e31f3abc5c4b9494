"""The detection benchmark scores a published signal the way its paper reads it, not the way we found it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.detection import PUBLISHED_READINGS, published_trust, setting
from benchmarks.detection_report import tables_of
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
    np.testing.assert_array_equal(published_trust(engine, signal, VALUES), -VALUES)


@pytest.mark.parametrize(
    ("engine", "signal"),
    # The ChoiceNet paper says nothing of π₁ and of ρ of the image as detectors: they stay as they are.
    [("l2b", "alpha"), ("umn", "guider_probability"), ("choicenet", "pi_1"), ("choicenet", "rho_x")],
)
def test_published_trust__clean_or_not_said_stays(engine: str, signal: str) -> None:
    np.testing.assert_array_equal(published_trust(engine, signal, VALUES), VALUES)


def test_published_trust__does_not_change_what_people_are_told() -> None:
    assert {ENGINES[engine].signals[signal].high_means for engine, signal in PUBLISHED_READINGS} == {
        "neither"
    }


def test_table__networks_are_not_averaged_together() -> None:
    key = {network: setting("mnist-sym20", 10_000, 10, network) for network in ("mlp", "conv3", "conv4")}
    assert key == {
        "mlp": "mnist-sym20|10000|10",
        "conv3": "mnist-sym20|10000|10",
        "conv4": "mnist-sym20|10000|10|conv4",
    }
    told = {"problem": "mnist-sym20", "rows": 10_000, "epochs": 10}
    stored = {
        "cells": {"a": told | {"network": "mlp"}, "b": told | {"network": "conv4"}},
    }
    tables = tables_of(stored)
    assert [table.network for table in tables] == ["conv4", "mlp"]
    for table in tables:
        assert [cell["network"] for cell in table.cells(stored)] == [table.network]
