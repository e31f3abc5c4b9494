"""Labels that are numbers, one an image: an audit of them, the list of suspects, and what is said of them.

Layout below ``home/audits/<audit>``: ``inputs.npz`` (numbers, labels and trusted as they were when it was planned),
each engine's arrays (``predicted``, ``deviation``, ``embeddings`` and ``signal_<name>``), and ``numbers/`` with the
suggestions (``predicted``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.catalog import datasets, reviews
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset, Draw, NewReview, Sample
from auditor.ground.errors import ReviewError, VerificationError
from auditor.ground.files import written_whole
from auditor.ground.names import Names
from auditor.ground.numbers import figure, number_text, read_number
from auditor.ground.tables import unquoted
from auditor.ground.vocabulary import KEEP, LABEL, REGRESSION, RELABEL, VERDICTS
from auditor.kind import Said
from auditor.labels.numbers import exporting
from auditor.labels.numbers.judging import judge
from auditor.labels.numbers.results import suggested_numbers
from auditor.labels.others import Others
from auditor.results import arrays
from auditor.review import blind, decisions, verifying
from auditor.statistics import guess_error_probability

OF_CLASSES = ("budget", "map_method", "finetune", "pred_probs", "forget_pred_probs", "alone")
BY_PEOPLE = "only what people decided changes a number"


class Numbers(Others):
    """One number an image."""

    task = REGRESSION
    no_verdict = "no number"
    needs_tolerance = True
    unused: ClassVar = {
        "audit": dict.fromkeys(OF_CLASSES, "leave it out"),
        "export": {"policy": BY_PEOPLE}
        | dict.fromkeys(("links", "as_source", "max_fdr"), f"{BY_PEOPLE}, in a table"),
    }

    def values(self, dataset: Dataset) -> NDArray[np.float64]:
        """Return (N,) numbers, NaN = none."""
        return ask(datasets.given_numbers, dataset.id)

    def checked(self, new: NewReview, dataset: Dataset, sample: Sample) -> NewReview:
        """Check that the right number is named."""
        new = super().checked(new, dataset, sample)
        if new.decision == RELABEL and new.number is None:
            raise ReviewError(f"relabel of sample {new.sample_id} needs the right number.")
        is_given = new.decision == RELABEL and (new.label, new.number) == (None, sample.number)
        return replace(new, decision=KEEP) if is_given else new

    def named(
        self, cells: Mapping[Any, Any], decision: str, classes: Names, given: float, where: str
    ) -> dict[str, Any]:
        """Read ``cleaned_label``."""
        if decision not in self.decisions:
            offered = ", ".join(self.decisions)
            raise ReviewError(f"{where}: {decision!r} is no decision on a number; use one of {offered}.")
        number = None
        if decision == RELABEL:
            try:
                number = read_number(unquoted(str(cells.get("cleaned_label") or "")))
            except ValueError as error:
                raise ReviewError(
                    f"{where}: cleaned_label {error}; relabel needs the right number there."
                ) from None
            if number == given:
                raise ReviewError(
                    f"{where}: relabel to {number_text(number)}, which is the given number; write the right number "
                    "into cleaned_label, or keep into review_decision."
                )
        return super().named(cells, decision, classes, given, where) | {"number": number}

    def given_text(self, dataset: Dataset, sample: Sample) -> str:
        """Return the shortest text of the number."""
        del dataset
        return "" if sample.number is None else number_text(sample.number)

    def readings(self, text: str) -> Sequence[str]:
        """Return the shortest text: a spreadsheet writes 3.0 or 3 for the same number."""
        try:
            return [number_text(read_number(text))]
        except ValueError:
            return [text]

    def verdict(self, text: str, dataset: Dataset) -> Said | None:
        """Read a number."""
        del dataset
        try:
            return Said(LABEL, None, read_number(text))
        except ValueError:
            return Said(text) if text in VERDICTS and text != LABEL else None

    def judged(self, said: Said, dataset: Dataset, sample: Sample, draw: Draw) -> Said:
        """Keep a given number that is no farther away than the draw's tolerance."""
        if said.decision != LABEL:
            return super().judged(said, dataset, sample, draw)
        if said.number is None:
            raise VerificationError("A verdict on a number needs the number that you see.")
        assert sample.number is not None
        assert draw.tolerance is not None
        is_right = blind.is_near(said.number, sample.number, draw.tolerance)
        return Said(KEEP if is_right else RELABEL, None, said.number)

    def inputs(self, dataset: Dataset) -> dict[str, NDArray[Any]]:
        """Return numbers with those that people put in place of given ones."""
        labels, trusted = decisions.labels_to_train_on(dataset.id)
        numbers, calibrating = self.values(dataset), set(verifying.calibrating_ids(dataset.id).tolist())
        for sample_id, row in decisions.outcomes(dataset.id).items():
            if row.decision == RELABEL and row.number is not None and sample_id not in calibrating:
                numbers[sample_id], labels[sample_id], trusted[sample_id] = row.number, 0, True
        return {"numbers": np.where(labels < 0, np.nan, numbers), "labels": labels, "trusted": trusted}

    def given(self, dataset: Dataset, place: Path) -> Path:
        """Write the given numbers."""
        with written_whole(place / "given.npy") as beside, beside.open("wb") as file:
            np.save(file, self.values(dataset))
        return place / "given.npy"

    def settle(self, audit: Audit, dataset: Dataset) -> None:
        """Combine what the engines predict; store suggestions, scores and the audit's summary."""
        given = self.values(dataset)
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
                "given": self.values(dataset)[ids],
                **{name: suggested[name].to_numpy() for name in suggested},
                "decision": page.decision,
                "cleaned": cleaned,
                "reviewer": page.reviewer,
            }
        )

    def line(self, row: Mapping[str, Any]) -> str:
        """Return the number, the suggested one and what was decided."""
        decided = f"  [{row['decision']}]" if row["decision"] else ""
        number = " -> ".join(self.shown(row))
        return f"{row['rank']:>6}  {row['filepath']}  {number}  trust {row['trust_score']:.3f}{decided}"

    def shown(self, row: Mapping[str, Any]) -> tuple[str, str]:
        """Return the number, and the suggested one with its interval."""
        suggested, low, high = (figure(row[one]) for one in ("suggested", "suggested_low", "suggested_high"))
        given = "" if row["given"] is None else number_text(row["given"])
        return given, f"{suggested} ({low} to {high})"

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


def nearest_examples(
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
