"""Find the wrong labels in an image set, settle them fast, and hand back a clean CSV.

``import auditor`` is cheap; ``auditor.open(name)`` and ``auditor.import_dataset(source, name=...)`` load what
they need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditor.api import Dataset


def open(name: str) -> Dataset:
    """The imported dataset of that name.

    Raises:
        NotFoundError: there is none.
    """
    from auditor.api import open_dataset

    return open_dataset(name)


def import_dataset(source: Any, *, name: str, **options: Any) -> Dataset:
    """Import a folder, table, Parquet or zip of labeled images and return its handle."""
    from auditor import api

    return api.import_dataset(source, name=name, **options)
