"""Classes that a person adds after the import, for pictures that fit none of the others."""

from __future__ import annotations

from sqlmodel import Session

from auditor.catalog import audits, datasets, reviews
from auditor.catalog.db import ask, session
from auditor.catalog.records import Dataset
from auditor.ground.errors import ReviewError
from auditor.ground.names import Names, likeness, normal
from auditor.ground.vocabulary import CLASSIFICATION
from auditor.results import settle

MOST_LETTERS = 200


def add(dataset_name: str, class_name: str) -> list[str]:
    """Add a class, which labels can be changed to from now on; returns all classes in their order.

    Audits are settled again and know it, too; engines learn it in the next one, from decisions.

    Raises:
        ReviewError: it cannot be a class of this dataset.
        NotFoundError: no such dataset.
    """
    with session() as open_session:
        dataset = locked(open_session, dataset_name)
        names = [*dataset.class_names, free_name(dataset, class_name)]
        datasets.change(open_session, dataset.id, class_names=names)
    settle_again(dataset.id)
    return names


def locked(open_session: Session, dataset_name: str) -> Dataset:
    """The dataset, whose classes nobody else changes until the transaction ends.

    Raises:
        ReviewError: its labels are no classes.
        NotFoundError: no such dataset.
    """
    dataset = datasets.get(open_session, dataset_name)
    datasets.lock(open_session, dataset.id)
    if dataset.task != CLASSIFICATION:
        raise ReviewError(f"The labels of {dataset_name} are no classes; none can be added or changed.")
    open_session.expire_all()
    return datasets.by_id(open_session, dataset.id)


def free_name(dataset: Dataset, class_name: str, *, of: int | None = None) -> str:
    """Return the name as a class of the dataset may have it, or take it instead of its own: ``of`` says which.

    What another class was called when it was imported stays its own: exports say it as the given label.

    Raises:
        ReviewError: it cannot be the name of a class here.
    """
    name = normal(class_name)
    if not name or "\n" in name or len(name) > MOST_LETTERS:
        raise ReviewError(f"A class needs a name on one line, of at most {MOST_LETTERS} letters.")
    pairs = zip(dataset.class_names, dataset.imported_names, strict=True)
    others = {likeness(one) for label, both in enumerate(pairs) if label != of for one in both}
    if likeness(name) in others or (of is not None and name == dataset.class_names[of]):
        raise ReviewError(
            f"{dataset.name} has a class {name!r} already, or had one at its import; name another."
        )
    if all(map(str.isdecimal, dataset.class_names)) and not name.isdecimal():
        raise ReviewError(f"The classes of {dataset.name} are numbers; name the new one by a number, too.")
    return name


def remove(dataset_name: str, class_name: str) -> list[str]:
    """Take back the class that was added last; returns those that are left.

    Raises:
        ReviewError: another class was added after it, or a label or decision names it.
        NotFoundError: no such dataset.
    """
    with session() as open_session:
        dataset = locked(open_session, dataset_name)
        names = dataset.class_names
        last = len(names) - 1
        if Names(names).number(class_name) != last:
            raise ReviewError(
                f"The last class of {dataset_name} is {names[last]!r}; only that can be taken back."
            )
        rows = reviews.log(open_session, dataset.id)
        is_named = any(last in (row.label, *(row.labels or ())) for row in rows)
        is_changed = last in dataset.merged or any(
            last in (one["label"], one.get("into")) for one in dataset.changes
        )
        if is_named or is_changed or last in datasets.given_labels(open_session, dataset.id):
            raise ReviewError(
                f"Labels, decisions or changes of classes name {names[last]!r}, so it stays: none of them is lost."
            )
        datasets.change(open_session, dataset.id, class_names=names[:-1])
    settle_again(dataset.id)
    return names[:-1]


def settle_again(dataset_id: int) -> None:
    """Let every audit that has scores speak by the classes of now; engines are not trained."""
    for audit in ask(audits.of_dataset, dataset_id):
        if audit.summary.settled_at is not None:
            settle.settle(audit.id)
