"""Planted errors are where we say, as many as we say, and never on the truth we know."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.experiments.planting import measure_recovery, plant_by_transition, plant_second_most_likely
from auditor.ground.errors import AuditFailedError
from tests.auditor.statistics.worlds import make_witness, make_world


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1_000), st.floats(0.02, 0.3), st.booleans())
def test_plant__invariants(seed, rate, by_transition):
    world = make_world(200, 4, seed=seed, num_unlabeled=20)
    keep = np.arange(200) % 10 == 0
    before = world.given_labels.copy()
    if by_transition:
        planted = plant_by_transition(before, np.full((4, 4), 0.25), rate, seed=seed, keep=keep)
    else:
        probs = make_witness(world, seed=seed).pred_probs
        planted = plant_second_most_likely(before, [probs], rate, seed=seed, keep=keep)
    np.testing.assert_array_equal(before, world.given_labels)
    np.testing.assert_array_equal(planted.mask, planted.labels != before)
    assert planted.mask.sum() == max(1, round(rate * 180))
    assert not planted.mask[keep | (before < 0)].any()
    np.testing.assert_array_equal(planted.is_measured, ~keep & (before >= 0))
    assert ((planted.labels >= 0) & (planted.labels < 4))[planted.mask].all()


def test_plant_second_most_likely__never_the_favourite():
    probs = np.array([[0.6, 0.3, 0.1], [0.1, 0.7, 0.2], [0.2, 0.3, 0.5]], dtype=np.float32)
    planted = plant_second_most_likely(np.array([0, 0, 2]), [probs], 0.99, seed=0)
    # Row 1 says 0 where the model sees 1: planting 1 might mend it, so 2 is planted.
    assert planted.labels.tolist() == [1, 2, 1]


def test_plant_second_most_likely__the_models_decide_together():
    first = np.array([[0.6, 0.3, 0.1]], dtype=np.float32)
    other = np.array([[0.5, 0.0, 0.5]], dtype=np.float32)
    alone, both = (
        plant_second_most_likely(np.zeros(1, int), p, 0.9, seed=0) for p in ([first], [first, other])
    )
    assert (alone.labels[0], both.labels[0]) == (1, 2)
    np.testing.assert_allclose(first, [[0.6, 0.3, 0.1]])  # what was handed in is only read


def test_plant_second_most_likely__two_classes_leave_doubted_labels_alone():
    probs = np.array([[0.9, 0.1], [0.9, 0.1], [np.nan, np.nan]], dtype=np.float32)
    planted = plant_second_most_likely(np.array([0, 1, 0]), [probs], 0.3, seed=0)
    assert planted.mask.tolist() == [True, False, False]
    with pytest.raises(AuditFailedError, match=r"2 errors to plant but only 1 label may be changed"):
        plant_second_most_likely(np.array([0, 1, 0]), [probs], 0.6, seed=0)


def test_plant_by_transition__follows_the_matrix():
    labels = np.repeat([0, 1, 2], 4_000)
    matrix = np.array([[0.6, 0.3, 0.1], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]])
    planted = plant_by_transition(labels, matrix, 0.05, seed=0)
    counts = np.zeros((3, 3))
    np.add.at(counts, (labels[planted.mask], planted.labels[planted.mask]), 1)
    assert counts[2].sum() == 0
    assert counts[1, 2] == 0
    assert counts[0].sum() / counts[1].sum() == pytest.approx(4.0, rel=0.25)
    assert counts[0, 1] / counts[0, 2] == pytest.approx(3.0, rel=0.25)


def test_plant_by_transition__a_matrix_that_moves_nothing():
    with pytest.raises(AuditFailedError, match="only 0 labels may be changed"):
        plant_by_transition(np.array([0, 1]), np.eye(2), 0.5, seed=0)


def test_plant__same_seed_same_errors():
    world = make_world(300)
    probs = make_witness(world).pred_probs
    first, again, other = (
        plant_second_most_likely(world.given_labels, [probs], 0.1, seed=seed).labels for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("rate", [0.0, 1.0, 10.0])
def test_plant__refuses_a_rate_that_is_no_share(rate):
    with pytest.raises(AuditFailedError, match="must lie between 0 and 1, for example"):
        plant_by_transition(np.array([0, 1]), np.ones((2, 2)), rate, seed=0)


def test_measure_recovery__by_hand_and_with_the_warning():
    world = make_world(100, rate=0.0)
    planted = plant_by_transition(world.given_labels, np.ones((4, 4)), 0.1, seed=0)
    perfect = measure_recovery(planted, np.where(planted.mask, 0.1, 0.9))
    assert (perfect.auroc, perfect.average_precision, perfect.precision_at_planted) == (1.0, 1.0, 1.0)
    assert perfect.found == {0.01: 0.1, 0.02: 0.2, 0.05: 0.5, 0.10: 1.0}
    assert "10 errors planted" in perfect.sentence
    assert "real mistakes are harder to find" in perfect.sentence
    assert "do not tell how many of the real errors" in perfect.sentence
    blind = measure_recovery(planted, np.full(100, 0.5))
    assert blind.auroc == 0.5
    # Labels that tie are met in no order: 5 of 100 bring 5 % of the planted ones, wherever these stand.
    assert blind.found == pytest.approx({0.01: 0.01, 0.02: 0.02, 0.05: 0.05, 0.10: 0.10})
    assert blind.precision_at_planted == pytest.approx(0.1)


def test_measure_recovery__rows_left_alone_do_not_count():
    labels = np.zeros(100, int)
    known_wrong = np.arange(100) < 20
    planted = plant_by_transition(labels, np.ones((4, 4)), 0.1, seed=0, keep=known_wrong)
    # An engine that sees the known errors first, and then the planted ones, has made no mistake.
    trust = np.where(known_wrong, 0.0, np.where(planted.mask, 0.1, 0.9))
    found = measure_recovery(planted, trust)
    assert (found.auroc, found.precision_at_planted, found.num_measured) == (1.0, 1.0, 80)
