"""Queries on datasets and their samples."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlalchemy import String, and_, case, cast, delete, func, update
from sqlmodel import Session, col, select

from auditor.catalog import leases
from auditor.catalog.bulk import among, count_for_plans, insert_rows, read_columns
from auditor.catalog.models import (
    IMPORTING,
    READY,
    REMOVING,
    AuditTable,
    ClaimTable,
    DatasetTable,
    DecisionTable,
    DrawTable,
    EngineRunTable,
    EpochTable,
    JobTable,
    ReviewTable,
    SampleTable,
    ScoreTable,
)
from auditor.catalog.records import Dataset, NewDataset, Sample, names_of, read, values_of
from auditor.ground.errors import AuditorError, NotFoundError
from auditor.ground.vocabulary import CLASSIFICATION, LABELS, MULTILABEL
from auditor.ground.wording import did_you_mean

ROWS_A_STATEMENT = 5_000


@dataclass(frozen=True)
class Owned:
    """A dataset's number, UUID and source, the UUID of each of its audits, and its jobs."""

    id: int
    uuid: str
    source: str
    audits: dict[int, str]
    jobs: list[int]


NAMES = tuple(name for name in names_of(Sample) if name != "imported_label")
COLUMNS = tuple(getattr(SampleTable, name) for name in NAMES)
IS_READY = col(DatasetTable.status) == READY


def create(
    session: Session, dataset: NewDataset, samples: Iterable[Mapping[str, Any]], *, status: str = READY
) -> int:
    """Register a dataset and all of its samples in the caller's transaction.

    ``samples`` are mappings of the fields of ``Sample`` without ``dataset_id``, consumed in batches.
    Returns the new dataset's id.
    """
    row = DatasetTable(**values_of(dataset), status=status)
    session.add(row)
    session.flush()
    dataset_id = int(row.id)
    for rows in batched(samples):
        add_samples(session, dataset_id, rows)
    count_for_plans(session.connection(), SampleTable.__table__)
    return dataset_id


def begin(session: Session, dataset: NewDataset) -> int:
    """Register a dataset that nobody sees, without samples; returns its id.

    Then come ``add_samples`` and ``finish``, each in a transaction of its own: SQLite lets nobody else write during
    one, and a million samples take it most of a minute. What is given up goes by ``forget_part``.
    """
    return create(session, dataset, (), status=IMPORTING)


