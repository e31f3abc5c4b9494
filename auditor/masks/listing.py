"""Masks by suspicion, the most suspicious first, and what is decided on them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditor.audits import kinds, statements
from auditor.catalog import scores
from auditor.catalog.db import session
from auditor.catalog.records import Audit, Dataset
from auditor.masks.results import verdicts

COLUMNS = (
    *("sample_id", "filepath", "trust_score", "is_label_issue", "weakest_class", "weakest_trust"),
    *("largest_change_to", "changed_share", "decision", "regions_taken", "reviewer"),
)

newest = kinds.newest


def suspects(
    dataset: Dataset, audit: Audit, *, top: int | None = None, split: str | None = None
) -> statements.Suspects:
    """The masks of least trust, of the whole dataset or of one split; the page has ``COLUMNS``."""
    where = scores.SuspectFilter(split=split)
    with session() as open_session:
        page = scores.page(open_session, audit, where, limit=top or dataset.num_samples)
        total = scores.count(open_session, audit, where)
    class_trust = verdicts(audit.id).class_trust
    names = dict(enumerate(dataset.class_names))
    found = pd.DataFrame(
        {
            "sample_id": page.sample_id,
            "filepath": page.filepath,
            "trust_score": page.trust_score,
            "is_label_issue": page.is_label_issue,
            "weakest_class": page.given_label.map(names),
            "weakest_trust": [
                float(class_trust[row, label])
                for row, label in zip(page.sample_id, page.given_label, strict=True)
            ],
            "largest_change_to": page.suggested_label.where(page.is_label_issue.astype(bool)).map(names),
            "changed_share": page.suggested_probability,
            "decision": page.decision,
            "regions_taken": page.decided_labels,
            "reviewer": page.reviewer,
        },
        columns=list(COLUMNS),
    )
    return statements.Suspects(statement(audit, dataset), found, total)


def statement(audit: Audit, dataset: Dataset) -> str:
    """What the audit says about all masks, and what it does not."""
    doubted = audit.summary.get("num_label_issues", 0)
    share = audit.summary.get("changed_pixels", 0.0)
    return (
        f"{doubted:,} of {dataset.num_samples:,} masks have a doubtful region, {100 * share:.1f} % of all pixels. "
        "This is a ranking: how many masks are wrong is not known without a random sample that a person judged."
    )


def class_table(dataset: Dataset, audit: Audit) -> pd.DataFrame:
    """By class: how many masks have it, its mean trust, and in how many it is the class of least trust."""
    trust = np.asarray(verdicts(audit.id).class_trust)
    occurs = ~np.isnan(trust)
    weakest = np.argmin(np.where(occurs, trust, 2.0), axis=1)
    sums, counts = np.where(occurs, trust, 0.0).sum(axis=0), occurs.sum(axis=0)
    return pd.DataFrame(
        {
            "class": dataset.class_names,
            "masks": counts,
            "mean_trust": np.where(counts > 0, sums / np.maximum(counts, 1), np.nan),
            "weakest_in": np.bincount(weakest, minlength=trust.shape[1]),
        }
    )
