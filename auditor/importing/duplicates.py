"""Samples that show the same picture: certain copies, and copies that were scaled or compressed again.

*Exact*: the decoded pixels have the same SHA-256. *Near*: the perceptual hashes (pHash) are close **and** the
pixels in the image cache agree. How well they must agree depends on what a close hash says in this set. Of
CIFAR-10's 50,000 photographs 469 pairs have close hashes, and the 60 best of them were looked at: all show the
same picture. Of MNIST's 60,000 digits 1.3 million pairs have close hashes, and hardly any show the same picture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

MAX_HASH_DISTANCE = 6
"""Bits of 64 that may differ. Up to 3 all are found (one of four 16-bit bands is equal), up to 6 most."""
STRICT_ERROR = 0.15
"""Root mean square difference of the pixels, divided by the contrast (standard deviation) of the pair."""
LOOSE_ERROR = 0.35
"""The same where close hashes are rare, and so tell something by themselves."""
RARE = 0.02
"""Close hashes are rare where they are fewer than this share of the samples."""
MAX_ABSOLUTE_ERROR = 2.0
"""Grey levels: pictures almost without contrast must agree to this."""
BANDS = 4
MOST_NEIGHBOURS = 2_000
"""In a crowd of equal bands a sample is compared with so many neighbours in the order of the hashes."""
MOST_PAIRS = 4_000_000
"""More close hashes than this say nothing: the nearest neighbours in each band go first, the rest is left."""
BLOCKS = 8
BYTES_A_STEP = 32 * 2**20
PAIRS_A_STEP, PAIRS_AT_ONCE = 50_000, 500_000
"""Pairs that are compared at once, and those whose pictures' means are held: 256 bytes a picture."""
ROWS_A_STEP = 1_000_000


@dataclass(frozen=True)
class Duplicates:
    """Groups of samples that show the same picture."""

    group: NDArray[np.int64]
    """(N,) number of the group, -1 = alone. Groups are numbered by their first sample."""
    is_exact: NDArray[np.bool_]
    """(N,) another sample has exactly the same pixels."""
    num_groups: int
    conflicts: list[list[int]]
    """sample_ids of each group whose given labels differ. Where they only look alike, this is worth a look."""
    certain_conflicts: list[list[int]]
    """sample_ids with exactly the same pixels and different given labels: at least one label is certainly wrong."""

    def summary(self) -> dict[str, int]:
        """Counts for a report."""
        in_group = self.group >= 0
        return {
            "groups": self.num_groups,
            "exact_samples": int(self.is_exact.sum()),
            "near_samples": int((in_group & ~self.is_exact).sum()),
            "conflicting_groups": len(self.conflicts),
            "conflicting_samples": sum(len(group) for group in self.conflicts),
            "certain_conflicts": len(self.certain_conflicts),
        }


def find_duplicates(
    content_hash: NDArray[np.uint8],
    perceptual_hash: NDArray[np.uint64],
    images: NDArray[np.uint8],
    given_labels: NDArray[np.integer],
) -> Duplicates:
    """Group by (N, 32) content hashes, (N,) pHashes, (N, C, H, W) cached pixels; labels (N,), -1 = none."""
    first = first_alike(content_hash)
    distinct = np.flatnonzero(first == np.arange(len(first)))
    is_exact = np.zeros(len(first), np.bool_)
    copies = np.flatnonzero(first != np.arange(len(first)))
    is_exact[copies] = is_exact[first[copies]] = True
    pairs = near_pairs(perceptual_hash[distinct], images, distinct)
    group = _numbered(first, distinct[pairs])
    return Duplicates(
        group=group,
        is_exact=is_exact,
        num_groups=int(group.max(initial=-1)) + 1,
        conflicts=_conflicts(group, given_labels),
        certain_conflicts=_conflicts(np.where(is_exact, first, -1), given_labels),
    )


