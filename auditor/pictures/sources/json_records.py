"""Files of JSON with a flat object an image: rows, written again in the same form.

=====================  ====================================================================================
``metadata.jsonl``     one object a line, as of Hugging Face's image folders, Azure and others
records                a list of objects, as pandas writes it, also as the one list of an object; Label Studio's
                       JSON-MIN
Ground Truth           the ``.manifest`` of SageMaker: ``source-ref``, and a job with its ``-metadata``
labels by name         ``{"classes": ..., "labels": {name: class}}`` of FiftyOne, or ``{name: class}`` alone
=====================  ====================================================================================
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from auditor.ground.errors import ImportRefusedError
from auditor.ground.files import LongLineError, lines_of
from auditor.ground.vocabulary import MULTILABEL
from auditor.pictures.sources.annotations import Entry, Format, Outcome, is_image
from auditor.pictures.sources.answers import Answer, settled
from auditor.pictures.sources.columns import (
    ID_NAMES,
    LABEL_NAMES,
    PATH_NAMES,
    SPLIT_NAMES,
    choose_column,
    find_column,
    path_on_disk,
    split_in,
)
from auditor.pictures.sources.folder import has_broken_text
from auditor.pictures.sources.refused import Refusals
from auditor.pictures.sources.rows import SourceOptions, class_name, printable
from auditor.pictures.sources.sets import (
    ONE_CLASS,
    flagged_like,
    one_or_set,
    set_text,
    sign_of,
    valued_like,
    written_like,
)

SHAPES = (
    "bounding_box",
    "bbox",
    "points",
    "polygon",
    "polyline",
    "mask",
    "support",
    "timestamps",
    "keypoints",
)
"""What FiftyOne and others keep beside the label of a part of an image."""
OF_BOXES = "one class per image can be audited: write boxes as COCO and import that file with boxes"
SOURCE, METADATA = "source-ref", "-metadata"
"""Of Ground Truth."""
TRUTH = "ground_truth"
"""Of Label Studio's answers: this one counts."""


