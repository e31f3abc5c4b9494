"""One look at the catalog in a session of its own, for whoever needs nothing else of it."""

from __future__ import annotations

from auditor.catalog import audits, datasets
from auditor.catalog.db import session
from auditor.catalog.records import Audit, Dataset


def dataset(name: str) -> Dataset:
    """The dataset of that name.

    Raises:
        NotFoundError: there is none; the message names the nearest.
    """
    with session() as open_session:
        return datasets.get(open_session, name)


def dataset_of_audit(audit_id: int) -> Dataset:
    """The dataset that the audit of that number looks at.

    Raises:
        NotFoundError: there is no such audit.
    """
    with session() as open_session:
        return datasets.by_id(open_session, audits.get(open_session, audit_id).dataset_id)


def audit(audit_id: int) -> Audit:
    """The audit of that number.

    Raises:
        NotFoundError: there is none.
    """
    with session() as open_session:
        return audits.get(open_session, audit_id)


def audited(name: str, audit_id: int | None = None) -> tuple[Dataset, Audit]:
    """A dataset by its name, and one of its finished audits: by default the newest.

    Raises:
        NotFoundError: there is no such dataset, or none of its audits has finished, or not that one.
    """
    with session() as open_session:
        found = datasets.get(open_session, name)
        return found, audits.require_finished(open_session, found, audit_id)
