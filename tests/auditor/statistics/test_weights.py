"""Weights without verified rows: what is counted, by hand; whom a herd and a parrot fool; what they gain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.statistics import weights
from auditor.statistics.consensus import combine
from auditor.statistics.separation import ONE_GROUP, separation
from auditor.statistics.weights import Votes, Weighting, votes, weightings
from auditor.statistics.witnesses import UNLABELED, Witness
from tests.auditor.statistics.worlds import World, detection, make_witness, make_world


def sure_of(name: str, classes: list[int], *, num_classes: int = 3) -> Witness:
    """A witness with .9 on one class a row; -1 = no opinion."""
    probs = np.full((len(classes), num_classes), 0.1 / (num_classes - 1), np.float32)
    for row, label in enumerate(classes):
        probs[row, label] = 0.9
        if label < 0:
            probs[row] = np.nan
    return Witness(name, np.arange(len(classes), dtype=np.float32), probs)


def leading(
    witnesses: list[Witness], given: NDArray[np.integer], *, parted: bool, noise_rate: float
) -> Weighting:
    """What leads without verified rows."""
    return weightings(witnesses, given, parted=parted, noise_rate=noise_rate)[0]


def test_votes__by_hand() -> None:
    #                       all 0   c differs  b silent  unlabeled  only a speaks
    a = sure_of("a", [0, 1, 2, 0, 1])
    b = sure_of("b", [0, 1, -1, 1, -1])
    c = sure_of("c", [0, 2, 2, 2, -1])
    given = np.array([0, 0, 0, UNLABELED, 0])
    found = votes([a, b, c], given)
    # Row 1: a is compared with b and c together, who split evenly; the tie goes to the lower class, 1.
    assert found.with_others.tolist() == [[3, 0], [2, 0], [2, 1]]
    assert found.with_given.tolist() == [[1, 2], [1, 1], [1, 2]]


def test_votes__obeys_counts_given_labels_where_the_others_are_surest_of_another_class() -> None:
    given = np.zeros(40, int)  # of which 5 % are two rows
    a, b = sure_of("a", [1, 1] + [0] * 38), sure_of("b", [1, 1] + [0] * 38)
    half = sure_of("half", [1] + [0] * 39)
    parrot = sure_of("parrot", [0] * 40)
    found = votes([a, b, half], given)
    assert found.obeys.tolist() == [0.0, 0.0, 0.5]
    # Where a and b are as sure as on the two rows they doubt, which is everywhere, 38 of 40 labels are theirs.
    assert found.others_agree[2] == pytest.approx(38 / 40)
    # b and parrot together doubt nothing that a says.
    assert votes([a, b, parrot], given).obeys.tolist() == [0.0, 0.0, 1.0]
    assert votes([a, b, parrot], given).others_agree.tolist() == pytest.approx([1.0, 1.0, 38 / 40])


def test_surely_memorized__what_nobody_could_know() -> None:
    """Others that are right on 3/4 of such rows: of the labels that they doubt there some are right."""
    rng = np.random.default_rng(0)
    wrong, right = rng.random(200_000) < 0.2, rng.random(200_000) < 0.75  # the label; the others
    agree = ~wrong & right
    knows = (~wrong)[~agree].mean()  # one that never errs obeys the doubted labels that are right
    counts, none = np.array([[1, 1]] * 2), np.zeros(2)
    seen = Votes(
        counts,
        counts,
        np.zeros((2, 2)),
        none,
        obeys=np.array([knows, 1.0]),
        others_agree=np.full(2, agree.mean()),
    )
    assert seen.surely_memorized(0.2) == pytest.approx([0.0, 1.0], abs=0.01)
    halfway = replace(seen, obeys=(seen.obeys + knows) / 2)
    assert halfway.surely_memorized(0.2) == pytest.approx([0.0, 0.5], abs=0.01)


def test_votes__chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world(200, rate=0.2, num_unlabeled=5)
    voters = [make_witness(world, name, skill=1.0) for name in "abc"]
    whole = votes(voters, world.given_labels)

    def one_by_one(num_rows: int, _columns: int) -> Iterator[slice]:
        return (slice(row, row + 1) for row in range(num_rows))

    monkeypatch.setattr(weights, "row_chunks", one_by_one)
    found = votes(voters, world.given_labels)
    np.testing.assert_array_equal(found.with_others, whole.with_others)
    np.testing.assert_array_equal(found.with_given, whole.with_given)
    np.testing.assert_array_equal(found.obeys, whole.obeys)
    np.testing.assert_array_equal(found.others_agree, whole.others_agree)
    assert whole.with_others.sum(axis=1).tolist() == [195, 195, 195]


def test_skill__by_hand() -> None:
    seen = Votes(
        np.array([[6, 2]]), np.array([[5, 3]]), np.array([[0.5, 0.2]]), np.zeros(1), np.zeros(1), np.ones(1)
    )
    of_others = (6 / 8 - 0.5) / 0.5 * 8  # rows beyond chance
    beyond_memory = ((5 / 8 - 0.2) / 0.8 - 0.2) / 0.8 * 8
    odds = (beyond_memory + 1) / (8 - beyond_memory + 1)
    expected = (of_others + 1) / (8 - of_others + 1) * odds**4 * 0.8**2
    np.testing.assert_allclose(seen.skill(np.array([0.2])), expected)


def test_skill__of_a_parrot_and_of_nobody_is_finite() -> None:
    none = np.zeros(2)
    seen = Votes(
        np.array([[0, 8], [0, 0]]), np.array([[8, 0], [0, 0]]), np.zeros((2, 2)), none, none, np.ones(2)
    )
    found = seen.skill(np.array([1.0, 0.0]))
    assert np.isfinite(found).all()
    assert found[0] == 0.0


def test_weightings__powers_of_skill_and_their_floor() -> None:
    # a and b agree with all others and all labels, c in 6 of 8 rows: 4 of 8 beyond chance.
    given = np.array([0] * 4 + [1] * 4)
    a, b = sure_of("a", given.tolist()), sure_of("b", given.tolist())
    c = sure_of("c", [0] * 3 + [1] * 4 + [0])
    found = leading([a, b, c], given, parted=False, noise_rate=0.2)
    powers: NDArray[np.float64] = np.array([9.0 * 9.0**4, 9.0 * 9.0**4, 1.0]) ** 2.5
    shares = np.maximum(powers / powers.sum(), 0.1 / 3)
    np.testing.assert_allclose(list(found.weights.values()), shares / shares.sum())
    assert "Weights by agreement" in found.title
    assert "a most, with 48%" in found.why


def test_weightings__one_better_than_a_herd_counts_most_though_it_agrees_least() -> None:
    world = make_world(3_000, rate=0.2)
    best = make_witness(world, "best", skill=2.5)
    leader = make_witness(world, "herd", skill=1.2)
    assert leader.pred_probs is not None
    herd = [leader]
    for k in range(3):
        noise = np.random.default_rng(k).normal(scale=0.3, size=leader.pred_probs.shape)
        probs = leader.pred_probs * np.exp(noise)
        herd.append(Witness(f"follower {k}", leader.trust_score, probs / probs.sum(axis=1, keepdims=True)))
    agreed, differed = votes([best, *herd], world.given_labels).with_others.T
    assert (agreed / differed).argmin() == 0
    found = leading([best, *herd], world.given_labels, parted=False, noise_rate=0.2).weights
    assert max(found, key=found.__getitem__) == "best"


@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_weightings__one_that_memorized_labels_counts_least(share: float) -> None:
    world = make_world(3_000, rate=0.2)
    honest = [make_witness(world, name, skill=3.0) for name in "abc"]
    probs = np.array(make_witness(world, "parrot", skill=3.0).pred_probs)
    known = np.random.default_rng(0).random(len(probs)) < share
    probs[known] = 0.01
    probs[known, world.given_labels[known]] = 0.97
    parrot = Witness("parrot", probs[np.arange(len(probs)), world.given_labels], probs)
    seen = votes([*honest, parrot], world.given_labels)
    assert seen.with_given[:, 0].argmax() == 3, "it agrees with most labels"
    assert seen.obeys[3] == pytest.approx(share, abs=0.1)
    found = leading([*honest, parrot], world.given_labels, parted=False, noise_rate=0.2).weights
    assert found["parrot"] == min(found.values()) < 0.07


@pytest.mark.parametrize("num_classes", [4, 10])
def test_combine__one_good_witness_among_some_that_know_nothing_never_counts_less_than_they(
    num_classes: int,
) -> None:
    """All it obeys looks like memory to those who doubt at random."""
    for seed in range(3):
        world = make_world(3_000, num_classes, rate=0.05, seed=seed)
        good = make_witness(world, "good", skill=2.5, seed=seed)
        blind = [make_witness(world, name, skill=0.0, seed=seed) for name in "bc"]
        assert votes([good, *blind], world.given_labels).obeys[0] > 0.7
        found = combine([good, *blind], world.given_labels, num_classes)
        assert found.weights["good"] > 0.33
        equal = detection(world, found.witness_ranks.mean(axis=1))
        assert detection(world, found.trust_score) > equal


def test_weightings__parted_witnesses_of_which_none_separates_weigh_by_agreement() -> None:
    world = make_world(2_000, rate=0.3)
    unsure = [make_witness(world, name, skill=0.8) for name in "abc"]
    assert max(separation(one, world.given_labels) for one in unsure) < ONE_GROUP
    found = leading(unsure, world.given_labels, parted=True, noise_rate=0.2)
    assert found == leading(unsure, world.given_labels, parted=False, noise_rate=0.2)
    assert found.title == "Weights by agreement"


def test_combine__heads_that_know_less_than_their_trunk_do_not_lead() -> None:
    world = make_world(3_000, rate=0.2)
    trunk = make_witness(world, "trunk", skill=2.0)
    assert trunk.pred_probs is not None
    heads = []
    for k in range(3):  # they agree with each other, as those do that share an eye
        noise = np.random.default_rng([7, k]).normal(scale=0.1, size=trunk.pred_probs.shape)
        noise += np.random.default_rng([8, 8]).normal(scale=0.6, size=trunk.pred_probs.shape)
        probs = trunk.pred_probs * np.exp(noise)
        probs = (probs / probs.sum(axis=1, keepdims=True)).astype(np.float32)
        trust = probs[np.arange(len(probs)), world.given_labels]
        heads.append(Witness(f"head {k}", trust, probs, trunk="trunk"))
    found = combine([*heads, trunk], world.given_labels, 4)
    assert found.weighting == "trunk"
    assert found.weights["trunk"] > 0.8
    assert "of its weight is theirs." in found.weights_sentence
    alone = [Witness(one.name, one.trust_score, one.pred_probs) for one in heads]
    fooled = combine([*alone, trunk], world.given_labels, 4)
    assert detection(world, found.trust_score) > detection(world, fooled.trust_score) + 0.01


def test_weightings__a_head_counts_by_how_far_it_parts_from_its_trunk() -> None:
    trunk = make_witness(make_world(50), "t")
    like, parts, silent = (Witness(name, trunk.trust_score, trunk.pred_probs, trunk="t") for name in "lps")
    correlations = np.eye(4)
    correlations[1] = [0.9, 1.0, 0.5, np.nan]
    found = weightings(
        [like, trunk, parts, silent],
        make_world(50).given_labels,
        parted=False,
        noise_rate=0.2,
        correlations=correlations,
    )
    beside = [0.05 + 0.4**4, 1.0, 0.05 + 2.0**4, 0.05]
    assert list(found[0].weights) == ["l", "t", "p", "s"], "in the order of the witnesses"
    np.testing.assert_allclose(list(found[0].weights.values()), np.array(beside) / sum(beside))
    assert found[0].title == "The network on the images leads"
    assert "for p ranks very differently" in found[0].why


def test_combine__a_head_that_knows_more_than_its_trunk_is_heard() -> None:
    """As L2B's does under pair flips, which its trunk cannot see."""
    world = make_world(3_000, rate=0.3)
    good, blind = make_witness(world, "good", skill=2.0), make_witness(world, "blind", skill=0.3)
    like = Witness("like", blind.trust_score, blind.pred_probs, trunk="blind")
    parts = Witness("good", good.trust_score, good.pred_probs, trunk="blind")
    found = combine([blind, like, parts], world.given_labels, 4)
    assert "good ranks very differently" in found.weights_sentence
    assert detection(world, found.trust_score) > detection(world, blind.trust_score) + 0.1
    candidates = _with_ranks([blind, like, parts], world)
    assert [one.name for one in candidates] == ["trunk", "equal", "good alone"], "verified rows may choose it"


