"""The pool: a literal second copy in float64, known truth on made worlds, and witnesses that are worth nothing."""

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.ground.errors import AuditFailedError, VerificationError
from auditor.statistics import UNKNOWN, combine, trust_sentence, witness_from_probabilities
from auditor.statistics.rates import verified as rows_of_chunks
from auditor.statistics.rates.promises import promise
from auditor.statistics.rates.verified import NO_CLASS, UNSURE, Verified
from auditor.statistics.trust import Witness, knows_by_heart, pool, rank_percentiles
from tests.auditor.statistics.worlds import World, detection, make_witness, make_world

PAIR = 0.3


def trust_of(found):
    return found.reading.trust_score


def pair_world(num_samples=3_000, num_classes=5, rate=PAIR, seed=0):
    """Every class is given as the next one, and as nothing else, at ``rate``."""
    rng = np.random.default_rng(seed)
    true = rng.integers(num_classes, size=num_samples)
    moved = rng.random(num_samples) < rate
    return World(true, np.where(moved, (true + 1) % num_classes, true), num_classes)


def everyone(world, skill=4.0, names="ab", seed=0):
    return [make_witness(world, name, skill, seed) for name in names]


# The model as docs/concepts.md has it, with nothing of ours and no care for speed.


def literal_fit(logs, labels, known, num_classes):
    """a, b and T of one part by a general optimiser and numerical derivatives; T by its logits."""
    num_witnesses = len(logs)

    def parted(values):
        a, b, t = np.split(values, [num_witnesses, num_witnesses + num_classes])
        t = np.exp(t.reshape(num_classes, num_classes))
        return np.abs(a), b, t / t.sum(axis=1, keepdims=True)

    def loss(values):
        a, b, t = parted(values)
        total = -(a @ a + b @ b) / 2 + (np.log(t) * (0.5 / num_classes + np.eye(num_classes))).sum()
        for row, label in enumerate(labels):
            q = np.exp(sum(a[w] * logs[w][row] for w in range(num_witnesses)) + b)
            q = q / q.sum()
            each = q * t[:, label]
            total += np.log(each.sum() if known[row] == UNKNOWN else each[known[row]])
        return -total / len(labels)

    start = np.concatenate(
        [np.full(num_witnesses, 0.5), np.zeros(num_classes), 2 * np.eye(num_classes).ravel()]
    )
    return parted(scipy.optimize.minimize(loss, start, method="BFGS", options={"gtol": 1e-6}).x)


def literal_shrinking(q, t, labels, known):
    """T's other cells drawn towards equal ones by m labels, m by the moments of a Dirichlet-multinomial."""
    num_classes = len(t)
    counts = np.zeros_like(t)
    for row, label in enumerate(labels):
        each = q[row] * t[:, label]
        each = each / each.sum() if known[row] == UNKNOWN else np.eye(num_classes)[known[row]]
        counts[:, label] += each
    strengths = []
    others = [[j for j in range(num_classes) if j != k] for k in range(num_classes)]
    for k in range(num_classes):
        n = counts[k, others[k]].sum()
        if n > 1:
            even = n / (num_classes - 1)
            chi = ((counts[k, others[k]] - even) ** 2 / even).sum()
            rho = (chi / (num_classes - 2) - 1) / (n - 1)
            strengths.append(1 / np.clip(rho, 1e-6, 1) - 1)
    m = np.median(strengths)
    found = t.copy()
    for k in range(num_classes):
        share = counts[k, others[k]] + m / (num_classes - 1)
        found[k, others[k]] = (1 - t[k, k]) * share / share.sum()
    return found


