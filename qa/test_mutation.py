from __future__ import annotations

from qa.mutation import counted


def test_counted__first_look_stays_when_tests_are_written_for_survivors() -> None:
    killed, survived, slow = "killed", "survived", "slow"
    verdicts = {
        "new": {"verdict": killed, "first": killed},
        "again": {"verdict": killed, "first": survived},
        "late": {"verdict": slow, "first": slow},
        "no effect": {"verdict": survived, "first": survived},
        "of another package": {"verdict": killed, "first": killed},
    }
    inside = verdicts.keys() - {"of another package"} | {"never drawn"}
    assert counted(inside, verdicts, {"no effect", "never drawn"}) == (4, 1, 2, 1, 1)
