"""Pictures of samples as small files: from the cache where it holds enough pixels, else from the original.

What the cache had to enlarge is read from the original too.
"""

from __future__ import annotations

from auditor.catalog import datasets
from auditor.catalog.db import ask
from auditor.ground.errors import NotFoundError
from auditor.pictures import cache
from auditor.pictures.decoding import ImageError


def encoded_picture(dataset_id: int, sample_id: int, size: int) -> bytes:
    """The picture of a sample, at most ``size`` pixels a side, as PNG or JPEG.

    Raises:
        NotFoundError: no such dataset or sample.
    """
    dataset = ask(datasets.by_id, dataset_id)
    sample = ask(datasets.sample, dataset_id, sample_id)
    longer = max(sample.original_height, sample.original_width)
    if longer == dataset.height or size <= dataset.height < longer:
        return cache.thumbnail(dataset, sample, size)
    try:
        return cache.picture_of(
            dataset.root, cache.original_bytes(dataset, sample), size, cache.levels_of(dataset)
        )
    except (NotFoundError, ImageError):
        return cache.thumbnail(dataset, sample, size)
