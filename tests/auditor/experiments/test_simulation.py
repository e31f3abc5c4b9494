"""The tournament on planted errors, with judges that know nothing, something or everything."""

import numpy as np
import pytest

from auditor.experiments.planting import BUDGETS, Recovery
from auditor.experiments.simulation import Trial, plant_trials, play, tournament
from auditor.ground.errors import AuditFailedError
from tests.auditor.statistics.worlds import make_witness, make_world

SEEDS = [0, 1, 2]
LIKELY, BY_MATRIX = "second most likely class", "estimated transition matrix"


def played():
    world = make_world(600, 4, rate=0.05)
    probs = make_witness(world, skill=3.0).pred_probs
    uniform = np.full((4, 4), 0.25)
    planted = plant_trials(world.given_labels, [probs], uniform, rate=0.1, seeds=SEEDS)

    def coin(labels, seed):
        return np.random.default_rng(seed).random(len(labels)), 4.0

    def oracle(labels, seed):
        return (labels == world.given_labels) + 1e-3 * coin(labels, seed)[0], 1.0

    def twin(labels, seed):
        return oracle(labels, seed + 100)

    def model(labels, seed):
        return probs[np.arange(len(labels)), labels], 2.0

    return play(planted, {"coin": coin, "model": model, "oracle": oracle, "twin": twin})


def test_tournament__ranks_who_knows_more_first():
    trials = played()
    assert len(trials) == 24  # two kinds for each of three seeds, four engines
    result = tournament(trials)
    assert [one.kind for one in result.rounds] == [LIKELY, BY_MATRIX]
    for one in result.rounds:
        assert one.best in ("oracle", "twin")
        assert set(one.table["engine"][:2]) == {"oracle", "twin"}
        assert one.table["engine"].tolist()[2:] == ["model", "coin"]
        assert one.table["too_small_to_tell"].tolist() == [False, True, False, False]
        assert one.table["auroc"].iloc[3] == pytest.approx(0.5, abs=0.07)
        assert (one.table["trials"] == 3).all()
        assert one.table["seconds"].tolist() == [1.0, 1.0, 2.0, 4.0]
    assert "real mistakes are harder to find" in result.warning


def test_tournament__names_the_winner_at_every_budget():
    one = tournament(played()).rounds[0]
    assert [(winner.budget, winner.num_labels) for winner in one.winners] == [
        *((0.01, 6), (0.02, 12), (0.05, 30), (0.10, 60))
    ]
    for winner in one.winners:
        # 60 planted among 600: 1 % of the labels hold at most 6 of them, a tenth.
        assert winner.at_most == pytest.approx(winner.budget / 0.1)
        assert set(winner.engines) == {"oracle", "twin"}
        assert winner.found == pytest.approx(winner.at_most)
        assert not winner.too_small_to_tell
    last = one.table.set_index("engine").found_at_10
    assert last["coin"] < 0.3 < last["model"] <= last["oracle"] == 1.0
    assert "oracle and twin at 1% (10% of at most 10%)" in one.sentence
    assert "60 among 600 labels, 3 trials" in one.sentence


def test_plant_trials__a_matrix_that_moves_nothing_is_left_out():
    world = make_world(200)
    probs = make_witness(world).pred_probs
    planted = plant_trials(world.given_labels, [probs], np.eye(4), rate=0.1, seeds=SEEDS)
    assert [seed for seed, _ in planted] == SEEDS
    assert {one.kind for _, one in planted} == {LIKELY}


def trial(engine, seed, auroc, *, kind=LIKELY, found=0.5):
    recovery = Recovery(auroc, auroc, auroc, dict.fromkeys(BUDGETS, found), 10, 100, "")
    return Trial(engine, kind, seed, 2.0, recovery)


def test_tournament__one_trial_tells_nothing():
    one = tournament([trial("a", 0, 0.9, found=0.6), trial("b", 0, 0.6)]).rounds[0]
    assert one.table["too_small_to_tell"].tolist() == [False, True]
    assert np.isnan(one.table["behind_low"]).all()
    assert one.winners[0].too_small_to_tell == ("b",)
    assert "One trial gives no interval; three seeds do." in one.sentence


def test_tournament__kinds_are_no_replicates_of_each_other():
    first = [trial("a", 0, 0.9), trial("b", 0, 0.6)]
    second = [trial("a", 0, 0.7, kind=BY_MATRIX), trial("b", 0, 0.95, kind=BY_MATRIX)]
    result = tournament(first + second)
    assert [one.best for one in result.rounds] == ["a", "b"]
    for one in result.rounds:
        assert (one.table["trials"] == 1).all()
        assert np.isnan(one.table[["behind_low", "behind_high"]]).all(axis=None)


def test_tournament__another_engine_wins_where_more_is_looked_at():
    scores = {
        "a": {0.01: 0.1, 0.02: 0.2, 0.05: 0.3, 0.10: 0.4},
        "b": {0.01: 0.0, 0.02: 0.1, 0.05: 0.4, 0.10: 0.8},
    }
    trials = [
        Trial(engine, LIKELY, seed, 1.0, Recovery(0.9, 0.9, 0.9, found, 10, 100, ""))
        for engine, found in scores.items()
        for seed in SEEDS
    ]
    winners = tournament(trials).rounds[0].winners
    assert [winner.engines for winner in winners] == [("a",), ("a",), ("b",), ("b",)]


def test_tournament__nobody_wins_where_nothing_is_found():
    one = tournament([trial(engine, 0, 0.5, found=0.0) for engine in "ab"]).rounds[0]
    assert one.winners[0].engines == ()
    assert "nobody at 1% (0% of at most 10%)" in one.sentence


def test_tournament__refuses_unfair_games():
    with pytest.raises(AuditFailedError, match="no trial was run"):
        tournament([])
    with pytest.raises(AuditFailedError, match="b missed some trials"):
        tournament([trial("a", 0, 0.9), trial("b", 0, 0.6), trial("a", 1, 0.9)])
