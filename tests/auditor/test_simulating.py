"""The tournament on planted errors, with judges that know nothing, something or everything."""

import numpy as np
import pytest

from auditor.errors import AuditFailedError
from auditor.planting import Recovery
from auditor.simulating import Trial, plant_trials, play, tournament
from tests.auditor.worlds import make_witness, make_world

SEEDS = [0, 1, 2]


def played():
    world = make_world(600, 4, rate=0.05)
    probs = make_witness(world, skill=3.0).pred_probs
    uniform = np.full((4, 4), 0.25)
    planted = plant_trials(world.given_labels, probs, uniform, rate=0.1, seeds=SEEDS)

    def judge(labels, seed):
        rng = np.random.default_rng(seed)
        right = (labels == world.given_labels).astype(float)
        rows = np.arange(len(labels))
        return {
            "coin": rng.random(len(labels)),
            "model": probs[rows, labels],
            "oracle": right + 1e-3 * rng.random(len(labels)),
            "twin": right + 1e-3 * rng.random(len(labels)),
        }

    seen = []
    return play(planted, judge, on_trial=lambda done, total: seen.append((done, total))), seen


def test_tournament__ranks_who_knows_more_first():
    trials, seen = played()
    assert seen == [(done, 6) for done in range(1, 7)]  # two kinds for each of three seeds
    result = tournament(trials)
    assert result.best in ("oracle", "twin")
    assert set(result.table["engine"][:2]) == {"oracle", "twin"}
    assert result.table["engine"].tolist()[2:] == ["model", "coin"]
    assert result.table["too_small_to_tell"].tolist() == [False, True, False, False]
    assert result.table["auroc"].iloc[3] == pytest.approx(0.5, abs=0.05)
    assert (result.table["trials"] == 6).all()
    assert "too small to tell from" in result.sentence
    assert "do not tell how many of the real errors" in result.warning


def test_plant_trials__a_matrix_that_moves_nothing_is_left_out():
    world = make_world(200)
    probs = make_witness(world).pred_probs
    planted = plant_trials(world.given_labels, probs, np.eye(4), rate=0.1, seeds=SEEDS)
    assert [seed for seed, _ in planted] == SEEDS
    assert {one.kind for _, one in planted} == {"second most likely class"}


def trial(engine, seed, auroc):
    return Trial(engine, "kind", seed, Recovery(auroc, auroc, auroc, 5, ""))


def test_tournament__one_trial_tells_nothing():
    result = tournament([trial("a", 0, 0.9), trial("b", 0, 0.6)])
    assert result.table["too_small_to_tell"].tolist() == [False, True]
    assert np.isnan(result.table["behind_low"]).all()


def test_tournament__refuses_unfair_games():
    with pytest.raises(AuditFailedError, match="no trial was played"):
        tournament([])
    with pytest.raises(AuditFailedError, match="b missed some trials"):
        tournament([trial("a", 0, 0.9), trial("b", 0, 0.6), trial("a", 1, 0.9)])