def test_the_pool__is_what_a_literal_copy_computes():
    world = make_world(150, 3, rate=0.25, seed=3)
    found = everyone(world, skill=2.0)
    known = np.full(150, UNKNOWN)
    known[:10] = world.true_labels[:10]
    fits = pool.cross_fit("ab", [one.pred_probs for one in found], world.given_labels, 3, known)
    logs = [np.log(one.pred_probs.astype(np.float64)) for one in found]
    order = np.lexsort((sum(one[np.arange(150), world.given_labels] for one in logs), world.given_labels))
    trust = trust_of(combine(found, world.given_labels, 3, known=known))
    for part in range(2):
        read = order[part :: pool.PARTS]
        fit = np.setdiff1d(order, read)
        a, b, t = literal_fit([one[fit] for one in logs], world.given_labels[fit], known[fit], 3)
        pooled = np.exp(sum(a[w] * logs[w] for w in range(2)) + b)
        pooled /= pooled.sum(axis=1, keepdims=True)
        t = literal_shrinking(pooled[fit], t, world.given_labels[fit], known[fit])
        np.testing.assert_allclose(fits.pools[part].weights, a, atol=2e-3)
        np.testing.assert_allclose(fits.pools[part].bias, b, atol=4e-3)
        np.testing.assert_allclose(fits.pools[part].transition, t, atol=2e-3)
        each = pooled[read] * t[:, world.given_labels[read]].T
        posterior = each / each.sum(axis=1, keepdims=True)
        own = posterior[np.arange(len(read)), world.given_labels[read]]
        np.testing.assert_allclose(trust[read], own, atol=4e-3)


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.2, 0.4])
def test_combine__data_drawn_from_the_model_give_back_the_rate_and_t(rate):
    world = make_world(4_000, 5, rate=rate)
    found = combine(everyone(world), world.given_labels, 5)
    guess = found.guess
    assert guess.point == pytest.approx(rate, abs=0.015)
    assert guess.low <= rate + 0.005
    assert guess.high >= rate
    np.testing.assert_allclose(found.fits.transition, world.transition, atol=0.03)


def test_combine__errors_that_go_one_way_are_found_by_t():
    world = pair_world()
    found = everyone(world, skill=2.0)
    pooled = combine(found, world.given_labels, 5)
    alone = rank_percentiles(found[0].trust_score, np.ones(3_000, dtype=bool))
    assert detection(world, trust_of(pooled)) > detection(world, alone) + 0.03
    matrix = pooled.fits.transition
    assert matrix[np.arange(5), (np.arange(5) + 1) % 5] == pytest.approx(np.full(5, PAIR), abs=0.05)
    wrong = world.is_wrong
    assert (pooled.reading.other_label == world.true_labels)[wrong].mean() > 0.9


def test_combine__suggests_the_truth_and_flags_the_wrong():
    world = make_world(2_000, 5, rate=0.2)
    found = combine(everyone(world, 5.0, "abc"), world.given_labels, 5)
    wrong, flagged = world.is_wrong, found.calibrated.is_label_issue
    assert (found.reading.other_label == world.true_labels)[wrong].mean() > 0.97
    assert (flagged & wrong).sum() > 0.95 * wrong.sum()
    assert (flagged & ~wrong).sum() < 0.05 * wrong.sum()
    np.testing.assert_array_equal(flagged, found.calibrated.error_probability > 0.5)
    assert found.votes.against[wrong].mean() > 2.8
    assert found.votes.against[~wrong].mean() < 0.3


def test_combine__a_clean_set_has_no_suspects():
    world = make_world(180, 3, rate=0.0)
    found = combine(everyone(world, skill=6.0), world.given_labels, 3)
    assert not found.calibrated.is_label_issue.any()
    assert found.guess.point < 0.02


def test_combine__weak_witnesses_accuse_a_small_set_only_where_its_labels_show_errors():
    clean, wrong = make_world(300, 10, rate=0.0), make_world(300, 10, rate=0.2)
    found = combine(everyone(clean, skill=1.5), clean.given_labels, 10)
    assert not found.stands_out
    assert not found.calibrated.is_label_issue.any()
    assert found.guess.point < 0.01  # what the pool alone says: 11 labels, .05
    assert "nothing shows that any of 300 labels is wrong" in found.guess.sentence
    found = combine(everyone(wrong, skill=1.5), wrong.given_labels, 10)
    assert found.stands_out
    assert found.calibrated.is_label_issue.sum() > 40


def test_combine__where_nothing_stands_out_even_the_most_doubtful_is_no_suspect():
    world = make_world(100, 4, rate=0.01)
    found = combine([make_witness(world, skill=3.0)], world.given_labels, 4)
    assert not found.stands_out
    assert (found.calibrated.error_probability > 0.5).any()
    assert not found.calibrated.is_label_issue.any()


