"""What people decide about labels: recorded at once, never overwritten, undone by another row.

The log is append-only. What counts for a sample is its latest decision that was not undone; a run never
touches it. What a person confirmed or corrected is the trusted set of the next audit, except the rows that
calibrate its promises.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlmodel import Session

from auditor import kind
from auditor.catalog import datasets, reviews
from auditor.catalog.db import ask, session
from auditor.catalog.records import NewReview, Review, now
from auditor.ground.errors import ReviewError
from auditor.ground.vocabulary import (
    DISPUTED,
    EXCLUDING,
    FOUND_RIGHT,
    FOUND_WRONG,
    MULTIPLE,
    NOT_CLEAR,
    RELABEL,
    RULING,
    SUSPECT,
    UNDO,
)
from auditor.review import schema, verifying
from auditor.statistics import NO_CLASS, UNKNOWN

ON_SCREEN = ("app", "bulk", RULING)
"""Sources of decisions that a person takes in one step and can take back in one."""


@dataclass(frozen=True)
class Decided:
    """What became of a decision."""

    review_id: int
    conflict: Review | None
    """Another reviewer's different decision that stood until now; both are in the log."""
    replaced: Review | None = None
    """The different decision that stood until now, whoever took it: the reviewer in another window, for example."""


@dataclass(frozen=True)
class Findings:
    """The samples in question that people looked at, by sample_id, each once."""

    decided: set[int]
    """All of them, also where nobody could tell."""
    wrong: set[int]
    right: set[int]


def decide(
    dataset_id: int,
    sample_id: int,
    decision: str,
    *,
    reviewer: str,
    label: int | None = None,
    number: float | None = None,
    labels: Sequence[int] | None = None,
    source: str = "app",
    batch: str | None = None,
    audit_id: int | None = None,
    note: str | None = None,
    at: datetime | None = None,
) -> Decided:
    """Record one decision; it is in the database when this returns.

    ``relabel`` needs the ``label`` that is right, of a dataset of numbers the ``number``.
    Deciding again what this reviewer already decided changes nothing, so a resent decision does no harm.

    Raises:
        ReviewError: unknown decision, a label that is missing or outside the classes, or no reviewer's name.
        NotFoundError: no such sample.
    """
    row = _typed(
        NewReview(
            dataset_id=dataset_id,
            sample_id=sample_id,
            decision=decision,
            label=label,
            number=number,
            labels=None if labels is None else list(labels),
            reviewer=reviewer,
            source=source,
            batch=batch,
            audit_id=audit_id,
            note=note,
            created_at=at or now(),
        )
    )
    with session() as open_session:
        datasets.lock(open_session, row.dataset_id)
        return _decide(open_session, row)


def decide_many(
    dataset_id: int,
    decisions: Sequence[tuple[int, str, int | None]],
    *,
    reviewer: str,
    source: str = "bulk",
    audit_id: int | None = None,
) -> str:
    """Record (sample_id, decision, label) together or not at all; returns their batch, undone in one step."""
    batch = uuid.uuid4().hex
    rows = [
        _typed(
            NewReview(
                dataset_id=dataset_id,
                sample_id=sample_id,
                kind=SUSPECT,
                decision=decision,
                label=label,
                reviewer=reviewer,
                source=source,
                batch=batch,
                audit_id=audit_id,
            )
        )
        for sample_id, decision, label in decisions
    ]
    with session() as open_session:
        datasets.lock(open_session, dataset_id)
        for row in rows:
            _decide(open_session, row)
    return batch


def undo_last(dataset_id: int, reviewer: str) -> list[Review]:
    """Take back the reviewer's newest action on a screen; returns what was undone, in the order it was decided.

    An action is one sample, or all that was decided in one step: tiles together, a region, a card.
    Decisions that came from a file are rows of their own here: to take them back together is ``undo_batch``.
    """
    with session() as open_session:
        datasets.lock(open_session, dataset_id)
        latest = reviews.latest_of(open_session, dataset_id, reviewer.strip())
        if latest is None:
            return []
        action = [latest]
        if latest.batch is not None and latest.source in ON_SCREEN:
            action = _not_undone(open_session, dataset_id, latest.batch)
        for row in action:
            reviews.undo(open_session, row, reviewer)
        return action


