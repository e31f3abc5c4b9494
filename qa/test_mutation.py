from __future__ import annotations

from qa.mutation import FIRST_LOOK, Mutant, first_looks


def _mutant(package: str, number: int) -> Mutant:
    return Mutant(f"{package}/some.py", 1, "scope", str(number), "pass", number)


def test_first_looks__say_what_was_killed_before_tests_were_written_for_survivors() -> None:
    mutants = {m.key: m for m in (_mutant(p, n) for p in ("engines/new", "engines/umn") for n in range(3))}
    new, again, old, umn, *_ = mutants
    verdicts = {
        new: {"verdict": "killed", "first": "killed"},
        again: {"verdict": "killed", "first": "survived"},
        old: {"verdict": "killed"},
        umn: {"verdict": "killed", "first": "slow"},
    }
    found = first_looks(verdicts, mutants)
    killed, tried = FIRST_LOOK["engines/umn"]
    assert found["engines/new"] == (1, 2)
    assert found["engines/umn"] == (killed, tried + 1)
    assert found["engines/l2b"] == FIRST_LOOK["engines/l2b"]
