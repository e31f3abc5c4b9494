"""Votes of neighbours against a literal count, and on clusters with planted errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.metrics import auroc
from engines.neighbours.search import nearest, unit_rows
from engines.neighbours.votes import confirming_size, neighbour_probs


def clusters(
    num_rows: int, num_classes: int, seed: int, spread: float = 0.7
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(num_classes, 16))
    truth = rng.integers(0, num_classes, num_rows)
    rows = centres[truth] + spread * rng.normal(size=(num_rows, 16))
    return unit_rows(rows.astype(np.float32)), truth


def literal_confirming_size(neighbours: list[int], own: int, labels: list[int], num_classes: int) -> int:
    for size in range(11, len(neighbours) + 1, 2):
        votes = [0] * num_classes
        for neighbour in neighbours[:size]:
            if labels[neighbour] >= 0:
                votes[labels[neighbour]] += 1
        if own >= 0 and votes[own] > 0 and votes[own] == max(votes):
            return size
    return len(neighbours)


def literal_probs(
    neighbours: NDArray[np.int64], labels: NDArray[np.int64], num_classes: int
) -> NDArray[np.float64]:
    sizes = [
        literal_confirming_size(list(near), labels[row], list(labels), num_classes)
        for row, near in enumerate(neighbours)
    ]
    given = [1.0 + sum(label == each for label in labels) for each in range(num_classes)]
    typical = sum(1 / size for size in sizes) / len(sizes)
    found = []
    for near in neighbours:
        votes = [typical * share / sum(given) for share in given]
        for neighbour in near[: sizes[near[0]]]:
            if labels[neighbour] >= 0:
                votes[labels[neighbour]] += 1 / sizes[neighbour]
        found.append([vote / sum(votes) for vote in votes])
    return np.array(found)


def test_confirming_size__nobody_votes_confirms_nothing() -> None:
    near = np.array([[(row + step) % 16 for step in range(1, 14)] for row in range(16)])
    labels = np.where(np.arange(16) == 0, 0, -1)
    assert confirming_size(near, labels, 2).tolist() == [13] * 16


def test_neighbour_probs__equal_the_literal_count() -> None:
    rows, labels = clusters(200, 3, seed=0, spread=1.5)
    labels = np.where(np.random.default_rng(1).random(200) < 0.3, (labels + 1) % 3, labels)
    labels[::17] = -1
    near, similar = nearest(rows, 31)
    sizes = [literal_confirming_size(list(n), labels[i], list(labels), 3) for i, n in enumerate(near)]
    assert len(set(sizes)) > 3, "the example must hold several sizes"
    assert confirming_size(near, labels, 3).tolist() == sizes
    np.testing.assert_allclose(
        neighbour_probs(near, similar, labels, 3), literal_probs(near, labels, 3), rtol=1e-5
    )


def test_neighbour_probs__a_rows_own_label_has_no_vote() -> None:
    rows, labels = clusters(300, 3, seed=2)
    near, similar = nearest(rows, 31)
    before = neighbour_probs(near, similar, labels, 3)
    changed = labels.copy()
    row = 5
    changed[row] = (changed[row] + 1) % 3
    after = neighbour_probs(near, similar, changed, 3)
    # Only the prior (one label of 300) and the size of the neighbourhoods that it leads move.
    assert np.abs(after[row] - before[row]).max() < 0.01
    assert after[row].argmax() == labels[row]


@pytest.mark.parametrize("seed", [0, 1])
def test_neighbour_probs__find_planted_errors(seed: int) -> None:
    rows, truth = clusters(1_500, 5, seed)
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(len(truth)) < 0.2, rng.integers(0, 5, len(truth)), truth)
    near, similar = nearest(rows, 51)
    probs = neighbour_probs(near, similar, labels, 5)
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-5)
    assert auroc(labels != truth, 1 - probs[np.arange(len(labels)), labels]) > 0.97
