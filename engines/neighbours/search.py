"""The nearest rows in feature space: all pairs for small sets, the rows of the nearest cells for large ones.

Above ``EXACT_UP_TO`` rows, rows that lie together form small cells. The rows of a cell are compared with all rows
of the cells that lie nearest to them, in one matrix product of a few thousand columns; nothing else is built or
kept. So the work grows as the rows do, and memory beside the result is one sorted copy of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.shared.large import ROWS_AT_ONCE, large_array

EXACT_UP_TO = 20_000
"""Rows up to which every pair is compared; above, nearly all neighbours are found in far less time."""
CELL = 64
"""Rows a cell, about; none has more than twice as many. In small cells all rows have nearly the same neighbours."""
MOST_CELLS = 65_536
"""With more than four million rows cells grow: the distances among so many cells are cheap still."""
SEARCHED = 6_144
"""Rows that every row is compared with, about; never fewer than eight cells."""
CONSIDERED = 2
"""For every cell that is searched, so many near ones are ranked by what the single rows say of them."""
SHARPNESS = 8.0
"""How much more a cell counts that is very near to few rows than one that is near to many."""
SAMPLE_A_GROUP = 256
"""Rows that each group of cells is placed by."""
SAMPLE_A_CELL = 32
"""Rows that each cell of a group is placed by, about."""
ROUNDS = 8
"""Passes over these rows while the cells are placed."""
CELLS_AT_ONCE = 64
MANY = 1_000_000
"""Rows above which numbers of rows are kept in four bytes."""
BLOCK = 2_048
COLUMNS = 16
"""Columns of which only the greatest is looked at first when the greatest of a row are chosen."""


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

    The result has the same bits whatever the number of threads, above ``EXACT_UP_TO`` rows.

    Args:
        rows: (N, D) float32 of length 1 (``unit_rows``), N > k; with ``scale`` of any length and any float dtype.
        k: neighbours, at least 1.
        device: a card compares every pair, whatever the size.
        scale: give every row length 1 when it is read: of a memory map only what is looked at is in memory.

    Returns:
        Row numbers (N, k) int64 (int32 above a million rows) and similarities (N, k) float32 in [-1, 1]. Memory
        beside the result: one block of 2,048 rows against all (exact), or a copy of the rows in float32
        (``large_array``), 24 bytes a row and about 100 MB a thread.
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


class Cells(NamedTuple):
    """Rows in the order of their cells."""

    order: NDArray[np.int64]
    """(N,) numbers of rows, those of a cell next to each other."""
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    """(C,) where each cell begins and ends in ``order``."""
    rows: Tensor
    """(N, D) float32 in that order."""
    means: Tensor
    """(C, D) float32."""
    half_squares: Tensor
    """(C,) half of their squared lengths."""


def _by_cells(read: Read, shape: tuple[int, ...], k: int) -> tuple[NDArray[np.integer], NDArray[np.float32]]:
    num = shape[0]
    found = np.empty((num, k), dtype=np.int32 if num > MANY else np.int64)
    similar = np.empty((num, k), dtype=np.float32)
    size = max(CELL, -(-num // MOST_CELLS))
    searched = max(SEARCHED, 8 * size, COLUMNS * k)
    with _single_threads() as pool:
        cells = _cells(read, shape, size, pool)

        wanted = min(len(cells.ends), CONSIDERED * -(-searched * len(cells.ends) // num) + 1)

        def answer(first: int) -> None:
            # The nearest mean has the largest product less half its square.
            means = cells.means[first : first + CELLS_AT_ONCE]
            considered = (means @ cells.means.T - cells.half_squares).topk(wanted, dim=1).indices
            for cell, near in enumerate(considered, start=first):
                own = slice(cells.starts[cell], cells.ends[cell])
                places = _places_near(cells, cell, near, searched)
                product = cells.rows[own] @ cells.rows[places].T
                product.fill_diagonal_(-torch.inf)  # a cell's own rows come first
                values, columns = _greatest(product, k)
                ids = cells.order[own]
                found[ids] = cells.order[places[columns].numpy()]
                similar[ids] = values.numpy()

        list(pool.map(answer, range(0, len(cells.ends), CELLS_AT_ONCE)))
    return found, similar


@contextmanager
def _single_threads() -> Iterator[ThreadPoolExecutor]:
    """As many threads as torch has, each of which computes alone: no sum depends on how many there are."""
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield pool
    finally:
        torch.set_num_threads(threads)  # threads that begin later take what was set last


def _places_near(cells: Cells, cell: int, near: Tensor, searched: int) -> Tensor:
    """(M,) places in ``cells.order`` of the cell's own rows, then of those of the nearest of the cells ``near``."""
    starts, ends = cells.starts, cells.ends
    mine = cells.rows[starts[cell] : ends[cell]]
    nearness = mine @ cells.means[near].T - cells.half_squares[near]
    spread = (0.5 * (mine - cells.means[cell]).square().sum(dim=1)).mean().clamp(min=1e-6)
    behind = nearness - nearness.amax(dim=1, keepdim=True)
    wanted_by_rows = torch.logsumexp(behind * (SHARPNESS / spread), dim=0)
    ranked = near[wanted_by_rows.argsort(descending=True, stable=True)].numpy()
    ranked = np.concatenate([[cell], ranked[ranked != cell]])
    ranked = ranked[: 1 + np.searchsorted(np.cumsum(ends[ranked] - starts[ranked]), searched)]
    return torch.from_numpy(np.concatenate([np.arange(starts[one], ends[one]) for one in ranked]))


