"""The nearest rows in feature space: exact for small sets, an index of usearch for large ones."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from engines.contract import EngineInputError
from engines.shared.large import large_array

EXACT_UP_TO = 20_000
"""Rows up to which every pair is compared; above, the index finds about 99 of 100 neighbours in far less time."""
CELL = 5_000
"""Rows an index, about. Each index holds rows that lie together; a lookup in a small one is cheap, and so the work
grows as the rows do and only a few indexes are in memory at a time."""
PROBED = 6
"""Nearest cells that a row is looked up in, its own among them."""
SAMPLE_A_CELL = 256
"""Rows that each of those cells is placed by, on average."""
ROUNDS = 10
"""Passes over these rows while the cells are placed."""
MANY = 1_000_000
"""Rows above which numbers of rows are kept in four bytes."""
BLOCK = 2_048
ROWS_AT_ONCE = 65_536
EXPANSION = 64
"""How far the index looks around while it is built and searched."""


def unit_rows(features: NDArray[np.floating]) -> NDArray[np.float32]:
    """Rows of a view, or the mean over the views, centred and of length 1. A row without any length stays zero.

    Args:
        features: (N, D) or (N, V, D), N at least 1; read in pieces, so that it may be a memory map.

    Returns:
        (N, D) float32; above half a GB in a file (``large_array``).
    """
    found = large_array((len(features), features.shape[-1]), np.float32)
    total = np.zeros(features.shape[-1])
    pieces = [slice(start, start + ROWS_AT_ONCE) for start in range(0, len(features), ROWS_AT_ONCE)]
    for rows in pieces:
        part = features[rows]
        found[rows] = part.mean(axis=1, dtype=np.float32) if part.ndim == 3 else part
        total += found[rows].sum(axis=0, dtype=np.float64)
    mean = (total / len(found)).astype(np.float32)
    for rows in pieces:
        found[rows] = _of_length_one(found[rows] - mean)
    return found


def nearest(
    rows: NDArray[np.floating], k: int, *, device: torch.device | str = "cpu", scale: bool = False
) -> tuple[NDArray[np.integer], NDArray[np.float32]]:
    """The ``k`` nearest other rows of every row by cosine, the nearest first.

    Args:
        rows: (N, D) float32 of length 1 (``unit_rows``), N > k; with ``scale`` of any length and any float dtype.
        k: neighbours, at least 1.
        device: a card compares every pair, whatever the size.
        scale: give every row length 1 when it is read: of a memory map only what is looked at is in memory.

    Returns:
        Row numbers (N, k) int64 (int32 above a million rows) and similarities (N, k) float32 in [-1, 1]. Memory
        beside the result: one block of 2,048 rows against all (exact), or 90 bytes a row and as many indexes of
        about 5,000 rows in float16 with their graphs as there are threads.
    """

    def read(at: Any) -> NDArray[np.float32]:
        found = np.asarray(rows[at], dtype=np.float32)
        return _of_length_one(found) if scale else found

    if len(rows) <= EXACT_UP_TO or torch.device(device).type == "cuda":
        return _exact(read(slice(None)), k, torch.device(device))
    return _by_cells(read, rows.shape, k)


def _of_length_one(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def _exact(
    rows: NDArray[np.float32], k: int, device: torch.device
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    everything = torch.from_numpy(rows).to(device)
    found = np.empty((len(rows), k), dtype=np.int64)
    similar = np.empty((len(rows), k), dtype=np.float32)
    for start in range(0, len(rows), BLOCK):
        block = everything[start : start + BLOCK] @ everything.T
        own = torch.arange(len(block), device=device)
        block[own, own + start] = -torch.inf
        best = block.topk(k, dim=1)
        found[start : start + BLOCK] = best.indices.cpu().numpy()
        similar[start : start + BLOCK] = best.values.cpu().numpy()
    return found, similar


Read = Callable[[Any], NDArray[np.float32]]
"""Rows by their numbers or a slice."""


def _index(size: int, read: Read, ids: NDArray[np.int64]) -> Any:
    """An index of these rows, built by one thread."""
    try:
        from usearch.index import Index
    except ImportError as error:
        raise EngineInputError(
            f"neighbours among more than {EXACT_UP_TO:,} images need the package usearch: "
            "pip install 'label-auditor[scale]'."
        ) from error

    index = Index(ndim=size, metric="cos", dtype="f16", expansion_add=EXPANSION, expansion_search=EXPANSION)
    if len(ids):
        index.add(ids.astype(np.uint64), read(ids), threads=1)
    return index


def _by_cells(read: Read, shape: tuple[int, ...], k: int) -> tuple[NDArray[np.integer], NDArray[np.float32]]:
    num, size = shape
    near = _nearest_cells(read, num)
    probed = near.shape[1]
    found = np.full((num, k), -1, dtype=np.int32 if num > MANY else np.int64)
    similar = np.full((num, k), -np.inf, dtype=np.float32)
    num_cells = int(near.max()) + 1
    places = np.argsort(near, axis=None, kind="stable")
    ends = np.cumsum(np.bincount(near.ravel(), minlength=num_cells))
    threads = max(1, torch.get_num_threads())
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, num_cells, threads):
            cells = range(first, min(num_cells, first + threads))
            asking = [places[ends[cell - 1] if cell else 0 : ends[cell]] for cell in cells]
            members = [
                place[place % probed == 0] // probed for place in asking
            ]  # a row's first cell is its own
            indexes = list(pool.map(lambda ids: _index(size, read, ids), members))
            for place, index in zip(asking, indexes, strict=True):
                for start in range(0, len(place), BLOCK):
                    own = place[start : start + BLOCK] // probed
                    known = found[own].astype(np.int64), similar[own]
                    found[own], similar[own] = _best([known, _asked(index, read(own), own, k, threads)], k)
    lonely = np.flatnonzero(similar[:, -1] == -np.inf)  # their cells have fewer rows than they need
    for start in range(0, len(lonely), BLOCK):
        own = lonely[start : start + BLOCK]
        found[own], similar[own] = _among_all(read, num, own, k)
    return found, similar


def _among_all(
    read: Read, num: int, own: NDArray[np.int64], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    asking = read(own)
    best = np.empty((len(own), 0), dtype=np.int64), np.empty((len(own), 0), dtype=np.float32)
    for start in range(0, num, ROWS_AT_ONCE):
        rows = np.arange(start, min(num, start + ROWS_AT_ONCE))
        values = asking @ read(slice(start, start + ROWS_AT_ONCE)).T
        values[own[:, None] == rows] = -np.inf
        best = _best([best, (np.broadcast_to(rows, values.shape), values)], k)
    return best


def _nearest_cells(read: Read, num: int) -> NDArray[np.uint16]:
    """(N, ``PROBED``) cells of about ``CELL`` rows each that lie nearest to every row, its own first."""
    from sklearn.cluster import MiniBatchKMeans  # takes most of a second to import: only where it is used

    cells = min(-(-num // CELL), np.iinfo(np.uint16).max)  # above 300 million rows cells grow
    drawn = np.sort(np.random.default_rng(0).choice(num, min(num, cells * SAMPLE_A_CELL), replace=False))
    means = (
        MiniBatchKMeans(cells, n_init=1, max_iter=ROUNDS, random_state=0).fit(read(drawn)).cluster_centers_
    )
    means = torch.from_numpy(np.ascontiguousarray(means, dtype=np.float32))
    half = means.square().sum(dim=1) / 2
    near = np.empty((num, min(PROBED, cells)), dtype=np.uint16)
    for start in range(0, num, BLOCK):
        # The nearest mean has the largest product less half its square.
        product = torch.from_numpy(read(slice(start, start + BLOCK))) @ means.T - half
        near[start : start + BLOCK] = product.topk(near.shape[1], dim=1).indices.numpy()
    return near


def _best(
    answers: list[tuple[NDArray[np.int64], NDArray[np.float32]]], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The ``k`` nearest of several answers for the same rows."""
    keys = np.concatenate([answer[0] for answer in answers], axis=1)
    values = np.concatenate([answer[1] for answer in answers], axis=1)
    order = np.argsort(-values, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(keys, order, axis=1), np.take_along_axis(values, order, axis=1)


def _asked(
    index: Any, block: NDArray[np.float32], own: NDArray[np.int64], k: int, threads: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The ``k`` best of one index for each row of the block, the row ``own`` itself never among them."""
    if not len(index):
        return np.empty((len(own), 0), dtype=np.int64), np.empty((len(own), 0), dtype=np.float32)
    answer = index.search(block, k + 1, threads=threads)
    keys = np.asarray(answer.keys).reshape(len(block), -1).astype(np.int64)
    # An index of fewer rows leaves the rest of an answer without a distance.
    far = np.nan_to_num(np.asarray(answer.distances, dtype=np.float32), nan=np.inf)
    values = 1.0 - far.reshape(len(block), -1)
    values = np.where(keys == own[:, None], -np.inf, values).astype(np.float32)
    order = np.argsort(-values, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(keys, order, axis=1), np.take_along_axis(values, order, axis=1)
