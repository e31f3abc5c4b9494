"""The cleaned numbers as a table, a row a sample in the input's order; importing it again brings decisions back."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from auditor.catalog import reading, scores
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset, Review, Sample
from auditor.ground.errors import ExportRefusedError
from auditor.ground.files import is_part_of, written_whole
from auditor.ground.numbers import figure, number_text
from auditor.ground.progress import OnProgress, Ticker
from auditor.ground.tables import SEPARATORS, quoted
from auditor.ground.vocabulary import ACTIONS, EXCLUDE, KEEP, RELABEL
from auditor.ground.wording import plural
from auditor.labels.numbers.results import suggested_numbers
from auditor.results import arrays
from auditor.review import decisions

OURS = (
    *(
        "sample_id",
        "filepath",
        "split",
        "given_label",
        "cleaned_label",
        "action",
        "is_label_issue",
        "trust_score",
    ),
    *("suggested_label", "suggested_low", "suggested_high"),
    *("review_decision", "reviewer", "reviewed_at", "review_kind"),
)
"""Columns that the export adds to the user's own; ``choicenet_rho`` follows where that engine spoke."""


@dataclass(frozen=True)
class Exported:
    """What was written."""

    num_rows: int
    num_relabel: int
    num_exclude: int
    sentence: str


def export(
    name: str,
    out: Path,
    *,
    audit_id: int | None = None,
    force: bool = False,
    progress: OnProgress | None = None,
) -> Exported:
    """Write ``out`` (``.csv`` or ``.tsv``): only what a person decided changes a number.

    Trust and suggestions are those of the newest finished audit, or of ``audit_id``; empty before the first.

    Raises:
        ExportRefusedError: the file exists, or its kind is unknown.
        NotFoundError: no such dataset or audit.
    """
    if out.suffix.lower() not in SEPARATORS:
        raise ExportRefusedError(f"{out}: numbers are exported as .csv or .tsv.")
    if out.exists() and not force:
        raise ExportRefusedError(f"{out} exists; choose another name, or overwrite it.", field="force")
    dataset, audit = reading.newest_audited(name, audit_id)
    samples = list(reading.samples(dataset.id))
    if is_part_of(out, dataset.source):
        raise ExportRefusedError(f"{out} belongs to what {name} was imported from; choose another name.")
    standing = decisions.outcomes(dataset.id)
    kept = [column for column in dataset.user_columns if column != "split"]
    own = {column: f"source_{column}" if column in OURS else column for column in kept}
    actions: Counter[str] = Counter()
    with written_whole(out) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=SEPARATORS[out.suffix.lower()])
        said = _said(audit)
        names = [*own.values(), *OURS, *said.extra]
        writer.writerow([quoted(column) for column in names])
        ticker = Ticker(progress, "writing rows", len(samples))
        for done, (sample, scored) in enumerate(zip(samples, said.rows(len(samples)), strict=True), start=1):
            decided = _decided(sample, standing.get(sample.sample_id))
            cells = {shown: (sample.extra or {}).get(column, "") for column, shown in own.items()}
            cells |= {"sample_id": str(sample.sample_id), "filepath": sample.filepath}
            cells |= {"split": sample.split or ""} | scored | decided
            writer.writerow([quoted(cells.get(column, "")) for column in names])
            actions[decided["action"]] += 1
            ticker.at(done)
    return _summed(dataset, actions)


@dataclass(frozen=True, eq=False)
class _Said:
    """What an audit says about every sample, as columns of text."""

    columns: dict[str, list[str]]
    extra: list[str]

    def rows(self, num: int) -> Iterator[dict[str, str]]:
        for place in range(num):
            yield {name: values[place] for name, values in self.columns.items()}


def _said(audit: Audit | None) -> _Said:
    if audit is None:
        return _Said({}, [])
    table = ask(scores.table, audit.id)
    suggested = suggested_numbers(audit).rename(columns={"suggested": "suggested_label"})
    columns = {
        "is_label_issue": [str(bool(one)) for one in table.is_label_issue],
        "trust_score": [_figure(one) for one in table.trust_score],
        **{str(name): [figure(one) for one in suggested[name]] for name in suggested},
    }
    if "choicenet" in audit.engines:
        columns["choicenet_rho"] = [_figure(one) for one in arrays.signal(audit.id, "choicenet", "rho")]
    return _Said(columns, [name for name in columns if name not in OURS])


def _figure(value: Any) -> str:
    return "" if np.isnan(value) else f"{float(value):.6g}"


def _decided(sample: Sample, row: Review | None) -> dict[str, str]:
    given = "" if sample.number is None else number_text(sample.number)
    action = row.decision if row is not None and row.decision in ACTIONS else KEEP
    cleaned = given
    if row is not None and row.decision == RELABEL and row.number is not None:
        cleaned = number_text(row.number)
    said = {
        "given_label": given,
        "cleaned_label": "" if action == EXCLUDE else cleaned,
        "action": action,
    }
    if row is not None:
        said |= {
            "review_decision": row.decision,
            "reviewer": row.reviewer,
            "reviewed_at": row.created_at.isoformat(),
            "review_kind": row.kind,
        }
    return said


def _summed(dataset: Dataset, actions: Counter[str]) -> Exported:
    num = sum(actions.values())
    sentence = (
        f"{plural(num, 'row')} of {dataset.name}, {plural(actions[RELABEL], 'number')} changed and "
        f"{plural(actions[EXCLUDE], 'sample')} excluded by people; the others are as they were given."
    )
    return Exported(num, actions[RELABEL], actions[EXCLUDE], sentence)
