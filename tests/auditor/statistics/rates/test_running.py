"""Lists that are promised while people look on: at every moment, at every level, over draws that go on."""

import re

import numpy as np
import pytest

from auditor.statistics.rates.running import LENGTHS, Looks, running_promises
from auditor.statistics.rates.zones import draw_zones
from tests.auditor.statistics.rates.test_promises import N, score_world

LEVELS = (0.1, 0.2)


def looked_at(seed, *, rate=0.15, gap=3.0, unsure=0.0, guessed=0.15, order=None):
    """(places, is_false, which labels of the head are right) of one world: the head in random order."""
    trust, given, true = score_world(seed, rate=rate, gap=gap)
    head = np.argsort(trust, kind="stable")[: round(2 * guessed * N)]
    is_right = (given == true)[head]
    places = np.random.default_rng([seed, 9]).permutation(len(head)) if order is None else order(len(head))
    doubtful = np.random.default_rng([seed, 8]).random(len(head)) < unsure
    return places, (is_right | doubtful)[places], is_right


def false_share_left(promise, places, is_right):
    """The share of right labels among those of the list that nobody looked at; 0 without a list."""
    left = np.setdiff1d(np.arange(promise.length), places)
    return float(is_right[left].mean()) if len(left) else 0.0


@pytest.mark.parametrize(
    ("rate", "gap", "guessed", "unsure"),
    [(0.15, 3.0, 0.15, 0.0), (0.3, 2.0, 0.3, 0.0), (0.05, 4.0, 0.05, 0.0), (0.15, 4.0, 0.15, 0.05)],
    ids=["usual", "a weak ranking", "a tiny head", "unsure judges"],
)
def test_running_promises__hold_at_every_look_and_level_together(rate, gap, guessed, unsure):
    broken, lists = 0, 0
    for seed in range(200):
        places, is_false, is_right = looked_at(seed, rate=rate, gap=gap, guessed=guessed, unsure=unsure)
        ever = False
        for num in range(10, len(places), max(10, len(places) // 12)):
            for q, one in running_promises(
                Looks(places[:num], is_false[:num]), len(places), levels=LEVELS
            ).items():
                lists += one.is_kept
                ever |= false_share_left(one, places[:num], is_right) > q
        broken += ever
    assert broken <= 0.05 * 200
    assert lists > 50, "a promise that lists nothing would keep anything"


def test_running_promises__a_list_taken_as_soon_as_it_looks_good_keeps_its_rate():
    """What breaks a promise on a fixed draw (``test_promise__a_list_taken_as_soon_as_it_looks_good_breaks_it``)."""
    shares = []
    for seed in range(200):
        places, is_false, is_right = looked_at(seed, rate=0.3, gap=2.5, guessed=0.3)
        for num in range(50, len(places), 25):
            one = running_promises(Looks(places[:num], is_false[:num]), len(places), levels=(0.2,))[0.2]
            if one.is_kept:
                shares.append(false_share_left(one, places[:num], is_right))
                break
    assert len(shares) > 150
    assert np.mean(np.array(shares) > 0.2) <= 0.05


def test_running_promises__draws_that_go_on_count_as_one():
    """A second draw of the same ranking, made because the first backed no list, takes from what the first left."""
    broken, second_helps = 0, 0
    for seed in range(200):
        trust, given, true = score_world(seed, rate=0.1, gap=3.0)
        order = np.argsort(trust, kind="stable")
        rng = np.random.default_rng([seed, 5])
        first = draw_zones(order, 0.1, 100, rng)
        head, is_right = first.head, (given == true)[first.head]
        place_of = {int(sample): place for place, sample in enumerate(head)}
        places = [place_of[int(one)] for one in first.sample_ids if int(one) in place_of]
        at_first = running_promises(Looks(np.array(places), is_right[places]), len(head), levels=(0.2,))[0.2]
        told = at_first
        if not at_first.is_kept:
            left = np.setdiff1d(order, first.sample_ids, assume_unique=True)
            second = draw_zones(order[np.isin(order, left)], 0.1, 200, rng)
            assert set(head) - set(first.sample_ids) <= set(second.head), "the list must be covered"
            places += [place_of[int(one)] for one in second.sample_ids if int(one) in place_of]
            told = running_promises(Looks(np.array(places), is_right[places]), len(head), levels=(0.2,))[0.2]
            second_helps += told.is_kept
        broken += false_share_left(told, places, is_right) > 0.2
    assert broken <= 0.05 * 200
    assert second_helps > 20


def test_running_promises__rows_that_were_picked_break_it():
    """The order must be random: whoever looks at the most suspicious first learns nothing about the others."""
    broken = 0
    for seed in range(100):
        places, is_false, is_right = looked_at(seed, rate=0.1, gap=3.0, guessed=0.3, order=np.arange)
        one = running_promises(Looks(places[:150], is_false[:150]), len(places), levels=(0.2,))[0.2]
        broken += false_share_left(one, places[:150], is_right) > 0.2
    assert broken > 50


def most_false(promised):
    """How many labels of the list are right at most."""
    return int(re.search(r"of these \((\d+)\)", promised.sentence)[1])


def test_running_promises__by_hand():
    found = running_promises(Looks(np.arange(0), np.zeros(0, dtype=bool)), 400, levels=(0.1,))[0.1]
    assert (found.is_kept, found.num_left) == (False, 0)
    places = np.arange(0, 400, 2)
    found = running_promises(Looks(places, np.zeros(200, dtype=bool)), 400, levels=(0.1,))[0.1]
    assert (found.length, found.num_left) == (300, 150)
    assert 0 < most_false(found) <= 15
    assert "at whichever look you stop (200 so far)" in found.sentence
    everything = running_promises(Looks(np.arange(400), np.ones(400, dtype=bool)), 400, levels=(0.1,))[0.1]
    assert not everything.is_kept


def test_running_promises__what_is_known_otherwise_leaves_the_list_and_backs_nothing():
    places, right = np.arange(0, 400, 2), np.zeros(200, dtype=bool)
    alone = running_promises(Looks(places, right), 400, levels=(0.1,))[0.1]
    others = np.arange(1, 41, 2)
    known = Looks(places, right, others, np.arange(20) < 5)
    found = running_promises(known, 400, levels=(0.1,))[0.1]
    assert (found.length, found.num_left) == (alone.length, alone.num_left - 20)
    assert most_false(found) == most_false(alone) - 5


def test_running_promises__refuses_what_cannot_be():
    with pytest.raises(ValueError, match="use 0.1 for 10 %"):
        running_promises(Looks(np.arange(3), np.zeros(3, dtype=bool)), 10, levels=(10,))
    for places in ([1, 1], [10], [-1]):
        with pytest.raises(ValueError, match=r"places must lie in 0\.\.9"):
            running_promises(Looks(np.array(places), np.zeros(len(places), dtype=bool)), 10)


def test_lengths__rise():
    assert list(LENGTHS) == sorted(set(LENGTHS))
