"""Queries on the consensus of an audit: store it, page through it, filter it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray
from sqlalchemy import bindparam, delete, func, update
from sqlmodel import Session, select

from auditor.catalog import claims, reviews
from auditor.catalog.bulk import among, count_for_plans, insert_rows, read_columns
from auditor.catalog.models import AuditTable, DecisionTable, ReviewTable, SampleTable, ScoreTable
from auditor.catalog.records import Audit, Review, Score, read
from auditor.catalog.reviews import AT_ONCE
from auditor.ground.errors import NotFoundError

ROWS_A_STATEMENT = 20_000
SCORES = [one.key for one in ScoreTable.__table__.columns if one.key not in ("audit_id", "generation")]
"""Columns of ``table``."""
DECIDED = ("decision", "decided_label", "decided_labels", "reviewer", "decided_at")
"""Columns of a page that say what was decided."""
KEYS_RATHER_THAN_RANKS, RANKS_A_STEP = 300_000, 100_000
"""Up to so many samples are looked up one by one; of more the ranking is read, so much at a time."""
PART = ("sample_id", "given_label", "suggested_label", "trust_score", "is_label_issue")
"""Columns of ``part_of_table``: what a point of the map is coloured by."""
NARROW = {
    "given_label": np.int32,
    "suggested_label": np.int32,
    "agreement": np.int16,
    "trust_score": np.float32,
}
STRONG_DISAGREEMENT = 0.5
"""Spread of the engines' trust ranks from which they disagree strongly."""


@dataclass(frozen=True)
class SuspectFilter:
    """Which samples a queue of suspects shows; every field narrows it further."""

    given_label: int | None = None
    suggested_label: int | None = None
    split: str | None = None
    only_issues: bool = False
    """Only samples above the audit's suggested cut."""
    only_undecided: bool = False
    """Only what nobody has reviewed or judged blind."""
    only_decided: bool = False
    decided_by: str | None = None
    """Only where this person's word counts now."""
    free_for: str | None = None
    """Only what nobody but this person is looking at."""
    filepath_has: str | None = None
    """Only where the path holds this text."""
    share: tuple[int, int] | None = None
    """(k, n): the k-th of n equal parts of the samples, 1-based, so that n people meet nowhere."""
    min_agreement: int | None = None
    """At least so many engines predict another label."""
    min_disagreement: float | None = None
    only_copies: bool = False
    """Only samples that have equal or nearly equal ones."""
    max_rank: int | None = None
    """Only the first so many of the ranking, such as the flags of a promise."""
    by_sample: bool = False
    """In the order of the files, not the most suspicious first."""
    after: int | None = None
    """Only what comes after this rank, or ``by_sample`` after this sample_id: the next page, found by an index
    however far down it is."""
    sample_ids: tuple[int, ...] | None = None
    """Only these samples, such as a region of the map (at most some tens of thousands)."""
    apart_from: tuple[int, ...] = ()
    """None of these samples, such as those that a person put off."""


def store(session: Session, audit_id: int, columns: dict[str, NDArray[Any]]) -> None:
    """Replace the scores of an audit in the caller's transaction, for few samples.

    ``columns`` are (N,) arrays named like ``ScoreTable``'s columns; NaN becomes NULL.
    """
    for start in range(0, len(columns["rank"]), ROWS_A_STATEMENT):
        add_part(session, audit_id, columns, start)
    turn(session, audit_id)
    while clear_part(session, audit_id):
        pass


def add_part(session: Session, audit_id: int, columns: dict[str, NDArray[Any]], start: int) -> bool:
    """Insert later scores of ``ROWS_A_STATEMENT`` samples from ``start`` on, where nobody looks before ``turn``.

    In as many transactions as a caller likes: of all samples in one SQLite would let nobody else write for half a
    minute a million. Returns whether more samples follow.
    """
    rows = _rows(audit_id, _generation(session, audit_id) + 1, columns, start)
    insert_rows(session.connection(), ScoreTable.__table__, rows)
    _generation(session, audit_id)  # SQLite's transaction began with the rows: is the audit still there?
    is_last = start + len(rows) == len(columns["rank"])
    if is_last:
        count_for_plans(session.connection(), ScoreTable.__table__)
    return not is_last


