"""Near copies that features find: pictures that look alike to a backbone and agree when laid over each other.

The import finds copies by a hash of the whole picture, which a shift, a crop or a mirror changes. Features bring
such pairs together, and with them many that only show the same kind of thing: of 22,000 pairs of nearest CIFAR-10
photographs 84 agree. So the features only propose, and the pixels decide: the pictures are moved by up to 2 of 32
px, colour pictures also mirrored, and must then agree as closely as the import asks of near copies. The 48 closest
pairs of these photographs whose hashes differ were looked at: each shows the same picture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.catalog.records import Dataset

KIND = "features"
"""``duplicate_kind`` of a sample that was found in this way."""
SIDE = 32
"""Larger pictures are averaged down to about this many pixels first."""
MOVES = 2
"""Pixels by which the pictures are moved against each other."""
LOOSE, STRICT = 0.35, 0.15
"""Root mean square difference of the pixels, divided by the contrast (standard deviation) of the pair."""
RARE = 0.02
"""Where more pairs than this share of the samples agree loosely, all pictures of the set look alike: then strictly.
So are grey ones: digits and scans repeat their shapes (of 6,000 digits of MNIST 277 pairs agree loosely)."""
COARSE = 0.8
"""The same difference of 4 x 4 blocks, unmoved: pairs above it are not looked at more closely."""
PAIRS_A_STEP = 512
MOST_KEPT = 2**29
"""Bytes of what every pair asks of its pictures; of larger sets it is found anew for every pair."""


def find(images: NDArray[np.uint8], neighbours: NDArray[np.integer]) -> NDArray[np.int64]:
    """(P, 2) pairs of near copies among each sample's nearest.

    Args:
        images: (N, C, H, W), the image cache.
        neighbours: (N, k) nearest samples in the features.
    """
    return agreeing(images, candidates(neighbours))


def add(dataset: Dataset, pairs: NDArray[np.int64]) -> int:
    """Add pairs (P, 2) to the dataset's groups of copies; returns how many samples had no copy before."""
    with session() as open_session:
        known = datasets.duplicates(open_session, dataset.id)
        group = np.full(dataset.num_samples, -1, dtype=np.int64)
        group[known.sample_id.to_numpy(dtype=np.int64)] = known.duplicate_group.to_numpy(dtype=np.int64)
        found = joined(group, pairs)
        changed = np.flatnonzero(found != group)
        rows = {int(i): (int(found[i]), KIND if group[i] < 0 else None) for i in changed}
        datasets.set_duplicate_groups(open_session, dataset.id, rows)
    return int((group[changed] < 0).sum())


def candidates(neighbours: NDArray[np.integer]) -> NDArray[np.int64]:
    """(P, 2) pairs of each sample (N) with its nearest (N, k), each once, the first below the second."""
    rows = np.repeat(np.arange(len(neighbours)), neighbours.shape[1])
    pairs = np.stack([rows, np.asarray(neighbours, dtype=np.int64).ravel()], axis=1)
    return np.unique(np.sort(pairs, axis=1), axis=0)


