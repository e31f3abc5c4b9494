"""How the labels of a dataset stand in FiftyOne: ``Classification``, ``Regression`` or ``Segmentation``.

Everything between FiftyOne and the catalog compares labels as text; a number is the shortest text that is read as
the same number, and a mask is written as what it was made of: ``mask 7``, ``mask 7, audit 3: 1, 2`` where two
regions were taken, ``mask 7, audit 3, l2b`` as an engine predicts it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.catalog import datasets, reading
from auditor.catalog.db import ask
from auditor.catalog.records import Dataset, Review
from auditor.ground.numbers import number_text, read_number
from auditor.ground.vocabulary import EXCLUDING, KEEP, REGRESSION, RELABEL, SEGMENTATION
from auditor.labels.masks import changed, given_masks, in_words, mask_verdicts, regions_of
from auditor.pictures.decoding import placed
from auditor.results import arrays

Taken = tuple[int, tuple[int, ...]]
"""Of a mask: the audit whose suggestion is taken, and the numbers of its regions."""
Value = float | Taken
"""What a text stands for: a class's place, a number, or what is taken of a suggestion."""
MASK_TEXT = re.compile(r"mask (\d+)(?:, audit (\d+)(?:: ([\d, ]+)|, (\w+)))?")
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
    imported: tuple[str, ...] = ()
    """What the source calls each class."""

    @property
    def part(self) -> str:
        """The part of a label's document that holds it."""
        return "value" if self.is_numeric else "label"

    @property
    def known(self) -> Mapping[str, Value]:
        """Return what a text may be, and what it stands for: a class's place, or the number."""
        if self.is_numeric:
            return AnyNumber()
        return {name: place for names in (self.imported, self.names) for place, name in enumerate(names)}

    def document_type(self, fiftyone: Any) -> Any:
        """FiftyOne's class of a label."""
        return fiftyone.Regression if self.is_numeric else fiftyone.Classification

    def text(self, stored: Any) -> str | None:
        """Return what FiftyOne holds as text."""
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

    def given(self, dataset_id: int) -> list[str | None]:
        """The given labels of all samples."""
        if self.is_numeric:
            return self.numbers(ask(datasets.given_numbers, dataset_id))
        labels = ask(datasets.given_labels, dataset_id)
        return [self.names[label] if label >= 0 else None for label in labels]

    def as_imported(self, dataset_id: int) -> list[str | None]:
        """The given labels of all samples as the source has them, whatever classes were changed since."""
        if not self.names:
            return self.given(dataset_id)
        labels = ask(datasets.imported_labels, dataset_id)
        return [self.imported[label] if label >= 0 else None for label in labels]

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
        """Return what the export would write after what counts now; None where it leaves the sample out."""
        if counting is None:
            return given
        if counting.decision in EXCLUDING:
            return None
        return (self.decided(counting) or given) if counting.decision == RELABEL else given

    def seen(self, verdict: Review | None, given: str | None) -> str | None:
        """Return what was seen on a random draw, or the verdict that names no label: ``exclude``, ``unsure``."""
        if verdict is None:
            return None
        if verdict.decision == KEEP:
            return given
        return verdict.decision if self.value(verdict) is None else self.decided(verdict)

    def columns(self, value: Value | None) -> dict[str, Any]:
        """A value of ``known`` as a decision holds it."""
        return {"number": value} if self.is_numeric else {"label": value}

    def of_value(self, value: Value) -> str:
        """A value of ``known`` in words."""
        assert not isinstance(value, tuple)
        return number_text(value) if self.is_numeric else self.names[int(value)]

    def value(self, row: Review) -> Value | None:
        """The value of ``known`` that a decision holds."""
        return row.number if self.is_numeric else row.label


