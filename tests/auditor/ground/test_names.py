"""What names have in common."""

from __future__ import annotations

from auditor.ground.names import first_twice


class Counted(str):
    """A text that counts how often it was compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def test_first_twice__looks_at_each_of_many_once() -> None:
    assert first_twice(["a", "b", "c", "b", "c"]) == "b"
    names = [Counted(number) for number in range(2_000)]
    assert first_twice(names) is None
    assert Counted.compared < len(names)