def _greatest(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` greatest of every row and their columns, the greatest first.

    The k greatest lie in the k groups of columns that have the greatest maxima, so only those are sorted.
    """
    groups = values.shape[1] // COLUMNS
    if groups <= k:
        best = values.topk(k, dim=1)
        return best.values, best.indices
    whole, left = values[:, : groups * COLUMNS], torch.arange(groups * COLUMNS, values.shape[1])
    chosen = whole.unflatten(1, (COLUMNS, groups)).amax(dim=1).topk(k, dim=1).indices
    columns = (chosen[:, None] + groups * torch.arange(COLUMNS)[:, None]).flatten(1)
    columns = torch.cat([columns, left.expand(len(values), -1)], dim=1)
    best = values.gather(1, columns).topk(k, dim=1)
    return best.values, columns.gather(1, best.indices)


def _cells(read: Read, shape: tuple[int, ...], size: int, pool: ThreadPoolExecutor) -> Cells:
    """Cells of about ``size`` rows: means of groups first, then those of the cells of each group."""
    num, width = shape
    num_groups = int(np.ceil(np.sqrt(num / size)))
    drawn = np.random.default_rng(0).choice(num, min(num, num_groups * SAMPLE_A_GROUP), replace=False)
    groups = pool.submit(lambda: _means(torch.from_numpy(read(np.sort(drawn))), num_groups)).result()
    group = np.empty(num, dtype=np.int32)

    def place(piece: int) -> None:
        for start in range(piece, min(num, piece + ROWS_AT_ONCE), BLOCK):
            part = slice(start, min(num, piece + ROWS_AT_ONCE, start + BLOCK))
            group[part] = _nearest_mean(torch.from_numpy(read(part)), groups).numpy()

    list(pool.map(place, range(0, num, ROWS_AT_ONCE)))
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=num_groups))
    pieces = [
        slice(start, min(end, start + ROWS_AT_ONCE))
        for first, end in zip([0, *ends[:-1]], ends, strict=True)
        for start in range(first, end, ROWS_AT_ONCE)
    ]
    rows = large_array((num, width), np.float32)

    def divide(piece: slice) -> tuple[list[int], Tensor]:
        ids = order[piece]
        mine = torch.from_numpy(read(ids))
        many = -(-len(ids) // size)
        own = _nearest_mean(mine, _means(mine[:: max(1, len(ids) // (many * SAMPLE_A_CELL))], many))
        by_cell = own.argsort(stable=True)
        # Many rows in one place would be one cell: it is cut.
        lengths = [
            min(2 * size, count - start)
            for count in torch.bincount(own, minlength=many).tolist()
            for start in range(0, count, 2 * size)
        ]
        order[piece] = ids[by_cell.numpy()]
        mine = mine[by_cell]
        rows[piece] = mine.numpy()
        return lengths, torch.stack([part.mean(dim=0) for part in mine.split(lengths)])

    divided = list(pool.map(divide, pieces))
    lengths = [length for one, _ in divided for length in one]
    means = torch.cat([one for _, one in divided])
    ends = np.cumsum(lengths)
    half_squares = means.square().sum(dim=1) / 2
    return Cells(order, ends - lengths, ends, torch.from_numpy(rows), means, half_squares)


def _means(rows: Tensor, num: int) -> Tensor:
    """(num, D) means of k-means; one that no row is nearest to stays where it was drawn."""
    means = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:num]].clone()
    for _ in range(ROUNDS):
        own = _nearest_mean(rows, means)
        counts = torch.bincount(own, minlength=len(means))[:, None]
        sums = torch.zeros_like(means).index_add_(0, own, rows)
        means = torch.where(counts > 0, sums / counts.clamp(min=1), means)
    return means


def _nearest_mean(rows: Tensor, means: Tensor) -> Tensor:
    """(N,) int64."""
    half = means.square().sum(dim=1) / 2
    return torch.cat([(part @ means.T - half).argmax(dim=1) for part in rows.split(BLOCK)])
