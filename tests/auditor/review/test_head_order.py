"""The head in random order: what looks promise while people go on."""

from __future__ import annotations

import json

import numpy as np
import pytest

from auditor.catalog import draws
from auditor.catalog.db import session
from auditor.ground.errors import VerificationError
from auditor.review import blind, decisions, drawing, head_order
from auditor.statistics import Looks, running_promises
from tests.auditor.conftest import Run
from tests.helpers import Digits


def judge(digits: Digits, samples: list[int]) -> None:
    """Decide truthfully, as the bench does."""
    for sample in samples:
        true = int(digits.true_labels[sample])
        decisions.decide(1, sample, "relabel", label=true, reviewer="ada", audit_id=1)


def test_start__is_the_same_order_ever_after_and_no_draw(audited: tuple[Digits, int]) -> None:
    assert head_order.of_audit(1) is None
    first, second = head_order.start(1), head_order.start(1)
    assert first == second
    assert sorted(first.sample_ids) == sorted(first.head)
    assert first.sample_ids != first.head
    assert drawing.num_drawn(1) == 0
    with session() as open_session:
        assert draws.of_dataset(open_session, 1) == []
    with pytest.raises(VerificationError, match=r"is the order of a review"):
        blind.record(first.id, first.head[0], "unsure", reviewer="ada")


def test_start__leaves_out_what_was_decided_or_drawn(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    drawn = drawing.draw("digits", 30, seed=1).sample_ids
    judge(digits, [sample for sample in range(40) if sample not in drawn])
    order = head_order.start(1)
    assert not set(order.head) & {*drawn, *range(40)}


def test_shown__counts_a_random_beginning_and_knows_the_others(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    order = head_order.start(1)
    place_of = {sample: place for place, sample in enumerate(order.head)}
    judge(digits, order.sample_ids[:40])
    picked = order.sample_ids[-5:]
    judge(digits, picked)
    found = head_order.shown(1, levels=(0.5, 0.9))
    is_right = digits.given_labels == digits.true_labels

    def seen(samples: list[int]) -> tuple[np.ndarray, np.ndarray]:
        return np.array([place_of[one] for one in samples]), is_right[samples]

    by_hand = running_promises(
        Looks(*seen(order.sample_ids[:40]), *seen(picked)), len(order.head), levels=(0.5, 0.9)
    )
    assert (found.num_looks, found.num_head) == (45, len(order.head))
    assert found.promises == by_hand


def test_shown__a_sample_that_was_passed_over_counts_as_false(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    order = head_order.start(1)
    judge(digits, order.sample_ids[:30] + order.sample_ids[31:60])
    assert len(head_order.waiting(order)) == len(order.head) - 59
    assert "59 looks" not in head_order.shown(1, levels=(0.01,)).sentence
    assert "60 looks" in head_order.shown(1, levels=(0.01,)).sentence


def test_shown__blind_verdicts_on_the_order_are_told_apart(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    order = head_order.start(1)
    drawn = drawing.draw("digits", 60, seed=0, purpose="promises")
    looked = [one for one in drawn.sample_ids if one in set(order.head)]
    assert head_order.num_blind_first(1) == len(looked)
    assert set(head_order.waiting(order)) == set(order.head) - set(looked)
    for sample in drawn.sample_ids:
        label = int(digits.true_labels[sample])
        blind.record(drawn.id, sample, "label", label=label, reviewer="ada")
    assert head_order.num_blind_first(1) == 0
    found = head_order.shown(1)
    assert found.num_looks == found.num_blind == len(looked) > 0
    assert found.caution == ""
    judge(digits, [one for one in order.sample_ids if one not in looked][:30])
    found = head_order.shown(1)
    assert (found.num_looks, found.num_blind) == (len(looked) + 30, len(looked))
    assert found.caution.startswith(f"30 of these {found.num_looks} looks had the suggestion in view. If it")
    only_blind = head_order.blind(1)
    assert only_blind.num_looks == only_blind.num_blind


def test_blind__a_further_draw_of_the_same_ranking_goes_on(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    assert head_order.blind(1) is None
    looks = []
    for seed in (0, 1):
        drawn = drawing.draw("digits", 40, seed=seed, purpose="promises")
        for sample in drawn.sample_ids:
            label = int(digits.true_labels[sample])
            blind.record(drawn.id, sample, "label", label=label, reviewer="ada")
        looks.append(head_order.blind(1).num_looks)
    assert looks[0] == 28
    assert looks[1] > looks[0] + 15


def test_verify__so_far(audited: tuple[Digits, int], run: Run) -> None:
    digits, _ = audited
    code, _, err = run("verify", "digits", "--so-far")
    assert code == 1
    assert "Nobody has looked at audit 1 in random order yet; draw for promises first." in err
    order = head_order.start(1)
    judge(digits, order.sample_ids)
    code, out, _ = run("verify", "digits", "--so-far", "--count-shown")
    assert code == 0
    assert head_order.SHOWN in out.replace("\n", " ")
    found = json.loads(run("verify", "digits", "--so-far", "--count-shown", "--json")[1])
    assert all(promise["sentence"] in out for promise in found["promises"])
    assert (found["looks"], found["blind_looks"]) == (len(order.head), 0)
    assert run("verify", "digits", "--count-shown")[0] == 2