def change(
    session: Session, audit_id: int, sample_ids: NDArray[np.integer], columns: Mapping[str, NDArray[Any]]
) -> None:
    """Write other values of some samples into the scores that people see; ``columns`` as of ``store``."""
    if not len(sample_ids):
        return
    known = ScoreTable.__table__.c
    one = (known.audit_id == audit_id) & (known.generation == _generation(session, audit_id))
    statement = update(ScoreTable.__table__).where(one, known.sample_id == bindparam("of_sample"))
    parts = {"of_sample": sample_ids.tolist()} | {name: _plain(values) for name, values in columns.items()}
    rows = [dict(zip(parts, row, strict=True)) for row in zip(*parts.values(), strict=True)]
    session.connection().execute(statement.values({name: bindparam(name) for name in columns}), rows)


def turn(session: Session, audit_id: int) -> None:
    """From the end of the caller's transaction on the later scores are the ones that people see."""
    session.execute(
        update(AuditTable)
        .where(AuditTable.id == audit_id)
        .values(generation=AuditTable.generation + 1)
        .execution_options(synchronize_session=False)
    )


def clear_part(session: Session, audit_id: int) -> bool:
    """Delete some of the scores that nobody looks at: earlier ones, or what a kill left of later ones.

    Returns whether more are left.
    """
    of_another = ScoreTable.generation != _generation(session, audit_id)
    unread = (ScoreTable.audit_id == audit_id) & of_another
    last = session.exec(select(func.max(ScoreTable.sample_id)).where(unread)).one()
    if last is None:
        return False
    before = last - ROWS_A_STATEMENT
    session.execute(delete(ScoreTable).where(unread, ScoreTable.sample_id > before))
    return bool(before >= 0)


def _generation(session: Session, audit_id: int) -> int:
    """Return the generation of the scores that people see.

    Until the caller's transaction ends nobody removes the audit.

    Raises:
        NotFoundError: somebody has.
    """
    kept = _generation_of(audit_id).with_for_update(read=True, key_share=True)
    found = session.execute(kept).scalar_one_or_none()
    if found is None:
        raise NotFoundError(f"Audit {audit_id} was removed meanwhile.")
    return int(found)


def _generation_of(audit_id: int) -> Any:
    return select(AuditTable.generation).where(AuditTable.id == audit_id)


def _of(audit_id: int) -> Any:
    """The condition that a row is of the scores that people see.

    Asked in the same statement: whoever asked before could find that part of them was deleted since.
    """
    is_read = ScoreTable.generation == _generation_of(audit_id).scalar_subquery()
    return (ScoreTable.audit_id == audit_id) & is_read


def _rows(
    audit_id: int, generation: int, columns: dict[str, NDArray[Any]], start: int
) -> list[dict[str, Any]]:
    """Rows of ``ScoreTable`` of ``ROWS_A_STATEMENT`` samples from ``start`` on."""
    part = {name: _plain(values[start : start + ROWS_A_STATEMENT]) for name, values in columns.items()}
    return [
        {
            "audit_id": audit_id,
            "generation": generation,
            "sample_id": start + i,
            **dict(zip(part, row, strict=True)),
        }
        for i, row in enumerate(zip(*part.values(), strict=True))
    ]


