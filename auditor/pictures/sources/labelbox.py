"""Labelbox's export in NDJSON, read for one class an image or a set, and written again with cleaned classes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from auditor.ground.vocabulary import MULTILABEL
from auditor.pictures.sources.annotations import Entry, Format, Outcome, one_question
from auditor.pictures.sources.answers import Answer, asked, marked, of_each, settled
from auditor.pictures.sources.json_records import json_lines
from auditor.pictures.sources.rows import IMAGE_SUFFIXES, SourceOptions
from auditor.pictures.sources.sets import one_or_set

OF_THE_OPTION = ("name", "value", "feature_schema_id")
"""What an answer has from the option in the ontology; its ``feature_id`` is its own."""


class Labelbox(Format):
    """Labelbox's export, one data row a line: what all answered, or the benchmark; rows are counted from 1.

    The image is called by its external id, else by its global key where that is the name of an image, else by its
    address.
    """

    kind = "labelbox"
    columns = ("data_row_id",)

    def __init__(self, file: Path, options: SourceOptions) -> None:
        """Read what is asked; ``options.label_column`` is the name of the question, where there are several.

        Raises:
            ImportRefusedError: there are several questions and none is named, or none has that name.
        """
        self._file, self.are_sets = file, options.task == MULTILABEL
        questions = (
            (question for question, _ in _answers(label))
            for _, value in self._lines()
            for label in _labels(value)
        )
        self.label_column = one_question(file, questions, options)
        found = (self._said(value) for _, value in self._lines()) if options.annotators else ()
        self.annotators = asked(file.name, options.annotators, found)

    def entries(self) -> Iterator[Entry]:
        """See ``Format``."""
        for row, value in self._lines():
            label, problem, answers = None, None, None
            try:
                if self.annotators:
                    given = self._said(value)
                    label, answers = marked(given), of_each(given, self.annotators)
                said = None if self.annotators else settled(self._said(value))
                if said is not None:
                    label = one_or_set(said.names, "has several classifications", are_sets=self.are_sets)
            except ValueError as error:
                problem = str(error)
            extra = {"data_row_id": str(_data_row_of(value).get("id", ""))}
            yield Entry(row, _path_of(value), label, extra=extra, answers=answers, problem=problem)

    def rewritten(self, outcome: Outcome) -> str:
        """See ``Format``. A data row without a label stays without one: Labelbox makes the ids of its answers."""
        values = [value for _, value in self._lines()]
        option_of = {
            _name_of(answer): answer
            for value in values
            for said in self._said(value)
            for answer in said.place
        }
        kept = []
        for value in values:
            label = outcome(_path_of(value))
            if label is None:
                continue
            said = self._said(value) if label else []
            truth = [one for one in said if one.is_truth] or said
            for answer in truth[-1].place if truth else ():  # what others answered stays
                _choose(answer, label, option_of.get(label))
            kept.append(value)
        return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in kept)

    def _said(self, value: dict[str, Any]) -> list[Answer[list[dict[str, Any]]]]:
        """Everybody's answers to the question that holds the labels."""
        found = []
        for label in _labels(value):
            answers = [answer for question, answer in _answers(label) if question == self.label_column]
            about = label.get("label_details")
            about = about if isinstance(about, dict) else {}
            is_truth = bool(about.get("is_benchmark_reference"))
            names = tuple(map(_name_of, answers))
            if names:
                found.append(Answer(str(about.get("created_by") or ""), names, is_truth, answers))
        return found

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        yield from json_lines(self._file)


def is_labelbox(file: Path) -> bool:
    """Return whether the first line is a data row of Labelbox."""
    first = next(json_lines(file), (0, {}))[1]
    return isinstance(first.get("data_row"), dict) and isinstance(first.get("projects"), dict)


def _choose(answer: dict[str, Any], label: str, option: dict[str, Any] | None) -> None:
    """Make ``answer`` say ``label``; ``option`` is an answer elsewhere that says so, with the option's own ids."""
    own = {key: (option or {}).get(key) for key in OF_THE_OPTION}
    own["name"], own["value"] = label, own["value"] or label
    for key in OF_THE_OPTION:
        if key in answer and own[key] is not None:
            answer[key] = own[key]
        elif key in answer:  # an id of another option would contradict the name
            del answer[key]


def _data_row_of(value: dict[str, Any]) -> dict[str, Any]:
    found = value.get("data_row")
    return found if isinstance(found, dict) else {}


def _path_of(value: dict[str, Any]) -> str:
    found = _data_row_of(value)
    key = str(found.get("global_key") or "")
    named = key if key.lower().endswith(IMAGE_SUFFIXES) else ""
    return str(found.get("external_id") or named or found.get("row_data") or "")


def _labels(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Everybody's label of each project, the oldest first."""
    projects = value.get("projects")
    for project in projects.values() if isinstance(projects, dict) else ():
        labels = project.get("labels") if isinstance(project, dict) else None
        yield from (
            (label for label in labels or () if isinstance(label, dict)) if isinstance(labels, list) else ()
        )


def _answers(label: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """(question, answer) of one label: one of a radio, those of a checklist."""
    found: list[tuple[str, dict[str, Any]]] = []
    annotations = label.get("annotations")
    said = annotations.get("classifications") if isinstance(annotations, dict) else None
    for one in said if isinstance(said, list) else ():
        if isinstance(one, dict):
            checked = one.get("checklist_answers")
            answers = [one.get("radio_answer"), *(checked if isinstance(checked, list) else [])]
            found += [(_name_of(one), answer) for answer in answers if isinstance(answer, dict)]
    return found


def _name_of(answer: dict[str, Any]) -> str:
    return str(answer.get("name") or answer.get("value") or "")
