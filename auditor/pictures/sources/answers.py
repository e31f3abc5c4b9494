"""Several people's answers about one image: all of them where that is asked for.

Else the marked truth, or what all say; never one of them by chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from auditor.ground.delimited import Delimited, Record
from auditor.ground.errors import ImportRefusedError
from auditor.pictures.sources.columns import choose_column
from auditor.pictures.sources.rows import ALL, printable

NO_PLACE = (
    "holds everybody's answers and has no place for a decision; export a table: every answer stays, beside the "
    "decision."
)
Place = TypeVar("Place")


class Answer(NamedTuple, Generic[Place]):
    """What one person said, in the file's order of time."""

    by: str
    """Who; empty: not known, and nobody else's."""
    names: tuple[str, ...]
    """The classes."""
    is_truth: bool
    """Whether the tool's users marked it as right."""
    place: Place
    """Where it stands in the file."""


def settled(answers: Sequence[Answer[Place]]) -> Answer[Place] | None:
    """The answer that counts: one that is marked as the truth, else the newest, where everybody's newest is alike.

    Raises:
        ValueError: they differ; the text says what to do.
    """
    newest = {answer.by or at: answer for at, answer in enumerate(answers)}
    said = [answer for answer in answers if answer.is_truth] or list(newest.values())
    counts = Counter("|".join(sorted(answer.names)) for answer in said)
    if len(counts) > 1:
        shown = printable(", ".join(f"{names} {count}" for names, count in counts.most_common()), 80)
        raise ValueError(
            f"has answers of {len(said)} people who differ ({shown}); mark the right one as ground truth, read "
            "everybody's answers (--annotators all), or leave such images out"
        )
    return said[-1] if said else None


def asked(file: str, wanted: Sequence[str], found: Iterable[Sequence[Answer[Place]]]) -> tuple[str, ...]:
    """Whose answers are read: those who are wanted, or all who occur.

    Raises:
        ImportRefusedError: somebody who is wanted answered nothing.
    """
    if not wanted:
        return ()
    names = tuple(dict.fromkeys(name for answers in found for name in of_each(answers, ())))
    if tuple(wanted) != (ALL,):
        for name in wanted:
            choose_column(file, names, "annotator", name, ())
        return tuple(wanted)
    return names


def of_each(answers: Sequence[Answer[Place]], wanted: Sequence[str]) -> dict[str, str]:
    """The newest answer of each of those who are wanted (of all, where nobody is named).

    Raises:
        ValueError: somebody chose several classes; the text says so.
    """
    found = {}
    for at, answer in enumerate(answers, start=1):
        by = answer.by or f"unknown {at}"
        if wanted and by not in wanted:
            continue
        if len(set(answer.names)) > 1:
            raise ValueError(
                f"has several choices of {printable(by, 40)}; one class per image can be audited"
            )
        found[by] = answer.names[0]
    return found


def marked(answers: Sequence[Answer[Place]]) -> str | None:
    """The class that the tool's users marked as the truth; of several the newest."""
    return next((one.names[0] for one in reversed(answers) if one.is_truth), None)


class OneRowAnAnswer:
    """A table with one row an answer, read as ``Delimited`` with one row a picture and a column an annotator.

    A picture's other columns, and its row, are those of its first answer; of several answers of one annotator the
    last counts. It holds every answer in memory.
    """

    def __init__(self, table: Delimited, path: str, label: str, annotator: str) -> None:
        """Read the table.

        Raises:
            ImportRefusedError: a column is missing, an annotator is called like another column, or nobody is named.
        """
        places = {column: at for at, column in enumerate(table.columns)}
        for role, column in (("label", label), ("annotator", annotator)):
            choose_column(table.name, table.columns, role, column, ())
        others = [column for column in table.columns if column not in (label, annotator)]
        self._rows: dict[str, tuple[Record, dict[str, str]]] = {}
        names: dict[str, None] = {}
        for record in table.whole_records():
            cells = record.cells
            who, said = cells[places[annotator]].strip(), cells[places[label]].strip()
            answers = self._rows.setdefault(cells[places[path]].strip(), (record, {}))[1]
            if who and said:
                names[who] = None
                answers[who] = said
        self.annotators = tuple(names)
        if not names or (taken := names.keys() & set(others)):
            what = (
                f"{sorted(taken)[0]!r} is an annotator and a column" if names else "nobody answered anything"
            )
            raise ImportRefusedError(f"{table.name}: {what}; correct the columns of annotators and labels.")
        self.columns = [*others, *names]
        self._kept = [places[column] for column in others]

    def records(self) -> Iterator[Record]:
        """One a picture, in the order of their first answers."""
        for record, answers in self._rows.values():
            said = [answers.get(name, "") for name in self.annotators]
            yield Record(record.row, [*(record.cells[at] for at in self._kept), *said], record.raw)