def test_combine__a_strong_network_that_learned_how_often_labels_are_wrong_is_not_silenced():
    rng, true = np.random.default_rng(0), np.arange(600) % 10
    probs = rng.dirichlet(np.full(10, 3.0), 600) * rng.uniform(0.02, 0.15, 600)[:, None]
    probs[np.arange(600), true] += 1.0 - probs.sum(axis=1)
    labels = (rng.random(600)[:, None] > probs.cumsum(axis=1)).sum(axis=1)  # as likely as it says
    found = combine([witness_from_probabilities(probs, labels, name="a")], labels, 10)
    flagged = found.calibrated.is_label_issue
    assert flagged.sum() > 0.7 * (labels != true).sum()
    assert (labels != true)[flagged].mean() > 0.95


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1_000), st.integers(2, 6), st.integers(1, 3), st.booleans())
def test_combine__invariants(seed, num_classes, num_witnesses, with_verified):
    world = make_world(150, num_classes, seed=seed, num_unlabeled=10)
    found = combine(
        everyone(world, 2.0, "abc"[:num_witnesses], seed),
        world.given_labels,
        num_classes,
        verified=world.verify(60, seed) if with_verified else None,
    )
    labeled = world.given_labels >= 0
    for values in (trust_of(found), found.calibrated.error_probability, found.votes.spread):
        assert np.isnan(values[~labeled]).all()
        assert ((values[labeled] >= 0) & (values[labeled] <= 1)).all()
    order = np.argsort(trust_of(found)[labeled])
    assert (np.diff(found.calibrated.error_probability[labeled][order]) <= 0).all()
    assert not found.calibrated.is_label_issue[~labeled].any()
    assert (found.reading.other_label != world.given_labels).all()
    rate = found.guess
    np.testing.assert_allclose(found.fits.transition.sum(axis=1), 1.0)
    assert rate.low <= rate.point <= rate.high
    assert rate.point == pytest.approx(1 - trust_of(found)[labeled].mean())
    assert found.calibrated.error_probability_is_guess is not with_verified
    assert sum(found.weights.values()) == pytest.approx(1.0)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1_000), st.booleans())
def test_combine__order_of_samples_does_not_matter(seed, with_verified):
    world = make_world(200, 3, seed=seed, num_unlabeled=5)
    plain, verified = everyone(world, 2.0, "ab", seed), world.verify(50, seed)
    order = np.random.default_rng(seed).permutation(200)
    shuffled = [Witness(w.name, w.trust_score[order], w.pred_probs[order], True) for w in plain]
    moved = Verified(np.argsort(order)[verified.sample_ids], verified.true_labels)
    one = combine(plain, world.given_labels, 3, verified=verified if with_verified else None)
    other = combine(shuffled, world.given_labels[order], 3, verified=moved if with_verified else None)
    np.testing.assert_allclose(trust_of(other), trust_of(one)[order], atol=2e-3)
    np.testing.assert_allclose(other.fits.transition, one.fits.transition, atol=2e-3)


def test_combine__chunks_and_memory_maps_change_nothing(tmp_path, monkeypatch):
    world = make_world(500, 5, num_unlabeled=20)
    plain = everyone(world)
    before = [one.pred_probs.copy() for one in plain]
    whole = combine(plain, world.given_labels, 5)
    for one in plain:
        np.save(tmp_path / f"{one.name}.npy", one.pred_probs)
    mapped = [
        Witness(w.name, w.trust_score, np.load(tmp_path / f"{w.name}.npy", mmap_mode="r"), True)
        for w in plain
    ]
    monkeypatch.setattr(rows_of_chunks, "CHUNK_CELLS", 35)
    chunked = combine(mapped, world.given_labels, 5)
    np.testing.assert_allclose(trust_of(chunked), trust_of(whole), atol=1e-6)
    np.testing.assert_array_equal(chunked.reading.other_label, whole.reading.other_label)
    np.testing.assert_array_equal(chunked.votes.against, whole.votes.against)
    for kept, one in zip(before, plain, strict=True):
        np.testing.assert_array_equal(kept, one.pred_probs)


def worthless(world, kind):
    """A witness that knows nothing of the labels: constant, of other samples, or of other classes' names."""
    good = make_witness(world, kind, 3.0)
    probs = {
        "constant": np.full_like(good.pred_probs, 1 / world.num_classes),
        "shuffled": np.random.default_rng(1).permutation(good.pred_probs),
        "renamed": good.pred_probs[:, np.roll(np.arange(world.num_classes), 1)],
    }[kind]
    return Witness(kind, probs[np.arange(len(probs)), world.given_labels], probs, True)


@pytest.mark.parametrize("kind", ["constant", "shuffled", "renamed"])
def test_combine__a_worthless_witness_changes_nothing(kind):
    world = make_world(4_000, 5, rate=0.2)
    good = everyone(world, skill=3.0)
    without = combine(good, world.given_labels, 5)
    beside = combine([*good, worthless(world, kind)], world.given_labels, 5)
    assert beside.weights[kind] < 0.05
    assert np.abs(trust_of(beside) - trust_of(without)).mean() < 0.005
    assert beside.guess.point == pytest.approx(without.guess.point, abs=0.005)