def undo_batch(dataset_id: int, batch: str, reviewer: str) -> int:
    """Take back every decision of one batch that was not undone yet; returns how many."""
    with session() as open_session:
        datasets.lock(open_session, dataset_id)
        return take_back(open_session, dataset_id, batch, reviewer)


def take_back(open_session: Session, dataset_id: int, batch: str, reviewer: str) -> int:
    """``undo_batch`` in the caller's transaction."""
    left = _not_undone(open_session, dataset_id, batch)
    for row in left:
        reviews.undo(open_session, row, reviewer)
    return len(left)


def batches(dataset_id: int) -> pd.DataFrame:
    """Batches of decisions, the newest first: batch, source, reviewer, created_at, decisions, undone."""
    log = log_frame(dataset_id)
    made = log[(log.decision != UNDO) & log.batch.notna()]
    undone = set(log.reverts.dropna().astype(int))
    made = made.assign(undone=made.id.isin(undone))
    grouped = made.groupby("batch").agg(
        source=("source", "first"),
        reviewer=("reviewer", "first"),
        created_at=("created_at", "max"),
        decisions=("id", "count"),
        undone=("undone", "sum"),
    )
    return grouped.sort_values("created_at", ascending=False).reset_index()


def log_frame(dataset_id: int) -> pd.DataFrame:
    """The log as a table, one row a decision or undo, blind verdicts apart; ``log.entries`` has them too."""
    return reviews.frame(ask(reviews.log, dataset_id, kinds=reviews.REVIEWED))


def outcomes(dataset_id: int) -> dict[int, Review]:
    """Return what counts now by sample_id, blind verdicts too (``reviews.outcomes``)."""
    return ask(reviews.outcomes, dataset_id)


def findings(standing: Mapping[int, Review], in_question: Collection[int]) -> Findings:
    """Return what people found among the samples in question; ``standing`` as ``outcomes`` gives it.

    A class for a sample that had none, or that the source already trusts, is no error of those in question.
    """
    seen = {i: row.decision for i, row in standing.items() if i in in_question}
    return Findings(
        decided=set(seen),
        wrong={i for i, decision in seen.items() if decision in FOUND_WRONG},
        right={i for i, decision in seen.items() if decision in FOUND_RIGHT},
    )


def decision_counts(standing: Mapping[int, Review]) -> dict[str, int]:
    """Return how many samples have each decision."""
    return dict(Counter(row.decision for row in standing.values()))


