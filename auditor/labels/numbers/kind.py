"""Labels that are numbers, one an image: an audit of them, the list of suspects, and what is said of them.

Layout below ``home/audits/<audit>``: ``inputs.npz`` (numbers, labels and trusted as they were when it was planned),
each engine's arrays (``predicted``, ``deviation``, ``embeddings`` and ``signal_<name>``), and ``numbers/`` with the
suggestions (``predicted``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.audits import arrays
from auditor.catalog import datasets, reviews
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset
from auditor.ground.files import written_whole
from auditor.ground.numbers import figure
from auditor.ground.vocabulary import REGRESSION, RELABEL
from auditor.labels.numbers import exporting
from auditor.labels.numbers.judging import judge
from auditor.labels.numbers.results import suggested_numbers
from auditor.labels.others import Others
from auditor.review import decisions
from auditor.statistics import guess_error_probability

OF_CLASSES = ("budget", "map_method", "finetune", "pred_probs", "forget_pred_probs", "alone")
BY_PEOPLE = "only what people decided changes a number"


class Numbers(Others):
    """One number an image."""

    task = REGRESSION
    unused: ClassVar = {
        "audit": dict.fromkeys(OF_CLASSES, "leave it out"),
        "export": {"policy": BY_PEOPLE}
        | dict.fromkeys(("links", "as_source", "max_fdr"), f"{BY_PEOPLE}, in a table"),
    }

    def inputs(self, dataset: Dataset) -> dict[str, NDArray[Any]]:
        """Return numbers with those that people put in place of given ones."""
        numbers, labels, trusted = decisions.numbers_to_train_on(dataset.id)
        return {"numbers": numbers, "labels": labels, "trusted": trusted}

    def given(self, dataset: Dataset, place: Path) -> Path:
        """Write the given numbers."""
        with written_whole(place / "given.npy") as beside, beside.open("wb") as file:
            np.save(file, ask(datasets.given_numbers, dataset.id))
        return place / "given.npy"

    def settle(self, audit: Audit, dataset: Dataset) -> None:
        """Combine what the engines predict; store suggestions, scores and the audit's summary."""
        given = ask(datasets.given_numbers, dataset.id)
        found = judge(given, [arrays.array(audit.id, name, "predicted") for name in audit.engines])
        num, rank, is_none = len(given), arrays.ranks(found.trust), np.isnan(given)
        probability = guess_error_probability(1 - (rank + 0.5) / num, found.noise_rate.point)
        columns = {
            "rank": rank,
            "given_label": np.where(is_none, -1, 0),
            "trust_score": found.trust,
            "error_probability": np.where(is_none, np.nan, probability),
            "is_label_issue": found.is_doubtful,
            "suggested_label": np.full(num, -1),
            "agreement": found.num_against,
        }
        together = {"predicted": found.predicted}
        self.store(audit, together, columns, found.noise_rate, half_width=found.half_width)

    def table(self, dataset: Dataset, audit: Audit, page: pd.DataFrame) -> pd.DataFrame:
        """Return a page with numbers given, suggested and decided."""
        ids = page.sample_id.to_numpy(dtype=np.int64)
        suggested = suggested_numbers(audit).iloc[ids].reset_index(drop=True)
        decided = ask(reviews.outcomes, dataset.id, ids.tolist())
        cleaned = [
            row.number if (row := decided.get(one)) is not None and row.decision == RELABEL else None
            for one in ids.tolist()
        ]
        return pd.DataFrame(
            {
                "sample_id": ids,
                "filepath": page.filepath,
                "rank": page["rank"] + 1,
                "trust_score": page.trust_score,
                "is_label_issue": page.is_label_issue.astype(bool),
                "given": ask(datasets.given_numbers, dataset.id)[ids],
                **{name: suggested[name].to_numpy() for name in suggested},
                "decision": page.decision,
                "cleaned": cleaned,
                "reviewer": page.reviewer,
            }
        )

    def line(self, row: Mapping[str, Any]) -> str:
        """Return the number, the suggested one and what was decided."""
        given, suggested, low, high = (
            figure(row[key]) for key in ("given", "suggested", "suggested_low", "suggested_high")
        )
        decided = f"  [{row['decision']}]" if row["decision"] else ""
        number = f"{given} -> {suggested} ({low} to {high})"
        return f"{row['rank']:>6}  {row['filepath']}  {number}  trust {row['trust_score']:.3f}{decided}"

    def export(
        self,
        name: str,
        out: Path,
        *,
        force: bool = False,
        audit_id: int | None = None,
        progress: Any = None,
        **unused: Any,
    ) -> exporting.Exported:
        """Write the table."""
        del unused
        return exporting.export(name, out, audit_id=audit_id, force=force, progress=progress)

    def download(self, name: str, out: Path, **choices: Any) -> exporting.Exported:
        """Write the table."""
        return self.export(name, out, force=True, **choices)


def alike(
    given: NDArray[np.float64], table: pd.DataFrame, number: float, limit: int, apart_from: int
) -> list[tuple[int, float]]:
    """Return (sample_id, given number) of those nearest to ``number`` that are no suspects, nearest first.

    Args:
        given: (N,) numbers; NaN where there is none.
        table: ``scores.table`` of an audit of these N samples.
        number: to lie near to.
        limit: most of them.
        apart_from: a sample_id that is left out.
    """
    away = np.abs(given - number)
    away[table.is_label_issue.to_numpy(dtype=bool) | np.isnan(given)] = np.inf
    away[apart_from] = np.inf
    nearest = np.argsort(away, kind="stable")[:limit]
    return [(int(one), float(given[one])) for one in nearest if np.isfinite(away[one])]


KIND = Numbers()