def _with_ranks(witnesses: list[Witness], world: World) -> tuple[Weighting, ...]:
    correlations = np.corrcoef([one.trust_score.argsort().argsort() for one in witnesses])
    return weightings(witnesses, world.given_labels, parted=False, noise_rate=0.2, correlations=correlations)


def test_weightings__beside_others_a_trunk_and_its_heads_are_one_witness() -> None:
    world = make_world(2_000, rate=0.2)
    trunk, other = make_witness(world, "trunk", skill=2.0), make_witness(world, "other", skill=2.0, seed=5)
    heads = [Witness(name, trunk.trust_score, trunk.pred_probs, trunk="trunk") for name in ("h", "i")]
    two = leading([trunk, other], world.given_labels, parted=False, noise_rate=0.2)
    found = leading([trunk, *heads, other], world.given_labels, parted=False, noise_rate=0.2)
    assert found.name == two.name == "agreement"
    assert found.weights["other"] == pytest.approx(two.weights["other"])
    assert found.weights["h"] == found.weights["i"] == pytest.approx(0.05 * found.weights["trunk"])
    # Without its trunk a head is a witness as any other.
    assert leading([*heads, other], world.given_labels, parted=False, noise_rate=0.2).weights.keys() == {
        "h",
        "i",
        "other",
    }


