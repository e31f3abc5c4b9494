"""Pictures of samples as PNG, small ones from the cache and large ones from the original."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from auditor import images
from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.catalog.models import DatasetTable, SampleTable
from auditor.decoding import ImageError, upright
from auditor.errors import NotFoundError
from auditor.settings import settings

LARGE = 320
"""From this size on the original is read: the cache may be smaller than what a person wants to see."""
SMALL_ORIGINAL = 200
"""Originals below this side are enlarged pixel by pixel; the browser enlarges larger ones smoothly."""


def png(dataset_id: int, sample_id: int, size: int) -> bytes:
    """The picture of a sample, at most ``size`` pixels a side.

    Raises:
        NotFoundError: no such dataset or sample.
    """
    dataset = _dataset(settings().home, dataset_id)
    if size < LARGE:
        return images.thumbnail_png(dataset, sample_id, size)
    sample = _sample(dataset_id, sample_id)
    try:
        image = upright(images.original_bytes(dataset, sample), at_least=size)
    except (NotFoundError, ImageError):
        return images.thumbnail_png(dataset, sample_id, size)
    values, longest = np.asarray(image), max(image.size)
    return images.png_of(
        values[None] if values.ndim == 2 else values.transpose(2, 0, 1),
        size if longest < SMALL_ORIGINAL else min(size, longest),
    )


def _sample(dataset_id: int, sample_id: int) -> SampleTable:
    with session() as open_session:
        return datasets.sample(open_session, dataset_id, sample_id)


@lru_cache(maxsize=32)
def _dataset(home: Path, dataset_id: int) -> DatasetTable:  # noqa: ARG001 - a home of its own has its own datasets
    with session() as open_session:
        found = open_session.get(DatasetTable, dataset_id)
    if found is None:
        raise NotFoundError(f"There is no dataset {dataset_id}.")
    return found