def page(session: Session, audit: Audit, where: SuspectFilter, *, limit: int = 60) -> pd.DataFrame:
    """The first suspects in the filter's order, with paths and what was decided.

    Columns: those of ``ScoreTable`` and filepath, duplicate_group, decision, decided_label, decided_labels,
    reviewer, decided_at.
    """
    statement = _filtered(session, audit, where, _page_columns()).order_by(_place(where)).limit(limit)
    names = [*SCORES, "filepath", "duplicate_group"]
    found = pd.DataFrame(session.execute(statement).all(), columns=names)
    stands = reviews.outcomes(session, audit.dataset_id, [int(one) for one in found.sample_id])
    rows = [_decided(stands.get(one)) for one in found.sample_id]
    return pd.concat([found, pd.DataFrame(rows, columns=list(DECIDED), index=found.index)], axis=1)


def page_of(session: Session, audit: Audit, sample_ids: Sequence[int]) -> pd.DataFrame:
    """These samples as ``page`` shows them, however many: a statement takes only so many parameters."""
    parts = [
        page(
            session,
            audit,
            SuspectFilter(sample_ids=tuple(sample_ids[start : start + AT_ONCE])),
            limit=AT_ONCE,
        )
        for start in range(0, max(1, len(sample_ids)), AT_ONCE)
    ]
    return pd.concat(parts, ignore_index=True).sort_values("rank", ignore_index=True)


def _decided(one: Review | None) -> tuple[Any, ...]:
    if one is None:
        return (None,) * len(DECIDED)
    return one.decision, one.label, one.labels, one.reviewer, one.created_at


def count(session: Session, audit: Audit, where: SuspectFilter) -> int:
    """Return how many samples the filter leaves."""
    return int(session.execute(_filtered(session, audit, where, [func.count()])).scalar_one())


def count_undecided(session: Session, audit: Audit, where: SuspectFilter, whole: int) -> int:
    """``count`` with ``only_undecided``, from how many the filter leaves without it: decisions are few."""
    decided = _filtered(session, audit, replace(where, only_decided=True), [func.count()])
    return whole - int(session.execute(decided.where(ScoreTable.trust_score.is_not(None))).scalar_one())


def pair_counts(session: Session, audit: Audit, where: SuspectFilter | None = None) -> pd.DataFrame:
    """Return what a filter leaves by class pair, the most frequent first; without a filter all label issues
    of the audit.

    Columns: given_label, suggested_label, count, and expected, how many of them are wrong by the audit.
    """
    pair = (ScoreTable.given_label, ScoreTable.suggested_label)
    sums = (func.count(), func.coalesce(func.sum(ScoreTable.error_probability), 0.0))
    statement = _filtered(session, audit, where or SuspectFilter(only_issues=True), [*pair, *sums])
    statement = statement.group_by(*pair).order_by(func.count().desc(), *pair)
    rows = session.execute(statement).all()
    return pd.DataFrame(rows, columns=["given_label", "suggested_label", "count", "expected"])


def table(session: Session, audit_id: int) -> pd.DataFrame:
    """All scores of an audit in sample order, without paths."""
    return pd.DataFrame(_read(session, _of(audit_id)))