def test_weightings__silent_witness_weighs_as_the_others_on_average() -> None:
    voters = [sure_of(name, [0] * 8) for name in "abc"]
    silent = Witness("silent", np.arange(8, dtype=np.float32))
    found = leading([*voters, silent], np.zeros(8, int), parted=False, noise_rate=0.2).weights
    assert found == pytest.approx(dict.fromkeys(["a", "b", "c", "silent"], 0.25))


@pytest.mark.parametrize("parted", [False, True])
def test_weightings__where_fewer_than_two_predict_all_weigh_the_same(parted: bool) -> None:
    silent = [Witness(name, np.arange(4, dtype=np.float32)) for name in "ab"]
    assert leading(silent, np.zeros(4, int), parted=parted, noise_rate=0.2).weights == {
        "a": 0.5,
        "b": 0.5,
    }
    one = [sure_of("a", [0, 1, 2, 0]), silent[1]]
    assert leading(one, np.zeros(4, int), parted=False, noise_rate=0.2).title == "Equal weights"


def test_combine__agreement_ranks_better_than_equal_weights() -> None:
    gains = []
    for seed in range(10):
        world = make_world(2_000, rate=0.2, seed=seed)
        good = [make_witness(world, name, skill=2.0, seed=seed + k) for k, name in enumerate("abc")]
        dull = make_witness(world, "d", skill=0.7, seed=seed + 9)
        found = leading([*good, dull], world.given_labels, parted=False, noise_rate=0.2).weights
        assert found["d"] < min(found[name] for name in "abc")
        ranks = combine([*good, dull], world.given_labels, 4).witness_ranks
        weighted = ranks @ np.array(list(found.values()))
        gains.append(detection(world, weighted) - detection(world, ranks.mean(axis=1)))
    assert np.mean(gains) > 0