def test_combine__a_witness_that_merges_two_classes_helps_with_the_others_alone():
    world = make_world(3_000, 4, rate=0.2)
    good = make_witness(world, "good", 3.0)
    probs = make_witness(world, "merging", 3.0).pred_probs.copy()
    probs[:, 0] += probs[:, 1]
    probs[:, 1] = 1e-4
    probs /= probs.sum(axis=1, keepdims=True)
    merging = Witness("merging", probs[np.arange(3_000), world.given_labels], probs, True)
    alone = combine([good], world.given_labels, 4)
    both = combine([good, merging], world.given_labels, 4)
    assert detection(world, trust_of(both)) > detection(world, trust_of(alone)) - 0.002
    assert both.guess.point == pytest.approx(0.2, abs=0.03)


def test_combine__verified_rows_are_known_rows():
    world = pair_world(rate=0.45, num_samples=800)
    found = everyone(world, skill=1.0)
    known = np.full(800, UNKNOWN)
    known[:400] = world.true_labels[:400]
    plain = combine(found, world.given_labels, 5)
    told = combine(found, world.given_labels, 5, known=known)
    off = [np.abs(one.fits.transition - world.transition).mean() for one in (plain, told)]
    assert off[1] < 0.8 * off[0]
    fresh = World(world.true_labels[400:], world.given_labels[400:], 5)
    assert detection(fresh, trust_of(told)[400:]) > detection(fresh, trust_of(plain)[400:])
    # A row's own verdict is never read off its own trust.
    changed = known.copy()
    changed[7] = (known[7] + 1) % 5
    other = combine(found, world.given_labels, 5, known=changed)
    assert trust_of(other)[7] == trust_of(told)[7]
    assert not np.array_equal(trust_of(other), trust_of(told))


def test_combine__verdicts_without_a_class_say_what_they_say():
    world = make_world(600, 3, rate=0.2)
    found, known = everyone(world), np.full(600, UNKNOWN)
    plain = combine(found, world.given_labels, 3, known=known)
    unsure = Verified(np.arange(50), np.full(50, UNSURE))
    np.testing.assert_allclose(
        trust_of(combine(found, world.given_labels, 3, verified=unsure)), trust_of(plain)
    )
    known[:200] = NO_CLASS
    assert combine(found, world.given_labels, 3, known=known).guess.point > 0.22


def test_combine__verified_rows_calibrate_what_the_pool_is_too_sure_of():
    world = make_world(3_000, 5, rate=0.2)
    probs = make_witness(world, skill=2.0).pred_probs
    too_low = np.where(np.arange(5) == world.given_labels[:, None], probs + 3.0, probs)
    too_low /= too_low.sum(axis=1, keepdims=True)
    witness = Witness("a", probs[np.arange(3_000), world.given_labels], too_low, True)
    guessed = combine([witness], world.given_labels, 5)
    told = combine([witness], world.given_labels, 5, verified=world.verify(400))
    assert guessed.calibrated.error_probability.mean() < 0.1
    assert told.calibrated.error_probability.mean() == pytest.approx(0.2, abs=0.05)
    assert not told.calibrated.error_probability_is_guess


def test_combine__a_picked_sample_calibrates_nothing():
    world = make_world(2_000, 5, rate=0.1)
    found = everyone(world)
    worst = np.argsort(trust_of(combine(found, world.given_labels, 5)))[:100]
    picked = combine(found, world.given_labels, 5, verified=Verified(worst, world.true_labels[worst]))
    assert picked.calibrated.error_probability_is_guess


def test_combine__who_learned_the_labels_ranks_only_what_no_other_judges():
    world = make_world(1_000, 4, rate=0.2)
    own, engine = make_witness(world, "own", 4.0), make_witness(world, "engine", 4.0)
    partly = own.pred_probs.copy()
    partly[600:] = np.nan
    pooled = Witness("own", own.trust_score, partly, True)
    learned = Witness("engine", engine.trust_score, engine.pred_probs)
    found = combine([pooled, learned], world.given_labels, 4)
    alone = combine([pooled], world.given_labels, 4)
    np.testing.assert_allclose(trust_of(found)[:600], trust_of(alone)[:600])
    assert np.isnan(trust_of(alone)[600:]).all()
    rest = World(world.true_labels[600:], world.given_labels[600:], 4)
    assert detection(rest, trust_of(found)[600:]) > 0.95
    assert found.weights == {"own": 1.0}


