"""Labelbox's export in NDJSON, read for one class an image and written again with cleaned labels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from auditor.pictures.sources.annotations import Entry, Format, Outcome, json_lines


class Labelbox(Format):
    """Labelbox's export, one data row a line: the radio answer of the newest label; rows are counted from 1.

    The image is called by its external id, or by its address where there is none.
    """

    kind = "labelbox"
    columns = ("data_row_id",)

    def __init__(self, file: Path) -> None:
        """Nothing is read yet."""
        self._file = file

    def entries(self) -> Iterator[Entry]:
        """See ``Format``."""
        for row, value in self._lines():
            answers = _answers(value)
            names = {_name_of(answer) for answer in answers}
            problem = None
            if len(names) > 1:
                problem = "has several classifications; one class an image can be audited"
            label = names.pop() if len(names) == 1 else None
            data_row = value.get("data_row") or {}
            extra = {"data_row_id": str(data_row.get("id", ""))}
            yield Entry(row, _path_of(value), label, extra=extra, problem=problem)

    def rewritten(self, outcome: Outcome) -> str:
        """See ``Format``. A data row without a label stays without one: Labelbox makes the ids of its answers."""
        values = [value for _, value in self._lines()]
        value_of = {_name_of(answer): answer.get("value") for value in values for answer in _answers(value)}
        kept = []
        for value in values:
            label = outcome(_path_of(value))
            if label is None:
                continue
            for answer in _answers(value) if label else ():
                answer["name"] = label
                if "value" in answer:
                    answer["value"] = value_of.get(label) or label
            kept.append(value)
        return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in kept)

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        yield from json_lines(self._file)


def is_labelbox(file: Path) -> bool:
    """Whether the first line is a data row of Labelbox."""
    first = next(json_lines(file), (0, {}))[1]
    return isinstance(first.get("data_row"), dict) and isinstance(first.get("projects"), dict)


def _path_of(value: dict[str, Any]) -> str:
    data_row = value.get("data_row")
    found = data_row if isinstance(data_row, dict) else {}
    return str(found.get("external_id") or found.get("row_data") or "")


def _answers(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers of the newest label of each project: one of a radio, those of a checklist."""
    found: list[dict[str, Any]] = []
    projects = value.get("projects")
    for project in projects.values() if isinstance(projects, dict) else ():
        labels = project.get("labels") if isinstance(project, dict) else None
        newest = labels[-1] if isinstance(labels, list) and labels else None
        annotations = newest.get("annotations") if isinstance(newest, dict) else None
        said = annotations.get("classifications") if isinstance(annotations, dict) else None
        for one in said if isinstance(said, list) else ():
            if isinstance(one, dict):
                found += [one.get("radio_answer"), *(one.get("checklist_answers") or [])]  # type: ignore[list-item]
    return [answer for answer in found if isinstance(answer, dict)]


def _name_of(answer: dict[str, Any]) -> str:
    return str(answer.get("name") or answer.get("value") or "")
