"""The one log of decisions, and what counts now for each sample.

Looks at suspects and blind verdicts on random samples are rows of the same log, told apart by their kind. Nothing
in it is ever changed or removed; a row with the decision ``undo`` takes another one back. ``DecisionTable`` is read
from it and can be made again at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from sqlalchemy import delete, func, insert
from sqlmodel import Session, select

from auditor.catalog import datasets
from auditor.catalog.models import DecisionTable, ReviewTable
from auditor.catalog.records import NewReview, Review, names_of, values_of
from auditor.ground.vocabulary import (
    BLIND,
    DISPUTED,
    EXCLUDE,
    EXCLUDING,
    KEEP,
    MULTIPLE,
    NOT_CLEAR,
    RELABEL,
    SUSPECT,
    UNDO,
)

AT_ONCE = 900
"""Parameters that every SQLite takes in one statement."""
REVIEWED = (SUSPECT,)
"""The kinds of decisions that are no blind verdict."""
FIELDS = names_of(Review)
COLUMNS = tuple(getattr(ReviewTable, name) for name in FIELDS)
TABLE = DecisionTable.__table__


def count_again(session: Session, dataset_id: int) -> None:
    """Let what counts follow the classes, which were merged or are apart again."""
    names_some = ReviewTable.label.is_not(None) | (ReviewTable.decision == MULTIPLE)
    named = select(ReviewTable.sample_id).where(ReviewTable.dataset_id == dataset_id, names_some)
    for sample_id in session.exec(named.distinct()).all():
        _refresh(session, dataset_id, sample_id)


def append(session: Session, new: NewReview) -> Review:
    """Add one row to the log and let what counts now follow it.

    The caller holds ``datasets.lock``: of two first decisions on a sample each would find none before it.
    """
    values = values_of(new)
    row = ReviewTable(**values)
    session.add(row)
    session.flush()
    written = Review(id=int(row.id), **values)
    _refresh(session, new.dataset_id, new.sample_id)
    return written


def undo(session: Session, taken_back: Review, reviewer: str, *, source: str | None = None) -> None:
    """Take a decision back, in the name of ``reviewer``; ``source`` None = where the decision came from."""
    append(
        session,
        NewReview(
            dataset_id=taken_back.dataset_id,
            sample_id=taken_back.sample_id,
            kind=taken_back.kind,
            decision=UNDO,
            reviewer=reviewer.strip(),
            source=source or taken_back.source,
            batch=taken_back.batch,
            audit_id=taken_back.audit_id,
            reverts=taken_back.id,
        ),
    )


def outcomes(session: Session, dataset_id: int, sample_ids: Sequence[int] | None = None) -> dict[int, Review]:
    """Return what counts now by sample_id, of the named samples or of all.

    See ``counting``; what is in dispute has the decision ``DISPUTED`` and changes no label.
    """
    statement = select(*COLUMNS, DecisionTable.is_disputed).join(
        DecisionTable, DecisionTable.review_id == ReviewTable.id
    )
    statement = statement.where(DecisionTable.dataset_id == dataset_id)
    parts = [statement]
    if sample_ids is not None:
        starts = range(0, len(sample_ids), AT_ONCE)
        parts = [
            statement.where(DecisionTable.sample_id.in_(list(sample_ids[start : start + AT_ONCE])))
            for start in starts
        ]
    found = (row for part in parts for row in session.execute(part))
    rows = [(_review(row[:-1]), row[-1]) for row in found]
    meant = _of_today(session, [row for row, _ in rows])
    return {
        row.sample_id: _disputed(row) if is_disputed else row
        for row, (_, is_disputed) in zip(meant, rows, strict=True)
    }


def standing(session: Session, dataset_id: int, sample_id: int) -> Review | None:
    """The latest decision on a sample that was not taken back, blind verdicts apart; None without one.

    What a blind verdict of somebody else put in dispute is ``DISPUTED``: to decide the same once more is then news.
    """
    rows = log(session, dataset_id, sample_id)
    look, counts = _latest_look(rows), counting(rows)
    return counts if look is not None and counts is not None and counts.id == look.id else look


def standing_numbers(session: Session, dataset_id: int, sample_ids: Sequence[int]) -> dict[int, int]:
    """Return the number in the log of what stands, by sample_id; samples without a decision are left out."""
    found = (standing(session, dataset_id, one) for one in sample_ids)
    return {row.sample_id: row.id for row in found if row is not None}


def decisions(session: Session, dataset_id: int) -> dict[int, Review]:
    """The latest decision of every sample that has one, by sample_id, blind verdicts and disputes apart."""
    counting = outcomes(session, dataset_id)
    settled = {i: one for i, one in counting.items() if one.decision != DISPUTED}
    found = {sample_id: one for sample_id, one in settled.items() if one.kind in REVIEWED}
    behind = [sample_id for sample_id, one in settled.items() if one.kind == BLIND]
    looks: dict[int, list[Review]] = {}
    for start in range(0, len(behind), AT_ONCE):
        part = ReviewTable.sample_id.in_(behind[start : start + AT_ONCE])
        for row in _rows(session, ReviewTable.dataset_id == dataset_id, part, ReviewTable.kind.in_(REVIEWED)):
            looks.setdefault(row.sample_id, []).append(row)
    latest = {sample_id: _latest_look(rows) for sample_id, rows in looks.items()}
    return found | {sample_id: one for sample_id, one in latest.items() if one is not None}


def log(
    session: Session, dataset_id: int, sample_id: int | None = None, *, kinds: Sequence[str] | None = None
) -> list[Review]:
    """The log in the order it was written, of one sample or of the whole dataset, of some kinds or of all."""
    where = [ReviewTable.dataset_id == dataset_id]
    if sample_id is not None:
        where.append(ReviewTable.sample_id == sample_id)
    if kinds is not None:
        where.append(ReviewTable.kind.in_(list(kinds)))
    return _rows(session, *where)


def newest(session: Session, dataset_id: int) -> int:
    """Number of the newest row of the log, 0 without one: it changes with every word."""
    statement = select(func.max(ReviewTable.id)).where(ReviewTable.dataset_id == dataset_id)
    return int(session.exec(statement).one() or 0)


def num_since(session: Session, dataset_id: int, after: int) -> int:
    """Return how many rows of the log came after the row with that number."""
    number = ReviewTable.__table__.c.id
    later = select(func.count()).where(ReviewTable.dataset_id == dataset_id, number > after)
    return int(session.exec(later).one())


def reviewers(session: Session, dataset_id: int) -> list[str]:
    """Everybody who said something about the dataset's labels, by name."""
    statement = select(ReviewTable.reviewer).where(ReviewTable.dataset_id == dataset_id).distinct()
    return sorted(session.exec(statement))


