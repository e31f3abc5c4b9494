"""Labels that are classes, one an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from auditor import jobs
from auditor.audits import plan_audit, run_on_classes
from auditor.catalog.records import Audit, Dataset, Draw, NewReview, Sample
from auditor.ground.errors import ReviewError, VerificationError
from auditor.ground.names import Names
from auditor.ground.tables import readings, unquoted
from auditor.ground.vocabulary import (
    CLASSIFICATION,
    DECISIONS,
    KEEP,
    LABEL,
    MULTIPLE,
    RELABEL,
    VERDICTS,
    from_verdict,
)
from auditor.kind import Said, plain_rows
from auditor.labels.usual import Usual
from auditor.outputs import ExportSummary, export_table, export_tree, export_zip
from auditor.results import arrays

COLUMNS = (
    *("sample_id", "filepath", "given_label", "suggested_label", "trust_score", "error_probability"),
    *("suggested_probability", "is_label_issue", "agreement", "decision", "reviewer"),
)
LISTED = (
    *("sample_id", "filepath", "rank", "trust_score", "error_probability", "suggested_probability"),
    *("given_label", "suggested_label", "is_label_issue", "agreement", "decision", "reviewer"),
)


class Classes(Usual):
    """One class an image."""

    task = CLASSIFICATION
    is_laid_out = True
    decisions = tuple(DECISIONS)
    no_verdict = "none of the classes"

    def checked(self, new: NewReview, dataset: Dataset, sample: Sample) -> NewReview:
        """Check that every class that it names is one."""
        new = super().checked(new, dataset, sample)
        merged = dataset.merged
        new = replace(
            new,
            label=merged.get(new.label, new.label) if new.label is not None else None,
            labels=new.labels and list(dict.fromkeys(merged.get(one, one) for one in new.labels)),
        )
        named = [new.label] if new.decision == RELABEL else list(new.labels or [])
        if new.decision == RELABEL and new.label is None:
            raise ReviewError(f"relabel of sample {new.sample_id} needs the corrected label.")
        if new.decision == MULTIPLE and len(set(named)) < 2:
            raise ReviewError(f"multiple on sample {new.sample_id} needs at least two different classes.")
        wrong = [label for label in named if label is None or not 0 <= label < len(dataset.class_names)]
        if wrong:
            last = len(dataset.class_names) - 1
            raise ReviewError(f"Class {wrong[0]} of sample {new.sample_id} is outside 0..{last}.")
        is_given = new.decision == RELABEL and new.label == sample.given_label
        return replace(new, decision=KEEP) if is_given else new

    def named(
        self, cells: Mapping[Any, Any], decision: str, classes: Names, given: float, where: str
    ) -> dict[str, Any]:
        """Read ``cleaned_label``, and ``review_labels`` as a|b."""
        name = unquoted(str(cells.get("cleaned_label") or ""))
        label = classes.number(name) if decision == RELABEL else None
        if decision == RELABEL:
            if "cleaned_label" not in cells:
                raise ReviewError(
                    f"{where}: relabel needs the right class in a column cleaned_label; add it."
                )
            if label is None:
                raise ReviewError(f"{where}: {name!r} is none of the classes; correct cleaned_label.")
            if label == given:  # an export has it there, so this is a forgotten cell and no wish to keep it
                raise ReviewError(
                    f"{where}: relabel to {name!r}, which is the given label; write the right class into "
                    "cleaned_label, or keep into review_decision."
                )
        several = [part for part in unquoted(str(cells.get("review_labels") or "")).split("|") if part]
        labels = [classes.number(part) for part in several]
        if None in labels:
            raise ReviewError(
                f"{where}: review_labels {several} names a class that the dataset does not have."
            )
        return {"label": label, "number": None, "labels": labels or None}

    def verdict(self, text: str, dataset: Dataset) -> Said | None:
        """Read a class; one that is really called "exclude" or "unsure" is a class."""
        names = Names(dataset.class_names)
        found = [label for name in readings(text) if (label := names.number(name)) is not None]
        if found:
            return Said(LABEL, found[0])
        return Said(text) if text in VERDICTS and text != LABEL else None

    def judged(self, said: Said, dataset: Dataset, sample: Sample, draw: Draw) -> Said:
        """Keep the given class where it is the one that is seen."""
        super().judged(said, dataset, sample, draw)
        num = len(dataset.class_names)
        if said.decision == LABEL and (said.label is None or not 0 <= said.label < num):
            raise VerificationError(f"Class {said.label} is outside 0..{num - 1}.")
        label = said.label if said.label is None else dataset.merged.get(said.label, said.label)
        return Said(*from_verdict(said.decision, label, sample.given_label))

    def plan(self, dataset_name: str, engines: Sequence[str] | None = None, **choices: Any) -> int:
        """Plan it, as ``plan.plan_audit``."""
        return plan_audit(dataset_name, engines, **choices)

    def run(self, audit: Audit, dataset: Dataset, tell: jobs.Reporter) -> None:
        """Look at the features, train, find the consensus."""
        run_on_classes(audit, dataset, tell)

    def table(self, dataset: Dataset, audit: Audit, page: pd.DataFrame) -> pd.DataFrame:
        """Return ``COLUMNS``, with the names of classes."""
        del audit
        return _named(dataset, page)[[*COLUMNS]]

    def rows(self, dataset: Dataset, audit: Audit, page: pd.DataFrame) -> list[dict[str, Any]]:
        """Return ``LISTED``, and the reason why each is there."""
        labels = {
            int(sample): (int(given), int(suggested))
            for sample, given, suggested in zip(
                page.sample_id, page.given_label, page.suggested_label, strict=True
            )
        }
        reasons = arrays.headlines(audit, labels, dataset.class_names)
        found = _named(dataset, page)
        found["rank"] += 1  # people count from one
        return [row | {"reason": reasons[row["sample_id"]]} for row in plain_rows(found[[*LISTED]])]

    def line(self, row: Mapping[str, Any]) -> str:
        """Return the label and its suggestion, or the next likely class of no suspect, and the reason below."""
        so = "->" if row["is_label_issue"] else "or"
        return (
            f"{row['rank']:>6}  {row['filepath']}  {row['given_label']} {so} {row['suggested_label']}"
            f"  trust {row['trust_score']:.3f}  {row['decision'] or ''}\n        {row['reason']}"
        )

    def shown(self, row: Mapping[str, Any]) -> tuple[str, str]:
        """Return both names."""
        return row["given_label"] or "", row["suggested_label"] or ""

    def export(
        self,
        name: str,
        out: Path,
        *,
        force: bool = False,
        as_source: bool = False,
        links: bool = False,
        **choices: Any,
    ) -> ExportSummary:
        """Write a table, a folder of classes where ``out`` has no ending, or the source once more."""
        if out.suffix or as_source:
            return export_table(name, out, force=force, as_source=as_source, **choices)
        return export_tree(name, out, links=links, **choices)

    def download(self, name: str, out: Path, **choices: Any) -> ExportSummary:
        """Write a table, or the folder of classes as a zip."""
        if out.suffix == ".zip":
            return export_zip(name, out, **choices)
        return export_table(name, out, force=True, **choices)


def _named(dataset: Dataset, page: pd.DataFrame) -> pd.DataFrame:
    names = dict(enumerate(dataset.class_names))
    return page.assign(**{one: page[one].map(names) for one in ("given_label", "suggested_label")})


KIND = Classes()
