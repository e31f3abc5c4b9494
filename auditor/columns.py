"""Every column that an export adds to the user's own, once: its name, its kind, its meaning and its value.

The tables in CSV and Parquet, the descriptions of FiftyOne's fields and docs/columns.md are made from these rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auditor.bridges import engine_bridge
from auditor.catalog.records import Review, Sample
from auditor.ground.vocabulary import DECISIONS

DIGITS = 6
"""Decimals of a number in an export."""


@dataclass(frozen=True)
class Row:
    """What is known of one sample when its row is written."""

    sample: Sample
    names: Sequence[str]
    """The dataset's classes."""
    imported_names: Sequence[str]
    """The same, as the source calls them."""
    action: str
    cleaned: int
    """The class after cleaning; -1 where the sample is excluded."""
    score: Mapping[str, Any]
    """What the audit says of it, by column of its scores; empty without an audit."""
    decided: Review | None
    signals: Mapping[str, NDArray[np.float32]]
    """(N,) values of the engines that spoke, by name of the column."""

    def name_of(self, label: int) -> str:
        """Return the name of a class, empty for none."""
        return self.names[label] if label >= 0 else ""


@dataclass(frozen=True)
class Column:
    """One column of an export."""

    name: str
    kind: Literal["text", "integer", "boolean", "number"]
    meaning: str
    """One sentence for people, in Markdown."""
    value: Callable[[Row], Any]
    """The cell: a text, a number or a bool, or an empty text where nothing is known."""


def _number(value: float | None) -> Any:
    return "" if value is None or np.isnan(value) else round(float(value), DIGITS)


def _decided(value: Callable[[Review], str]) -> Callable[[Row], str]:
    return lambda row: "" if row.decided is None else value(row.decided)


COLUMNS = (
    Column("sample_id", "integer", "number of the sample in its dataset", lambda row: row.sample.sample_id),
    Column(
        "filepath",
        "text",
        "path of the image, relative to the root of the source",
        lambda row: row.sample.filepath,
    ),
    Column(
        "split",
        "text",
        "the split that the source named; empty where it named none",
        lambda row: row.sample.split or "",
    ),
    Column(
        "given_label",
        "text",
        "the label that was imported; never changed",
        lambda row: row.imported_names[row.sample.imported_label] if row.sample.imported_label >= 0 else "",
    ),
    Column(
        "cleaned_label",
        "text",
        "the label after cleaning, by today's classes; empty where the sample is excluded",
        lambda row: row.name_of(row.cleaned),
    ),
    Column("action", "text", "`keep`, `relabel` or `exclude`", lambda row: row.action),
    Column(
        "is_label_issue",
        "boolean",
        "true for a label that the audit or a person holds for wrong",
        lambda row: bool(row.score.get("is_label_issue", False)) if row.score else "",
    ),
    Column(
        "trust_score",
        "number",
        "1 = the given label looks right, 0 = it looks wrong",
        lambda row: _number(row.score.get("trust_score")),
    ),
    Column(
        "suggested_label",
        "text",
        "the class that the engines suggest",
        lambda row: row.name_of(row.score.get("suggested_label", -1)),
    ),
    Column(
        "suggested_probability",
        "number",
        "how probable the suggestion is, if the given label is wrong; the engines' own estimate until verified "
        "rows calibrate it",
        lambda row: _number(row.score.get("suggested_probability")),
    ),
    Column(
        "review_decision",
        "text",
        "what a person decided: " + ", ".join(f"`{name}`" for name in DECISIONS),
        _decided(lambda one: one.decision),
    ),
    Column(
        "review_labels",
        "text",
        "the classes that a person named, where several apply",
        lambda row: "|".join(map(row.name_of, (row.decided.labels if row.decided else None) or [])),
    ),
    Column("reviewer", "text", "who decided", _decided(lambda one: one.reviewer)),
    Column("reviewed_at", "text", "when", _decided(lambda one: one.created_at.isoformat())),
    Column(
        "review_kind",
        "text",
        "`suspect` (looked at beside the suggestion) or `blind` (a random sample)",
        _decided(lambda one: one.kind),
    ),
)
"""The first columns, in their order; those of the engines follow."""


@functools.cache
def in_export() -> tuple[Column, ...]:
    """Return every column that an export adds, in its order."""
    return (*COLUMNS, *(_of_engine(name, about) for name, about in engine_bridge.column_meanings().items()))


@functools.cache
def names() -> tuple[str, ...]:
    """Return the names of ``in_export``."""
    return tuple(column.name for column in in_export())


def description(name: str) -> str:
    """Return what a column of an export means, as one plain sentence; its name where it is none of ours."""
    meaning = next((column.meaning for column in in_export() if column.name == name), name).replace("`", "")
    return meaning[:1].upper() + meaning[1:]


def _of_engine(name: str, meaning: str) -> Column:
    def value(row: Row) -> Any:
        values = row.signals.get(name)
        return "" if values is None else _number(float(values[row.sample.sample_id]))

    return Column(name, "number", meaning, value)