def opinions(session: Session, dataset_id: int, sample_id: int) -> list[Review]:
    """The latest look of each person and every blind verdict that is no word of theirs yet, the oldest first.

    What was taken back is left out.
    """
    rows = log(session, dataset_id, sample_id, kinds=[SUSPECT, BLIND])
    people = dict.fromkeys(row.reviewer for row in rows)
    latest = (_latest_look([row for row in rows if row.reviewer == name]) for name in people)
    looks = {one.reviewer: one for one in latest if one is not None}
    said = {(name, _says(one)) for name, one in looks.items()}
    more = [one for one in verdicts_of(rows) if (one.reviewer, _says(one)) not in said]
    return sorted([*looks.values(), *more], key=lambda one: one.id)


def overruled(session: Session, dataset_id: int, reviewer: str, *, after: int) -> list[Review]:
    """Return what others decided differently on samples that the reviewer had decided, after the row ``after``.

    Only looks at suspects whose word counts now, the oldest first.
    """
    later = _rows(
        session,
        ReviewTable.dataset_id == dataset_id,
        COLUMNS[FIELDS.index("id")] > after,
        ReviewTable.reviewer != reviewer,
        ReviewTable.kind == SUSPECT,
        ReviewTable.decision != UNDO,
    )
    told = []
    for row in later:
        known = log(session, dataset_id, row.sample_id)
        before = known[: [one.id for one in known].index(row.id)]
        mine = _latest_look([one for one in before if one.reviewer == reviewer])
        counts = _latest_look(known)
        if mine is not None and counts is not None and counts.id == row.id and not _same_word(mine, row):
            told.append(row)
    return told


def _same_word(one: Review, other: Review) -> bool:
    return (one.decision, one.label, one.labels) == (other.decision, other.label, other.labels)


def of_batch(session: Session, dataset_id: int, batch: str) -> list[Review]:
    """The decisions that were taken in one step."""
    return _rows(session, ReviewTable.dataset_id == dataset_id, ReviewTable.batch == batch)


def latest_of(session: Session, dataset_id: int, reviewer: str) -> Review | None:
    """The reviewer's newest decision that is not undone, blind verdicts apart; None without one."""
    undone = select(ReviewTable.reverts).where(
        ReviewTable.dataset_id == dataset_id,
        ReviewTable.reverts.is_not(None),
    )
    statement = (
        select(*COLUMNS)
        .where(ReviewTable.dataset_id == dataset_id, ReviewTable.reviewer == reviewer)
        .where(ReviewTable.decision != UNDO, ReviewTable.kind.in_(REVIEWED), ReviewTable.id.not_in(undone))
        .order_by(ReviewTable.id.desc())
        .limit(1)
    )
    return next(iter(_of_today(session, [_review(row) for row in session.execute(statement)])), None)


def verdicts(session: Session, dataset_id: int) -> dict[tuple[int, int], Review]:
    """The blind verdict that counts for each (draw_id, sample_id): the latest, where that is no ``undo``."""
    return latest_verdicts(log(session, dataset_id, kinds=[BLIND]))


