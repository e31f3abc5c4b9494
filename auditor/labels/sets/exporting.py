"""The cleaned sets: a table, class folders, or the source once more; importing the table brings decisions back."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from auditor.catalog import reading, scores
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset, Review, Sample
from auditor.ground.errors import ExportRefusedError
from auditor.ground.files import folder_written_whole, is_part_of, written_whole
from auditor.ground.progress import OnProgress, Ticker
from auditor.ground.tables import SEPARATORS, quoted
from auditor.ground.vocabulary import ACTIONS, DISPUTED, EXCLUDE, KEEP, RELABEL
from auditor.ground.wording import plural
from auditor.labels.sets.results import decided_set, found, given_set, text_of
from auditor.outputs import check_files, find_again, is_one_file, reopened_source, write_tree
from auditor.pictures.sources import printable, read_set, set_text, sign_of
from auditor.review import decisions

OURS = (
    *("sample_id", "filepath", "split", "given_label", "cleaned_label", "action"),
    *("is_label_issue", "trust_score", "suggested_label"),
    *("review_decision", "reviewer", "reviewed_at", "review_kind"),
)
"""Columns that the export adds to the user's own; sets are written as a|b."""
MOST_NAMED = 5


@dataclass(frozen=True)
class Exported:
    """What was written."""

    num_rows: int
    num_relabel: int
    num_exclude: int
    sentence: str


@dataclass(frozen=True, eq=False)
class _Cleaned:
    """A dataset with what people decided."""

    dataset: Dataset
    audit: Audit | None
    samples: list[Sample]
    decided: dict[int, Review]

    def outcome(self, sample: Sample) -> tuple[str, tuple[int, ...] | None]:
        """Return the action and the set in the end; None without a label, or where it is excluded."""
        row = self.decided.get(sample.sample_id)
        action = row.decision if row is not None and row.decision in ACTIONS else KEEP
        cleaned = decided_set(row)
        if action == EXCLUDE:
            return action, None
        return (RELABEL, cleaned) if cleaned is not None else (KEEP, given_set(sample))


def export(
    name: str,
    out: Path,
    *,
    audit_id: int | None = None,
    force: bool = False,
    as_source: bool = False,
    progress: OnProgress | None = None,
) -> Exported:
    """Write the cleaned sets: only what a person decided changes one.

    ``out`` ends in ``.csv`` or ``.tsv``, or is a new folder of class folders, in which a picture is in that of each
    of its classes. With ``as_source``, and for other endings, the source is written once more in its own form.

    Raises:
        ExportRefusedError: it exists, belongs to the source, or cannot be written so.
        NotFoundError: no such dataset or audit.
    """
    if os.path.lexists(out) and not (force and out.suffix):
        raise ExportRefusedError(f"{out} exists; choose another name, or overwrite it.", field="force")
    dataset, audit = reading.newest_audited(name, audit_id)
    if is_part_of(out, dataset.source):
        raise ExportRefusedError(f"{out} belongs to what {name} was imported from; choose another name.")
    cleaned = _Cleaned(
        dataset,
        audit,
        list(reading.samples(dataset.id)),
        decisions.outcomes(dataset.id),
    )
    ticker = Ticker(progress, "writing", len(cleaned.samples))
    if not out.suffix and (not as_source or dataset.source_kind == "folder"):
        return _tree(cleaned, out, ticker)
    if as_source or out.suffix.lower() not in SEPARATORS:
        return _source(cleaned, out)
    return _table(cleaned, out, ticker)


def _table(cleaned: _Cleaned, out: Path, ticker: Ticker) -> Exported:
    dataset, names = cleaned.dataset, cleaned.dataset.class_names
    kept = [column for column in dataset.user_columns if column not in ("split", dataset.label_column)]
    own = {column: f"source_{column}" if column in OURS else column for column in kept}
    said = _said(cleaned)
    actions: Counter[str] = Counter()
    with written_whole(out) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=SEPARATORS[out.suffix.lower()])
        header = [*own.values(), *OURS]
        writer.writerow([quoted(column) for column in header])
        for done, (sample, scored) in enumerate(zip(cleaned.samples, said, strict=True), start=1):
            action, labels = cleaned.outcome(sample)
            cells = {shown: (sample.extra or {}).get(column, "") for column, shown in own.items()}
            cells |= {"sample_id": str(sample.sample_id), "filepath": sample.filepath}
            cells |= {"split": sample.split or "", "action": action} | scored
            cells |= {"given_label": text_of(given_set(sample), names)}
            cells |= {"cleaned_label": text_of(labels, names)}
            if (row := cleaned.decided.get(sample.sample_id)) is not None:
                cells |= {"review_decision": row.decision, "reviewer": row.reviewer, "review_kind": row.kind}
                cells |= {"reviewed_at": row.created_at.isoformat()}
            writer.writerow([quoted(cells.get(column, "")) for column in header])
            actions[action] += 1
            ticker.at(done)
    return _summed(cleaned, actions)


