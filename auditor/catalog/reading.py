"""One look at the catalog in a session of its own, for whoever needs nothing else of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.catalog import audits, datasets
from auditor.catalog.db import ask, session
from auditor.catalog.records import Audit, Dataset, Sample


def dataset(name: str) -> Dataset:
    """The dataset of that name.

    Raises:
        NotFoundError: there is none; the message names the nearest.
    """
    return ask(datasets.get, name)


def dataset_of_audit(audit_id: int) -> Dataset:
    """The dataset that the audit of that number looks at.

    Raises:
        NotFoundError: there is no such audit.
    """
    return audit_and_dataset(audit_id)[1]


def audit_and_dataset(audit_id: int) -> tuple[Audit, Dataset]:
    """The audit of that number, and the dataset that it looks at.

    Raises:
        NotFoundError: there is no such audit.
    """
    with session() as open_session:
        found = audits.get(open_session, audit_id)
        return found, datasets.by_id(open_session, found.dataset_id)


def audit(audit_id: int) -> Audit:
    """The audit of that number.

    Raises:
        NotFoundError: there is none.
    """
    return ask(audits.get, audit_id)


def audited(name: str, audit_id: int | None = None) -> tuple[Dataset, Audit]:
    """A dataset by its name, and one of its finished audits: by default the newest.

    Raises:
        NotFoundError: there is no such dataset, or none of its audits has finished, or not that one.
    """
    with session() as open_session:
        found = datasets.get(open_session, name)
        return found, audits.require_finished(open_session, found, audit_id)


def audit_id_of(name: str, number: int) -> int:
    """The id of the audit that is the ``number``-th of the dataset, counted from 1; of one that is not there an id
    that no audit has.

    Raises:
        NotFoundError: there is no such dataset.
    """
    with session() as open_session:
        known = audits.numbers(open_session, datasets.get(open_session, name).id)
    return next((one for one, place in known.items() if place == number), -number)


def audit_number(audit_id: int) -> int:
    """Return which audit of its dataset it is, counted from 1.

    Raises:
        NotFoundError: there is no such audit.
    """
    return ask(audits.numbers, audit(audit_id).dataset_id)[audit_id]


def newest_audited(name: str, audit_id: int | None = None) -> tuple[Dataset, Audit | None]:
    """A dataset by its name with its newest finished audit, or with that one; None where none has finished yet.

    Raises:
        NotFoundError: there is no such dataset, or ``audit_id`` is no finished audit of it.
    """
    with session() as open_session:
        found = datasets.get(open_session, name)
        if audit_id is None:
            return found, audits.latest_finished(open_session, found.id)
        return found, audits.require_finished(open_session, found, audit_id)


def samples(dataset_id: int) -> Iterator[Sample]:
    """Every sample of a dataset in order, read while it is asked for."""
    with session() as open_session:
        yield from datasets.iterate_samples(open_session, dataset_id)


def samples_by_id(dataset_id: int, sample_ids: Sequence[int]) -> dict[int, Sample]:
    """Those samples of a dataset that are there, by sample_id."""
    return {one.sample_id: one for one in ask(datasets.samples, dataset_id, sample_ids)}
