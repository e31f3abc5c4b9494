"""The nearest rows in feature space: exact for small sets, an index of usearch for large ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray

from engines.contract import EngineInputError

EXACT_UP_TO = 20_000
"""Rows up to which every pair is compared; above, the index finds about 99 of 100 neighbours in far less time."""
SHARD = 100_000
"""Rows an index: several are built side by side, each by one thread, so that the result is always the same."""
BLOCK = 2_048
EXPANSION = 64
"""How far the index looks around while it is built and searched."""


def unit_rows(features: NDArray[np.floating]) -> NDArray[np.float32]:
    """Centred rows of length 1: (N, D) -> (N, D) float32. A row without any length stays zero."""
    rows = features.astype(np.float32)
    rows -= rows.mean(axis=0)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=rows, where=lengths > 0)


def nearest(
    rows: NDArray[np.float32], k: int, *, device: torch.device | str = "cpu"
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The ``k`` nearest other rows of every row by cosine, the nearest first.

    Args:
        rows: (N, D) float32 of length 1 (``unit_rows``), N > k.
        k: neighbours, at least 1.
        device: a card compares every pair, whatever the size.

    Returns:
        Row numbers (N, k) int64 and similarities (N, k) float32 in [-1, 1]. Memory beside the result: one block
        of 2,048 rows against all (exact), or about 4 bytes a value of an index in float16 with its graph.
    """
    if len(rows) <= EXACT_UP_TO or torch.device(device).type == "cuda":
        return _exact(rows, k, torch.device(device))
    return _by_index(rows, k)


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


def _by_index(rows: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    try:
        from usearch.index import Index
    except ImportError as error:
        raise EngineInputError(
            f"neighbours among more than {EXACT_UP_TO:,} images need the package usearch: "
            "pip install 'label-auditor[scale]'."
        ) from error

    starts = range(0, len(rows), SHARD)

    def build(start: int) -> Index:
        index = Index(
            ndim=rows.shape[1],
            metric="cos",
            dtype="f16",
            expansion_add=EXPANSION,
            expansion_search=EXPANSION,
        )
        part = rows[start : start + SHARD]
        index.add(np.arange(start, start + len(part), dtype=np.uint64), part, threads=1)
        return index

    threads = max(1, torch.get_num_threads())
    with ThreadPoolExecutor(min(threads, len(starts))) as pool:
        indexes = list(pool.map(build, starts))
    found = np.empty((len(rows), k), dtype=np.int64)
    similar = np.empty((len(rows), k), dtype=np.float32)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        answers = [_asked(index, block, start, k, threads) for index in indexes]
        keys = np.concatenate([answer[0] for answer in answers], axis=1)
        values = np.concatenate([answer[1] for answer in answers], axis=1)
        order = np.argsort(-values, axis=1, kind="stable")[:, :k]
        found[start : start + BLOCK] = np.take_along_axis(keys, order, axis=1)
        similar[start : start + BLOCK] = np.take_along_axis(values, order, axis=1)
    return found, similar


def _asked(
    index: object, block: NDArray[np.float32], start: int, k: int, threads: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The ``k`` best of one index for each row of the block, the row itself never among them."""
    answer = index.search(block, k + 1, threads=threads)  # type: ignore[attr-defined]
    keys = np.asarray(answer.keys).reshape(len(block), -1).astype(np.int64)
    values = 1.0 - np.asarray(answer.distances, dtype=np.float32).reshape(len(block), -1)
    own = np.arange(start, start + len(block))[:, None]
    values = np.where(keys == own, -np.inf, values).astype(np.float32)
    order = np.argsort(-values, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(keys, order, axis=1), np.take_along_axis(values, order, axis=1)
