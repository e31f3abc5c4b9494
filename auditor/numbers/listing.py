"""Numbers by suspicion, the most suspicious first, with what they should be and what was decided on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.audits import arrays, kinds, statements
from auditor.catalog import reviews
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset
from auditor.ground.vocabulary import RELABEL
from auditor.numbers.auditing import TOGETHER, given_numbers

COLUMNS = (
    *("sample_id", "filepath", "rank", "trust_score", "is_label_issue", "given", "suggested"),
    *("suggested_low", "suggested_high", "decision", "cleaned", "reviewer"),
)

newest = kinds.newest


def suspects(
    dataset: Dataset, audit: Audit, *, top: int, max_fdr: float | None = None, split: str | None = None
) -> statements.Suspects:
    """The numbers of least trust, or those that a promise at ``max_fdr`` covers; the page has ``COLUMNS``.

    See ``statements.suspects``.
    """
    found = statements.suspects(audit, top=top, max_fdr=max_fdr, split=split)
    return replace(found, page=with_numbers(dataset, audit, found.page))


def with_numbers(dataset: Dataset, audit: Audit, page: pd.DataFrame) -> pd.DataFrame:
    """A page of ``scores.page`` with the columns of numbers."""
    ids = page.sample_id.to_numpy(dtype=np.int64)
    given = given_numbers(dataset)[ids]
    suggested = np.asarray(arrays.array(audit.id, TOGETHER, "predicted"))[ids]
    half_width = audit.summary.half_width or 0.0
    return pd.DataFrame(
        {
            "sample_id": ids,
            "filepath": page.filepath,
            "rank": page["rank"] + 1,
            "trust_score": page.trust_score,
            "is_label_issue": page.is_label_issue.astype(bool),
            "given": given,
            "suggested": suggested,
            "suggested_low": suggested - half_width,
            "suggested_high": suggested + half_width,
            "decision": page.decision,
            "cleaned": _cleaned(dataset, ids.tolist()),
            "reviewer": page.reviewer,
        },
        columns=list(COLUMNS),
    )


def alike(
    given: NDArray[np.float64], table: pd.DataFrame, number: float, limit: int, apart_from: int
) -> list[tuple[int, float]]:
    """(sample_id, given number) of those that lie nearest to ``number`` and are no suspects, nearest first.

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


def _cleaned(dataset: Dataset, sample_ids: Sequence[int]) -> list[Any]:
    stands = ask(reviews.outcomes, dataset.id, list(sample_ids))
    return [
        one.number if (one := stands.get(sample)) is not None and one.decision == RELABEL else None
        for sample in sample_ids
    ]
