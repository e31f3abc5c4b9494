"""Everything that people ever said about labels as a table, and where they differ."""

from __future__ import annotations

import pandas as pd

from auditor.catalog import datasets, reviews
from auditor.catalog.db import ask
from auditor.ground.vocabulary import BLIND, DISPUTED, RULING, UNDO
from auditor.review import decisions

COLUMNS = [
    *("review_kind", "id", "sample_id", "decision", "label", "labels", "reviewer", "created_at", "source"),
    *("batch", "audit_id", "draw_id", "reverts", "note"),
]
"""``review_kind`` is one of ``vocabulary.KINDS``."""


def entries(dataset_id: int) -> pd.DataFrame:
    """The whole log in the order it was written, one row a decision or an undo."""
    log = reviews.frame(ask(reviews.log, dataset_id))
    log = log.rename(columns={"kind": "review_kind"}).reindex(columns=COLUMNS)
    numbers = ("label", "audit_id", "draw_id", "reverts")
    return log.assign(**{name: pd.to_numeric(log[name]).astype("Int64") for name in numbers})


def with_samples(dataset_id: int, log: pd.DataFrame) -> pd.DataFrame:
    """The log with the filepath and the given label of every row's sample behind its sample_id."""
    found = ask(datasets.samples, dataset_id, sorted(set(log.sample_id.tolist())))
    by_id = {row.sample_id: row for row in found}
    table, place = log.copy(), log.columns.tolist().index("sample_id") + 1
    table.insert(place, "filepath", [by_id[one].filepath for one in log.sample_id])
    table.insert(place + 1, "given_label", [by_id[one].given_label for one in log.sample_id])
    return table


def conflicts(dataset_id: int) -> pd.DataFrame:
    """Samples on which people differ, with each other or blind with themselves, and whose decision counts.

    One row a sample, person and way of looking: with the suggestion in view, or blind.
    """
    left = _not_taken_back(entries(dataset_id))
    each = [left.sample_id, left.reviewer, left.review_kind == BLIND]
    latest = left.groupby(each, as_index=False, sort=False).tail(1)
    said = latest.decision + ":" + latest.label.astype("string").fillna("")
    differing = said.groupby(latest.sample_id).nunique()
    table = latest[latest.sample_id.isin(differing.index[differing > 1])].sort_values(
        "sample_id", kind="stable"
    )
    counting = decisions.outcomes(dataset_id)
    counts = {row.id for row in counting.values() if row.decision != DISPUTED}
    stands = [one in counts for one in table.id]
    columns = ["sample_id", "reviewer", "decision", "label", "review_kind", "created_at"]
    return table[columns].assign(stands=stands).reset_index(drop=True)


def disputed(dataset_id: int) -> list[int]:
    """sample_ids on which people differ and nobody has ruled since (a decision of source ``ruling``)."""
    counting = decisions.outcomes(dataset_id)
    differing = conflicts(dataset_id).sample_id.unique().tolist()
    return [
        one
        for one in differing
        if one not in counting or counting[one].source != RULING or counting[one].decision == DISPUTED
    ]


def _not_taken_back(log: pd.DataFrame) -> pd.DataFrame:
    """The decisions of the log that nobody took back; an undone blind verdict waits to be judged afresh."""
    is_undo, is_blind = log.decision == UNDO, log.review_kind == BLIND
    undone = set(log.reverts[is_undo & ~is_blind])
    keys = ["draw_id", "sample_id"]
    last_undo = log[is_undo & is_blind].groupby(keys).id.max().rename("last_undo").reset_index()
    undone_at = log.merge(last_undo, on=keys, how="left").last_undo.fillna(0)
    is_undone = (is_blind & (log.id < undone_at)) | (~is_blind & log.id.isin(undone))
    return log[~is_undo & ~is_undone]