def _said(cleaned: _Cleaned) -> Iterator[dict[str, str]]:
    """Yield what an audit says of every sample, as cells."""
    if cleaned.audit is None:
        yield from ({} for _ in cleaned.samples)
        return
    table, suggested = ask(scores.table, cleaned.audit.id), found(cleaned.audit).suggested
    names = cleaned.dataset.class_names
    for sample, is_issue, trust in zip(cleaned.samples, table.is_label_issue, table.trust_score, strict=True):
        labels = tuple(np.flatnonzero(suggested[sample.sample_id]).tolist())
        yield {
            "is_label_issue": str(bool(is_issue)),
            "trust_score": "" if np.isnan(trust) else f"{float(trust):.6g}",
            "suggested_label": text_of(labels, names),
        }


def _tree(cleaned: _Cleaned, out: Path, ticker: Ticker) -> Exported:
    """A folder a class; a picture without any is in none of them."""
    names = cleaned.dataset.class_names
    actions: Counter[str] = Counter()
    nowhere = 0

    def placed() -> Iterator[tuple[Sample, list[str]]]:
        nonlocal nowhere
        for done, sample in enumerate(cleaned.samples, start=1):
            action, labels = cleaned.outcome(sample)
            actions[action] += 1
            nowhere += action != EXCLUDE and not labels
            yield sample, [names[label] for label in labels or ()]
            ticker.at(done)

    write_tree(cleaned.dataset, out, placed())
    left = f" {plural(nowhere, 'picture')} without a class are in no folder." if nowhere else ""
    return _summed(cleaned, actions, left)


def _source(cleaned: _Cleaned, out: Path) -> Exported:
    """Write what the dataset was imported from, with cleaned sets and without excluded images."""
    dataset, names = cleaned.dataset, cleaned.dataset.class_names
    source = reopened_source(dataset, out)
    again = find_again(dataset, source, cleaned.samples)
    if num_lost := dataset.num_samples - len(again.places):
        raise ExportRefusedError(
            f"{dataset.source} changed since it was imported: {num_lost:,} of "
            f"{plural(dataset.num_samples, 'sample')} cannot be found in it; put it back, or export a table."
        )
    sign = sign_of([one for one in again.labels if one])
    now = dict(zip(again.samples, again.labels, strict=True))
    actions: Counter[str] = Counter()
    outcome: dict[int, str | None] = {}
    touched, conflicts = list[Sample](), list[str]()
    for sample in cleaned.samples:
        action, labels = cleaned.outcome(sample)
        text, given = now[sample.sample_id], given_set(sample)
        there = None if text is None else set(read_set(text, sign))
        is_as_imported = there == (None if given is None else {names[label] for label in given})
        if action != KEEP and not is_as_imported:
            action = KEEP
            conflicts.append(sample.filepath)
        actions[action] += 1
        outcome[sample.sample_id] = ""
        if action == EXCLUDE:
            outcome[sample.sample_id] = None
        elif action == RELABEL:
            outcome[sample.sample_id] = set_text(names[label] for label in labels or ())
        if action != KEEP:
            touched.append(sample)
    if not again.by_picture:
        check_files(dataset, touched)
    outcomes = ["" if number is None else outcome[number] for number in again.samples]
    writing = written_whole if is_one_file(dataset.source) else folder_written_whole
    with writing(out) as beside:
        source.write_again(beside, outcomes, names)
    few = ", ".join(map(printable, conflicts[:MOST_NAMED]))
    more = f" and {len(conflicts) - MOST_NAMED:,} more" if len(conflicts) > MOST_NAMED else ""
    left = (
        f" {plural(len(conflicts), 'label', 'were')} changed at the source after the import; what the source says "
        f"stays: {few}{more}."
    )
    return _summed(cleaned, actions, left if conflicts else "")


def _summed(cleaned: _Cleaned, actions: Counter[str], more: str = "") -> Exported:
    num = sum(actions.values())
    sentence = (
        f"{plural(num, 'row')} of {cleaned.dataset.name}, the labels of {plural(actions[RELABEL], 'picture')} "
        f"changed and {plural(actions[EXCLUDE], 'sample')} excluded by people; the others are as they were given."
    )
    if disputed := sum(row.decision == DISPUTED for row in cleaned.decided.values()):
        sentence += (
            f" {plural(disputed, 'picture')} on which people differ stay as they are; look once more at each."
        )
    return Exported(num, actions[RELABEL], actions[EXCLUDE], sentence + more)
