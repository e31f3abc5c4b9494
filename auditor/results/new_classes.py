"""Classes that a person adds after the import, for pictures that fit none of the others."""

from __future__ import annotations

from auditor.catalog import datasets, reading, reviews
from auditor.catalog.db import session
from auditor.ground.errors import ReviewError
from auditor.ground.names import Names, likeness, normal
from auditor.ground.vocabulary import CLASSIFICATION
from auditor.results import settle

MOST_LETTERS = 200


def add(dataset_name: str, class_name: str) -> list[str]:
    """Add a class, which labels can be changed to from now on; returns all classes in their order.

    The newest audit is settled again and knows it, too; engines learn it in the next one, from decisions.

    Raises:
        ReviewError: it cannot be a class of this dataset.
        NotFoundError: no such dataset.
    """
    name = normal(class_name)
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        datasets.lock(open_session, dataset.id)
        names = datasets.by_id(open_session, dataset.id).class_names
        if dataset.task != CLASSIFICATION:
            raise ReviewError(f"The labels of {dataset_name} are no classes; none can be added.")
        if not name or "\n" in name or len(name) > MOST_LETTERS:
            raise ReviewError(f"A class needs a name on one line, of at most {MOST_LETTERS} letters.")
        if likeness(name) in map(likeness, names):
            raise ReviewError(f"{dataset_name} has a class {name!r} already; relabel to that one.")
        if all(map(str.isdecimal, names)) and not name.isdecimal():
            raise ReviewError(
                f"The classes of {dataset_name} are numbers; name the new one by a number, too."
            )
        datasets.change(open_session, dataset.id, class_names=[*names, name])
    _settle_again(dataset_name)
    return [*names, name]


def remove(dataset_name: str, class_name: str) -> list[str]:
    """Take back the class that was added last; returns those that are left.

    Raises:
        ReviewError: another class was added after it, or a label or decision names it.
        NotFoundError: no such dataset.
    """
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        datasets.lock(open_session, dataset.id)
        names = datasets.by_id(open_session, dataset.id).class_names
        last = len(names) - 1
        if Names(names).number(class_name) != last:
            raise ReviewError(
                f"The last class of {dataset_name} is {names[last]!r}; only that can be taken back."
            )
        rows = reviews.log(open_session, dataset.id)
        is_named = any(last in (row.label, *(row.labels or ())) for row in rows)
        if is_named or last in datasets.given_labels(open_session, dataset.id):
            raise ReviewError(f"Labels or decisions name {names[last]!r}, so it stays: none of them is lost.")
        datasets.change(open_session, dataset.id, class_names=names[:-1])
    _settle_again(dataset_name)
    return names[:-1]


def _settle_again(dataset_name: str) -> None:
    audit = reading.newest_audited(dataset_name)[1]
    if audit is not None:
        settle.settle(audit.id)
