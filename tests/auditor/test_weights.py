"""Weights without verified rows: agreement by hand, its floor, and what it gains."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor import weights
from auditor.evidence import UNLABELED, Witness
from auditor.trust import combine
from auditor.weights import agreement, unlearned_weights
from tests.auditor.worlds import detection, make_witness, make_world


def sure_of(name: str, classes: list[int], *, num_classes: int = 3) -> Witness:
    """A witness with .9 on one class a row; -1 = no opinion."""
    probs = np.full((len(classes), num_classes), 0.1 / (num_classes - 1), np.float32)
    for row, label in enumerate(classes):
        probs[row, label] = 0.9
        if label < 0:
            probs[row] = np.nan
    return Witness(name, np.arange(len(classes), dtype=np.float32), probs)


def test_agreement__by_hand() -> None:
    #                       all 0   c differs  b silent  unlabeled  only a speaks
    a = sure_of("a", [0, 1, 2, 0, 1])
    b = sure_of("b", [0, 1, -1, 1, -1])
    c = sure_of("c", [0, 2, 2, 2, -1])
    given = np.array([0, 0, 0, UNLABELED, 0])
    # Row 1: a is compared with b and c together, who split evenly; the tie goes to the lower class, 1.
    assert agreement([a, b, c], given).tolist() == [[3, 0], [2, 0], [2, 1]]


def test_agreement__chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world(200, rate=0.2)
    voters = [make_witness(world, name) for name in "abc"]
    whole = agreement(voters, world.given_labels)

    def one_by_one(num_rows: int, _columns: int) -> Iterator[slice]:
        return (slice(row, row + 1) for row in range(num_rows))

    monkeypatch.setattr(weights, "row_chunks", one_by_one)
    np.testing.assert_array_equal(agreement(voters, world.given_labels), whole)
    assert whole.sum(axis=1).tolist() == [200, 200, 200]


def test_unlearned_weights__squared_odds_of_agreeing() -> None:
    # a and b always agree with the rest together, c in 6 of 8 rows.
    a, b = sure_of("a", [0] * 8), sure_of("b", [0] * 8)
    c = sure_of("c", [0] * 6 + [1] * 2)
    found = unlearned_weights([a, b, c], np.zeros(8, int), parted=False)
    odds: NDArray[np.float64] = np.array([9.0, 9.0, 7 / 3]) ** 2
    shares = np.maximum(odds / odds.sum(), 0.5 / 3)
    np.testing.assert_allclose(list(found.weights.values()), shares / shares.sum())
    assert "Weights by agreement" in found.title
    assert "a most, with 43%" in found.why


def test_unlearned_weights__nobody_falls_below_a_third_of_an_equal_share() -> None:
    herd = [sure_of(name, [0] * 50) for name in "abcd"]
    stranger = sure_of("stranger", [1] * 50)
    found = unlearned_weights([*herd, stranger], np.zeros(50, int), parted=False).weights
    assert found["stranger"] >= 1 / 3 / 5
    assert found["a"] > 1 / 5
    assert sum(found.values()) == pytest.approx(1.0)


def test_unlearned_weights__silent_witness_weighs_as_the_others_on_average() -> None:
    voters = [sure_of(name, [0] * 8) for name in "abc"]
    silent = Witness("silent", np.arange(8, dtype=np.float32))
    found = unlearned_weights([*voters, silent], np.zeros(8, int), parted=False).weights
    assert found == pytest.approx(dict.fromkeys(["a", "b", "c", "silent"], 0.25))


@pytest.mark.parametrize("parted", [False, True])
def test_unlearned_weights__two_voters_or_none_weigh_the_same(parted: bool) -> None:
    silent = [Witness(name, np.arange(4, dtype=np.float32)) for name in "ab"]
    assert unlearned_weights(silent, np.zeros(4, int), parted=parted).weights == {"a": 0.5, "b": 0.5}
    voters = [sure_of("a", [0, 1, 2, 0]), sure_of("b", [1, 1, 1, 1])]
    assert unlearned_weights(voters, np.zeros(4, int), parted=False).title == "Equal weights"


def test_combine__agreement_ranks_better_than_equal_weights() -> None:
    gains = []
    for seed in range(10):
        world = make_world(2_000, rate=0.2, seed=seed)
        good = [make_witness(world, name, skill=2.0, seed=seed + k) for k, name in enumerate("abc")]
        dull = make_witness(world, "d", skill=0.7, seed=seed + 9)
        found = unlearned_weights([*good, dull], world.given_labels, parted=False).weights
        assert found["d"] < min(found[name] for name in "abc")
        ranks = combine([*good, dull], world.given_labels, 4).witness_ranks
        weighted = ranks @ np.array(list(found.values()))
        gains.append(detection(world, weighted) - detection(world, ranks.mean(axis=1)))
    assert np.mean(gains) > 0.003
