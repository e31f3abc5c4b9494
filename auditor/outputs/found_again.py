"""Samples found again in a source that may have changed since the import: by place, label and picture."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from auditor.catalog.records import Dataset, Sample
from auditor.ground.errors import NotFoundError
from auditor.pictures import cache
from auditor.pictures.decoding import ImageError
from auditor.pictures.sources import Source, SourceRow, UnreadableError, read_bytes

ROW_SOURCES = ("arrays", "parquet", "webdataset")
"""Kinds that hold the images themselves: what is known of one is its row, and rows move."""


@dataclass(frozen=True)
class FoundAgain:
    """Where samples lie in a source as it is now."""

    samples: list[int | None]
    """For each item of ``Source.rows``, problems too: its sample; None = none of the dataset."""
    places: dict[int, str]
    """By sample, its location now."""
    labels: list[str | None]
    """For each item, what the source calls it now; None = unlabeled, or a problem."""
    by_picture: bool
    """Whether pictures were compared; else samples are known by the paths of their files."""


def find_again(dataset: Dataset, source: Source, samples: Iterable[Sample]) -> FoundAgain:
    """The samples among the rows of ``source``, which is the dataset's own, opened again.

    A source of files knows its images by their paths. A row of one that holds them is a sample's where it shows the
    same picture: the one at its place with its label, else one with its label, else any; the first in order.
    """
    known = list(samples)
    items = [item if isinstance(item, SourceRow) else None for item in source.rows()]
    if source.info.kind not in ROW_SOURCES and not _holds_images(source, items):
        by_place = {sample.location: sample.sample_id for sample in known}
        found = [None if item is None else by_place.get(item.location) for item in items]
        here = {number for number in found if number is not None}
        places = {one.sample_id: one.location for one in known if one.sample_id in here}
        return FoundAgain(found, places, _labels(items), by_picture=False)
    return _matched(dataset, known, items, _hashes(dataset, source, known, items))


def _matched(
    dataset: Dataset, known: Sequence[Sample], items: Sequence[SourceRow | None], hashes: Sequence[str]
) -> FoundAgain:
    found: list[int | None] = [None] * len(items)
    places: dict[int, str] = {}
    names = dataset.imported_names
    for by_place, by_label in ((True, True), (False, True), (True, False), (False, False)):
        waiting: dict[tuple[str, str, str], deque[int]] = defaultdict(deque)
        for sample in known:
            if sample.sample_id not in places:
                for name in _spellings(names, sample) if by_label else ("",):
                    key = (sample.content_hash, sample.location if by_place else "", name)
                    waiting[key].append(sample.sample_id)
        for row, (item, picture) in enumerate(zip(items, hashes, strict=True)):
            if item is None or found[row] is not None:
                continue
            label = (item.label or "") if by_label else ""
            queue = waiting[picture, item.location if by_place else "", label]
            while queue and queue[0] in places:
                queue.popleft()
            if queue:
                places[queue[0]] = item.location
                found[row] = queue.popleft()
    return FoundAgain(found, places, _labels(items), by_picture=True)


def _labels(items: Sequence[SourceRow | None]) -> list[str | None]:
    return [None if item is None else item.label for item in items]


def _spellings(names: Sequence[str], sample: Sample) -> tuple[str, ...]:
    """Return what the source may call the sample's given label: its class's name, or number."""
    number = sample.imported_label
    return ("",) if number < 0 else tuple({names[number], str(number)})


def _holds_images(source: Source, items: Sequence[SourceRow | None]) -> bool:
    first = next((item for item in items if item is not None), None)
    return first is not None and isinstance(next(iter(source.payloads([first.location]))), bytes)


def _hashes(
    dataset: Dataset, source: Source, known: Sequence[Sample], items: Sequence[SourceRow | None]
) -> list[str]:
    """The content hash of each row's picture; empty where it cannot be read."""
    at_place = {sample.location: sample for sample in known}
    payloads = iter(source.payloads(item.location for item in items if item is not None))
    found = []
    for item in items:
        payload = None if item is None else next(payloads)
        try:
            if isinstance(payload, str):
                payload = read_bytes(source.info.root, payload)
            sample = None if item is None else at_place.get(item.location)
            found.append("" if payload is None else cache.content_hash(dataset, payload, like=sample))
        except (ImageError, UnreadableError):
            found.append("")
    return found


def check_files(dataset: Dataset, samples: Iterable[Sample]) -> None:
    """That no other picture lies where these samples were; one that cannot be read is nobody else's.

    Raises:
        MovedError: another picture lies there by now.
    """
    for sample in samples:
        try:
            cache.original_bytes(dataset, sample)
        except cache.MovedError:
            raise
        except NotFoundError:
            continue
