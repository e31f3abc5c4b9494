"""One row a decision: what each says, does and is called."""

from __future__ import annotations

import pytest

from auditor.ground import vocabulary
from auditor.ground.vocabulary import DECISIONS


def test_decisions__every_one_says_and_does_something_known() -> None:
    sayings = {vocabulary.RIGHT, vocabulary.WRONG, vocabulary.UNCLEAR}
    assert {one.says for one in DECISIONS.values()} == sayings
    assert {one.action for one in DECISIONS.values()} == set(vocabulary.ACTIONS)
    assert all(name == one.name for name, one in DECISIONS.items())


def test_decisions__no_two_share_a_key_or_words() -> None:
    for field in ("key", "words", "button", "colour"):
        assert len({getattr(one, field) for one in DECISIONS.values()}) == len(DECISIONS), field


def test_decisions__what_is_not_wrong_never_excludes() -> None:
    assert vocabulary.EXCLUDING <= vocabulary.FOUND_WRONG
    assert {*vocabulary.FOUND_RIGHT, *vocabulary.FOUND_WRONG, *vocabulary.NOT_CLEAR} == {
        *DECISIONS,
        vocabulary.DISPUTED,
    }


@pytest.mark.parametrize(
    ("verdict", "label", "decision"),
    [
        ("label", 3, ("keep", None)),
        ("label", 4, ("relabel", 4)),
        ("exclude", None, ("exclude", None)),
        ("unsure", None, ("unsure", None)),
    ],
)
def test_from_verdict__the_given_label_is_kept_and_another_corrects_it(
    verdict: str, label: int | None, decision: tuple[str, int | None]
) -> None:
    assert vocabulary.from_verdict(verdict, label, given_label=3) == decision
