"""Pictures of samples as PNG, small ones from the cache and large ones from the original."""

from __future__ import annotations

from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.ground.errors import NotFoundError
from auditor.pictures import cache
from auditor.pictures.decoding import ImageError, channels_first, upright

LARGE = 320
"""From this size on the original is read: the cache may be smaller than what a person wants to see."""


def png(dataset_id: int, sample_id: int, size: int) -> bytes:
    """The picture of a sample, at most ``size`` pixels a side.

    Raises:
        NotFoundError: no such dataset or sample.
    """
    with session() as open_session:
        dataset = datasets.by_id(open_session, dataset_id)
        sample = datasets.sample(open_session, dataset_id, sample_id) if size >= LARGE else None
    if sample is None:
        return cache.thumbnail_png(dataset, sample_id, size)
    try:
        image = upright(cache.original_bytes(dataset, sample), at_least=size)
    except (NotFoundError, ImageError):
        return cache.thumbnail_png(dataset, sample_id, size)
    return cache.png_of(channels_first(image), size)