def add_samples(session: Session, dataset_id: int, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert some samples: mappings of the fields of ``Sample`` without ``dataset_id``."""
    # Into the table, not the class: the mapper's work on each row would keep the catalog locked longer.
    insert_rows(
        session.connection(), SampleTable.__table__, [{**one, "dataset_id": dataset_id} for one in rows]
    )


def finish(session: Session, dataset_id: int) -> None:
    """All samples are there: show the dataset to everybody.

    Raises:
        IntegrityError: its name is taken.
    """
    change(session, dataset_id, status=READY)
    count_for_plans(session.connection(), SampleTable.__table__)


def hide(session: Session, dataset_id: int) -> None:
    """Show a dataset to nobody any more, by its number neither; ``forget_part`` removes it."""
    change(session, dataset_id, status=REMOVING)


def forget_part(session: Session, uuid: str) -> bool:
    """Remove the last samples of the dataset of that UUID that nobody sees, with the very last the dataset itself.

    With them goes what audits and people said of them. Returns whether any of it is left; False also where there is
    none, or it is finished.
    """
    this = select(DatasetTable.id).where(DatasetTable.uuid == uuid, ~IS_READY)
    dataset_id = session.exec(this).first()
    if dataset_id is None:
        return False
    of_dataset = SampleTable.dataset_id == dataset_id
    last = session.exec(select(func.max(SampleTable.sample_id)).where(of_dataset)).one()
    if last is None or last < ROWS_A_STATEMENT:
        remove(session, dataset_id)
        return False
    before = last - ROWS_A_STATEMENT
    of_audits = ScoreTable.audit_id.in_(select(AuditTable.id).where(AuditTable.dataset_id == dataset_id))
    session.execute(delete(ScoreTable).where(of_audits, ScoreTable.sample_id > before))
    for table in (DecisionTable, ReviewTable, SampleTable):
        session.execute(delete(table).where(table.dataset_id == dataset_id, table.sample_id > before))
    return True


def forget_unfinished(session: Session) -> None:
    """Remove every unfinished dataset, in the caller's transaction."""
    for dataset_id in session.exec(select(DatasetTable.id).where(~IS_READY)).all():
        remove(session, int(dataset_id or 0))


def batched(rows: Iterable[Any], size: int | None = None) -> Iterable[Sequence[Any]]:
    """The rows in lists of ``size``; by default of as many as go into one statement."""
    iterator = iter(rows)
    while batch := list(itertools.islice(iterator, size or ROWS_A_STATEMENT)):
        yield batch


def get(session: Session, name: str) -> Dataset:
    """The dataset of that name.

    Raises:
        NotFoundError: there is none; the text names the nearest spelling.
    """
    found = session.exec(select(DatasetTable).where(DatasetTable.name == name, IS_READY)).first()
    if found is None:
        raise _unknown(session, name)
    return read(Dataset, found)


def require_classes(dataset: Dataset, what: str, *, others: Collection[str] = ()) -> None:
    """Refuse ``what`` for a dataset whose labels are no classes; ``others`` are tasks that it is for too.

    Raises:
        AuditorError: they are masks or numbers; one line.
    """
    if dataset.task != CLASSIFICATION and dataset.task not in others:
        taken = "".join(f" and {LABELS[other]}" for other in others)
        raise AuditorError(
            f"The labels of {dataset.name} are {LABELS[dataset.task]}: {what} is for class labels{taken}, one per "
            "image."
        )


def _unknown(session: Session, name: str) -> NotFoundError:
    hint = did_you_mean(name, names(session), "`auditor status` lists all datasets.")
    return NotFoundError(f"There is no dataset {name!r}; {hint}")


def by_id(session: Session, dataset_id: int) -> Dataset:
    """The dataset of that number.

    Raises:
        NotFoundError: there is none.
    """
    found = session.get(DatasetTable, dataset_id)
    if found is None or found.status == REMOVING:
        raise NotFoundError(f"There is no dataset {dataset_id}; it was removed.")
    return read(Dataset, found)


def has(session: Session, dataset_id: int) -> bool:
    """Return whether a dataset of that number is registered."""
    this = select(DatasetTable.id).where(DatasetTable.id == dataset_id, DatasetTable.status != REMOVING)
    return session.exec(this).first() is not None


def has_uuid(session: Session, uuid: str) -> bool:
    """Return whether a dataset of that UUID is registered."""
    this = select(DatasetTable.id).where(DatasetTable.uuid == uuid, IS_READY)
    return session.exec(this).first() is not None


def change(session: Session, dataset_id: int, **values: Any) -> None:
    """Change any columns of a dataset."""
    session.execute(update(DatasetTable).where(DatasetTable.id == dataset_id).values(**values))


def lock(session: Session, dataset_id: int) -> None:
    """Let nobody else lock this dataset until the transaction ends.

    To be called before reading what decides about a write: whoever waited then reads what the other wrote.
    """
    this = DatasetTable.id == dataset_id
    if session.get_bind().dialect.name == "sqlite":
        # It has no row locks; any write takes that of the whole file.
        unchanged = update(DatasetTable).where(this).values(num_samples=DatasetTable.num_samples)
        session.execute(unchanged, execution_options={"synchronize_session": False})
    else:
        # An UPDATE's lock, not a DELETE's: rows that refer to the dataset may be added meanwhile.
        session.execute(select(DatasetTable.id).where(this).with_for_update(key_share=True))


def exists(session: Session, name: str) -> bool:
    """Return whether a dataset of that name is registered."""
    return (
        session.exec(select(DatasetTable.id).where(DatasetTable.name == name, IS_READY)).first() is not None
    )


def list_all(session: Session) -> list[Dataset]:
    """Every dataset, the newest first."""
    every = select(DatasetTable).where(IS_READY)
    rows = session.exec(every.order_by(DatasetTable.created_at.desc()))
    return [read(Dataset, row) for row in rows]


def names(session: Session) -> list[str]:
    """The name of every dataset, the newest first; nothing else of their rows is read."""
    every = select(DatasetTable.name).where(IS_READY)
    return list(session.exec(every.order_by(DatasetTable.id.desc())))


def owned(session: Session, name: str) -> Owned:
    """Return what belongs to the dataset of that name, read so that damage in other cells does no harm.

    Raises:
        NotFoundError: there is none; the text names the nearest spelling.
    """
    found = _owned(session, and_(DatasetTable.name == name, IS_READY))
    if found is None:
        raise _unknown(session, name)
    return found


def owned_unseen(session: Session, uuid: str) -> Owned | None:
    """Return what belongs to the dataset of that UUID that nobody sees; None where there is none."""
    return _owned(session, and_(DatasetTable.uuid == uuid, ~IS_READY))


def _owned(session: Session, where: Any) -> Owned | None:
    columns: Any = (DatasetTable.id, DatasetTable.uuid, DatasetTable.source)
    row = session.execute(select(*columns).where(where)).first()
    if row is None:
        return None
    audits = session.execute(select(AuditTable.id, AuditTable.uuid).where(AuditTable.dataset_id == row.id))
    jobs = session.execute(select(JobTable.id).where(JobTable.dataset_id == row.id))
    own_jobs = [one.id for one in jobs]
    return Owned(row.id, row.uuid, row.source, {one.id: one.uuid for one in audits}, own_jobs)


def sources(session: Session, *, but: str) -> list[str]:
    """Return what each dataset but that of a UUID was imported from, or is being."""
    return list(session.exec(select(DatasetTable.source).where(DatasetTable.uuid != but)))


def remove(session: Session, dataset_id: int) -> None:
    """Delete a dataset with its audits, jobs, reviews and verdicts in the caller's transaction; see ``removal``."""
    audits = select(AuditTable.id).where(AuditTable.dataset_id == dataset_id)
    for audit_id in session.exec(audits).all():  # a kill while its scores were stored may have left one
        leases.end(session, f"{leases.SETTLING}{audit_id}")
    for table in (ScoreTable, EpochTable, EngineRunTable):
        session.execute(delete(table).where(table.audit_id.in_(audits)))
    for owned in (JobTable, AuditTable, DecisionTable, ReviewTable, ClaimTable, DrawTable, SampleTable):
        session.execute(delete(owned).where(owned.dataset_id == dataset_id))
    session.execute(delete(DatasetTable).where(DatasetTable.id == dataset_id))


def given_labels(session: Session, dataset_id: int) -> NDArray[np.int64]:
    """(N,) int64 in sample order, by the classes of today; -1 = unlabeled. Of masks 0: each is one label, right
    or wrong.
    """
    found, dataset = imported_labels(session, dataset_id), by_id(session, dataset_id)
    return dataset.of_today(found) if dataset.masks is None else np.zeros_like(found)


def imported_labels(session: Session, dataset_id: int) -> NDArray[np.int64]:
    """(N,) int64 in sample order, whatever classes were merged since; -1 = unlabeled."""
    return _numbers(session, dataset_id, SampleTable.given_label)


def given_numbers(session: Session, dataset_id: int) -> NDArray[np.float64]:
    """(N,) float64 in sample order; NaN where there is none."""
    return _numbers(session, dataset_id, SampleTable.number)


def given_sets(session: Session, dataset_id: int) -> NDArray[np.int8]:
    """(N, K) in sample order: 1 where a class is given, 0 where not, -1 throughout without a label."""
    dataset = by_id(session, dataset_id)
    found = np.zeros((dataset.num_samples, len(dataset.class_names)), np.int8)
    statement = select(SampleTable.sample_id, SampleTable.labels).where(SampleTable.dataset_id == dataset_id)
    for sample_id, labels in session.execute(statement.execution_options(yield_per=ROWS_A_STATEMENT)):
        found[sample_id, slice(None) if labels is None else labels] = -1 if labels is None else 1
    return found


def trusted_in_source(session: Session, dataset_id: int) -> NDArray[np.bool_]:
    """(N,) bool: the source marked the label as confirmed."""
    return _numbers(session, dataset_id, SampleTable.trusted)


def num_in_question(session: Session, dataset_id: int) -> int:
    """Return how many samples are labeled and not trusted in the source; counted without reading them."""
    return int(session.exec(select(func.count()).where(_is_in_question(dataset_id))).one())


def in_question(session: Session, dataset_id: int, sample_ids: Sequence[int]) -> set[int]:
    """Those of the samples that are labeled and not trusted in the source."""
    named = among(session.connection(), SampleTable.sample_id, sample_ids)
    return set(session.exec(select(SampleTable.sample_id).where(_is_in_question(dataset_id), named)))


def _is_in_question(dataset_id: int) -> Any:
    is_labeled = (col(SampleTable.given_label) >= 0) | col(SampleTable.mask).is_not(None)
    return and_(SampleTable.dataset_id == dataset_id, is_labeled, ~col(SampleTable.trusted))


def splits(session: Session, dataset_id: int) -> NDArray[np.object_]:
    """(N,) names of splits in sample order; None where the source named none."""
    names = list(split_counts(session, dataset_id))
    if not names:
        # One value that seems to stand N times.
        return np.broadcast_to(np.array(None, np.object_), (by_id(session, dataset_id).num_samples,))
    places = dict(zip(names, range(1, len(names) + 1), strict=True))
    place = case(places, value=SampleTable.split, else_=0)
    return np.array([None, *names], np.object_)[_numbers(session, dataset_id, place)]


def split_counts(session: Session, dataset_id: int) -> dict[str, int]:
    """Samples by split, the largest first; samples without one are not counted."""
    rows = session.exec(
        select(SampleTable.split, func.count())
        .where(SampleTable.dataset_id == dataset_id, SampleTable.split.is_not(None))
        .group_by(SampleTable.split)
        .order_by(func.count().desc(), SampleTable.split)
    )
    return {str(name): int(count) for name, count in rows.all()}


def sample(session: Session, dataset_id: int, sample_id: int) -> Sample:
    """One sample.

    Raises:
        NotFoundError: no such sample.
    """
    found = session.get(SampleTable, (dataset_id, sample_id))
    if found is None:
        raise NotFoundError(f"Dataset {dataset_id} has no sample {sample_id}.")
    return _sample([getattr(found, name) for name in NAMES], by_id(session, dataset_id).merged)


def samples(session: Session, dataset_id: int, sample_ids: Sequence[int]) -> list[Sample]:
    """The named samples, in the order asked for; unknown ids are left out."""
    found: dict[int, Sample] = {}
    merged = by_id(session, dataset_id).merged
    for ids in batched(sample_ids, 900):
        rows = session.execute(
            select(*COLUMNS).where(
                SampleTable.dataset_id == dataset_id,
                SampleTable.sample_id.in_(list(ids)),
            )
        )
        found |= {row.sample_id: _sample(row, merged) for row in rows}
    return [found[sample_id] for sample_id in sample_ids if sample_id in found]


def iterate_samples(session: Session, dataset_id: int) -> Iterable[Sample]:
    """All samples in order, streamed."""
    statement = (
        select(*COLUMNS)
        .where(SampleTable.dataset_id == dataset_id)
        .order_by(SampleTable.sample_id)
        .execution_options(yield_per=ROWS_A_STATEMENT)
    )
    merged = by_id(session, dataset_id).merged
    for row in session.execute(statement):
        yield _sample(row, merged)


def iterate_extras(session: Session, dataset_id: int) -> Iterable[tuple[str, dict[str, str]]]:
    """(filepath, the user's own columns as text) of every sample in order, streamed."""
    statement = (
        select(SampleTable.filepath, SampleTable.extra)
        .where(SampleTable.dataset_id == dataset_id)
        .order_by(SampleTable.sample_id)
        .execution_options(yield_per=ROWS_A_STATEMENT)
    )
    for filepath, extra in session.exec(statement):
        yield filepath, dict(extra or {})


def sample_ids_by_path(session: Session, dataset_id: int) -> dict[str, int]:
    """filepath -> sample_id of the whole dataset."""
    rows = session.exec(
        select(SampleTable.filepath, SampleTable.sample_id).where(SampleTable.dataset_id == dataset_id)
    )
    return dict(rows.all())


def class_counts(session: Session, dataset_id: int) -> dict[int, int]:
    """Samples by given label; -1 counts the unlabeled."""
    rows = session.exec(
        select(SampleTable.given_label, func.count())
        .where(SampleTable.dataset_id == dataset_id)
        .group_by(SampleTable.given_label)
    )
    merged, found = by_id(session, dataset_id).merged, Counter[int]()
    for label, count in rows.all():
        found[merged.get(int(label), int(label))] += int(count)
    return dict(found)


def duplicates(session: Session, dataset_id: int, *, differ_in: str | None = None) -> pd.DataFrame:
    """Samples that share their picture or nearly do, the members of a group together.

    Columns: sample_id, filepath, given_label, content_hash, duplicate_group, duplicate_kind, labels. ``differ_in``:
    only groups whose members have several values there, ``given_label`` or ``labels`` (of the labeled ones) or
    ``split``.
    """
    given = _given(by_id(session, dataset_id).merged)
    columns = (
        SampleTable.sample_id,
        SampleTable.filepath,
        given.label("given_label"),
        SampleTable.content_hash,
        SampleTable.duplicate_group,
        SampleTable.duplicate_kind,
        SampleTable.labels,
    )
    is_copy = and_(SampleTable.dataset_id == dataset_id, SampleTable.duplicate_group.is_not(None))
    statement = select(*columns).where(is_copy)
    if differ_in is not None:
        # Found by the database: of millions of copies hardly any differ.
        value = given if differ_in == "given_label" else cast(getattr(SampleTable, differ_in), String)
        known = select(SampleTable.duplicate_group).where(is_copy)
        if differ_in != "split":
            known = known.where(SampleTable.given_label >= 0)
        several = known.group_by(SampleTable.duplicate_group).having(func.min(value) < func.max(value))
        statement = statement.where(SampleTable.duplicate_group.in_(several))
    rows = session.execute(statement.order_by(SampleTable.duplicate_group, SampleTable.sample_id))
    return pd.DataFrame(rows.all(), columns=[column.key for column in columns])


def conflicts(session: Session, dataset_id: int) -> pd.DataFrame:
    """Duplicates in groups whose given labels differ, as ``duplicates`` lists them, with a bool ``is_certain``.

    Of several labels a picture, the whole set is the label. Certain: a sample with the same pixels has another
    label, so one of the two is wrong. The others of a group only look alike (a copy of theirs may have their own
    label), and one should look at them.
    """
    has_sets = by_id(session, dataset_id).task == MULTILABEL
    table = duplicates(session, dataset_id, differ_in="labels" if has_sets else "given_label")
    found = table[table.given_label >= 0].reset_index(drop=True)
    label = found.labels.map(str) if has_sets else found.given_label
    labels_of_picture = label.groupby(found.content_hash).transform("nunique")
    return found.assign(is_certain=(labels_of_picture > 1) & (found.content_hash != ""))


def _sample(row: Any, merged: Mapping[int, int]) -> Sample:
    values = dict(zip(NAMES, row, strict=True))
    imported = values.pop("given_label")
    return Sample(**values, given_label=merged.get(imported, imported), imported_label=imported)


def _given(merged: Mapping[int, int]) -> Any:
    """The given label by the classes of today, for a statement."""
    imported = col(SampleTable.given_label)
    return case(dict(merged), value=imported, else_=imported) if merged else imported


def _numbers(session: Session, dataset_id: int, column: Any) -> Any:
    key, of_dataset = SampleTable.__table__.c.sample_id, SampleTable.__table__.c.dataset_id == dataset_id
    return read_columns(session.connection(), key, of_dataset, {"": column})[""]


def set_duplicate_groups(
    session: Session, dataset_id: int, groups: Mapping[int, tuple[int, str | None]]
) -> None:
    """Put samples into groups of duplicates: (group, kind) by sample_id; kind None leaves what it was."""
    for sample_id, (group, kind) in groups.items():
        values: dict[str, Any] = {"duplicate_group": group} | (
            {} if kind is None else {"duplicate_kind": kind}
        )
        session.execute(
            update(SampleTable)
            .where(SampleTable.dataset_id == dataset_id, SampleTable.sample_id == sample_id)
            .values(**values)
        )


def group_members(session: Session, dataset_id: int, duplicate_group: int, *, limit: int) -> list[int]:
    """The first ``limit`` sample_ids of a group of duplicates."""
    # The sum keeps SQLite from walking the whole primary key, which has the order asked for, to the group.
    rows = session.exec(
        select(SampleTable.sample_id)
        .where(SampleTable.dataset_id + 0 == dataset_id, SampleTable.duplicate_group == duplicate_group)
        .order_by(SampleTable.sample_id)
        .limit(limit)
    )
    return list(rows)
