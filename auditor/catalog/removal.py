"""A dataset that goes: hidden in one transaction, then its files and its rows, in parts between which others write.

What a process that was killed left of that goes before the next import or removal.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from sqlmodel import Session

from auditor.catalog import datasets, db, folders, leases
from auditor.catalog.datasets import Owned
from auditor.ground.settings import settings

PREFIX = ".removing-"
"""What the lease of a removal is called; then comes the dataset's UUID."""
_unfinished: set[str] = set()
"""What this process began to remove, which then failed, as on a full disk; it still holds the lease."""


def begin(session: Session, dataset: Owned) -> None:
    """From the end of the caller's transaction on nobody sees the dataset, and this process removes it."""
    datasets.hide(session, dataset.id)
    leases.take(session, f"{PREFIX}{dataset.uuid}", dataset.uuid)


def finish(uuid: str) -> list[Path]:
    """Remove the files and rows of the dataset that was hidden; returns the folders that are left.

    These cannot be deleted, or their manifest does not say that they are its own.
    """
    try:
        return _finish(uuid)
    except BaseException:
        _unfinished.add(uuid)
        raise


def _finish(uuid: str) -> list[Path]:
    with db.session() as session:
        dataset = datasets.owned_unseen(session, uuid)
        others = datasets.sources(session, but=uuid)
    left = [] if dataset is None else _delete_files(dataset, others)
    is_left = True
    while is_left:
        with db.session() as session:
            leases.beat(session, f"{PREFIX}{uuid}")
            is_left = datasets.forget_part(session, uuid)
    with db.session() as session:
        leases.end(session, f"{PREFIX}{uuid}")
    return left


def sweep() -> None:
    """Finish what this process could not, and what processes had begun that are gone."""
    while _unfinished:
        finish(_unfinished.pop())
    with db.session() as session:
        names = [name for name in leases.names(session) if name.startswith(PREFIX)]
        gone = [name for name in names if leases.is_gone(session, name)]
    for name in gone:
        with db.session() as session:
            uuid = leases.adopt(session, name)
        if uuid is not None:
            finish(uuid)


def _delete_files(dataset: Owned, others: list[str]) -> list[Path]:
    owned = {settings().dataset_folder(dataset.id): dataset.uuid}
    owned |= {settings().audit_folder(audit_id): uuid for audit_id, uuid in dataset.audits.items()}
    left = [folder for folder, uuid in owned.items() if not folders.delete(folder, uuid)]
    gone = [settings().job_folder(job_id) for job_id in dataset.jobs]
    upload = _upload_of(dataset.source)
    if upload is not None and upload not in [_upload_of(other) for other in others]:
        gone.append(upload)
    for folder in gone:
        shutil.rmtree(folder, ignore_errors=True)
    return left + [folder for folder in gone if folder.exists()]


def _upload_of(source: str) -> Path | None:
    """The folder of the upload that a dataset was imported from; None for a source of the user's own."""
    folder = Path(source).parent
    return folder if folder.parent == settings().uploads else None
