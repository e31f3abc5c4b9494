"""Labels that people replaced are still graded as they were given."""

import numpy as np

from auditor.statistics.trust.regrading import trust_in_given


def test_trust_in_given__corrected_and_excluded_rows_take_the_rank_of_their_margin():
    rng = np.random.default_rng(0)
    given = rng.integers(3, size=400)
    probs = rng.dirichlet(np.ones(3), size=400)
    rows = np.arange(400)
    others = probs.copy()
    others[rows, given] = 0
    margin = np.log(probs[rows, given]) - np.log(others.max(axis=1))
    trust = ((margin.argsort().argsort() + 0.5) / 400).astype(np.float32)
    trained = given.copy()
    trained[:10] = (given[:10] + 1) % 3  # corrected: the engine trusts the correction
    trained[10:20] = -1  # excluded: the engine scores nothing
    told = trust.copy()
    told[:10], told[10:20] = 0.99, np.nan
    graded = trust_in_given(told, probs, given, trained)
    np.testing.assert_array_equal(graded[20:], trust[20:])
    np.testing.assert_allclose(graded[:20], trust[:20], atol=0.01)


def test_trust_in_given__a_first_audit_is_left_alone():
    trust = np.array([0.1, 0.9, np.nan], dtype=np.float32)
    labels = np.array([0, 1, -1])
    probs = np.full((3, 2), 0.5)
    np.testing.assert_array_equal(trust_in_given(trust, probs, labels, labels), trust)
    labelled = np.array([0, 1, 1])  # a person named the class of an unlabeled sample
    np.testing.assert_array_equal(trust_in_given(trust, probs, labels, labelled), trust)