class Records(Format):
    """Objects with a path and a label each."""

    kind = "json"
    writes_sets = True

    def __init__(
        self, file: Path, first: dict[str, Any], columns: Iterable[str], options: SourceOptions
    ) -> None:
        """``first`` is the first object; its values tell which column holds the images.

        Raises:
            ImportRefusedError: no path or label among ``columns``.
        """
        self._file, self.are_sets = file, options.task == MULTILABEL
        self.columns = tuple(columns)
        if any(map(has_broken_text, self.columns)):
            raise ImportRefusedError(f"{file.name}: a key is no valid text; correct it.")
        named = find_column(self.columns, PATH_NAMES)
        seen = next((name for name, value in first.items() if is_image(value)), None)
        path = options.path_column or named or seen
        self._path = choose_column(file.name, self.columns, "path", path, ID_NAMES)
        self._label = self._label_column(options)
        self._split = find_column([one for one in self.columns if one != self._label], SPLIT_NAMES)
        self._refusals = Refusals(self.columns, self._label, is_believed=options.label_column is not None)
        self.path_column, self.label_column = self._path, self._label

    def _label_column(self, options: SourceOptions) -> str:
        return choose_column(self._file.name, self.columns, "label", options.label_column, LABEL_NAMES)

    @abstractmethod
    def values(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Row and object."""

    @abstractmethod
    def text(self, kept: list[dict[str, Any]]) -> str:
        """The file with these objects."""

    def _label_of(self, value: dict[str, Any]) -> str | None:
        said = value.get(self._label)
        if self.are_sets:
            return _set_in(said, self._label)
        if (isinstance(said, dict) and "choices" in said) or (isinstance(said, list) and len(said) > 1):
            raise ValueError(f"has several choices; {ONE_CLASS}")
        return class_name(next(iter(said), None) if isinstance(said, list) else said, self._label)

    def _relabel(self, value: dict[str, Any], label: str) -> None:
        said = value.get(self._label)
        if self.are_sets:
            value[self._label] = _set_like(said, json.loads(label), self._sign)
            return
        new = int(self._numbered(label)) if isinstance(said, int) else label
        value[self._label] = [new] if isinstance(said, list) else new
        if self._refusals.column in value:
            value[self._refusals.column] = self._refusals.accepted

    def _path_of(self, value: dict[str, Any]) -> str:
        said = value.get(self._path)
        return "" if said is None else path_on_disk(str(said))

    def entries(self) -> Iterator[Entry]:
        """See ``Format``."""
        for row, value in self.values():
            label, problem = None, None
            try:
                label = None if self._refusals.is_refused(row, value) else self._label_of(value)
            except ValueError as error:
                problem = str(error)
            extra = {name: _cell(value.get(name)) for name in self.columns}
            yield Entry(row, self._path_of(value), label, split_in(value, self._split), extra, problem)

    def remarks(self) -> list[str]:
        """See ``Format``: which labels are refused."""
        return list(self._refusals.remarks())

    def rewritten(self, outcome: Outcome) -> str:
        """See ``Format``."""
        kept = []
        if self.are_sets:
            texts = (value.get(self._label) for _, value in self.values())
            self._sign = sign_of({text for text in texts if isinstance(text, str)})
        for _, value in self.values():
            label = outcome(self._path_of(value))
            if label is not None:
                if label:
                    self._relabel(value, label)
                kept.append(value)
        return self.text(kept)


class JsonLines(Records):
    """One JSON object a line: rows are counted from 1."""

    kind = "jsonl"

    def __init__(self, file: Path, options: SourceOptions) -> None:
        """Read the first line.

        Raises:
            ImportRefusedError: no JSON object, or no path or label in it.
        """
        first = next(json_lines(file), None)
        if first is None:
            raise ImportRefusedError(f"{file} is empty; write one JSON object a line.")
        super().__init__(file, first[1], first[1], options)

    def values(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """See ``Records``."""
        yield from json_lines(self._file)

    def text(self, kept: list[dict[str, Any]]) -> str:
        """See ``Records``."""
        return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in kept)


class JsonList(Records):
    """A list of objects, or an object with one such list in it; rows are counted from 0."""

    def __init__(self, file: Path, value: Any, options: SourceOptions) -> None:
        """``value`` is the whole file."""
        self._value = value
        self._key = None if isinstance(value, list) else next(iter(_lists_of_records(value)))
        self._records = value if self._key is None else value[self._key]
        columns = dict.fromkeys(name for one in self._records if isinstance(one, dict) for name in one)
        if "annotator" in columns:
            self.kind = "label_studio"
        super().__init__(file, self._records[0], columns, options)

    def values(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """See ``Records``."""
        for row, one in enumerate(self._records):
            yield row, one if isinstance(one, dict) else {}

    def entries(self) -> Iterator[Entry]:
        """See ``Format``; of Label Studio's answers about one image, the one that counts (``settled``)."""
        if self.kind != "label_studio":
            yield from super().entries()
            return
        by_path: dict[str, list[tuple[Entry, dict[str, Any]]]] = {}
        for entry, (_, value) in zip(super().entries(), self.values(), strict=True):
            by_path.setdefault(entry.filepath, []).append((entry, value))
        for said in by_path.values():
            first, problem = said[0][0], next((entry.problem for entry, _ in said if entry.problem), None)
            answers = [_answer(value, entry.label) for entry, value in said if entry.label is not None]
            label = None
            if problem is None:
                try:
                    label = counts.names[0] if (counts := settled(answers)) else None
                except ValueError as error:
                    problem = str(error)
            yield replace(first, label=label, problem=problem)

    def rewritten(self, outcome: Outcome) -> str:
        """See ``Format``: what several people answered stays, beside a truth of ours."""
        if self.kind != "label_studio":
            return super().rewritten(outcome)
        by_path: dict[str, list[dict[str, Any]]] = {}
        for _, value in self.values():
            by_path.setdefault(self._path_of(value), []).append(value)
        kept = []
        for path, values in by_path.items():
            label = outcome(path)
            if label is None:
                continue
            truth = [value for value in values if value.get(TRUTH)]
            if label and (truth or len({str(value.get("annotator")) for value in values}) == 1):
                self._relabel((truth or values)[-1], label)
            elif label:
                values = [*values, values[-1] | {"annotator": None, "annotation_id": None, TRUTH: True}]
                self._relabel(values[-1], label)
            kept += values
        return self.text(kept)

    def text(self, kept: list[dict[str, Any]]) -> str:
        """See ``Records``."""
        return json.dumps(kept if self._key is None else self._value | {self._key: kept}, ensure_ascii=False)


def _answer(value: dict[str, Any], label: str) -> Answer[dict[str, Any]]:
    by = value.get("annotator")
    return Answer("" if by is None else str(by), (label,), bool(value.get(TRUTH)), value)


class GroundTruth(JsonLines):
    """SageMaker's manifest: the job's number, and the class's name in the job's metadata."""

    kind = "ground_truth"
    writes_sets = False

    def _label_column(self, options: SourceOptions) -> str:
        jobs = [name for name in self.columns if f"{name}{METADATA}" in self.columns]
        if options.label_column is None and len(jobs) > 1:
            raise ImportRefusedError(
                f"{self._file.name} has labels of several jobs ({printable(', '.join(jobs))}); name one.",
                field="label_column",
            )
        named = options.label_column or (jobs[0] if jobs else None)
        return choose_column(self._file.name, self.columns, "label", named, LABEL_NAMES)

    def _label_of(self, value: dict[str, Any]) -> str | None:
        about = value.get(f"{self._label}{METADATA}")
        about = about if isinstance(about, dict) else {}
        said = value.get(self._label)
        if isinstance(said, dict):
            raise ValueError(f"{self._label} holds boxes or shapes; {OF_BOXES}")
        if is_image(said):
            raise ValueError(f"{self._label} names a mask; import masks with the task segmentation")
        if isinstance(about.get("class-map"), dict):
            names = [str(name) for name in about["class-map"].values()]
            return one_or_set(names, f"{self._label} has several classes", are_sets=self.are_sets)
        name = class_name(about.get("class-name", value.get(self._label)), self._label)
        return None if name is None else one_or_set([name], "", are_sets=self.are_sets)

    def rewritten(self, outcome: Outcome) -> str:
        """See ``Format``."""
        self._numbers = {self._label_of(value): value.get(self._label) for _, value in self.values()}
        return super().rewritten(outcome)

    def _relabel(self, value: dict[str, Any], label: str) -> None:
        about = value.setdefault(f"{self._label}{METADATA}", {})
        number = self._numbers.get(label)
        if number is None:
            used = [one for one in self._numbers.values() if isinstance(one, int)]
            number = self._numbers[label] = max(used, default=-1) + 1
        value[self._label] = number
        if "class-map" in about:
            about["class-map"] = {str(number[0] if isinstance(number, list) else number): label}
        else:
            about["class-name"] = label


class LabelsByName(Format):
    """An object with a class for each image: FiftyOne's, whose classes may be numbers of a list, or a plain one."""

    kind = "labels_by_name"
    writes_sets = True

    def __init__(self, file: Path, value: dict[str, Any], *, are_sets: bool = False) -> None:
        """``value`` is the whole file."""
        self._file, self._value, self.are_sets = file, value, are_sets
        self._is_fiftyone = is_fiftyone(value)
        self._labels: dict[str, Any] = value["labels"] if self._is_fiftyone else value
        names = value.get("classes") if self._is_fiftyone else None
        self._names = tuple(map(str, names)) if isinstance(names, list) else None

    def classes(self) -> tuple[str, ...] | None:
        """See ``Format``."""
        return self._names

    def entries(self) -> Iterator[Entry]:
        """See ``Format``."""
        for row, (name, said) in enumerate(self._labels.items()):
            label, problem = None, None
            try:
                label = self._label_of(said)
            except ValueError as error:
                problem = str(error)
            yield Entry(row, name, label, problem=problem)

    def _label_of(self, said: Any) -> str | None:
        if isinstance(said, dict) and (shape := next((key for key in SHAPES if key in said), None)):
            raise ValueError(f"has a label of a part of the image ({shape}); {OF_BOXES}")
        said = said.get("label") if isinstance(said, dict) else said
        if isinstance(said, list):
            names = [name for one in said if (name := self._name_of(one)) is not None]
            if self.are_sets and len(names) == len(said):
                return set_text(names)
            return one_or_set(names, "has several labels", are_sets=self.are_sets)
        name = self._name_of(said)
        return None if name is None else one_or_set([name], "", are_sets=self.are_sets)

    def _name_of(self, said: Any) -> str | None:
        label = class_name(said, "its label")
        if label is None or self._names is None or not isinstance(said, int):
            return label
        if said == -1:
            return None
        if not 0 <= said < len(self._names):
            raise ValueError(f"has the class {said}, outside 0..{len(self._names) - 1}; correct it")
        return self._names[said]

    def rewritten(self, outcome: Outcome) -> str:
        """See ``Format``."""
        kept = {}
        for name, said in self._labels.items():
            label = outcome(name)
            if label is not None:
                kept[name] = self._said(said, label) if label else said
        return json.dumps(self._value | {"labels": kept} if self._is_fiftyone else kept, ensure_ascii=False)

    def _said(self, said: Any, label: str) -> Any:
        if isinstance(said, dict):
            return said | {"label": self._said(said.get("label"), label)}
        if self.are_sets:
            first = said[0] if isinstance(said, list) and said else said
            return [self._name_as(first, name) for name in self._names_of(label)]
        if isinstance(said, list):
            return [self._name_as(said[0] if said else None, label)]
        return self._name_as(said, label)

    def _name_as(self, said: Any, label: str) -> Any:
        """Return a class as what was ``said`` has it: its number, or its name."""
        if self._names is not None and not isinstance(said, str):
            return self._names.index(label) if label in self._names else label
        return int(self._numbered(label)) if isinstance(said, int) else label


def _set_in(said: Any, column: str) -> str | None:
    """The set of classes that a value of JSON names, as text."""
    if isinstance(said, dict) and "choices" in said:
        said = said["choices"]
    if isinstance(said, list):
        return set_text(name for one in said if (name := class_name(one, column)) is not None)
    return json.dumps(said, ensure_ascii=False) if isinstance(said, dict) else class_name(said, column)


def _set_like(said: Any, names: list[str], sign: str | None) -> Any:
    """A set of classes in the form of what a file says."""
    if isinstance(said, dict):
        if "choices" in said:
            return said | {"choices": names}
        return flagged_like(said, names)
    if isinstance(said, str) and said:
        return written_like(said, names, sign)
    return valued_like(said, names)


def _lists_of_records(value: dict[str, Any]) -> list[str]:
    """The keys of an object's lists of objects."""
    return [
        key
        for key, one in value.items()
        if isinstance(one, list) and one and all(isinstance(each, dict) for each in one)
    ]


def is_fiftyone(value: dict[str, Any]) -> bool:
    """Return whether it is the ``labels.json`` of FiftyOne's classification datasets."""
    return isinstance(value.get("labels"), dict) and "classes" in value


def json_format(file: Path, value: Any, options: SourceOptions) -> Format | None:
    """The format of a whole file that is none of the known tools'; None where it is none of these."""
    are_sets = options.task == MULTILABEL
    if isinstance(value, list):
        return JsonList(file, value, options) if value and isinstance(value[0], dict) else None
    if not isinstance(value, dict):
        return None
    if is_fiftyone(value):
        return LabelsByName(file, value, are_sets=are_sets)
    if len(_lists_of_records(value)) == 1:
        return JsonList(file, value, options)
    return LabelsByName(file, value, are_sets=are_sets) if value and all(map(is_image, value)) else None


def json_lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(row from 1, JSON object) of every line that is not empty.

    Raises:
        ImportRefusedError: a line is no JSON object; the text names its row.
    """
    row = 0
    try:
        with file.open(encoding="utf-8-sig") as lines:
            for row, line in enumerate(lines_of(lines, file.name), start=1):
                if not line.strip():
                    continue
                value = json.loads(line)
                if not isinstance(value, dict):
                    raise ImportRefusedError(
                        f"{file.name}, row {row}: is no JSON object; write one per line."
                    )
                yield row, value
    except (json.JSONDecodeError, RecursionError) as error:
        raise ImportRefusedError(
            f"{file.name}, row {row}: is no JSON ({getattr(error, 'msg', error)}); correct it."
        ) from error
    except LongLineError as error:
        raise ImportRefusedError(f"{error}; write one object a line.") from error
    except UnicodeDecodeError as error:
        raise ImportRefusedError(f"{file.name} is not UTF-8 text ({error.reason}); save it so.") from error


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
