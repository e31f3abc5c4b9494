"""Confusions of classes: Bayes by hand, T against a slow reference and a known truth, and what it finds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.statistics import confusions as module
from auditor.statistics import witnesses as evidence
from auditor.statistics.confusions import (
    Confusions,
    by_confusions,
    direction,
    entropy_of_even_draws,
    fit_confusions,
    weights_of_mean,
)
from auditor.statistics.consensus import combine, weighted_trust
from auditor.statistics.weights import Weighting
from auditor.statistics.witnesses import UNLABELED, Witness, mean_predictions
from tests.auditor.statistics.worlds import World, detection, make_witness

ONE = {"a": 1.0}


def pair_world(num_samples: int = 3_000, num_classes: int = 5, rate: float = 0.3, seed: int = 0) -> World:
    """Every class is given for the next one at ``rate``."""
    rng = np.random.default_rng(seed)
    true = rng.integers(num_classes, size=num_samples)
    wrong = rng.random(num_samples) < rate
    return World(true, np.where(wrong, (true + 1) % num_classes, true), num_classes)


def saying(probs: NDArray[np.floating], name: str = "a") -> Witness:
    """A witness that predicts ``probs``; it ranks nothing."""
    return Witness(name, np.zeros(len(probs)), np.asarray(probs, dtype=np.float32))


def test_by_confusions__is_bayes_rule_row_by_row() -> None:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), size=50)
    given = rng.integers(-1, 4, size=50)
    probs[7] = np.nan
    transition = rng.dirichlet(np.ones(4), size=4)
    for towards in (0.0, 0.3, 1.0):  # the power is 1/2, .6 and 1
        known = Confusions(transition, towards, ONE)
        found = by_confusions([saying(probs)], given, known)
        for row in range(50):
            if row == 7:
                assert np.isnan(found.margin[row])
                assert found.other_label[row] == -1
                continue
            posterior = probs[row].astype(np.float32).astype(float)
            if given[row] != UNLABELED:
                posterior = posterior * transition[:, given[row]] ** known.power
            posterior = posterior / posterior.sum()
            others = [one for one in range(4) if one != given[row]]
            best = max(others, key=posterior.__getitem__)
            assert found.other_label[row] == best
            assert found.other_probability[row] == pytest.approx(posterior[best], rel=1e-5)
            if given[row] == UNLABELED:
                assert np.isnan(found.margin[row])
                assert np.isnan(found.given_probability[row])
            else:
                own = posterior[given[row]]
                assert found.given_probability[row] == pytest.approx(own, rel=1e-5)
                assert found.margin[row] == pytest.approx(math.log(own / posterior[best]), abs=1e-4)


def test_confusions__pattern_power_and_share_follow_the_direction() -> None:
    eye = np.eye(3)
    said = [
        (one.pattern, one.power, one.share)
        for one in (Confusions(eye, d, ONE) for d in (0.1, 0.25, 0.375, 0.5, 0.9))
    ]
    expected = [(0, 0.5, 0.5), (0, 0.5, 0.5), (0.5, 0.75, 0.625), (1, 1, 0.75), (1, 1, 0.75)]
    np.testing.assert_allclose(said, expected)


def test_posterior__is_sharpened_before_bayes_rule() -> None:
    probs = np.array([[0.5, 0.3, 0.2]], dtype=np.float32)
    transition = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    known = Confusions(transition, 1.0, ONE, sharpness=2.0, sureness=0.5)
    expected = np.array([0.25, 0.09, 0.04]) / 0.38 * transition[:, 1]
    np.testing.assert_allclose(known.posterior(probs, np.array([1]))[0], expected / expected.sum(), rtol=1e-5)
    assert known.share == pytest.approx(0.75 * 0.5)


def test_fit__who_is_less_sure_than_right_is_sharpened_and_counts_less() -> None:
    rng = np.random.default_rng(0)
    true = rng.integers(5, size=3_000)
    logits = rng.normal(size=(3_000, 5))
    logits[np.arange(3_000), true] += 2.0
    shares = []
    for scale in (0.2, 3.0):  # hardly sure of anything, and surer than right
        probs = np.exp(scale * logits)
        probs /= probs.sum(axis=1, keepdims=True)
        found = fit_confusions([saying(probs)], true, 5, ONE)
        assert found is not None
        agreement = (probs.argmax(axis=1) == true).mean()
        assert found.sureness == pytest.approx(min(1.0, probs.max(axis=1).mean() / agreement), rel=1e-5)
        sharp = module.sharpened(probs.astype(np.float32), found.sharpness).max(axis=1).mean()
        assert sharp == pytest.approx(max(agreement, probs.max(axis=1).mean()), abs=2e-3)
        shares.append((found.sharpness, found.share))
    assert shares[0][0] > 4
    assert shares[0][1] < 0.25
    assert shares[1] == (1.0, pytest.approx(0.5, abs=0.05))


def literal_transition(
    probs: NDArray[np.float64], given: NDArray[np.integer], rounds: int
) -> NDArray[np.float64]:
    """EM for T, one row and one class at a time."""
    num, num_classes = probs.shape
    labels = [sum(int(one == k) for one in given) / num for k in range(num_classes)]
    posterior = [list(row) for row in probs]
    for _ in range(rounds):
        counts = [[0.0] * num_classes for _ in range(num_classes)]
        for row in range(num):
            for true in range(num_classes):
                counts[true][given[row]] += posterior[row][true]
        transition = [
            [(counts[true][k] + 3 * labels[k]) / (sum(counts[true]) + 3) for k in range(num_classes)]
            for true in range(num_classes)
        ]
        for row in range(num):
            joint = [probs[row][true] * transition[true][given[row]] for true in range(num_classes)]
            posterior[row] = [one / sum(joint) for one in joint]
    return np.array(transition)


def test_fit__is_the_literal_em_above_a_tenth_of_the_counts() -> None:
    world = pair_world(200, 3)
    witness = make_witness(world, skill=1.0)
    assert witness.pred_probs is not None
    found = fit_confusions([witness], world.given_labels, 3, ONE)
    assert found is not None
    probs = module.sharpened(witness.pred_probs, found.sharpness).astype(float)
    counts = np.zeros((3, 3))
    np.add.at(counts, (probs.argmax(axis=1), world.given_labels), 1)
    labels = np.bincount(world.given_labels, minlength=3) / 200
    blunt = (counts + 3 * labels) / (counts.sum(axis=1, keepdims=True) + 3)
    expected = np.maximum(literal_transition(probs, world.given_labels, 20), 0.1 * blunt)
    np.testing.assert_allclose(
        found.transition, expected / expected.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-5
    )
    assert found.direction == pytest.approx(direction(counts))


def test_fit__finds_the_true_t_of_predictions_that_know_the_classes() -> None:
    world = pair_world(20_000, 5)
    rng = np.random.default_rng(1)
    logits = 2.0 * rng.normal(size=(20_000, 5))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    true = (probs.cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1)  # drawn from what is predicted
    given = np.where(rng.random(20_000) < 0.3, (true + 1) % 5, true)
    found = fit_confusions([saying(probs)], given, 5, ONE)
    assert found is not None
    expected = World(true, given, 5).transition
    np.testing.assert_allclose(found.transition, expected, atol=0.04)
    assert found.direction > 0.05
    nothing_wrong = fit_confusions([make_witness(world, skill=9.0)], world.true_labels, 5, ONE)
    assert nothing_wrong is not None
    np.testing.assert_allclose(nothing_wrong.transition, np.eye(5), atol=0.001)


def test_fit__with_nobody_to_ask_says_nothing() -> None:
    given = np.array([0, 1, UNLABELED])
    assert fit_confusions([Witness("a", np.zeros(3))], given, 2, ONE) is None
    silent = np.array([[np.nan, np.nan], [np.nan, np.nan], [0.5, 0.5]])
    assert fit_confusions([saying(silent)], given, 2, ONE) is None, "speaks of the unlabeled one alone"
    assert fit_confusions([saying(np.full((3, 2), 0.5))], np.full(3, UNLABELED), 2, ONE) is None


def test_direction__by_hand_and_without_bias_where_errors_are_few() -> None:
    one_way = np.array([[50, 8, 0, 0], [0, 50, 8, 0], [0, 0, 50, 8], [8, 0, 0, 50]], dtype=float)
    assert direction(one_way) == pytest.approx(1.0)
    assert direction(np.diag([5.0, 5.0, 5.0])) == 0.0
    assert direction(np.array([[9.0, 4.0], [3.0, 9.0]])) == 0.0, "two classes have one way each"
    half = np.zeros((5, 5))
    half[0, 1:3] = 500_000  # of four ways two, as often: log 2 of log 4
    assert direction(half) == pytest.approx(0.5, abs=1e-4)
    rng = np.random.default_rng(0)
    few = []
    for _ in range(200):
        counts = np.zeros((20, 20))
        for true in range(20):
            np.add.at(counts[true], rng.choice(np.delete(np.arange(20), true), 3), 1)
        few.append(direction(counts))
    assert np.mean(few) < 0.03, "three errors of a class fill three of nineteen cells at most"


@pytest.mark.parametrize(("size", "cells"), [(2, 3), (4, 3), (3, 5)])
def test_entropy_of_even_draws__is_the_mean_over_all_draws(size: int, cells: int) -> None:
    total = 0.0
    for drawn in itertools.product(range(cells), repeat=size):
        shares = np.bincount(drawn, minlength=cells) / size
        total -= sum(share * math.log(share) for share in shares if share)
    assert entropy_of_even_draws(size, cells) == pytest.approx(total / cells**size, rel=1e-9)


def test_entropy_of_even_draws__its_series_continues_it() -> None:
    last, first = 20 * 9, 20 * 9 + 1
    assert entropy_of_even_draws(first, 9) == pytest.approx(entropy_of_even_draws(last, 9), abs=2e-3)
    assert entropy_of_even_draws(10**7, 9) == pytest.approx(math.log(9), abs=1e-6)
    assert entropy_of_even_draws(1, 9) == entropy_of_even_draws(5, 1) == 0.0


def test_mean_predictions__by_weight_and_the_unheard_where_no_other_speaks() -> None:
    a = saying([[0.8, 0.2], [np.nan, np.nan], [np.nan, np.nan], [0.6, 0.4]], "a")
    b = saying([[0.2, 0.8], [0.3, 0.7], [np.nan, np.nan], [np.nan, np.nan]], "b")
    c = saying([[0.5, 0.5], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]], "c")
    for rows in (slice(0, 4), np.arange(4)):
        found = mean_predictions([a, b, c], rows, np.array([3, 1, 0], np.float32))
        expected = [[0.65, 0.35], [0.3, 0.7], [0.1, 0.9], [0.6, 0.4]]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.isnan(mean_predictions([a], slice(1, 3), np.ones(1, np.float32))).all()


def test_weights_of_mean__half_alike_half_by_the_ranking_and_none_for_who_merges() -> None:
    world = pair_world(1_000, 4)
    a, b = make_witness(world, "a"), make_witness(world, "b")
    merged = saying(np.eye(4)[world.true_labels // 2 * 2], "merged")
    ranks_only = Witness("ranks", np.zeros(1_000))
    everyone = [a, b, merged, ranks_only]
    weights = {"a": 0.6, "b": 0.0, "merged": 0.3, "ranks": 0.1}
    found = weights_of_mean(everyone, world.given_labels, weights, [])
    assert found == {"a": pytest.approx(0.75), "b": pytest.approx(0.25), "merged": 0.0, "ranks": 0.0}
    unheard = weights_of_mean(everyone, world.given_labels, weights, ["a"])
    assert unheard == {"a": 0.0, "b": pytest.approx(0.5), "merged": 0.0, "ranks": 0.0}
    only = weights_of_mean([merged], world.given_labels, {"merged": 1.0}, [])
    assert only == {"merged": 1.0}, "somebody must say something"


def test_both__do_not_depend_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    world = pair_world(500, 4)
    witness = make_witness(world)
    whole = fit_confusions([witness], world.given_labels, 4, ONE)
    assert whole is not None
    judged = by_confusions([witness], world.given_labels, whole)
    monkeypatch.setattr(evidence, "CHUNK_CELLS", 28)
    again = by_confusions([witness], world.given_labels, whole)
    np.testing.assert_allclose(again.margin, judged.margin, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(again.other_label, judged.other_label)
    monkeypatch.setattr(module, "MOST_ROWS", 250)  # every second row
    part = fit_confusions([witness], world.given_labels, 4, ONE)
    half = fit_confusions(
        [saying(witness.pred_probs[::2])],  # type: ignore[index]
        world.given_labels[::2],
        4,
        ONE,
    )
    assert part is not None
    assert half is not None
    np.testing.assert_allclose(part.transition, half.transition, rtol=1e-5)


def test_combine__errors_that_follow_a_pattern_stand_out_and_are_named() -> None:
    """The witnesses see the picture and part of the wrong label; ranks alone mix both."""
    world = pair_world(4_000, 6, rate=0.35)
    rng = np.random.default_rng(0)
    rows = np.arange(4_000)

    def misled(name: str) -> Witness:
        logits = rng.normal(size=(4_000, 6))
        logits[rows, world.true_labels] += 1.2
        logits[rows, world.given_labels] += 0.8
        logits *= 2  # as sure as a trained network is
        probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return Witness(name, probs[rows, world.given_labels], probs.astype(np.float32))

    witnesses = [misled(name) for name in "abc"]
    found = combine(witnesses, world.given_labels, 6)
    assert found.confusions is not None
    assert found.confusions.direction > 0.3
    assert found.confusions_share > 0.55
    by_ranks = weighted_trust(found.witness_ranks, Weighting("equal", found.weights, ""))
    assert detection(world, found.trust_score) > detection(world, by_ranks) + 0.02
    mean = np.mean([one.pred_probs for one in witnesses if one.pred_probs is not None], axis=0)
    mean[rows, world.given_labels] = -1
    hits = (mean.argmax(axis=1) == world.true_labels)[world.is_wrong].mean()
    assert (found.suggested_label == world.true_labels)[world.is_wrong].mean() > hits + 0.05
    assert "the same one or two other classes" in found.structured_noise_sentence
    assert f"{found.confusions_share:.0%} of the score asks which classes" in found.weights_sentence


def test_combine__without_predictions_the_ranking_is_the_witnesses_own() -> None:
    world = pair_world(400, 3)
    found = combine([Witness("a", make_witness(world).trust_score)], world.given_labels, 3)
    assert found.confusions is None
    assert found.confusions_share == 0.0
    np.testing.assert_allclose(found.trust_score, found.witness_ranks[:, 0])
    assert "classes are given" not in found.weights_sentence