def columns(session: Session, audit_id: int, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Some columns of ``table``, each an (N,) array, as small as they can be: a fraction of its memory."""
    return _read(session, _of(audit_id), names, dtypes=NARROW)


def spread(session: Session, audit_id: int, num_samples: int, *, most: int) -> pd.DataFrame:
    """At most so many rows of ``table``, evenly spread over the samples; only these are read."""
    keys = range(0, num_samples, max(1, -(-num_samples // most)))
    return pd.DataFrame(_read(session, _of(audit_id), keys=keys))


def most_parted(session: Session, audit_id: int, num_voters: int, limit: int) -> pd.DataFrame:
    """The samples on which the witnesses disagree most, of those where some predict the given label and some not:
    first those on which half of them do.

    Columns: sample_id, given_label, suggested_label, agreement.
    """
    chosen = (ScoreTable.sample_id, ScoreTable.given_label, ScoreTable.suggested_label, ScoreTable.agreement)
    statement = select(*chosen).where(
        _of(audit_id), ScoreTable.agreement >= 1, ScoreTable.agreement < num_voters
    )
    from_half = func.abs(2 * ScoreTable.agreement - num_voters)
    statement = statement.order_by(from_half, ScoreTable.disagreement.desc(), ScoreTable.sample_id)
    statement = statement.limit(limit)
    return pd.DataFrame(session.execute(statement).all(), columns=[column.key for column in chosen])


def part_of_table(
    session: Session, audit_id: int, sample_ids: NDArray[np.integer], *, worst: int
) -> pd.DataFrame:
    """The rows of ``table`` of some samples and of the suspects among the first ``worst`` ranks, each once.

    Found by indices: however many samples there are, only these are read. Columns: those in ``PART``.
    """
    of_audit = _of(audit_id)
    is_worst = of_audit & (ScoreTable.rank < worst) & ScoreTable.is_label_issue
    suspects = pd.DataFrame(_read(session, is_worst, PART, key="rank"))
    found = pd.concat([suspects, pd.DataFrame(_read(session, of_audit, PART, keys=sample_ids.tolist()))])
    return found.drop_duplicates("sample_id").sort_values("sample_id", ignore_index=True)


def in_order(session: Session, audit_id: int, sample_ids: NDArray[np.integer], *, most: int) -> pd.DataFrame:
    """The most suspicious of some samples, at most ``most``, as sample_id and rank; the worst first."""
    of_audit, wanted = _of(audit_id), ("sample_id", "rank")
    if len(sample_ids) <= KEYS_RATHER_THAN_RANKS:
        rows = _read(session, of_audit, wanted, keys=sample_ids.tolist())
        return pd.DataFrame(rows).sort_values("rank", ignore_index=True).head(most)
    # A large part of all: the ranking's head holds enough of them.
    is_wanted = np.zeros(int(sample_ids.max()) + 1, bool)
    is_wanted[sample_ids] = True
    parts, start, found = [], 0, 0
    while found < most:
        step = _read(
            session, of_audit & ScoreTable.rank.between(start, start + RANKS_A_STEP - 1), wanted, key="rank"
        )
        if not len(step["rank"]):
            break
        part = pd.DataFrame(step)
        part = part[part.sample_id < len(is_wanted)]
        part = part[is_wanted[part.sample_id]]
        parts.append(part)
        start, found = start + RANKS_A_STEP, found + len(part)
    return pd.concat(parts, ignore_index=True).head(most)


def _read(
    session: Session,
    where: Any,
    columns: Sequence[str] | None = None,
    *,
    key: str = "sample_id",
    keys: Sequence[int] | None = None,
    dtypes: Mapping[str, DTypeLike] | None = None,
) -> dict[str, NDArray[Any]]:
    known = ScoreTable.__table__.c
    names = columns or SCORES
    chosen = {name: known[name] for name in names}
    return read_columns(session.connection(), known[key], where, chosen, keys=keys, dtypes=dtypes)


def of_samples(session: Session, audit_id: int, sample_ids: Sequence[int]) -> dict[int, Score]:
    """The scores of some samples by sample_id."""
    found: dict[int, Score] = {}
    for start in range(0, len(sample_ids), AT_ONCE):
        part = list(sample_ids[start : start + AT_ONCE])
        statement = select(ScoreTable).where(_of(audit_id), ScoreTable.sample_id.in_(part))
        rows = session.exec(statement)
        found |= {row.sample_id: read(Score, row) for row in rows}
    return found


def most_trusted(session: Session, audit_id: int, label: int, limit: int) -> list[int]:
    """sample_ids with that given label that the audit trusts most: exemplars of the class."""
    statement = (
        select(ScoreTable.sample_id)
        .where(_of(audit_id), ScoreTable.given_label == label)
        .where(ScoreTable.trust_score.is_not(None))
        .order_by(ScoreTable.rank.desc())
        .limit(limit)
    )
    return list(session.exec(statement))


def _page_columns() -> list[Any]:
    score = [ScoreTable.__table__.c[name] for name in SCORES]
    sample = [SampleTable.filepath, SampleTable.duplicate_group]
    return [*score, *sample]


def _filtered(session: Session, audit: Audit, where: SuspectFilter, columns: list[Any]) -> Any:
    same_sample = (SampleTable.dataset_id == audit.dataset_id) & (
        SampleTable.sample_id == ScoreTable.sample_id
    )
    decided = (DecisionTable.dataset_id == audit.dataset_id) & (
        DecisionTable.sample_id == ScoreTable.sample_id
    )
    statement = select(*columns).select_from(ScoreTable).where(_of(audit.id))
    # A count of a million rows joins only what it asks about.
    asks_samples = where.split is not None or where.filepath_has is not None or where.only_copies
    if asks_samples or any(getattr(one, "class_", None) is SampleTable for one in columns):
        statement = statement.join(SampleTable, same_sample)
    if where.only_undecided:
        statement = statement.outerjoin(DecisionTable, decided).where(DecisionTable.review_id.is_(None))
    if _asks_decided(where):
        # Not a join: SQLite would look up a decision for each score, where decisions are few.
        those = select(DecisionTable.sample_id).where(DecisionTable.dataset_id == audit.dataset_id)
        if where.decided_by is not None:
            theirs = select(ReviewTable.id).where(
                ReviewTable.dataset_id == audit.dataset_id, ReviewTable.reviewer == where.decided_by
            )
            those = those.where(DecisionTable.review_id.in_(theirs))
        statement = statement.where(ScoreTable.sample_id.in_(those))
    # What a person decided can always be found again, even on a sample that no engine judges.
    if not where.only_decided:
        statement = statement.where(ScoreTable.trust_score.is_not(None))
    if where.given_label is not None:
        statement = statement.where(ScoreTable.given_label == where.given_label)
    if where.suggested_label is not None:
        statement = statement.where(ScoreTable.suggested_label == where.suggested_label)
    if where.split is not None:
        statement = statement.where(SampleTable.split == where.split)
    if where.only_copies:
        statement = statement.where(SampleTable.duplicate_group.is_not(None))
    if where.only_issues:
        statement = statement.where(ScoreTable.is_label_issue)
    if where.free_for is not None:
        taken = claims.held_by_others(audit.dataset_id, where.free_for)
        statement = statement.where(ScoreTable.sample_id.not_in(taken))
    if where.filepath_has is not None:
        statement = statement.where(SampleTable.filepath.icontains(where.filepath_has, autoescape=True))
    if where.share is not None:
        part, parts = where.share
        statement = statement.where(ScoreTable.sample_id % parts == part - 1)
    if where.min_agreement is not None:
        statement = statement.where(ScoreTable.agreement >= where.min_agreement)
    if where.min_disagreement is not None:
        statement = statement.where(ScoreTable.disagreement >= where.min_disagreement)
    if where.max_rank is not None:
        statement = statement.where(ScoreTable.rank < where.max_rank)
    if where.after is not None:
        statement = statement.where(_place(where) > where.after)
    if where.sample_ids is not None:
        statement = statement.where(among(session.connection(), ScoreTable.sample_id, where.sample_ids))
    if where.apart_from:
        statement = statement.where(~among(session.connection(), ScoreTable.sample_id, where.apart_from))
    return statement


def _place(where: SuspectFilter) -> Any:
    """The column that orders what the filter leaves."""
    column = ScoreTable.sample_id if where.by_sample else ScoreTable.rank
    # Of what is decided a sum, which no index has: SQLite then sorts the few, and does not go through every score.
    return column + 0 if _asks_decided(where) else column


def _asks_decided(where: SuspectFilter) -> bool:
    return where.only_decided or where.decided_by is not None


def _plain(values: NDArray[Any]) -> list[Any]:
    if np.issubdtype(values.dtype, np.floating):
        return [None if np.isnan(value) else float(value) for value in values]
    return list(values.tolist())
