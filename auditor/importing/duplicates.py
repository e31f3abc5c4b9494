"""Samples that show the same picture: certain copies, and copies that were scaled or compressed again.

*Exact*: the decoded pixels have the same SHA-256. *Near*: the perceptual hashes (pHash) are close **and** the
pixels in the image cache agree. How well they must agree depends on what a close hash says in this set. Of
CIFAR-10's 50,000 photographs 469 pairs have close hashes, and the 60 best of them were looked at: all show the
same picture. Of MNIST's 60,000 digits 1.3 million pairs have close hashes, and hardly any show the same picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from auditor.ground.files import array_on_disk

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
PARTS = 12
"""Parts of a picture that are compared one after another."""
ROWS_A_STEP = 262_144


@dataclass(frozen=True)
class Duplicates:
    """Groups of samples that show the same picture."""

    group: NDArray[np.int64]
    """(N,) number of the group, -1 = alone; a map of a file. Groups are numbered by their first sample."""
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
    given_labels: NDArray[Any],
    folder: Path | None = None,
) -> Duplicates:
    """Group by (N, 32) content hashes, (N,) pHashes, (N, C, H, W) cached pixels, (N,) labels (``has_label``).

    What is computed of each sample lies in files without a name, in ``folder`` or the system's one for temporary
    files; memory is needed for what has copies, and for a fixed number of rows and pairs.
    """
    first = first_alike(content_hash, folder)
    is_exact = np.zeros(len(first), np.bool_)
    copies = _where(first, lambda part, own: part != own)
    is_exact[copies] = is_exact[first[copies]] = True
    distinct, hashes = _distinct(first, len(first) - len(copies), perceptual_hash, folder)
    pairs = near_pairs(hashes, images, distinct, folder)
    group = _numbered(first, copies, distinct[pairs], folder)
    exact, grouped = np.flatnonzero(is_exact), _where(group, lambda part, _: part >= 0)
    return Duplicates(
        group=group,
        is_exact=is_exact,
        num_groups=max((int(group[rows].max()) for rows in _steps(len(group))), default=-1) + 1,
        conflicts=_conflicts(grouped, group[grouped], given_labels),
        certain_conflicts=_conflicts(exact, first[exact], given_labels),
    )


def has_label(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """(N,) of classes, -1 = none, or of numbers, NaN = none."""
    return ~np.isnan(labels) if np.issubdtype(labels.dtype, np.floating) else labels >= 0


def _steps(num_rows: int) -> Iterator[slice]:
    """So many rows at a time that what is computed of them stays small."""
    return (slice(start, min(num_rows, start + ROWS_A_STEP)) for start in range(0, num_rows, ROWS_A_STEP))


def _where(values: NDArray[Any], test: Callable[[NDArray[Any], NDArray[np.int64]], Any]) -> NDArray[np.int64]:
    """Places at which a test of values (N,) and their places says yes, as ``np.flatnonzero``."""
    found = [np.empty(0, np.int64)]
    for rows in _steps(len(values)):
        found.append(rows.start + np.flatnonzero(test(values[rows], np.arange(rows.start, rows.stop))))
    return np.concatenate(found)


def _distinct(
    first: NDArray[np.int64], num: int, perceptual_hash: NDArray[np.uint64], folder: Path | None
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """(M,) the ``num`` samples that are the first with their pixels, and their pHashes."""
    distinct, hashes = array_on_disk((num,), np.int64, folder), array_on_disk((num,), np.uint64, folder)
    done = 0
    for rows in _steps(len(first)):
        part = rows.start + np.flatnonzero(first[rows] == np.arange(rows.start, rows.stop))
        distinct[done : done + len(part)], hashes[done : done + len(part)] = part, perceptual_hash[part]
        done += len(part)
    return distinct, hashes


def first_alike(content_hash: NDArray[np.uint8], folder: Path | None = None) -> NDArray[np.int64]:
    """(N,) the first sample with the same content hash (N, 32): of one that stands alone, itself.

    Sorted by its first eight bytes, some 260,000 that end in the same way at a time; the whole hash is looked at
    only where these stand twice.
    """
    first = array_on_disk((len(content_hash),), np.int64, folder)
    for rows in _steps(len(first)):
        first[rows] = np.arange(rows.start, rows.stop)
    num_parts = -(-len(first) // ROWS_A_STEP)
    for part in range(num_parts):
        found = [(np.empty(0, np.int64), np.empty(0, np.uint64))]
        for rows in _steps(len(first)):
            start = np.ascontiguousarray(content_hash[rows, :8]).view(np.uint64).ravel()
            ours = np.flatnonzero(start % np.uint64(num_parts) == part)
            found.append((rows.start + ours, start[ours]))
        samples, starts = (np.concatenate(each) for each in zip(*found, strict=True))
        del found
        shared = samples[_shared(starts)]
        if len(shared):
            whole = np.ascontiguousarray(content_hash[shared])
            keys = whole.view(np.dtype((np.void, whole.shape[1]))).ravel()
            _, places, inverse = np.unique(keys, return_index=True, return_inverse=True)
            first[shared] = shared[places[inverse.ravel()]]
    return first


def _shared(start: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Places, in order, of the values that stand more than once."""
    order = np.argsort(start, kind="stable")
    start = start[order]
    is_shared = np.zeros(len(start), np.bool_)
    is_shared[1:] = start[1:] == start[:-1]
    is_shared[:-1] |= is_shared[1:]
    return np.sort(order[is_shared])