def test_combine__without_anybody_to_pool_ranks_count_the_same():
    world = make_world(1_000, 4, rate=0.2, num_unlabeled=10)
    learned = [Witness(one.name, one.trust_score, one.pred_probs) for one in everyone(world)]
    found = combine(learned, world.given_labels, 4)
    labeled = world.given_labels >= 0
    mean = sum(rank_percentiles(one.trust_score, labeled) for one in learned)[labeled]
    assert (np.diff(trust_of(found)[labeled][np.argsort(mean)]) >= 0).all()
    assert not found.weights
    assert "not known" in found.guess.sentence
    assert (found.guess.low, found.guess.high) == (0.0, 1.0)
    assert "count the same" in trust_sentence({}, ["a", "b"])
    assert found.calibrated.is_label_issue.any()
    # Who contradicts most labels accuses none.
    turned = [
        Witness(one.name, one.trust_score, np.roll(one.pred_probs, 1, axis=1)) for one in everyone(world)
    ]
    assert not combine(turned, world.given_labels, 4).calibrated.is_label_issue.any()


def test_knows_by_heart__is_seen_beside_honest_witnesses():
    world = make_world(1_000, 4, rate=0.2)
    honest = make_witness(world, "a", 3.0).pred_probs
    by_heart = np.full((1_000, 4), 0.001, dtype=np.float32)
    by_heart[np.arange(1_000), world.given_labels] = 0.997
    assert knows_by_heart(by_heart, [honest], world.given_labels)
    assert not knows_by_heart(make_witness(world, "b", 5.0).pred_probs, [honest], world.given_labels)
    assert not knows_by_heart(by_heart, [], world.given_labels)


@pytest.mark.trains
def test_combine__four_hundred_classes_of_six():
    world = make_world(2_400, 400, rate=0.1)
    found = combine([make_witness(world, skill=10.0)], world.given_labels, 400)
    assert found.stands_out
    assert found.guess.point == pytest.approx(0.1, abs=0.02)
    assert detection(world, trust_of(found)) > 0.99
    assert (found.reading.other_label == world.true_labels)[world.is_wrong].mean() > 0.95


@pytest.mark.parametrize("given_labels", [[0], [0, 0, 0], [-1, -1], [0, 1]])
def test_combine__a_handful_of_labels(given_labels):
    labels = np.array(given_labels)
    probs = np.full((len(labels), 3), 1 / 3, dtype=np.float32)
    found = combine([Witness("a", np.where(labels < 0, np.nan, 0.5), probs, True)], labels, 3)
    assert (np.isfinite(trust_of(found)) == (labels >= 0)).all()


@pytest.mark.trains
def test_combine__a_promise_holds_after_verdicts_entered_the_pool():
    """Rows that teach the pool also calibrate: no row is read by what was fitted to it."""
    false = []
    for seed in range(25):
        world = make_world(600, 4, rate=0.3, seed=seed)
        verified = world.verify(120, seed)
        found = combine(everyone(world, 1.5, "ab", seed), world.given_labels, 4, verified=verified)
        flags = promise(trust_of(found), world.given_labels, verified, 0.2).flags
        false.append((flags & ~world.is_wrong).sum() / max(1, flags.sum()))
    assert np.mean(false) <= 0.2 + 2 * np.std(false) / np.sqrt(len(false))
    assert np.mean(false) > 0.02


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trust_score": np.zeros(3)}, r"scores \(3,\)"),
        ({"pred_probs": np.full((100, 2), 0.5)}, r"predicts \(100, 2\)"),
        ({"pred_probs": np.full((100, 4), 0.5)}, "sum to 2.0000"),
    ],
)
def test_combine__refuses_what_does_not_fit(change, message):
    world = make_world(100)
    plain = make_witness(world)
    values = {"trust_score": plain.trust_score, "pred_probs": plain.pred_probs} | change
    with pytest.raises(AuditFailedError, match=message):
        combine([Witness("a", **values)], world.given_labels, 4)


def test_combine__refuses_nobody_a_doubled_name_and_a_foreign_verified_row():
    world = make_world(100)
    with pytest.raises(AuditFailedError, match="no witness"):
        combine([], world.given_labels, 4)
    with pytest.raises(AuditFailedError, match="same name"):
        combine([make_witness(world), make_witness(world)], world.given_labels, 4)
    with pytest.raises(VerificationError, match="outside 0..99"):
        combine(
            [make_witness(world)], world.given_labels, 4, verified=Verified(np.array([100]), np.array([0]))
        )
