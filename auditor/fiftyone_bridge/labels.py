"""How the labels of a dataset stand in FiftyOne: classes as ``Classification``, numbers as ``Regression``.

Everything between FiftyOne and the catalog compares labels as text; a number is the shortest text that is read as
the same number.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlmodel import Session

from auditor.catalog import datasets
from auditor.catalog.records import Dataset, Review
from auditor.ground.numbers import number_text, read_number
from auditor.ground.vocabulary import EXCLUDING, KEEP, REGRESSION, RELABEL

FIGURES = 4
"""Of a suggested number, as everywhere it is shown."""


class AnyNumber(Mapping[str, float]):
    """In place of the classes of a dataset of numbers: every text that writes a number, and that number."""

    def __getitem__(self, text: str) -> float:
        try:
            return read_number(text)
        except ValueError:
            raise KeyError(text) from None

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True)
class Labels:
    """The labels of one dataset."""

    names: tuple[str, ...]
    """Of its classes; none of a dataset of numbers."""
    is_numeric: bool

    @property
    def part(self) -> str:
        """The part of a label's document that holds it."""
        return "value" if self.is_numeric else "label"

    @property
    def known(self) -> Mapping[str, float]:
        """What a text may be, and what it stands for: a class's place, or the number."""
        return AnyNumber() if self.is_numeric else {name: place for place, name in enumerate(self.names)}

    def document_type(self, fiftyone: Any) -> Any:
        """FiftyOne's class of a label."""
        return fiftyone.Regression if self.is_numeric else fiftyone.Classification

    def text(self, stored: Any) -> str | None:
        """What FiftyOne holds as text."""
        if stored is None or not self.is_numeric:
            return None if stored is None else str(stored)
        return number_text(float(stored))

    def stored(self, text: str | None) -> Any:
        """A text as FiftyOne holds it."""
        return read_number(text) if self.is_numeric and text is not None else text

    def document(
        self,
        fiftyone: Any,
        text: str | None,
        confidence: float | None = None,
        logits: NDArray[np.floating] | None = None,
    ) -> dict[str, Any] | None:
        """A label as MongoDB keeps it, with an id of its own; ``logits`` (K,) of a predicted class."""
        if text is None:
            return None
        from bson import ObjectId

        found = dict(_template(self.document_type(fiftyone))) | {
            "_id": ObjectId(),
            self.part: self.stored(text),
            "confidence": confidence,
        }
        if logits is not None:
            # As FiftyOne's VectorField keeps an array; making a document takes five times as long.
            found["logits"] = fiftyone.core.utils.serialize_numpy_array(logits)
        return found

    def given(self, open_session: Session, dataset_id: int) -> list[str | None]:
        """The given labels of all samples."""
        if self.is_numeric:
            return self.numbers(datasets.given_numbers(open_session, dataset_id))
        labels = datasets.given_labels(open_session, dataset_id)
        return [self.names[label] if label >= 0 else None for label in labels]

    def numbers(self, values: Sequence[float] | NDArray[np.floating]) -> list[str | None]:
        """Numbers (N,) as texts; None for NaN."""
        return [None if value != value else number_text(float(value)) for value in values]

    def decided(self, row: Review | None) -> str | None:
        """The label or labels that a decision names."""
        if row is None:
            return None
        if self.is_numeric:
            return None if row.number is None else number_text(row.number)
        labels = [row.label] if row.label is not None else list(row.labels or [])
        return " | ".join(self.names[label] for label in labels) or None

    def cleaned(self, counting: Review | None, given: str | None) -> str | None:
        """What the export would write after what counts now; None where it leaves the sample out."""
        if counting is None:
            return given
        if counting.decision in EXCLUDING:
            return None
        return (self.decided(counting) or given) if counting.decision == RELABEL else given

    def seen(self, verdict: Review | None, given: str | None) -> str | None:
        """What was seen on a random draw, or the verdict that names no label: ``exclude``, ``unsure``."""
        if verdict is None:
            return None
        if verdict.decision == KEEP:
            return given
        return verdict.decision if self.value(verdict) is None else self.decided(verdict)

    def columns(self, value: float | None) -> dict[str, Any]:
        """A value of ``known`` as a decision holds it."""
        return {"number": value} if self.is_numeric else {"label": value}

    def of_value(self, value: float) -> str:
        """The text of a value of ``known``."""
        return number_text(value) if self.is_numeric else self.names[int(value)]

    def value(self, row: Review) -> float | None:
        """The value of ``known`` that a decision holds."""
        return row.number if self.is_numeric else row.label


def of(dataset: Dataset) -> Labels:
    """The labels of that dataset."""
    is_numeric = dataset.task == REGRESSION
    return Labels(() if is_numeric else tuple(dataset.class_names), is_numeric)


@functools.cache
def _template(document_type: Any) -> dict[str, Any]:
    document: dict[str, Any] = document_type().to_dict()
    return document