def test_combine__suggestions_follow_the_weights() -> None:
    world = make_world(3_000, rate=0.2)
    good, *dull = [
        make_witness(world, name, skill=skill) for name, skill in zip("abcd", (3, 1, 1, 1), strict=True)
    ]
    found = combine([good, *dull], world.given_labels, 4)
    assert found.weights["a"] > 0.7
    is_right = found.suggested_label == world.true_labels
    equal = np.mean([one.pred_probs for one in [good, *dull] if one.pred_probs is not None], axis=0)
    equal[np.arange(3_000), world.given_labels] = -1
    by_equal = equal.argmax(axis=1) == world.true_labels
    assert is_right[world.is_wrong].mean() > by_equal[world.is_wrong].mean() + 0.02


def skewed_world(num_classes: int, *, is_long: bool, num_samples: int = 3_000) -> World:
    """A tenth of the labels wrong; with a long tail, class k holds a share of 1 / (k + 1)."""
    rng = np.random.default_rng(0)
    share = 1.0 / np.arange(1, num_classes + 1) if is_long else np.ones(num_classes)
    true = rng.choice(num_classes, num_samples, p=share / share.sum())
    given = true.copy()
    wrong = rng.permutation(num_samples)[: num_samples // 10]
    given[wrong] = (true[wrong] + 1 + rng.integers(num_classes - 1, size=len(wrong))) % num_classes
    return World(true, given, num_classes)


def saying(world: World, name: str, classes: NDArray[np.integer], *, seed: int) -> Witness:
    """One as sure of these classes as a good network is of the true ones, judged by the given labels."""
    told = make_witness(
        World(classes, classes, world.num_classes), name, skill=4 + np.log(world.num_classes), seed=seed
    )
    assert told.pred_probs is not None
    return Witness(name, told.pred_probs[np.arange(len(classes)), world.given_labels], told.pred_probs)


RULES = {"agreement": (1.0, 1.0, 1.0), "separation": (4.0, 0.7, 0.7), "smoothness": (2.5, 2.5, 1.0)}
"""What leads -> skills of three witnesses, beyond that with two classes, among which it leads."""


@pytest.mark.parametrize(
    ("rule", "num_classes", "is_long"),
    [(rule, num, is_long) for rule in RULES for num in (2, 10) for is_long in (False, True)]
    + [("separation", 1_000, True)],
)
def test_combine__who_says_nothing_costs_nothing_and_who_merges_classes_little(
    rule: str, num_classes: int, is_long: bool
) -> None:
    """Whatever leads: constant, permuted, random and merged classes, few and many classes, a long tail."""
    world = skewed_world(num_classes, is_long=is_long, num_samples=1_200 if num_classes > 100 else 3_000)
    rng = np.random.default_rng(1)
    near = None
    if rule == "smoothness":
        near = np.stack(
            [rng.choice(np.flatnonzero(world.true_labels == one), 4) for one in world.true_labels]
        )
    skills = [one + np.log(num_classes / 2) for one in RULES[rule]]
    known = [make_witness(world, name, skill=one) for name, one in zip("abc", skills, strict=True)]
    empty, true = np.zeros(len(world.true_labels), dtype=np.int64), world.true_labels
    says = {"none": empty, "one": empty + 1, "turned": (true + 1) % num_classes}
    says["random"] = rng.integers(num_classes, size=len(true))
    useless = [saying(world, name, classes, seed=7) for name, classes in says.items()]

    def together(*more: Witness) -> tuple[str, float, dict[str, float]]:
        found = combine([*known, *more], world.given_labels, num_classes, neighbours=near)
        return found.weighting, detection(world, found.trust_score), dict(found.weights)

    leads, alone, weights_alone = together()
    # With two classes nobody agrees so little that he separates and yet says something: agreement leads there.
    assert leads == (rule if rule != "separation" or num_classes > 2 else "agreement")
    leads_still, with_useless, found = together(*useless)
    assert leads_still == leads
    assert with_useless == pytest.approx(alone, abs=1e-9)
    assert [found[name] for name in says] == [0.0] * 4
    assert [found[name] for name in "abc"] == pytest.approx([weights_alone[name] for name in "abc"])
    _, with_merged, found = together(saying(world, "merged", true // 2 * 2, seed=8))
    assert with_merged > alone - 0.001
    assert found["merged"] < 0.05


def test_combine__what_a_useless_witness_alone_speaks_of_is_ranked_all_the_same() -> None:
    world = make_world(1_000, rate=0.1)
    good = make_witness(world, "good", skill=3.0)
    assert good.pred_probs is not None
    good.trust_score[:100] = np.nan
    good.pred_probs[:100] = np.nan
    constant = saying(world, "constant", np.zeros(1_000, dtype=np.int64), seed=3)
    found = combine([good, constant], world.given_labels, 4)
    assert found.weights["constant"] == 0.0
    assert (
        "Not heard, because what it predicts says nothing about the labels: constant."
        in found.weights_sentence
    )
    assert not found.structured_noise, "who says nothing shows no pattern"
    assert np.isfinite(found.trust_score).all()


def test_separation__probabilities_written_by_hand_show_no_groups() -> None:
    world = make_world(500, rate=0.2)
    by_hand = sure_of("hand", world.true_labels.tolist(), num_classes=4)
    assert separation(by_hand, world.given_labels) == 0.0


def test_votes__chance_and_shares_of_classes_by_hand() -> None:
    # a: 3 of 4 say class 0; b: half; the labels: half.
    a, b = sure_of("a", [0, 0, 0, 1]), sure_of("b", [0, 1, 0, 1])
    found = votes([a, b], np.array([0, 0, 1, 1]))
    assert found.chance.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert found.fit == pytest.approx([0.5, 0.0])  # 3 of 4 and 2 of 4 right
    assert found.moved == pytest.approx([0.25, 0.0])
