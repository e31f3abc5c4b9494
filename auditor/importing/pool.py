"""Spread the decoding of images over processes, in order and with bounded memory."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.ground import apart
from auditor.ground.apart import DiedError, Readers
from auditor.pictures.decoding import ImageError, Levels, Probe, decode, probe, sampled_grey
from auditor.pictures.sources import Payload, UnreadableError, is_beginning, read_bytes, read_each

CHUNK = 256
CHUNK_BYTES = 16 * 2**20
"""A chunk of encoded images that are sent to a worker is closed when it is as large as this."""
FEW_IMAGES = 1_000
"""Below this, starting processes takes longer than it saves."""
FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Lost:
    """In place of an image that ended the process which decoded it."""

    why: str


@dataclass(frozen=True)
class Probed:
    """Headers of one chunk; rows with an entry in ``problems`` hold zeros."""

    heights: NDArray[np.int32]
    widths: NDArray[np.int32]
    has_colour: NDArray[np.bool_]
    is_animated: NDArray[np.bool_]
    is_deep: NDArray[np.bool_]
    problems: list[tuple[int, str]]
    """(place in the chunk, what is wrong)"""


@dataclass(frozen=True)
class Hashed:
    """Fingerprints of one decoded chunk."""

    content: NDArray[np.uint8]
    """(n, 32)"""
    perceptual: NDArray[np.uint64]
    problems: list[tuple[int, str]]
    pixels: NDArray[np.uint8] | None = None
    """(n, C, S, S) of a machine that does not see the cache file; else they went straight into it."""


@dataclass(frozen=True)
class CacheFile:
    """Where decoded images are written: row r at ``offset + r * image_bytes``."""

    path: str
    offset: int
    channels: int
    size: int
    levels: Levels | None = None

    @property
    def image_bytes(self) -> int:
        """Bytes of one image."""
        return self.channels * self.size * self.size


def probe_chunk(root: str, items: list[Payload]) -> Probed:
    """Headers of a chunk of images."""
    count = len(items)
    heights, widths = np.zeros(count, np.int32), np.zeros(count, np.int32)
    colour, animated, deep = np.zeros((3, count), np.bool_)
    problems = []
    for place, (item, data) in enumerate(zip(items, _read(root, items, heads=True), strict=True)):
        try:
            found = _probed(root, item, data)
        except (ImageError, UnreadableError) as error:
            problems.append((place, str(error)))
            continue
        heights[place], widths[place] = found.height, found.width
        colour[place], animated[place] = found.channels == 3, found.is_animated
        deep[place] = found.is_deep
    return Probed(heights, widths, colour, animated, deep, problems)


def grey_chunk(root: str, items: list[Payload]) -> list[NDArray[np.float64]]:
    """Some grey values of each image of a chunk; none of what cannot be read."""
    found = []
    for data in _read(root, items):
        with suppress(ImageError):
            found.append(np.empty(0) if isinstance(data, str) else sampled_grey(data))
    return found


def _probed(root: str, item: Payload, data: bytes | str) -> Probe:
    if isinstance(data, str):
        raise UnreadableError(data)
    try:
        return probe(data)
    except ImageError:
        if not is_beginning(root, data):
            raise
        return probe(item if isinstance(item, bytes) else read_bytes(root, item))


def _read(root: str, items: Sequence[Payload | Lost], *, heads: bool = False) -> Iterator[bytes | str]:
    """The encoded images, or why one cannot be read."""
    found = read_each(root, [item for item in items if isinstance(item, str)], heads=heads)
    for item in items:
        yield next(found) if isinstance(item, str) else item.why if isinstance(item, Lost) else item


def decode_chunk(root: str, cache: CacheFile, first_row: int, items: list[Payload]) -> Hashed:
    """Decode a chunk and write it at its rows of the cache file."""
    found = decode_away(root, cache, first_row, items)
    write_pixels(cache, first_row, found)
    return replace(found, pixels=None)


def write_pixels(cache: CacheFile, first_row: int, found: Hashed) -> None:
    """Write a decoded chunk at its rows of the cache file."""
    assert found.pixels is not None
    with open(cache.path, "r+b") as stream:
        stream.seek(cache.offset + first_row * cache.image_bytes)
        stream.write(np.ascontiguousarray(found.pixels).data)


def with_bytes(root: str, items: list[Payload]) -> list[Payload]:
    """The encoded images, for a machine that does not see ``root``; one that cannot be read stays a location."""
    return [
        data if isinstance(data, bytes) else item
        for item, data in zip(items, _read(root, items), strict=True)
    ]


def decode_away(root: str, cache: CacheFile, first_row: int, items: list[Payload]) -> Hashed:  # noqa: ARG001
    """Decode a chunk for whoever writes it."""
    content = np.zeros((len(items), 32), np.uint8)
    perceptual = np.zeros(len(items), np.uint64)
    block = np.zeros((len(items), cache.channels, cache.size, cache.size), np.uint8)
    problems = []
    for place, data in enumerate(_read(root, items)):
        try:
            if isinstance(data, str):
                raise UnreadableError(data)
            decoded = decode(data, size=cache.size, channels=cache.channels, levels=cache.levels)
        except (ImageError, UnreadableError) as error:
            problems.append((place, str(error)))
            continue
        block[place] = decoded.pixels
        content[place] = np.frombuffer(decoded.content_hash, np.uint8)
        perceptual[place] = decoded.perceptual_hash
    return Hashed(content, perceptual, problems, block)


class _Pool(ThreadPoolExecutor):
    """Processes apart, each of which a thread of this one asks."""

    def __init__(self, readers: Readers, workers: int) -> None:
        readers.begin(workers)  # now: with its threads this process may not fork any more
        super().__init__(workers)
        self._readers = readers

    def submit(self, work: Callable[..., Any], /, *task: Any, **_: Any) -> Future[Any]:
        """See ``Executor``."""
        return super().submit(spared, self._readers.call, work, *task)


@contextmanager
def pool(readers: Readers, workers: int, num_images: int) -> Iterator[Executor]:
    """An executor for ``run_in_order``. On leaving by an error, work that has not begun is dropped."""
    executor = _Pool(readers, 1 if num_images < FEW_IMAGES else workers)
    try:
        yield executor
    except BaseException:
        executor.shutdown(cancel_futures=True)
        raise
    executor.shutdown()


def spared(call: Callable[..., Any], work: Callable[..., Any], *task: Any) -> Any:
    """``work(*task)`` by ``call``; where an image ends the process that decodes it, the others are spared.

    Raises:
        DiedError: it ends again without those images.
    """
    try:
        return call(work, *task)
    except DiedError:
        *given, items = task

        def alone(item: Payload) -> Payload | Lost:
            try:
                call(work, *given, [item])  # what it writes is written again below
            except DiedError as error:
                return Lost(str(error))
            return item

        return call(work, *given, [alone(item) for item in items])


def chunks(payloads: Iterator[Payload], most: int = CHUNK) -> Iterator[list[Payload]]:
    """Lists of up to ``most`` items, fewer where they are heavy."""
    chunk: list[Payload] = []
    weight = 0
    for item in payloads:
        chunk.append(item)
        weight += len(item) if isinstance(item, bytes) else 0
        if len(chunk) == most or weight >= CHUNK_BYTES:
            yield chunk
            chunk, weight = [], 0
    if chunk:
        yield chunk


def run_in_order(
    executor: Executor | None, work: Callable[..., Any], tasks: Iterator[tuple[Any, ...]], in_flight: int
) -> Iterator[Any]:
    """Results of ``work(*task)`` in the order of the tasks, with at most ``in_flight`` waiting at a time."""
    if executor is None:
        for task in tasks:
            yield spared(apart.call, work, *task)
        return
    waiting: deque[Future[Any]] = deque()
    for task in tasks:
        waiting.append(executor.submit(work, *task))
        if len(waiting) >= in_flight:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