class AnyMask(Mapping[str, Taken]):
    """In place of the classes of a dataset of masks: every text that says what is taken of a suggestion."""

    def __getitem__(self, text: str) -> Taken:
        found = MASK_TEXT.fullmatch(text)
        if found is None or found[3] is None:
            raise KeyError(text)
        return int(found[2]), tuple(int(one) for one in found[3].split(","))

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class MaskLabels(Labels):
    """The labels of a dataset of masks."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__(names=(), is_numeric=False)
        object.__setattr__(self, "dataset", dataset)

    dataset: Dataset

    @property
    def part(self) -> str:
        """Beside the pixels: what they were made of."""
        return "made_of"

    @property
    def known(self) -> Mapping[str, Value]:
        """See ``AnyMask``."""
        return AnyMask()

    @property
    def targets(self) -> dict[int, str]:
        """The class that each value of our ``Segmentation`` fields means; 0 is no class, as FiftyOne shows it."""
        return dict(enumerate(self.dataset.class_names, start=1))

    def document_type(self, fiftyone: Any) -> Any:
        """``Segmentation``."""
        return fiftyone.Segmentation

    def document(
        self,
        fiftyone: Any,
        text: str | None,
        confidence: float | None = None,
        logits: NDArray[np.floating] | None = None,
    ) -> dict[str, Any] | None:
        """A mask as MongoDB keeps it, at the size of the cache: FiftyOne stretches it over the picture."""
        del logits
        if text is None:
            return None
        values = self.pixels(text) + 1  # 255, no class, becomes 0
        found: dict[str, Any] = fiftyone.Segmentation(mask=values).to_dict()
        return found | {self.part: text, "confidence": confidence}

    def heat(self, fiftyone: Any, audit_id: int, sample_id: int) -> dict[str, Any]:
        """The doubt of an audit in one mask as MongoDB keeps it, 0 to 255."""
        doubt = self._inner(mask_verdicts(audit_id).doubt[sample_id], sample_id)
        found: dict[str, Any] = fiftyone.Heatmap(map=doubt, range=[0, 255]).to_dict()
        return found

    def pixels(self, text: str) -> NDArray[np.uint8]:
        """(H, W) the classes of the mask that a text says, what covers the picture of the cache's square."""
        found = MASK_TEXT.fullmatch(text)
        assert found is not None
        sample_id, audit_id = int(found[1]), int(found[2] or 0)
        if found[4] is not None:
            return self._inner(arrays.array(audit_id, found[4], "predicted")[sample_id], sample_id)
        mask = np.array(given_masks(self.dataset)[sample_id])
        if found[3] is not None:
            taken = self.known[text][1]  # type: ignore[index]
            for region in changed(self.dataset, audit_id, sample_id, taken):
                mask[region.pixels] = region.suggested
        return self._inner(mask, sample_id)

    def given(self, dataset_id: int) -> list[str | None]:
        """The given labels of all samples."""
        del dataset_id
        return [f"mask {sample_id}" for sample_id in range(self.dataset.num_samples)]

    def suggested(self, audit_id: int) -> list[str | None]:
        """Return what an audit suggests of all samples; None where it doubts no region."""
        found: list[str | None] = []
        for sample_id in range(self.dataset.num_samples):
            regions = regions_of(self.dataset, audit_id, sample_id)
            numbers = ", ".join(str(one.number) for one in regions)
            found.append(f"mask {sample_id}, audit {audit_id}: {numbers}" if regions else None)
        return found

    def predicted(self, audit_id: int, engine: str) -> list[str | None]:
        """Return what an engine predicts for all samples."""
        return [
            f"mask {sample_id}, audit {audit_id}, {engine}" for sample_id in range(self.dataset.num_samples)
        ]

    def decided(self, row: Review | None) -> str | None:
        """Return what a decision makes of the mask, where it takes regions."""
        if row is None or not row.labels or row.audit_id is None:
            return None
        return f"mask {row.sample_id}, audit {row.audit_id}: {', '.join(map(str, row.labels))}"

    def seen(self, verdict: Review | None, given: str | None) -> str | None:
        """``right``, ``wrong``, ``exclude`` or ``unsure`` on a random draw."""
        del given
        if verdict is None:
            return None
        return {KEEP: "right", RELABEL: "wrong"}.get(verdict.decision, verdict.decision)

    def columns(self, value: Value | None) -> dict[str, Any]:
        """Return what is taken as a decision holds it."""
        if not isinstance(value, tuple):
            return {}
        return {"audit_id": value[0], "labels": list(value[1])}

    def of_value(self, value: Value) -> str:
        """Return what is taken, in words."""
        assert isinstance(value, tuple)
        return f"regions {', '.join(in_words(self.dataset, value[1]))} of audit {value[0]}"

    def value(self, row: Review) -> Value | None:
        """Return what a decision takes."""
        return (row.audit_id, tuple(row.labels)) if row.labels and row.audit_id is not None else None

    def _inner(self, square: NDArray[Any], sample_id: int) -> NDArray[Any]:
        width, height = _sizes(self.dataset.id, self.dataset.num_samples)[sample_id]
        left, top, inner_width, inner_height = placed(width, height, len(square))
        return np.asarray(square[top : top + inner_height, left : left + inner_width])


def of(dataset: Dataset) -> Labels:
    """The labels of that dataset.

    Raises:
        AuditorError: they are sets of classes.
    """
    datasets.require_classes(dataset, "FiftyOne", others=[SEGMENTATION, REGRESSION])
    if dataset.task == SEGMENTATION:
        return MaskLabels(dataset)
    is_numeric = dataset.task == REGRESSION
    if is_numeric:
        return Labels((), is_numeric)
    return Labels(tuple(dataset.class_names), is_numeric, tuple(dataset.imported_names))


@functools.lru_cache(maxsize=4)
def _sizes(dataset_id: int, num_samples: int) -> list[tuple[int, int]]:  # noqa: ARG001
    """(width, height) of every picture."""
    return [(one.original_width, one.original_height) for one in reading.samples(dataset_id)]


@functools.cache
def _template(document_type: Any) -> dict[str, Any]:
    document: dict[str, Any] = document_type().to_dict()
    return document
