"""Tables with one row a label: a picture with two labels has two rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

from auditor.ground.delimited import Delimited, Record
from auditor.ground.errors import ImportRefusedError
from auditor.pictures.sources.rows import printable
from auditor.pictures.sources.sets import read_set, set_text, sign_of


class OneRowALabel:
    """A table with one row a label, read as ``Delimited`` with one row a picture, whose label is its set.

    A picture's other columns, and its row, are those of its first label. It holds every label in memory.
    """

    def __init__(self, table: Delimited, path: str, label: str, split: str | None) -> None:
        """Read the table.

        Raises:
            ImportRefusedError: a row has another number of cells, or a picture is in two splits.
        """
        self._table, self.columns = table, table.columns
        at = {column: place for place, column in enumerate(table.columns)}
        self._path, self._label = at[path], at[label]
        self._rows: dict[str, tuple[Record, list[str]]] = {}
        for record in table.whole_records():
            cells = record.cells
            named = cells[self._path].strip()
            first, names = self._rows.setdefault(named, (record, []))
            if split is not None and cells[at[split]] != first.cells[at[split]]:
                raise ImportRefusedError(
                    f"{table.name}, row {record.row}: {printable(named)} has another {split} than in row "
                    f"{first.row}; give a picture one, or name the copies of it differently."
                )
            names += read_set(cells[self._label].strip(), None)

    @staticmethod
    def reads(table: Delimited, path: str, label: str) -> bool:
        """Return whether a picture has several rows, and no cell has several labels: then rows are labels."""
        wanted, places = len(table.columns), [table.columns.index(one) for one in (path, label)]
        seen, labels, is_again = set[int](), set[str](), False
        for record in table.records():
            if len(record.cells) == wanted and any(record.cells):
                named, said = (record.cells[place].strip() for place in places)
                is_again |= hash(named) in seen
                seen.add(hash(named))
                labels.add(said)
        return is_again and sign_of(labels) is None and all(len(read_set(one, None)) <= 1 for one in labels)

    def records(self) -> Iterator[Record]:
        """One a picture, in the order of their first rows."""
        for record, names in self._rows.values():
            cells = list(record.cells)
            cells[self._label] = set_text(names) if names else cells[self._label]
            yield Record(record.row, cells, record.raw)

    def write_again(self, out: IO[bytes], decided: Sequence[Sequence[str] | None]) -> None:
        """Write the rows of labels that stay, and one for each that is added, behind the picture's others.

        A picture that shows none of the classes keeps one row, with an empty list.

        Args:
            out: a new file.
            decided: of each picture its labels; None: it is left out.
        """
        labels = dict(zip(self._rows, decided, strict=True))
        last = {one.cells[self._path].strip(): one.row for one in self._table.whole_records()}
        written: dict[str, set[str]] = {}

        def changed(record: Record) -> list[dict[int, str]]:
            if not any(record.cells):
                return [{}]
            named = record.cells[self._path].strip()
            names, there = labels[named], written.setdefault(named, set())
            if names is None:
                return []
            said = read_set(record.cells[self._label].strip(), None)
            stays = list(names) == self._rows[named][1] or bool(said and said[0] in names)
            there.update(said if stays else ())
            rows: list[dict[int, str]] = [{}] if stays else []
            if record.row == last[named]:
                rows += [{self._label: name} for name in names if name not in there]
                rows += [{self._label: "[]"}] if not names and not stays else []
            return rows

        self._table.write_again(out, changed)
