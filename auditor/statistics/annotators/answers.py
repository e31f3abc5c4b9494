"""What several annotators said, as three columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Answers:
    """A answers of M annotators on N pictures, in the order of the pictures."""

    rows: NDArray[np.int64]
    """(A,) the picture, rising, in 0..N-1."""
    annotators: NDArray[np.int64]
    """(A,) in 0..M-1."""
    labels: NDArray[np.int64]
    """(A,) the class, in 0..K-1."""
    num_rows: int
    num_annotators: int
    num_classes: int

    @classmethod
    def of(
        cls,
        rows: NDArray[np.integer],
        annotators: NDArray[np.integer],
        labels: NDArray[np.integer],
        num_rows: int,
        num_annotators: int,
        num_classes: int,
    ) -> Answers:
        """Put answers in any order into the order of the pictures; of several by one annotator the last counts."""
        keys = np.asarray(rows, dtype=np.int64) * num_annotators + annotators
        last = len(keys) - 1 - np.unique(keys[::-1], return_index=True)[1]
        ordered = [np.asarray(column, dtype=np.int64)[last] for column in (rows, annotators, labels)]
        return cls(ordered[0], ordered[1], ordered[2], num_rows, num_annotators, num_classes)

    @classmethod
    def of_table(cls, table: NDArray[np.integer], num_classes: int) -> Answers:
        """Read a table (N, M) of classes, -1 where an annotator said nothing."""
        rows, annotators = np.nonzero(table >= 0)
        labels = table[rows, annotators].astype(np.int64)
        return cls(rows, annotators, labels, table.shape[0], table.shape[1], num_classes)

    def of_row(self, row: int) -> list[tuple[int, int]]:
        """Annotator and class of each answer on a picture."""
        found = slice(*np.searchsorted(self.rows, [row, row + 1]).tolist())
        return list(zip(self.annotators[found].tolist(), self.labels[found].tolist(), strict=True))

    def sums(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """(N, C) sums over each picture's answers of the (A, C) values; 0 where nobody answered."""
        found = np.zeros((self.num_rows, values.shape[1]))
        if len(self.rows):
            starts = np.flatnonzero(np.diff(self.rows, prepend=-1))
            found[self.rows[starts]] = np.add.reduceat(values, starts, axis=0, dtype=np.float64)
        return found

    def counts(self) -> NDArray[np.int64]:
        """(N, K) how many annotators gave each class."""
        cells = np.bincount(
            self.rows * self.num_classes + self.labels, minlength=self.num_rows * self.num_classes
        )
        return cells.reshape(self.num_rows, self.num_classes)

    def majority(self) -> NDArray[np.int64]:
        """(N,) the class that most annotators gave, the first of equals; -1 where nobody answered."""
        counts = self.counts()
        return np.where(counts.any(axis=1), counts.argmax(axis=1), -1)