def agreeing(images: NDArray[np.uint8], pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of the pairs (P, 2) whose pictures, of (N, C, H, W), agree when moved or mirrored."""
    pictures = _reader(images, pairs)
    errors = np.full(len(pairs), np.inf, dtype=np.float32)
    for start in range(0, len(pairs), PAIRS_A_STEP):
        part = slice(start, start + PAIRS_A_STEP)
        left, right = (pictures(pairs[part, side]) for side in (0, 1))
        errors[part] = _least_difference(left, right)
    is_rare = images.shape[1] == 3 and (errors <= LOOSE).sum() <= RARE * len(images)
    limit = LOOSE if is_rare else STRICT
    return pairs[errors <= limit]


def least_difference(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    """(P,) smallest root mean square difference over contrast, of two stacks (P, C, H, W) moved against each other.

    Infinite where even blocks of them differ, or where a picture has no contrast.
    """
    return _least_difference(_Pictures.of(left), _Pictures.of(right))


@dataclass(frozen=True)
class _Pictures:
    """P pictures: what every pair asks of each, and their pixels, which few pairs ask for."""

    contrast: NDArray[np.float32]
    """(P,) standard deviation."""
    coarse: tuple[NDArray[np.float32], ...]
    """Means of blocks of the pictures, and of coloured ones mirrored."""
    pixels: Callable[[NDArray[np.int64]], NDArray[np.float32]]
    """Of some of them, by place: (n,) -> (n, C, H, W), averaged down."""

    @classmethod
    def of(cls, pixels: NDArray[np.float32]) -> Self:
        turned = [pixels, pixels[..., ::-1]] if pixels.shape[1] == 3 else [pixels]
        contrast = pixels.reshape(len(pixels), -1).std(axis=1)
        return cls(contrast, tuple(_blocks(each) for each in turned), lambda places: pixels[places])

    def rows(self, index: NDArray[np.int64]) -> _Pictures:
        coarse = tuple(each[index] for each in self.coarse)
        return _Pictures(self.contrast[index], coarse, lambda places: self.pixels(index[places]))


def _least_difference(left: _Pictures, right: _Pictures) -> NDArray[np.float32]:
    contrast = np.minimum(left.contrast, right.contrast)
    least = np.full(len(contrast), np.inf, dtype=np.float32)
    for coarse, turn in zip(right.coarse, (1, -1), strict=False):
        near = np.flatnonzero((contrast > 1.0) & (_rms(left.coarse[0] - coarse) <= COARSE * contrast))
        if not len(near):
            continue
        fixed, other = left.pixels(near), right.pixels(near)[..., ::turn]
        down, across = (min(MOVES, (size - 1) // 4) for size in fixed.shape[2:])
        height, width = fixed.shape[2] - 2 * down, fixed.shape[3] - 2 * across
        middle = fixed[:, :, down : down + height, across : across + width]
        for y in range(2 * down + 1):
            for x in range(2 * across + 1):
                moved = other[:, :, y : y + height, x : x + width]
                least[near] = np.minimum(least[near], _rms(middle - moved) / contrast[near])
    return least


def joined(group: NDArray[np.int64], pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Groups (N,), -1 = alone, with the pairs (P, 2) added: the lowest number of a group stays, new ones follow."""
    members = np.flatnonzero(group >= 0)
    _, first = np.unique(group[members], return_index=True)
    heads = dict(zip(group[members[first]].tolist(), members[first].tolist(), strict=True))
    chain = np.array([(heads[int(group[i])], i) for i in members], dtype=np.int64).reshape(-1, 2)
    links = np.concatenate([chain, pairs])
    size = len(group)
    ones = np.ones(len(links), dtype=np.bool_)
    _, component = connected_components(
        coo_array((ones, (links[:, 0], links[:, 1])), shape=(size, size)), directed=False
    )
    found, following = group.copy(), int(group.max(initial=-1)) + 1
    numbers: dict[int, int] = {}
    for i in members:
        at = int(component[i])
        numbers[at] = min(numbers.get(at, size), int(group[i]))
    for i in np.unique(links):
        at = int(component[i])
        if at not in numbers:
            numbers[at], following = following, following + 1
        found[i] = numbers[at]
    return found


def _reader(images: NDArray[np.uint8], pairs: NDArray[np.int64]) -> Callable[[NDArray[np.int64]], _Pictures]:
    """Gives rows (P,) of the images; each is looked at once where what is asked of all fits into memory."""
    first = _Pictures.of(_small(images[:1]))
    kept_bytes = len(images) * sum(each.nbytes for each in (first.contrast, *first.coarse))
    if len(images) > pairs.size or kept_bytes > MOST_KEPT:
        return lambda rows: _Pictures.of(_small(images[rows]))
    steps = range(0, len(images), PAIRS_A_STEP)
    parts = [_Pictures.of(_small(images[start : start + PAIRS_A_STEP])) for start in steps]
    coarse = tuple(map(np.concatenate, zip(*(part.coarse for part in parts), strict=True)))
    contrast = np.concatenate([part.contrast for part in parts])
    return _Pictures(contrast, coarse, lambda rows: _small(images[rows])).rows


def _small(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """(P, C, H, W) averaged down to about ``SIDE`` px, float32."""
    return _averaged(images.astype(np.float32), max(1, min(images.shape[2:]) // SIDE))


def _blocks(images: NDArray[np.float32]) -> NDArray[np.float32]:
    return _averaged(images, 4) if min(images.shape[2:]) >= 16 else images


def _averaged(images: NDArray[np.float32], factor: int) -> NDArray[np.float32]:
    if factor == 1:
        return images
    num, channels, height, width = images.shape
    tall, wide = height // factor, width // factor
    whole = images[:, :, : tall * factor, : wide * factor]
    blocks: NDArray[np.float32] = whole.reshape(num, channels, tall, factor, wide, factor).mean(axis=(3, 5))
    return blocks


def _rms(difference: NDArray[np.float32]) -> NDArray[np.float32]:
    flat = difference.reshape(len(difference), -1)
    result: NDArray[np.float32] = np.sqrt(np.einsum("pd,pd->p", flat, flat) / flat.shape[1])
    return result