def near_pairs(
    perceptual_hash: NDArray[np.uint64],
    images: NDArray[np.uint8],
    rows: NDArray[np.integer],
    folder: Path | None = None,
) -> NDArray[np.int64]:
    """(P, 2) places in ``perceptual_hash`` (M,) whose pictures, ``images[rows]``, nearly agree.

    Enough of them to join every group: pictures that others join already are not compared, so that of a video of
    60 almost equal frames 59 pairs are, not 1,770.
    """
    candidates = candidate_pairs(perceptual_hash, folder)
    limit = LOOSE_ERROR if len(candidates) < RARE * len(rows) else STRICT_ERROR
    could = [
        _could_agree(candidates[start : start + PAIRS_AT_ONCE], images, rows, limit)
        for start in range(0, len(candidates), PAIRS_AT_ONCE)
    ]
    candidates = candidates[np.concatenate([np.empty(0, np.bool_), *could])]
    step = max(1, BYTES_A_STEP // max(1, 8 * int(np.prod(images.shape[1:]))))
    used = np.unique(candidates)
    parts = [used[start : start + step] for start in range(0, len(used), step)]
    contrast = np.concatenate([np.empty(0, np.float32), *(contrasts(images[rows[part]]) for part in parts)])

    def agreeing(pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
        found = [np.empty(0, np.bool_)]
        for start in range(0, len(pairs), step):
            part = pairs[start : start + step]
            allowed = _allowed(contrast[np.searchsorted(used, part)].min(axis=1), limit)
            found.append(agree(images, rows[part], allowed))
        return np.concatenate(found)

    return joining_pairs(candidates, agreeing)


def joining_pairs(
    pairs: NDArray[np.int64], agreeing: Callable[[NDArray[np.int64]], NDArray[np.bool_]]
) -> NDArray[np.int64]:
    """(Q, 2) agreeing ones of ``pairs`` (P, 2), enough to join whatever all agreeing ones join.

    In rounds: of each group so far its next few pairs are compared, twice as many each time.

    Args:
        pairs: candidates.
        agreeing: (P,) of such pairs, whether they agree; asked at most once for each.
    """
    used, ends = np.unique(pairs, return_inverse=True)
    ends = ends.reshape(-1, 2)
    group, left = np.arange(len(used)), np.arange(len(pairs))
    kept, few = [np.empty((0, 2), np.int64)], 1
    while len(left):
        of = group[ends[left, 0]]
        order = np.argsort(of, kind="stable")
        number = np.arange(len(left)) - np.searchsorted(of[order], of[order])
        is_next = np.zeros(len(left), np.bool_)
        is_next[order[number < few]] = True
        chosen = left[is_next]
        chosen = chosen[agreeing(pairs[chosen])]
        kept.append(pairs[chosen])
        first, second = group[ends[chosen]].T
        links = coo_array((np.ones(len(chosen), np.bool_), (first, second)), shape=(len(used),) * 2)
        group = connected_components(links, directed=False)[1][group]
        left = left[~is_next]
        left = left[group[ends[left, 0]] != group[ends[left, 1]]]
        few *= 2
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
    contrast = np.empty(len(used), np.float32)
    step = max(1, BYTES_A_STEP // max(1, 4 * channels * height * width))
    for start in range(0, len(used), step):
        pixels = images[rows[used[start : start + step]]]
        block = pixels[:, :, : down * tall, : across * wide].reshape(-1, channels, down, tall, across, wide)
        means[start : start + step] = block.mean(axis=(3, 5)).reshape(len(pixels), -1)
        contrast[start : start + step] = contrasts(pixels)
    place_in_used = place_in_used.reshape(-1, 2)
    share = tall * wide / (channels * height * width)
    could = np.empty(len(pairs), np.bool_)
    for start in range(0, len(pairs), PAIRS_A_STEP):
        left, right = place_in_used[start : start + PAIRS_A_STEP].T
        least_error = np.sqrt(((means[left] - means[right]) ** 2).sum(axis=1) * share)
        # A hair more than `agree` allows, for the rounding of float32.
        allowed = _allowed(np.minimum(contrast[left], contrast[right]), limit) * 1.001
        could[start : start + PAIRS_A_STEP] = least_error <= allowed
    return could


def candidate_pairs(hashes: NDArray[np.uint64], folder: Path | None = None) -> NDArray[np.int64]:
    """(P, 2) places with i < j whose hashes differ in at most ``MAX_HASH_DISTANCE`` bits and share a band."""
    num = len(hashes)
    found = [np.empty(0, np.int64)]
    order, left = (array_on_disk((num,), np.int32, folder) for _ in range(2))
    sorted_hash = array_on_disk((num,), np.uint64, folder)
    for band in range(BANDS):
        _sort_by(band, hashes, order, sorted_hash)
        for rows in _steps(num):
            left[rows] = np.arange(rows.start, rows.stop)
        num_left, room = max(0, num - 1), MOST_PAIRS // BANDS
        for distance in range(1, min(MOST_NEIGHBOURS, num - 1) + 1):
            # Sorted: whoever has no partner at this distance has none further on.
            stop, num_left = int(np.searchsorted(left[:num_left], num - distance)), 0
            for rows in _steps(stop):
                part = left[rows]
                part = part[_key(band, sorted_hash[part]) == _key(band, sorted_hash[part + distance])]
                left[num_left : num_left + len(part)] = part
                num_left += len(part)
            if not num_left or room <= 0:
                break
            for rows in _steps(num_left):
                part = left[rows]
                differing = np.bitwise_count(sorted_hash[part] ^ sorted_hash[part + distance])
                near = part[differing <= MAX_HASH_DISTANCE]
                ends = order[near].astype(np.int64), order[near + distance].astype(np.int64)
                found.append(np.minimum(*ends) * num + np.maximum(*ends))
                room -= len(near)
    numbers = np.unique(np.concatenate(found))
    return np.stack(np.divmod(numbers, max(1, num)), axis=1)


def _key(band: int, hashes: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """The 16 bits of a band."""
    return (hashes >> np.uint64(16 * band)).astype(np.uint16)


def _sort_by(
    band: int, hashes: NDArray[np.uint64], order: NDArray[np.int32], sorted_hash: NDArray[np.uint64]
) -> None:
    """Fill the last two with what ``np.lexsort((hashes, key))`` gives, and the hashes (M,) in that order.

    A range of keys at a time that some 260,000 hashes have.
    """
    count = np.zeros(1 << 16, np.int64)
    for rows in _steps(len(hashes)):
        count += np.bincount(_key(band, hashes[rows]), minlength=len(count))
    part_of = ((count.cumsum() - count) // ROWS_A_STEP).astype(np.int32)
    done = 0
    for number in np.unique(part_of[count > 0]):
        found = [
            rows.start + np.flatnonzero(part_of[_key(band, hashes[rows])] == number)
            for rows in _steps(len(hashes))
        ]
        samples = np.concatenate(found)
        part = hashes[samples]
        inside = np.lexsort((part, _key(band, part)))
        order[done : done + len(part)], sorted_hash[done : done + len(part)] = samples[inside], part[inside]
        done += len(part)


def agree(
    images: NDArray[np.uint8], pairs: NDArray[np.integer], allowed: NDArray[np.floating]
) -> NDArray[np.bool_]:
    """(P,) whether pairs (P, 2) of pictures (N, C, H, W) are the same but for scaling and compression noise.

    ``allowed``: (P,) root mean square difference in grey levels. A pair whose first lines differ by more than all
    lines may is not looked at further.
    """
    most = np.square(allowed, dtype=np.float64) * int(np.prod(images.shape[1:]))
    alive, sums = np.arange(len(pairs)), np.zeros(len(pairs))
    height = images.shape[2]
    step = max(1, -(-height // PARTS))
    for top in range(0, height, step):
        part = images[:, :, top : top + step]
        first, second = (part[pairs[alive, side]] for side in (0, 1))
        difference = np.subtract(first, second, dtype=np.float32)
        sums[alive] += np.einsum("pchw,pchw->p", difference, difference)
        alive = alive[sums[alive] <= most[alive]]
    found = np.zeros(len(pairs), np.bool_)
    found[alive] = True
    return found


def contrasts(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """(P,) standard deviation of all pixels of each picture (P, C, H, W), grey levels."""
    return images.reshape(len(images), -1).std(axis=1, dtype=np.float32)


def _allowed(contrast: NDArray[np.floating], limit: float) -> NDArray[np.floating]:
    return np.maximum(MAX_ABSOLUTE_ERROR, limit * contrast)


def _numbered(
    first: NDArray[np.int64], copies: NDArray[np.int64], pairs: NDArray[np.int64], folder: Path | None
) -> NDArray[np.int64]:
    """(N,) groups, numbered by their first sample; -1 = alone.

    Args:
        first: (N,) of each sample the first one with the same pixels.
        copies: samples of which that is another one.
        pairs: (P, 2) samples that nearly agree.
        folder: where the result lies on disk.
    """
    grouped = np.unique(np.concatenate([copies, first[copies], pairs.ravel()]))
    # Only what has a partner takes part: of ten million samples few have.
    ends = np.searchsorted(grouped, np.concatenate([np.stack([copies, first[copies]], axis=1), pairs]))
    links = coo_array((np.ones(len(ends), np.bool_), (ends[:, 0], ends[:, 1])), shape=(len(grouped),) * 2)
    _, component = connected_components(links, directed=False)
    _, place, inverse = np.unique(component, return_index=True, return_inverse=True)
    number = np.empty(len(place), np.int64)
    number[np.argsort(place)] = np.arange(len(place))
    group = array_on_disk((len(first),), np.int64, folder)
    for rows in _steps(len(group)):
        group[rows] = -1
    group[grouped] = number[inverse]
    return group


def _conflicts(members: NDArray[np.int64], group: NDArray[np.int64], labels: NDArray[Any]) -> list[list[int]]:
    """The labeled samples of each group whose labels differ, in the order of their first ones.

    ``members`` (K,) are samples in their order, ``group`` (K,) theirs, ``labels`` (N,) of all.
    """
    of_members = np.asarray(labels)[members]
    order = np.flatnonzero(has_label(of_members))
    order = order[np.argsort(group[order], kind="stable")]
    if not len(order):
        return []
    members, group, of_members = members[order], group[order], of_members[order]
    starts = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
    is_mixed = np.minimum.reduceat(of_members, starts) != np.maximum.reduceat(of_members, starts)
    ends = np.append(starts[1:], len(group))
    mixed = [members[a:b].tolist() for a, b in zip(starts[is_mixed], ends[is_mixed], strict=True)]
    return sorted(mixed)
