"""Classes that people rename, merge and split: each change is a row of the dataset's log, undone last first.

The source's labels and what people decided stay as they are written. They are read by the classes of today:
``Dataset.merged`` says where a class is that is no more, ``Dataset.imported_names`` what the source calls each.
A class keeps its number for ever, so that what engines said of it stays true.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sqlmodel import Session

from auditor.catalog import datasets, jobs, reviews
from auditor.catalog.db import session
from auditor.catalog.records import Dataset, now
from auditor.ground.errors import ReviewError
from auditor.ground.names import Names, normal
from auditor.ground.tables import read_table
from auditor.ground.vocabulary import EXCLUDING, NOT_CLEAR, RELABEL
from auditor.ground.wording import did_you_mean
from auditor.results import new_classes
from auditor.review import decisions


def rename(dataset_name: str, class_name: str, new_name: str, *, reviewer: str) -> None:
    """Call a class otherwise from now on; the label that was imported keeps its name in exports.

    Raises:
        ReviewError: no such class, the name is or was another class's, or a job runs.
        NotFoundError: no such dataset.
    """
    with _changing(dataset_name, reviewer) as (open_session, dataset):
        label, names = _number(dataset, class_name), list(dataset.class_names)
        before, names[label] = names[label], new_classes.free_name(dataset, new_name, of=label)
        _log(open_session, dataset, reviewer, names, kind="rename", label=label, before=before)


def merge(dataset_name: str, class_name: str, into: str, *, reviewer: str) -> None:
    """Make one class of two from now on: labels and decisions that name the one mean the other.

    Raises:
        ReviewError: no such classes, or a job runs.
        NotFoundError: no such dataset.
    """
    with _changing(dataset_name, reviewer) as (open_session, dataset):
        label, other = _number(dataset, class_name), _number(dataset, into)
        if label == other:
            raise ReviewError(f"{class_name!r} cannot be merged into itself; name two classes.")
        if len(dataset.classes) < 3:
            raise ReviewError(f"{dataset_name} has two classes; one alone cannot be audited.")
        _log(open_session, dataset, reviewer, dataset.class_names, kind="merge", label=label, into=other)


def split(
    dataset_name: str, class_name: str, new_name: str, samples: Sequence[int], *, reviewer: str
) -> None:
    """Move samples of a class into a new one, as a decision to relabel each.

    Engines learn the new class in the next audit, from these decisions.

    Raises:
        ReviewError: no such class, a sample is of another one or in dispute, the name is taken, or a job runs.
        NotFoundError: no such dataset or sample.
    """
    chosen, batch = list(samples), uuid.uuid4().hex
    with _changing(dataset_name, reviewer) as (open_session, dataset):
        label, names = _number(dataset, class_name), list(dataset.class_names)
        others = np.setdiff1d(chosen, members(open_session, dataset, label))
        if len(others) or not chosen:
            one = f"sample {others[0]} is not" if len(others) else "no sample is named"
            raise ReviewError(f"Only what is {class_name!r} now can be split from it; {one}.")
        # What an undone split left empty is the same class again.
        again = (one for one, there in dataset.joined.items() if there == label)
        new = next((one for one in again if names[one] == normal(new_name)), len(names))
        if new == len(names):
            names.append(new_classes.free_name(dataset, new_name))
        _log(open_session, dataset, reviewer, names, kind="split", label=label, into=new, batch=batch)
        row = {"decision": RELABEL, "label": new, "reviewer": reviewer}
        decisions.apply_rows(
            open_session,
            dataset.id,
            [{"sample_id": one, **row} for one in chosen],
            source="bulk",
            batch=batch,
        )


def undo(dataset_name: str, *, reviewer: str) -> None:
    """Take back the last change that stands.

    Decisions that were taken since stay. A split's own are taken back, and later ones that name its class mean the
    one that it was split from.

    Raises:
        ReviewError: there is none, or a job runs.
        NotFoundError: no such dataset.
    """
    with _changing(dataset_name, reviewer) as (open_session, dataset):
        if not dataset.changes:
            raise ReviewError(f"No change of the classes of {dataset_name} stands; there is nothing to undo.")
        last, names = dataset.changes[-1], list(dataset.class_names)
        if last["kind"] == "rename":
            names[last["label"]] = last["before"]
        if last["kind"] == "split":
            decisions.take_back(open_session, dataset.id, last["batch"], reviewer)
        _log(open_session, dataset, reviewer, names, kind="undo")


def members(open_session: Session, dataset: Dataset, label: int) -> list[int]:
    """The samples whose label is this class now, by what people decided and else as given; disputes apart."""
    labels = datasets.given_labels(open_session, dataset.id)
    for sample_id, row in reviews.outcomes(open_session, dataset.id).items():
        if row.decision == RELABEL and row.label is not None:
            labels[sample_id] = row.label
        elif row.decision in NOT_CLEAR or row.decision in EXCLUDING:
            labels[sample_id] = -1
    return np.flatnonzero(labels == label).tolist()


def samples_in(path: Path) -> list[int]:
    """The column ``sample_id`` of a table.

    Raises:
        AuditorError: it cannot be read, or a cell is no number of a sample.
    """
    table = read_table(path)
    cells = list(table["sample_id"]) if "sample_id" in table else []
    if not cells or not all(str(cell).isdecimal() for cell in cells):
        raise ReviewError(f"{path} needs a column sample_id with the number of a sample in each row.")
    return [int(cell) for cell in cells]


def sentences(dataset: Dataset) -> list[str]:
    """The changes that stand, in words, the oldest first."""
    return [
        f"{sentence(dataset, one)} ({one['reviewer']}, {one['at'][:16].replace('T', ' ')} UTC)"
        for one in dataset.changes
    ]


def sentence(dataset: Dataset, change: dict[str, Any]) -> str:
    """One change in words, by the names of today."""
    names = dataset.class_names
    this, into = names[change["label"]], names[change.get("into", 0)]
    if change["kind"] == "rename":
        return f"{change['before']} renamed {change['after']}"
    return f"{this} merged into {into}" if change["kind"] == "merge" else f"{into} split from {this}"


@contextmanager
def _changing(dataset_name: str, reviewer: str) -> Iterator[tuple[Session, Dataset]]:
    """One transaction, after which what counts and every audit follow the classes."""
    if not reviewer.strip():
        raise ReviewError("A change of classes needs the name of whoever makes it.")
    with session() as open_session:
        dataset = new_classes.locked(open_session, dataset_name)
        if any(jobs.state(one) in jobs.AT_WORK for one in jobs.find(open_session, dataset_id=dataset.id)):
            raise ReviewError(
                f"A job works on {dataset_name}; wait for its end or stop it, then change classes."
            )
        yield open_session, dataset
        open_session.expire_all()
        after = datasets.by_id(open_session, dataset.id)
        is_renamed = after.classes.keys() == dataset.classes.keys()
        if not is_renamed:
            reviews.count_again(open_session, dataset.id)
    # A name alone changes no number; what is said of annotators holds names.
    if not is_renamed or dataset.annotators:
        new_classes.settle_again(dataset.id)


def _log(open_session: Session, dataset: Dataset, reviewer: str, names: list[str], **change: Any) -> None:
    entry = change | {"reviewer": reviewer.strip(), "at": now().isoformat()}
    if change["kind"] == "rename":
        entry["after"] = names[change["label"]]
    datasets.change(
        open_session, dataset.id, class_names=names, class_changes=[*(dataset.class_changes or ()), entry]
    )


def _number(dataset: Dataset, class_name: str) -> int:
    label = Names(dataset.class_names).number(class_name)
    if label is None:
        hint = did_you_mean(class_name, list(dataset.classes.values()), "see its classes.")
        raise ReviewError(f"{dataset.name} has no class {class_name!r}; {hint}")
    if label in dataset.merged:
        there = dataset.class_names[dataset.merged[label]]
        raise ReviewError(f"{class_name!r} is part of {there!r}; undo that first, or name that one.")
    return label