def labels_to_train_on(dataset_id: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The labels (N,) int64 and the trusted mask (N,) bool of the next audit.

    Labels that a person kept or corrected enter as trusted, with the correction; what a person excluded
    enters as unlabeled. The calibrating half of every random draw
    enters as it was given, right or wrong, and untrusted, whatever was decided on it: only rows that an audit
    treats like any other can calibrate it.
    """
    with session() as open_session:
        labels = datasets.given_labels(open_session, dataset_id)
        trusted = datasets.trusted_in_source(open_session, dataset_id) & (labels >= 0)
    given, calibrating = labels.copy(), verifying.calibrating_ids(dataset_id)
    for sample_id, row in outcomes(dataset_id).items():
        _settle(labels, trusted, sample_id, row.decision, row.label)
    labels[calibrating], trusted[calibrating] = given[calibrating], False
    return labels, trusted


def known_classes(dataset_id: int) -> NDArray[np.int64]:
    """(N,) the true class of every sample that somebody decided on with their eyes on it: the one that they kept or
    named, ``NO_CLASS`` where none or several fit, ``UNKNOWN`` elsewhere.
    """
    given = ask(datasets.given_labels, dataset_id)
    known = np.full(len(given), UNKNOWN, dtype=np.int64)
    for sample_id, row in outcomes(dataset_id).items():
        if row.decision in NOT_CLEAR:
            continue
        if row.decision in EXCLUDING:
            known[sample_id] = NO_CLASS
        else:
            known[sample_id] = given[sample_id] if row.label is None else row.label
    return known


def apply_rows(
    open_session: Session,
    dataset_id: int,
    rows: Sequence[dict[str, Any]],
    *,
    source: str,
    batch: str | None = None,
) -> dict[str, int]:
    """Record decisions in the caller's transaction; rows equal to the latest decision are left alone.

    ``batch`` is what they can be undone by in one step; by default these alone.

    ``rows``: mappings with sample_id, decision, label, labels, reviewer; created_at where the decision was not
    taken now, and number where the labels are numbers.
    """
    datasets.lock(open_session, dataset_id)
    batch, counts = batch or uuid.uuid4().hex, {"unchanged": 0}
    for row in rows:
        before = reviews.standing(open_session, dataset_id, row["sample_id"])
        if before is not None and says_same(before, row):
            counts["unchanged"] += 1
            continue
        if before is not None and _is_before(open_session, row.get("created_at"), before):
            counts["older"] = counts.get("older", 0) + 1
            continue
        _decide(open_session, _typed(NewReview(dataset_id=dataset_id, batch=batch, source=source, **row)))
        counts[row["decision"]] = counts.get(row["decision"], 0) + 1
    return counts


def _is_before(open_session: Session, taken_at: datetime | None, stands: Review) -> bool:
    """Return whether a decision (None: of now) came before the one that stands: as the log has them, for
    clocks go back.

    The time of one that is not in the log is all that there is to compare.
    """
    if taken_at is None:
        return False
    log = reviews.log(open_session, stands.dataset_id, stands.sample_id)
    places = [one.id for one in log if one.created_at == taken_at]
    return max(places) <= stands.id if places else taken_at <= stands.created_at


def says_same(stands: Review, row: Mapping[str, Any]) -> bool:
    """Return whether a row for ``apply_rows`` says what is decided already.

    The classes of ``multiple`` have no order, and a row that names none does not contradict those that were named.
    """
    if (stands.decision, stands.label, stands.number) != (row["decision"], row["label"], row.get("number")):
        return False
    named = row.get("labels")
    if stands.decision == RELABEL and named is not None:  # regions of a mask are those of one audit
        return (stands.audit_id, stands.labels) == (row.get("audit_id"), named)
    return stands.decision != MULTIPLE or named is None or set(named) == set(stands.labels or ())


def _decide(open_session: Session, new: NewReview) -> Decided:
    if not datasets.has(open_session, new.dataset_id):
        raise ReviewError(f"There is no dataset {new.dataset_id}.")
    sample = datasets.sample(open_session, new.dataset_id, new.sample_id)
    dataset = datasets.by_id(open_session, new.dataset_id)
    new = kind.of(dataset).checked(new, dataset, sample)
    if new.decision != RELABEL:
        new = dataclasses.replace(new, label=None, number=None)
    before = reviews.standing(open_session, new.dataset_id, new.sample_id)
    differs = before is not None and not says_same(before, vars(new))
    if before is not None and not differs and before.reviewer == new.reviewer:
        return Decided(before.id, None)
    written = reviews.append(open_session, new)
    replaced = before if before is not None and differs and before.decision != DISPUTED else None
    is_conflict = replaced is not None and replaced.reviewer != new.reviewer
    return Decided(written.id, replaced if is_conflict else None, replaced)


def _not_undone(open_session: Session, dataset_id: int, batch: str) -> list[Review]:
    rows = reviews.of_batch(open_session, dataset_id, batch)
    undone = {row.reverts for row in rows if row.decision == UNDO}
    return [row for row in rows if row.decision != UNDO and row.id not in undone]


def _typed(row: NewReview) -> NewReview:
    """The row with plain values of the right types.

    Raises:
        ReviewError: a value has another type, such as a class 1.5.
    """
    fields = {"dataset": row.dataset_id, "sample": row.sample_id, "audit": row.audit_id}
    said = schema.read(schema.Verdict, vars(row) | fields)
    return dataclasses.replace(
        row,
        dataset_id=said.dataset,
        sample_id=said.sample,
        label=said.label,
        number=said.number,
        labels=said.labels,
        reviewer=said.reviewer.strip(),
        audit_id=said.audit,
    )


def _settle(
    labels: NDArray[np.int64],
    trusted: NDArray[np.bool_],
    sample_id: int,
    decision: str,
    label: int | None,
) -> None:
    if decision in NOT_CLEAR:
        return
    if decision in EXCLUDING:
        labels[sample_id], trusted[sample_id] = -1, False
    else:
        labels[sample_id] = labels[sample_id] if label is None else label
        trusted[sample_id] = labels[sample_id] >= 0
