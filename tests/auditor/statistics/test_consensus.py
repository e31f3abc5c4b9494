"""Consensus: invariants on any input, known truth on made worlds, and real digits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.ground.errors import AuditFailedError, VerificationError
from auditor.statistics import witnesses as evidence
from auditor.statistics.consensus import combine, rank_percentiles, split_roles, weighted_trust
from auditor.statistics.predictions import witness_from_probabilities
from auditor.statistics.promises import promise
from auditor.statistics.separation import otsu_share, separation
from auditor.statistics.weights import Weighting
from auditor.statistics.witnesses import UNSURE, Verified, Witness
from tests.auditor.statistics.worlds import World, detection, make_witness, make_world

ATOL_FLOAT32 = 1e-6


def test_rank_percentiles__by_hand():
    scores = np.array([0.3, np.nan, 0.1, 0.3, 9.0, 0.2])
    labeled = np.array([True, True, True, True, False, True])
    expected = [0.75, np.nan, 0.125, 0.75, np.nan, 0.375]  # ties share ranks 3 and 4 of 4
    np.testing.assert_allclose(rank_percentiles(scores, labeled), expected)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1_000), st.integers(2, 6), st.integers(1, 3), st.booleans())
def test_combine__invariants(seed, num_classes, num_witnesses, with_verified):
    world = make_world(150, num_classes, seed=seed, num_unlabeled=10)
    witnesses = [make_witness(world, name, seed=seed) for name in "abc"[:num_witnesses]]
    verified = world.verify(60, seed) if with_verified else None
    found = combine(witnesses, world.given_labels, num_classes, verified=verified)
    labeled = world.given_labels >= 0
    for values in (found.trust_score, found.error_probability, found.disagreement):
        assert np.isnan(values[~labeled]).all()
        assert ((values[labeled] >= 0) & (values[labeled] <= 1)).all()
    order = np.argsort(found.trust_score[labeled])
    assert (np.diff(found.error_probability[labeled][order]) <= 0).all()
    assert not found.is_label_issue[~labeled].any()
    assert (found.suggested_label != world.given_labels).all()
    np.testing.assert_allclose(found.transition.matrix.sum(axis=1), 1.0)
    assert (found.transition.low <= found.transition.matrix + 1e-9).all()
    assert (found.transition.matrix <= found.transition.high + 1e-9).all()
    assert found.noise_rate.low <= found.noise_rate.point <= found.noise_rate.high
    assert found.noise_rate.kind == ("interval" if with_verified else "guess")
    assert found.error_probability_is_guess is not with_verified
    assert sum(abs(weight) for weight in found.weights.values()) == pytest.approx(1.0)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1_000), st.booleans())
def test_combine__order_of_samples_does_not_matter(seed, with_verified):
    world = make_world(200, 3, seed=seed, num_unlabeled=5)
    witnesses = [make_witness(world, name, seed=seed) for name in "ab"]
    verified = world.verify(50, seed)
    order = np.random.default_rng(seed).permutation(200)
    shuffled = [Witness(w.name, w.trust_score[order], w.pred_probs[order]) for w in witnesses]
    moved = Verified(np.argsort(order)[verified.sample_ids], verified.true_labels)
    plain = combine(witnesses, world.given_labels, 3, verified=verified if with_verified else None)
    other = combine(shuffled, world.given_labels[order], 3, verified=moved if with_verified else None)
    np.testing.assert_allclose(other.trust_score, plain.trust_score[order], atol=ATOL_FLOAT32)
    np.testing.assert_allclose(other.error_probability, plain.error_probability[order], atol=1e-9)
    np.testing.assert_array_equal(other.is_label_issue, plain.is_label_issue[order])
    np.testing.assert_array_equal(other.suggested_label, plain.suggested_label[order])
    np.testing.assert_allclose(other.transition.matrix, plain.transition.matrix, atol=1e-9)


def test_combine__chunks_change_nothing(monkeypatch):
    world = make_world(500, 5, num_unlabeled=20)
    witnesses = [make_witness(world, "a"), make_witness(world, "b")]
    whole = combine(witnesses, world.given_labels, 5)
    monkeypatch.setattr(evidence, "CHUNK_CELLS", 35)
    chunked = combine(witnesses, world.given_labels, 5)
    np.testing.assert_array_equal(chunked.suggested_label, whole.suggested_label)
    np.testing.assert_array_equal(chunked.agreement, whole.agreement)
    np.testing.assert_allclose(chunked.transition.matrix, whole.transition.matrix)
    assert chunked.noise_rate.point == pytest.approx(whole.noise_rate.point)


def test_combine__reads_memory_maps_and_changes_nothing(tmp_path):
    world = make_world(300)
    plain = make_witness(world)
    np.save(tmp_path / "p.npy", plain.pred_probs)
    mapped = Witness("a", plain.trust_score, np.load(tmp_path / "p.npy", mmap_mode="r"))
    before = plain.pred_probs.copy(), plain.trust_score.copy(), world.given_labels.copy()
    first = combine([plain], world.given_labels, 4)
    second = combine([mapped], world.given_labels, 4)
    np.testing.assert_array_equal(first.suggested_label, second.suggested_label)
    for kept, now in zip(before, (plain.pred_probs, plain.trust_score, world.given_labels), strict=True):
        np.testing.assert_array_equal(kept, now)


def test_combine__suggests_the_truth_and_flags_the_wrong():
    world = make_world(2_000, 5, rate=0.2)
    found = combine([make_witness(world, n, skill=5.0) for n in "abc"], world.given_labels, 5)
    wrong = world.is_wrong
    assert (found.suggested_label == world.true_labels)[wrong].mean() > 0.97
    assert (found.is_label_issue & wrong).sum() > 0.7 * wrong.sum()
    assert (found.is_label_issue & ~wrong).sum() < 0.05 * wrong.sum()
    assert found.agreement[wrong].mean() > 2.8
    assert found.agreement[~wrong].mean() < 0.3
    assert found.num_voters == 3
    checked = combine(
        [make_witness(world, n, skill=5.0) for n in "abc"], world.given_labels, 5, verified=world.verify(200)
    )
    np.testing.assert_array_equal(checked.is_label_issue, checked.error_probability > 0.5)
    assert (checked.is_label_issue & wrong).sum() > 0.9 * wrong.sum()


def test_combine__the_cut_does_not_follow_a_count_that_chance_made():
    """25 of 200 drawn labels are wrong where one in ten is: the cut stays where both are equally likely."""
    flagged = []
    for seed in range(8):
        world = make_world(2_000, 10, rate=0.1, seed=seed)
        witnesses = [make_witness(world, n, skill=6.0, seed=seed) for n in "abc"]
        rng = np.random.default_rng(seed)
        wrong, right = (rng.permutation(np.flatnonzero(each)) for each in (world.is_wrong, ~world.is_wrong))
        ids = rng.permutation(np.concatenate([wrong[:25], right[:175]]))
        found = combine(witnesses, world.given_labels, 10, verified=Verified(ids, world.true_labels[ids]))
        assert found.noise_rate.point > 0.115  # 230 to 250 labels; 60 of the 200 rows choose the weighting
        flagged.append(found.is_label_issue.sum() / world.is_wrong.sum())
    assert np.mean(flagged) < 1.05
    assert max(flagged) < 1.2


def test_combine__without_verified_rows_there_is_a_first_list_to_look_at():
    world = make_world(60, 3, rate=0.0)
    found = combine([make_witness(world, "a", skill=5.0)], world.given_labels, 3)
    assert 10 <= found.is_label_issue.sum() <= 15


def test_combine__suggestion_is_conditional_on_a_wrong_label():
    probs = np.array([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1]], dtype=np.float32)
    found = combine([Witness("a", np.array([0.6, 0.1]), probs)], np.array([0, 0]), 3)
    assert found.suggested_label.tolist() == [1, 1]
    np.testing.assert_allclose(found.suggested_probability, [0.3 / 0.4, 0.8 / 0.9], rtol=1e-6)


def test_combine__unlabeled_samples_get_the_prediction():
    probs = np.array([[0.2, 0.8], [0.9, 0.1], [0.3, 0.7]], dtype=np.float32)
    found = combine([Witness("a", np.array([np.nan, 0.9, 0.7]), probs)], np.array([-1, 0, 1]), 2)
    assert found.suggested_label[0] == 1
    assert found.suggested_probability[0] == pytest.approx(0.8)
    assert found.agreement[0] == 0


def test_combine__a_witness_may_be_silent_on_some_samples():
    world = make_world(400)
    full, part = make_witness(world, "a"), make_witness(world, "b")
    silent = np.arange(400) < 100
    probs, trust = part.pred_probs.copy(), part.trust_score.copy()
    probs[silent], trust[silent] = np.nan, np.nan
    found = combine([full, Witness("b", trust, probs)], world.given_labels, 4)
    alone = rank_percentiles(full.trust_score, world.given_labels >= 0)
    by_ranks = weighted_trust(found.witness_ranks, Weighting("", found.weights, ""))
    np.testing.assert_allclose(by_ranks[silent], alone[silent], rtol=1e-6)
    assert np.isfinite(found.trust_score[silent]).all()
    np.testing.assert_array_equal(found.disagreement[silent], 0)
    expected = np.where(full.pred_probs.argmax(axis=1) != world.given_labels, 1, 0)
    np.testing.assert_array_equal(found.agreement[silent], expected[silent])


def test_combine__without_predictions_still_ranks():
    world = make_world(400)
    found = combine([Witness("a", make_witness(world).trust_score)], world.given_labels, 4)
    assert (found.suggested_label == -1).all()
    assert found.num_voters == 0
    assert (found.noise_rate.low, found.noise_rate.high) == (0.0, 1.0)
    assert "no witness predicts classes" in found.noise_rate.sentence
    assert detection(world, found.trust_score) > 0.9


def test_combine__one_class_has_nothing_to_suggest():
    found = combine([Witness("a", np.ones(5), np.ones((5, 1), np.float32))], np.zeros(5, dtype=int), 1)
    assert (found.suggested_label == -1).all()
    assert np.isnan(found.suggested_probability).all()


def test_combine__learns_weights_where_a_witness_misleads():
    world = make_world(3_000, rate=0.3)
    good, sharp = make_witness(world, "a"), make_witness(world, "b")
    wrong_rows = np.random.default_rng(0).permutation(3_000)
    bad = Witness("b", sharp.trust_score[wrong_rows], sharp.pred_probs)  # predicts well and ranks at random
    plain = combine([good, bad], world.given_labels, 4)
    learned = combine([good, bad], world.given_labels, 4, verified=world.verify(400))
    assert not plain.weights_are_learned
    assert learned.weights_are_learned or learned.weighting == "a alone"
    assert learned.weights["a"] > 5 * abs(learned.weights["b"])
    assert detection(world, learned.trust_score) > detection(world, plain.trust_score)
    ranks_alone = weighted_trust(plain.witness_ranks, Weighting("", plain.weights, ""))
    assert detection(world, learned.trust_score) > detection(world, ranks_alone) + 0.05
    assert "200 verified rows" in learned.weights_sentence


def test_combine__where_witnesses_part_those_count_more_that_see_two_groups():
    world = make_world(3_000, rate=0.3)
    sharp, dull = make_witness(world, "a", skill=4.0), make_witness(world, "b", skill=0.7)
    silent = Witness("silent", dull.trust_score)
    apart = combine([sharp, dull], world.given_labels, 4)
    assert apart.weights["a"] > 10 * apart.weights["b"]
    assert "Weights by separation" in apart.weights_sentence
    equal = (apart.witness_ranks[:, 0] + apart.witness_ranks[:, 1]) / 2
    assert detection(world, apart.trust_score) > detection(world, equal) + 0.02
    assert not apart.weights_are_learned
    with_silent = combine([sharp, dull, silent], world.given_labels, 4)
    assert with_silent.weights["silent"] == pytest.approx(1 / 3)
    assert sum(with_silent.weights.values()) == pytest.approx(1.0)


def test_otsu_share__closed_forms():
    assert otsu_share(np.array([0.0, 0.0, 1.0, 1.0])) == pytest.approx(1.0)
    assert otsu_share(np.array([0.0, 1.0, 2.0])) == pytest.approx(0.75)  # 1/3 * 2/3 * 1.5^2 of 2/3
    assert otsu_share(np.zeros(5)) == 0.0
    assert otsu_share(np.array([])) == 0.0
    normal = np.random.default_rng(0).normal(size=200_000)
    assert otsu_share(normal) == pytest.approx(2 / np.pi, abs=3e-3)
    assert otsu_share(5 - 3 * normal) == pytest.approx(otsu_share(normal))
    uniform = np.linspace(0, 1, 100_001)
    assert otsu_share(uniform) == pytest.approx(0.75, abs=1e-3)


def test_separation__reads_margins_of_labeled_rows_in_chunks(monkeypatch):
    world = make_world(400, num_unlabeled=30)
    witness = make_witness(world)
    witness.pred_probs[40] = np.nan
    rows = np.r_[30:40, 41:400]
    probs, given = witness.pred_probs[rows].astype(float), world.given_labels[rows]
    others = np.where(np.arange(4) == given[:, None], 0, probs)
    margins = np.log(probs[np.arange(len(rows)), given]) - np.log(others.max(axis=1))
    expected = otsu_share(margins)
    assert separation(witness, world.given_labels) == pytest.approx(expected, rel=1e-5)
    monkeypatch.setattr(evidence, "CHUNK_CELLS", 28)
    assert separation(witness, world.given_labels) == pytest.approx(expected, rel=1e-5)


def _alike(world, seed=0):
    """(N, 4) neighbours of the same true class."""
    rng = np.random.default_rng(seed)
    return np.stack(
        [rng.choice(np.flatnonzero(world.true_labels == label), 4) for label in world.true_labels]
    )


def _parted_on_features():
    """Pairs of classes called one another; one witness that learned the classes, two that learned the errors."""
    rng = np.random.default_rng(0)
    true = np.arange(3_000) % 4
    given = np.where(rng.random(3_000) < 0.4, (true + 1) % 4, true)
    world = World(true, given, 4)
    learned = make_witness(World(true, true, 4), "good", skill=2.0).pred_probs
    rows = np.arange(3_000)
    good = Witness("good", learned[rows, given], learned)
    herd = []
    for name in "bc":
        probs = np.where(np.arange(4) == given[:, None], 1.0, 0.1) + 0.2 * learned + rng.random((3_000, 4))
        probs = (probs / probs.sum(axis=1, keepdims=True)).astype(np.float32)
        herd.append(Witness(name, probs[rows, given], probs))
    return world, [*herd, good]


def test_combine__on_features_the_second_opinion_is_named_and_does_not_lead_without_verified_rows():
    world, witnesses = _parted_on_features()
    found = combine(witnesses, world.given_labels, 4, neighbours=_alike(world))
    assert found.weighting == "agreement"
    assert found.structured_noise
    assert "A pattern is likely" in found.structured_noise_sentence
    assert "good" in found.structured_noise_sentence


def test_combine__a_few_verified_rows_choose_and_calibrate_nothing():
    world, witnesses = _parted_on_features()
    before = combine(witnesses, world.given_labels, 4, neighbours=_alike(world))
    verified = world.verify(100)
    found = combine(witnesses, world.given_labels, 4, verified=verified, neighbours=_alike(world))
    assert found.weighting in ("smoothness", "good alone")
    assert detection(world, found.trust_score) > detection(world, before.trust_score) + 0.05
    assert "50 verified rows chose" in found.weights_sentence
    assert "A pattern is likely" not in found.structured_noise_sentence
    assert found.learning.sum() == 50
    assert not (found.learning & found.calibrating).any()
    few = combine(witnesses, world.given_labels, 4, verified=world.verify(39), neighbours=_alike(world))
    assert few.weighting == "agreement"
    assert few.calibrating.all()


def test_split_roles__where_witnesses_part_the_first_of_the_other_half_choose():
    ids = np.arange(299)
    learning, calibrating = split_roles(Verified(ids, ids * 0), parted=True)
    np.testing.assert_array_equal(np.flatnonzero(learning), np.arange(1, 120, 2))
    np.testing.assert_array_equal(calibrating, ~learning)
    small = Verified(ids[:39], ids[:39] * 0)
    assert not split_roles(small, parted=True)[0].any()


def test_combine__rows_that_learn_do_not_calibrate():
    world = make_world(3_000, rate=0.3)
    verified = world.verify(400)
    found = combine([make_witness(world, n) for n in "ab"], world.given_labels, 4, verified=verified)
    learning, calibrating = split_roles(verified)
    assert not (learning & calibrating).any()
    np.testing.assert_array_equal(found.calibrating, calibrating)
    assert calibrating.sum() == 200


def test_split_roles__draw_and_trust_decide():
    ids = np.arange(300)
    trusted, half = ids % 3 == 0, ids < 200
    learning, calibrating = split_roles(Verified(ids, ids * 0, trusted=trusted, calibrates=half))
    np.testing.assert_array_equal(learning, ~trusted & ~half)
    np.testing.assert_array_equal(calibrating, ~trusted & half)
    small = Verified(ids[:299], ids[:299] * 0, trusted=trusted[:299], calibrates=half[:299])
    learning, calibrating = split_roles(small)
    assert not learning.any()
    np.testing.assert_array_equal(calibrating, ~trusted[:299])


def test_combine__learned_weights_keep_the_promise():
    shares = []
    for seed in range(25):
        world = make_world(1_500, rate=0.3, seed=seed)
        witnesses = [make_witness(world, n, skill, seed) for n, skill in (("a", 1.5), ("b", 0.3), ("c", 0.0))]
        verified = world.verify(300, seed)
        found = combine(witnesses, world.given_labels, 4, verified=verified)
        told = promise(found.trust_score, world.given_labels, verified, 0.2, calibrating=found.calibrating)
        shares.append((~world.is_wrong)[told.flags].mean() if told.num_flags else 0.0)
    assert np.mean(shares) <= 0.2 + 2 * np.std(shares) / 5


def test_combine__error_probability_is_calibrated_on_verified_rows():
    world = make_world(4_000, rate=0.25)
    found = combine(
        [make_witness(world, n, 1.5) for n in "ab"], world.given_labels, 4, verified=world.verify(500)
    )
    order = np.argsort(found.error_probability)
    for part in np.array_split(order, 8):
        assert abs(found.error_probability[part].mean() - world.is_wrong[part].mean()) < 0.12
    assert found.suggestion_is_calibrated
    wrong = world.is_wrong
    hit = (found.suggested_label == world.true_labels)[wrong].mean()
    assert abs(found.suggested_probability[wrong].mean() - hit) < 0.12


def test_combine__unsure_rows_are_no_verdicts():
    world = make_world(600)
    ids = world.verify(50).sample_ids
    unsure = Verified(ids, np.full(50, UNSURE))
    found = combine([make_witness(world)], world.given_labels, 4, verified=unsure)
    assert (found.noise_rate.low, found.noise_rate.high) == pytest.approx((0.0, 1.0))
    assert found.error_probability_is_guess


def test_combine__structured_noise_shows_in_the_disagreement():
    world = make_world(1_000)
    alike = [make_witness(world, "a", 4.0), make_witness(world, "a2", 4.0)]
    copy = Witness("copy", alike[0].trust_score + 1e-3, alike[0].pred_probs)
    calm = combine([alike[0], copy], world.given_labels, 4)
    assert not calm.structured_noise
    assert calm.rank_correlations[0, 1] == pytest.approx(1.0)
    opposed = Witness("opposed", -alike[0].trust_score)
    loud = combine([alike[0], opposed], world.given_labels, 4)
    assert loud.structured_noise
    assert "a and opposed rank the labels very differently (rank correlation -1.00)" in (
        loud.structured_noise_sentence
    )


@pytest.mark.parametrize(
    ("witnesses", "message"),
    [
        ([], "no witness"),
        ([Witness("a", np.ones(3))], r"'a' scores \(3,\), expected \(4,\)"),
        ([Witness("a", np.ones(4)), Witness("a", np.ones(4))], "have the same name"),
        (
            [Witness("a", np.ones(4), np.ones((4, 3), np.float32) / 3)],
            r"predicts \(4, 3\), expected \(4, 2\)",
        ),
        (
            [Witness("a", np.ones(4), np.ones((4, 2), np.float32))],
            r"'a', row 0: probabilities sum to 2\.0000",
        ),
    ],
)
def test_combine__refuses_witnesses_that_do_not_fit(witnesses, message):
    with pytest.raises(AuditFailedError, match=message):
        combine(witnesses, np.array([0, 1, 0, 1]), 2)


@pytest.mark.parametrize(
    ("ids", "labels", "message"),
    [
        ([0, 9], [0, 0], r"sample 9 is outside 0\.\.3 \(1 such"),
        ([1, 1], [0, 0], "occurs twice"),
        ([0, 3], [0, 0], r"sample 3 has no given label"),
        ([0, 1], [0, 2], r"sample 1 has a true label outside 0\.\.1"),
        ([0, 1], [0], r"true_labels has \(1,\) entries but 2 rows"),
    ],
)
def test_combine__refuses_verified_rows_that_do_not_fit(ids, labels, message):
    with pytest.raises(VerificationError, match=message):
        combine(
            [Witness("a", np.ones(4))],
            np.array([0, 1, 0, -1]),
            2,
            verified=Verified(np.array(ids), np.array(labels)),
        )


def test_combine__real_digits():
    """Handwritten digits, 15 % of the labels replaced, judged by 5-fold nearest neighbours and a linear model."""
    from sklearn.datasets import load_digits
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.model_selection import cross_val_predict
    from sklearn.neighbors import KNeighborsClassifier

    images, true = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    wrong = rng.random(len(true)) < 0.15
    world = World(true, np.where(wrong, (true + rng.integers(1, 10, len(true))) % 10, true), 10)
    witnesses = []
    for name, model in (("knn", KNeighborsClassifier(10)), ("lda", LinearDiscriminantAnalysis())):
        probs = cross_val_predict(model, images, world.given_labels, cv=5, method="predict_proba")
        trust = probs[np.arange(len(true)), world.given_labels]
        witnesses.append(Witness(name, trust, probs.astype(np.float32)))
    verified = world.verify(250)
    found = combine(witnesses, world.given_labels, 10, verified=verified)
    assert detection(world, found.trust_score) > 0.97
    assert found.noise_rate.low <= world.is_wrong.mean() <= found.noise_rate.high
    assert (found.suggested_label == true)[world.is_wrong].mean() > 0.9
    shares = []
    for seed in range(40):
        told = promise(found.trust_score, world.given_labels, world.verify(250, seed), 0.1)
        shares.append((~world.is_wrong)[told.flags].mean() if told.num_flags else 0.0)
    assert np.mean(shares) <= 0.1 + 2 * np.std(shares) / np.sqrt(40)
    assert told.num_flags > 100


def test_combine__rows_from_the_top_of_the_list_say_nothing():
    world = make_world(2_000, rate=0.1)
    witness = make_witness(world, skill=4.0)
    top = np.argsort(witness.trust_score)[:150]
    found = combine([witness], world.given_labels, 4, verified=Verified(top, world.true_labels[top]))
    assert found.exchangeability.verdict == "refused"
    assert (found.noise_rate.kind, found.transition.kind) == ("guess", "guess")
    assert found.error_probability_is_guess
    assert "cannot be a random sample" in found.noise_rate.sentence
    honest = combine([witness], world.given_labels, 4, verified=world.verify(150))
    assert honest.exchangeability.verdict == "ok"
    assert honest.noise_rate.kind == "interval"


def test_combine__a_pool_is_what_statements_are_about():
    """The first half came with confirmed labels, so the draw left it out; that is no sign of a bad draw."""
    world = make_world(2_000, rate=0.3)
    world.given_labels[:1_000] = world.true_labels[:1_000]
    pool = np.arange(2_000) >= 1_000
    ids = 1_000 + np.random.default_rng(0).permutation(1_000)[:200]
    witness = make_witness(world, skill=4.0)
    verified = Verified(ids, world.true_labels[ids], pool=pool)
    found = combine([witness], world.given_labels, 4, verified=verified)
    assert found.exchangeability.verdict == "ok"
    assert found.noise_rate.low <= world.is_wrong[pool].mean() <= found.noise_rate.high
    assert "of 1,000 (" in found.noise_rate.sentence
    told = promise(found.trust_score, world.given_labels, verified, 0.1)
    assert told.num_flags > 0
    assert not told.flags[~pool].any()
    without = combine([witness], world.given_labels, 4, verified=Verified(ids, world.true_labels[ids]))
    assert without.exchangeability.verdict == "refused"
    with pytest.raises(VerificationError, match="was not in the pool that was drawn from"):
        combine([witness], world.given_labels, 4, verified=Verified(ids, world.true_labels[ids], pool=~pool))


def test_combine__a_model_that_is_silent_on_most_samples_doubts_none_of_them():
    world = make_world(500, 4, rate=0.2)
    engine = make_witness(world, skill=1.0)
    alone = combine([engine], world.given_labels, 4)
    probs = np.full((500, 4), np.nan, dtype=np.float32)
    probs[0] = np.eye(4, dtype=np.float32)[world.given_labels[0]]
    silent = witness_from_probabilities(probs, world.given_labels, name="silent")
    both = combine([engine, silent], world.given_labels, 4)
    assert both.num_voters == 2
    against = (alone.agreement > 0) & (np.arange(500) > 0)
    assert against.sum() > 50
    np.testing.assert_array_equal(both.is_doubtful[against], True)
