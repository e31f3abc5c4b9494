"""Smoothness of predictions in feature space: by hand, beyond chance, and where it must say nothing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.statistics import smoothness as module
from auditor.statistics.smoothness import smoothness
from auditor.statistics.weights import weightings
from auditor.statistics.witnesses import Witness


def witness(probs: NDArray[np.floating], name: str = "w") -> Witness:
    return Witness(name, np.arange(len(probs), dtype=np.float32), probs.astype(np.float32))


def blobs(num: int = 900, classes: int = 3) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Labels in equal parts, and four neighbours of the same class for each row."""
    labels = np.arange(num) % classes
    steps = classes * np.array([1, 2, 3, 4])
    return labels, (np.arange(num)[:, None] + steps) % num


def sure(labels: NDArray[np.int64], classes: int = 3, share: float = 0.9) -> NDArray[np.float64]:
    probs = np.full((len(labels), classes), (1 - share) / (classes - 1))
    probs[np.arange(len(labels)), labels] = share
    return probs


def test_smoothness__by_hand() -> None:
    labels, near = blobs()
    # Neighbours give the class .9, everybody a third.
    expected = 1 - np.log(0.9) / np.log(1 / 3)
    assert smoothness(witness(sure(labels)), near) == pytest.approx(expected, rel=1e-5)


def test_smoothness__says_nothing_of_a_constant_or_random_prediction() -> None:
    labels, near = blobs()
    assert smoothness(witness(sure(np.zeros_like(labels))), near) == pytest.approx(0.0, abs=1e-6)
    assert smoothness(witness(sure(np.zeros_like(labels), share=1.0)), near) == 0.0
    at_random = np.random.default_rng(0).integers(3, size=len(labels))
    assert smoothness(witness(sure(at_random)), near) < 0.05
    assert smoothness(witness(np.ones((900, 1))), near) == 0.0


def test_smoothness__memorised_labels_are_less_smooth() -> None:
    labels, near = blobs()
    parrot = np.where(np.arange(900) % 5 == 0, (labels + 1) % 3, labels)
    assert smoothness(witness(sure(parrot)), near) < smoothness(witness(sure(labels)), near) - 0.1


def test_smoothness__silent_rows_and_missing_neighbours_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    labels, near = blobs()
    whole = smoothness(witness(sure(labels)), near)
    probs = sure(labels)
    probs[::9] = np.nan
    near = near.copy()
    near[1::7, 2:] = -1
    near[4] = -1
    assert smoothness(witness(probs), near) == pytest.approx(whole, rel=0.02)
    monkeypatch.setattr(module, "BLOCK", 64)
    assert smoothness(witness(probs), near) == pytest.approx(whole, rel=0.02)
    assert smoothness(witness(np.full((900, 3), np.nan)), near) == 0.0


def test_weightings__smoothness_prefers_what_things_that_look_alike_share() -> None:
    labels, near = blobs()
    rng = np.random.default_rng(0)
    given = np.where(rng.random(900) < 0.3, (labels + 1) % 3, labels)
    candidates = weightings(
        [witness(sure(labels), "learned"), witness(sure(given), "parrot")],
        given,
        parted=True,
        noise_rate=0.3,
        neighbours=near,
    )
    names = [one.name for one in candidates]
    assert names[:3] == ["agreement", "smoothness", "equal"]
    assert "learned alone" in names
    assert candidates[1].weights["learned"] > 0.95
    assert all(sum(one.weights.values()) == pytest.approx(1.0) for one in candidates)


def test_weightings__a_witness_whose_classes_lost_their_names_counts_nothing_by_smoothness() -> None:
    labels, near = blobs()
    rng = np.random.default_rng(0)
    given = np.where(rng.random(900) < 0.2, (labels + 1) % 3, labels)
    fair = np.where(rng.random(900) < 0.1, rng.integers(3, size=900), labels)
    exchanged = (labels + 1) % 3
    candidates = weightings(
        [witness(sure(fair), "fair"), witness(sure(exchanged), "exchanged")],
        given,
        parted=True,
        noise_rate=0.2,
        neighbours=near,
    )
    assert smoothness(witness(sure(exchanged)), near) > smoothness(witness(sure(fair)), near)
    assert candidates[1].weights == {"fair": 1.0, "exchanged": 0.0}