def latest_verdicts(rows: Iterable[Review]) -> dict[tuple[int, int], Review]:
    """``verdicts`` of a log that was read already."""
    latest = {(int(row.draw_id or 0), row.sample_id): row for row in rows if row.kind == BLIND}
    return {key: row for key, row in latest.items() if row.decision != UNDO}


def frame(rows: Sequence[Review]) -> pd.DataFrame:
    """The log as a table, one row a decision."""
    return pd.DataFrame([{name: getattr(row, name) for name in FIELDS} for row in rows], columns=list(FIELDS))


def counting(rows: Sequence[Review]) -> Review | None:
    """Return what counts for a sample after these rows of its log, the oldest first; None where all was taken back.

    A look that was clear counts before every blind verdict of the same person, and before the earlier ones of
    others. A later one of somebody else that differs overrules nobody: the label is in dispute, as it is between
    blind verdicts that differ, until somebody looks once more. Being unsure overrules nobody.
    """
    look, verdicts = _latest_look(rows), verdicts_of(rows)
    clear = [one for one in verdicts if one.decision not in NOT_CLEAR]
    if look is not None and look.decision not in NOT_CLEAR:
        counts = look
        others = [one for one in clear if one.id > look.id and one.reviewer != look.reviewer]
    elif clear:
        *others, counts = clear
    else:
        return look or next(reversed(verdicts), None)
    return counts if all(_says(one) == _says(counts) for one in others) else _disputed(counts)


def differs_from_own(rows: Sequence[Review], verdict: Review) -> Review | None:
    """The clear look of whoever gave this blind verdict, where it says something else; None otherwise."""
    mine = _latest_look([one for one in rows if one.reviewer == verdict.reviewer])
    if mine is None or {mine.decision, verdict.decision} & NOT_CLEAR:
        return None
    return None if _says(mine) == _says(verdict) else mine


def verdicts_of(rows: Sequence[Review]) -> list[Review]:
    """Each person's latest blind verdict since the last one that was taken back, the oldest first."""
    latest: dict[str, Review] = {}
    for row in rows:
        if row.kind == BLIND and row.decision == UNDO:
            latest = {}
        elif row.kind == BLIND:
            latest.pop(row.reviewer, None)
            latest[row.reviewer] = row
    return list(latest.values())


def _says(row: Review) -> tuple[str, int | None, tuple[int, ...] | None]:
    """Return what a decision says of the label, whatever the reason: without the number and the regions of a
    mask, which are an audit's.
    """
    if row.decision in EXCLUDING:
        return EXCLUDE, None, None
    is_set = row.labels is not None and row.audit_id is None
    return row.decision, row.label, tuple(row.labels or ()) if is_set else None


def _disputed(row: Review) -> Review:
    return replace(row, decision=DISPUTED, label=None, number=None, labels=None)


def _latest_look(rows: Sequence[Review]) -> Review | None:
    undone = {row.reverts for row in rows if row.decision == UNDO}
    left = [row for row in rows if row.kind in REVIEWED and row.decision != UNDO and row.id not in undone]
    return left[-1] if left else None


def _refresh(session: Session, dataset_id: int, sample_id: int) -> None:
    now_counts = counting(log(session, dataset_id, sample_id))
    of_sample = (TABLE.c.dataset_id == dataset_id, TABLE.c.sample_id == sample_id)
    session.execute(delete(TABLE).where(*of_sample))
    if now_counts is not None:
        row = {"dataset_id": dataset_id, "sample_id": sample_id, "review_id": now_counts.id}
        row["is_disputed"] = now_counts.decision == DISPUTED
        session.execute(insert(TABLE).values(**row))


def _rows(session: Session, *where: Any) -> list[Review]:
    found = session.execute(select(*COLUMNS).where(*where).order_by(ReviewTable.id))
    return _of_today(session, [_review(row) for row in found])


def _of_today(session: Session, rows: list[Review]) -> list[Review]:
    """Rows of one dataset's log as they are meant by its classes of today: what was merged is one class."""
    merged = datasets.by_id(session, rows[0].dataset_id).merged if rows else {}
    if not merged:
        return rows
    named = [row.sample_id for row in rows if row.label is not None or row.labels]
    given = {
        one.sample_id: one.given_label
        for one in datasets.samples(session, rows[0].dataset_id, list(dict.fromkeys(named)))
    }
    return [_merged(row, merged, given[row.sample_id]) if row.sample_id in given else row for row in rows]


def _merged(row: Review, merged: Mapping[int, int], given: int) -> Review:
    labels = list(dict.fromkeys(merged.get(label, label) for label in row.labels or ()))
    label = row.label if row.label is None else merged.get(row.label, row.label)
    if row.decision == MULTIPLE and len(labels) > 1:
        return replace(row, labels=labels)
    if row.decision == MULTIPLE and labels:  # all that were named are one class now
        row, label = replace(row, decision=RELABEL, labels=None), labels[0]
    return replace(row, decision=KEEP, label=None) if label == given else replace(row, label=label)


def _review(row: Any) -> Review:
    return Review(**dict(zip(FIELDS, row, strict=True)))
