"""Labels that are classes, one an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from auditor import jobs
from auditor.audits import arrays, plan, worker
from auditor.catalog.records import Audit, Dataset
from auditor.ground.vocabulary import CLASSIFICATION
from auditor.kind import plain_rows
from auditor.labels.usual import Usual
from auditor.outputs import export

COLUMNS = (
    *("sample_id", "filepath", "given_label", "suggested_label", "trust_score", "error_probability"),
    *("suggested_probability", "is_label_issue", "agreement", "decision", "reviewer"),
)
LISTED = (
    *("sample_id", "filepath", "rank", "trust_score", "error_probability", "suggested_probability"),
    *("given_label", "suggested_label", "agreement", "decision", "reviewer"),
)


class Classes(Usual):
    """One class an image."""

    task = CLASSIFICATION
    is_laid_out = True

    def plan(self, dataset_name: str, engines: Sequence[str] | None = None, **choices: Any) -> int:
        """Plan it, as ``plan.plan``."""
        return plan.plan(dataset_name, engines, **choices)

    def run(self, audit: Audit, dataset: Dataset, tell: jobs.Reporter) -> None:
        """Look at the features, train, find the consensus."""
        worker.run_on_classes(audit, dataset, tell)

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
        """Return the label and its suggestion, and the reason below."""
        return (
            f"{row['rank']:>6}  {row['filepath']}  {row['given_label']} -> {row['suggested_label']}"
            f"  trust {row['trust_score']:.3f}  {row['decision'] or ''}\n        {row['reason']}"
        )

    def export(
        self,
        name: str,
        out: Path,
        *,
        force: bool = False,
        as_source: bool = False,
        links: bool = False,
        **choices: Any,
    ) -> export.ExportSummary:
        """Write a table, a folder of classes where ``out`` has no ending, or the source once more."""
        if out.suffix or as_source:
            return export.export(name, out, force=force, as_source=as_source, **choices)
        return export.export_tree(name, out, links=links, **choices)

    def download(self, name: str, out: Path, **choices: Any) -> export.ExportSummary:
        """Write a table, or the folder of classes as a zip."""
        if out.suffix == ".zip":
            return export.export_zip(name, out, **choices)
        return export.export(name, out, force=True, **choices)


def _named(dataset: Dataset, page: pd.DataFrame) -> pd.DataFrame:
    names = dict(enumerate(dataset.class_names))
    return page.assign(**{one: page[one].map(names) for one in ("given_label", "suggested_label")})


KIND = Classes()
