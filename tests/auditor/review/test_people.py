"""Planted controls and agreement: kept apart from what decides labels and from promises."""

from __future__ import annotations

import json

import pytest

from auditor.audits import statements
from auditor.ground.errors import VerificationError
from auditor.review import blind, decisions, drawing, log, people
from tests.auditor.conftest import Run
from tests.helpers import Digits

TWO = ("ada", "bob")


def settle_by_two(digits: Digits, samples: list[int]) -> None:
    for name in TWO:
        for sample in samples:
            true = int(digits.true_labels[sample])
            decisions.decide(1, sample, "relabel", label=true, reviewer=name)


def test_planted__settled_samples_stand_behind_drawn_ones_at_the_rate(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    drawn = drawing.draw("digits", 200).sample_ids
    free = [sample for sample in range(300) if sample not in drawn]
    settle_by_two(digits, free[:40])
    pending = blind.pending(1)
    dealt = people.planted(1, pending, "eve", 0.2)
    assert dealt == people.planted(1, pending, "eve", 0.2)
    controls = [one for one in dealt if one not in pending]
    assert [one for one in dealt if one in pending] == pending
    assert 20 <= len(controls) <= 60
    assert set(free[:40]) >= {sample for _, sample in controls[:20]} or len(controls) > 20
    assert people.planted(1, pending, "eve", 0.0) == pending
    seen_by_ada = {sample for _, sample in people.planted(1, pending, "ada", 0.5)} - set(drawn)
    assert not seen_by_ada & set(free[:40]), "whoever settled a control must not meet it again"


def test_record__a_control_decides_nothing(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    draw = drawing.draw("digits", 20)
    control = next(sample for sample in range(300) if sample not in draw.sample_ids)
    settle_by_two(digits, [control])
    before, promised = decisions.outcomes(1), statements.promises(statements.load(1))
    wrong = (int(digits.true_labels[control]) + 1) % 10
    people.record(draw.id, control, "label", label=wrong, reviewer="eve")
    assert decisions.outcomes(1) == before
    assert statements.promises(statements.load(1)).keys() == promised.keys()
    assert blind.num_judged(1) == 0
    assert log.disputed(1) == []
    assert decisions.undo_last(1, "eve") == []
    people.record(draw.id, draw.sample_ids[0], "unsure", reviewer="eve", label=None)
    assert blind.num_judged(1) == 1
    stranger = next(
        one for one in range(300) if one not in {control, *draw.sample_ids} and one not in exemplars()
    )
    with pytest.raises(VerificationError, match="is not part of draw"):
        people.record(draw.id, stranger, "unsure", reviewer="eve", label=None)


def exemplars() -> set[int]:
    """Every sample that may be planted to somebody new."""
    return {
        sample
        for _, sample in people.planted(1, [(1, sample) for sample in range(10_000, 13_000)], "new", 0.5)
    }


def test_people__accuracy_on_controls_and_agreement(audited: tuple[Digits, int], run: Run) -> None:
    digits, _ = audited
    draw = drawing.draw("digits", 20)
    free = [sample for sample in range(300) if sample not in draw.sample_ids][:40]
    settle_by_two(digits, free)
    for place, sample in enumerate(free[:20]):
        label = (int(digits.true_labels[sample]) + (place < 5)) % 10
        people.record(draw.id, sample, "label", label=label, reviewer="eve")
    found = people.people(1)
    eve = next(one for one in found.persons if one.name == "eve")
    assert (eve.right.num_hits, eve.right.num_rows, eve.num_verdicts) == (15, 20, 0)
    assert eve.right.low < 0.75 < eve.right.high
    assert [(pair.first, pair.second, pair.num_same, pair.kappa) for pair in found.pairs] == [
        ("ada", "bob", 40, 1.0)
    ]
    for sample in free[:10]:
        decisions.decide(1, sample, "exclude", reviewer="bob")
    pair = people.people(1).pairs[0]
    assert pair.num_same == 30
    assert 0.5 < pair.kappa < 0.8
    code, out, _ = run("people", "digits")
    assert code == 0
    assert "ada and bob: 30 of 40 labels alike, Cohen's kappa 0." in out
    assert "0 of 20" not in out


@pytest.mark.usefixtures("audited")
@pytest.mark.parametrize("value", ["often", "0.9", "-1", "nan"])
def test_control_rate__refuses_what_is_no_share(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    assert people.control_rate(1) == 0.0
    monkeypatch.setenv("AUDITOR_CONTROLS", value)
    with pytest.raises(VerificationError, match="use a share from 0 to 0.5"):
        people.control_rate(1)


@pytest.mark.usefixtures("audited")
def test_set_control_rate__counts_before_the_environment(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setenv("AUDITOR_CONTROLS", "0.5")
    assert people.control_rate(1) == 0.5
    people.set_control_rate(1, 0.05)
    assert people.control_rate(1) == 0.05
    assert run("people", "digits", "--controls", "0")[1].startswith("No controls are planted.")
    assert people.control_rate(1) == 0.0
    assert json.loads(run("people", "digits", "--controls", "0.2", "--json")[1])["control_rate"] == 0.2
    code, _, err = run("people", "digits", "--controls", "0.6")
    assert (code, people.control_rate(1)) == (1, 0.2)
    assert "use a share from 0 to 0.5" in err


def test_people__three_or_more_have_an_alpha(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    settle_by_two(digits, list(range(40)))
    assert people.people(1).alpha is None
    for sample in range(20, 60):
        decisions.decide(1, sample, "relabel", label=int(digits.true_labels[sample]), reviewer="eve")
    pytest.importorskip("nltk")
    found = people.people(1)
    assert (found.alpha, found.num_shared) == (1.0, 40)
    for sample in range(20, 30):
        decisions.decide(1, sample, "exclude", reviewer="eve")
    # 40 samples with 2 or 3 answers: 10 of them have one of 3 that differs.
    alpha = people.people(1).alpha
    assert alpha is not None
    assert 0.7 < alpha < 0.9