def first_alike(content_hash: NDArray[np.uint8]) -> NDArray[np.int64]:
    """(N,) the first sample with the same content hash (N, 32): of one that stands alone, itself.

    Sorted by its first eight bytes; the whole hash is looked at only where these stand twice. To sort ten million
    whole ones takes a gigabyte.
    """
    first = np.arange(len(content_hash))
    start = np.ascontiguousarray(content_hash[:, :8]).view(np.uint64).ravel()
    order = np.argsort(start, kind="stable")
    start = start[order]
    is_shared = np.zeros(len(start), np.bool_)
    is_shared[1:] = start[1:] == start[:-1]
    is_shared[:-1] |= is_shared[1:]
    shared = np.sort(order[is_shared])
    if len(shared):
        whole = np.ascontiguousarray(content_hash[shared])
        keys = whole.view(np.dtype((np.void, whole.shape[1]))).ravel()
        _, places, inverse = np.unique(keys, return_index=True, return_inverse=True)
        first[shared] = shared[places[inverse.ravel()]]
    return first


def near_pairs(
    perceptual_hash: NDArray[np.uint64], images: NDArray[np.uint8], rows: NDArray[np.integer]
) -> NDArray[np.int64]:
    """(P, 2) places in ``perceptual_hash`` (M,) whose pictures, ``images[rows]``, nearly agree."""
    candidates = candidate_pairs(perceptual_hash)
    limit = LOOSE_ERROR if len(candidates) < RARE * len(rows) else STRICT_ERROR
    could = [
        _could_agree(candidates[start : start + PAIRS_AT_ONCE], images, rows, limit)
        for start in range(0, len(candidates), PAIRS_AT_ONCE)
    ]
    candidates = candidates[np.concatenate([np.empty(0, np.bool_), *could])]
    step = max(1, BYTES_A_STEP // max(1, 8 * int(np.prod(images.shape[1:]))))
    kept = [np.empty((0, 2), np.int64)]
    for start in range(0, len(candidates), step):
        part = candidates[start : start + step]
        kept.append(part[agree(images[rows[part[:, 0]]], images[rows[part[:, 1]]], limit)])
    return np.concatenate(kept)


def _could_agree(
    pairs: NDArray[np.int64], images: NDArray[np.uint8], rows: NDArray[np.integer], limit: float
) -> NDArray[np.bool_]:
    """(P,) whether the means of 8 x 8 blocks leave room for agreement.

    Averaging only loses differences (Cauchy-Schwarz), so the error of the block means is a lower bound of the
    pixels' error: most pairs are told apart by 64 numbers instead of all pixels, and none wrongly.
    """
    _, channels, height, width = images.shape
    tall, wide = max(1, height // BLOCKS), max(1, width // BLOCKS)
    down, across = min(BLOCKS, height), min(BLOCKS, width)
    used, place_in_used = np.unique(pairs, return_inverse=True)
    means = np.empty((len(used), channels * down * across), np.float32)
    contrasts = np.empty(len(used), np.float32)
    step = max(1, BYTES_A_STEP // max(1, 4 * channels * height * width))
    for start in range(0, len(used), step):
        pixels = images[rows[used[start : start + step]]]
        block = pixels[:, :, : down * tall, : across * wide].reshape(-1, channels, down, tall, across, wide)
        means[start : start + step] = block.mean(axis=(3, 5)).reshape(len(pixels), -1)
        contrasts[start : start + step] = pixels.reshape(len(pixels), -1).std(axis=1)
    place_in_used = place_in_used.reshape(-1, 2)
    share = tall * wide / (channels * height * width)
    could = np.empty(len(pairs), np.bool_)
    for start in range(0, len(pairs), PAIRS_A_STEP):
        left, right = place_in_used[start : start + PAIRS_A_STEP].T
        least_error = np.sqrt(((means[left] - means[right]) ** 2).sum(axis=1) * share)
        # A hair more than `agree` allows, for the rounding of float32.
        allowed = _allowed(np.minimum(contrasts[left], contrasts[right]), limit) * 1.001
        could[start : start + PAIRS_A_STEP] = least_error <= allowed
    return could


def candidate_pairs(hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """(P, 2) places with i < j whose hashes differ in at most ``MAX_HASH_DISTANCE`` bits and share a band."""
    found = [np.empty((0, 2), np.int64)]
    for band in range(BANDS):
        key = ((hashes >> np.uint64(16 * band)) & np.uint64(0xFFFF)).astype(np.uint16)
        order = np.lexsort((hashes, key)).astype(np.int32)
        sorted_key, sorted_hash = key[order], hashes[order]
        del key
        left, room = np.arange(len(order) - 1, dtype=np.int32), MOST_PAIRS // BANDS
        for distance in range(1, min(MOST_NEIGHBOURS, len(order) - 1) + 1):
            # Sorted: whoever has no partner at this distance has none further on.
            parts = [
                part[sorted_key[part] == sorted_key[part + distance]]
                for part in _in_steps(left[: np.searchsorted(left, len(order) - distance)])
            ]
            left = np.concatenate(parts) if parts else left[:0]
            del parts
            if not len(left) or room <= 0:
                break
            for part in _in_steps(left):
                differing = np.bitwise_count(sorted_hash[part] ^ sorted_hash[part + distance])
                near = part[differing <= MAX_HASH_DISTANCE]
                found.append(np.stack([order[near], order[near + distance]], axis=1).astype(np.int64))
                room -= len(near)
    pairs = np.sort(np.concatenate(found), axis=1)
    numbers = np.unique(pairs[:, 0] * len(hashes) + pairs[:, 1])
    return np.stack(np.divmod(numbers, max(1, len(hashes))), axis=1)


def _in_steps(rows: NDArray[np.int32]) -> list[NDArray[np.int32]]:
    """Views of the rows, so many at a time that what is computed of them stays small."""
    return [rows[start : start + ROWS_A_STEP] for start in range(0, len(rows), ROWS_A_STEP)]


def agree(
    left: NDArray[np.uint8], right: NDArray[np.uint8], limit: float = STRICT_ERROR
) -> NDArray[np.bool_]:
    """(P,) whether two stacks (P, C, H, W) of pictures are the same but for scaling and compression noise."""
    first = left.reshape(len(left), -1).astype(np.float32)
    second = right.reshape(len(right), -1).astype(np.float32)
    error = np.sqrt(((first - second) ** 2).mean(axis=1))
    contrast = np.minimum(first.std(axis=1), second.std(axis=1))
    return error <= _allowed(contrast, limit)


def _allowed(contrast: NDArray[np.floating], limit: float) -> NDArray[np.floating]:
    return np.maximum(MAX_ABSOLUTE_ERROR, limit * contrast)


def _numbered(first: NDArray[np.int64], pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N,) groups, numbered by their first sample; -1 = alone.

    Args:
        first: (N,) of each sample the first one with the same pixels.
        pairs: (P, 2) samples that nearly agree.
    """
    copies = np.flatnonzero(first != np.arange(len(first)))
    grouped = np.unique(np.concatenate([copies, first[copies], pairs.ravel()]))
    # Only what has a partner takes part: of ten million samples few have.
    ends = np.searchsorted(grouped, np.concatenate([np.stack([copies, first[copies]], axis=1), pairs]))
    links = coo_array((np.ones(len(ends), np.bool_), (ends[:, 0], ends[:, 1])), shape=(len(grouped),) * 2)
    _, component = connected_components(links, directed=False)
    _, place, inverse = np.unique(component, return_index=True, return_inverse=True)
    number = np.empty(len(place), np.int64)
    number[np.argsort(place)] = np.arange(len(place))
    group = np.full(len(first), -1, np.int64)
    group[grouped] = number[inverse]
    return group


def _conflicts(group: NDArray[np.int64], labels: NDArray[np.integer]) -> list[list[int]]:
    members = np.flatnonzero((group >= 0) & (np.asarray(labels) >= 0))
    by_group: dict[int, list[int]] = {}
    for sample in members:
        by_group.setdefault(int(group[sample]), []).append(int(sample))
    return [ids for ids in by_group.values() if len({int(labels[i]) for i in ids}) > 1]
