"""Masks by suspicion, the most suspicious first, and what is decided on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from auditor.audits import kinds, statements
from auditor.catalog.records import Audit, Dataset
from auditor.ground.wording import plural
from auditor.masks.results import verdicts
from auditor.review import blind

COLUMNS = (
    *("sample_id", "filepath", "trust_score", "is_label_issue", "weakest_class", "weakest_trust"),
    *("largest_change_to", "changed_share", "decision", "regions_taken", "reviewer"),
)

newest = kinds.newest


def suspects(
    dataset: Dataset,
    audit: Audit,
    *,
    top: int | None = None,
    max_fdr: float | None = None,
    split: str | None = None,
) -> statements.Suspects:
    """The masks of least trust, or those that a promise at ``max_fdr`` covers; the page has ``COLUMNS``.

    See ``statements.suspects``.
    """
    found = statements.suspects(audit, top=top or dataset.num_samples, max_fdr=max_fdr, split=split)
    if max_fdr is None:
        found = replace(found, statement=statement(audit, dataset))
    return replace(found, page=with_masks(dataset, audit, found.page))


def with_masks(dataset: Dataset, audit: Audit, page: pd.DataFrame) -> pd.DataFrame:
    """A page of ``scores.page`` with the columns of masks."""
    class_trust = verdicts(audit.id).class_trust
    names = dict(enumerate(dataset.class_names))
    return pd.DataFrame(
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


def statement(audit: Audit, dataset: Dataset) -> str:
    """What the audit and the people say about all masks, and what is not known."""
    doubted = audit.summary.num_label_issues or 0
    share = audit.summary.changed_pixels or 0.0
    if blind.num_judged(dataset.id):
        known = statements.noise_rate_now(audit).sentence
    else:
        known = "This is a ranking: how many masks are wrong is not known without a random sample that was checked."
    total = dataset.num_samples
    share_said = f"{100 * share:.1f} % of all pixels"
    return f"{doubted:,} of {plural(total, 'mask', 'have')} a doubtful region, {share_said}. {known}"


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
