"""A 2-D map of what an engine learned, and each sample's nearest neighbours in it.

The map is UMAP (McInnes et al. 2018) with a fixed seed, started from PCA; ``quick`` is PCA alone. Above
``MAX_FIT`` samples UMAP sees a seeded draw of them and the others are placed between their nearest drawn
neighbours, so that the work stays bounded. Distances on the map are for looking, never for judging: trust
does not use them.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from auditor.bridges import engine_bridge
from auditor.ground.errors import AuditFailedError

UMAP_ROWS = 20_000
"""Samples that UMAP itself sees."""
MAX_COMPONENTS = 50
"""Directions that PCA leaves before UMAP and neighbours."""
NUM_NEIGHBORS = 10
NUM_EPOCHS = 100
MIN_FOR_UMAP = 3 * NUM_NEIGHBORS
QUERY_ROWS = 4_096
"""Rows whose neighbours are searched in one step."""
MAX_EXACT = 50_000
"""Samples whose neighbours are all sought among all; the work grows with their square."""
MAX_PCA = 200_000
"""Samples that PCA is fitted on; of more a seeded draw."""
ROWS_A_BLOCK = 100_000
PROBED_FROM = 5_000
"""Samples below which their neighbours are found in a blink."""
PROBED_ROWS = 512


def map_2d(embeddings: NDArray[np.floating], *, quick: bool = False, seed: int = 42) -> NDArray[np.float32]:
    """Return (N, 2) float32 positions; the same embeddings and seed give the same map.

    Args:
        embeddings: (N, D), finite.
        quick: PCA alone; also used for a handful of samples, where UMAP has nothing to learn.
        seed: of UMAP and of the draw on large sets.

    Raises:
        AuditFailedError: the embeddings are not (N, D) or not finite.
    """
    reduced, num = _reduce(embeddings), len(embeddings)
    if quick or num < MIN_FOR_UMAP or embeddings.shape[1] < 2:
        return _pad(reduced, num)
    if num <= UMAP_ROWS:
        return _umap(reduced(slice(None)), seed)
    drawn = np.sort(np.random.default_rng(seed).permutation(num)[:UMAP_ROWS])
    anchors = _umap(reduced(drawn), seed)
    positions = np.empty((num, 2), dtype=np.float32)
    from sklearn.neighbors import NearestNeighbors  # takes most of a second to import: only where it is used

    search = NearestNeighbors(n_neighbors=NUM_NEIGHBORS).fit(reduced(drawn))
    for start in range(0, num, QUERY_ROWS):
        distance, near = search.kneighbors(reduced(slice(start, start + QUERY_ROWS)))
        weight = 1.0 / (distance + 1e-6)
        weight /= weight.sum(axis=1, keepdims=True)
        positions[start : start + QUERY_ROWS] = np.einsum("bk,bkd->bd", weight, anchors[near])
    positions[drawn] = anchors
    return positions


def nearest_neighbors(
    embeddings: NDArray[np.floating], sample_ids: NDArray[np.integer], *, num_neighbors: int = NUM_NEIGHBORS
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the nearest samples of the given rows, nearest first, and their cosine distances.

    Args:
        embeddings: (N, D).
        sample_ids: (m,) rows to look up; the work is m x N x D.
        num_neighbors: k, cut to N - 1.

    Returns:
        (m, k) int64 rows, never the sample itself, and (m, k) float32 distances in [0, 2].

    Raises:
        AuditFailedError: the embeddings are not (N, D).
    """
    if embeddings.ndim != 2:
        raise AuditFailedError(f"embeddings are {embeddings.shape}; neighbours need (N, D).")
    count = min(num_neighbors, len(embeddings) - 1)
    ids = np.asarray(sample_ids)
    if count < 1 or not len(ids):
        return np.empty((len(ids), 0), dtype=np.int64), np.empty((len(ids), 0), dtype=np.float32)
    from sklearn.neighbors import NearestNeighbors  # takes most of a second to import: only where it is used

    points = _unit_rows(embeddings)
    search = NearestNeighbors(n_neighbors=count + 1, algorithm="brute", metric="euclidean").fit(points)
    near = np.empty((len(ids), count), dtype=np.int64)
    distances = np.empty((len(ids), count), dtype=np.float32)
    for start in range(0, len(ids), QUERY_ROWS):
        part = ids[start : start + QUERY_ROWS]
        distance, found = search.kneighbors(points[part])
        is_self = found == part[:, None]
        # An exact duplicate may come first and push the sample itself off the list.
        is_self[~is_self.any(axis=1), -1] = True
        near[start : start + len(part)] = found[~is_self].reshape(len(part), count)
        distances[start : start + len(part)] = (distance[~is_self] ** 2 / 2.0).reshape(len(part), count)
    return near, distances


def neighbor_table(
    embeddings: NDArray[np.floating], *, num_neighbors: int = NUM_NEIGHBORS
) -> NDArray[np.int32]:
    """Return each sample's nearest samples, nearest first: (N, k) int32 rows, k cut to N - 1.

    Up to ``MAX_EXACT`` samples they are those of ``nearest_neighbors``; above, an index finds nearly all of them
    for work that hardly grows faster than N. Of a memory map it holds a few thousand rows at a time.

    Raises:
        AuditFailedError: the embeddings are not (N, D).
    """
    if embeddings.ndim != 2 or len(embeddings) <= MAX_EXACT:
        exact, _ = nearest_neighbors(embeddings, np.arange(len(embeddings)), num_neighbors=num_neighbors)
        return exact.astype(np.int32)
    return engine_bridge.nearest(embeddings, num_neighbors).astype(np.int32, copy=False)


def mean_distances(embeddings: NDArray[np.floating], near: NDArray[np.integer]) -> NDArray[np.float32]:
    """(N,) mean cosine distances, in [0, 2], of (N, D) rows to those of ``near`` (N, k)."""
    points = _unit_rows(embeddings)
    found = np.zeros(len(points), dtype=np.float32)
    for others in np.asarray(near).T:
        found += 1 - np.einsum("nd,nd->n", points, points[others])
    return found / max(1, near.shape[1])


def neighbour_seconds(num_rows: int, num_features: int) -> float:
    """Return how long ``neighbor_table`` takes on this machine, by a search for a few rows among random ones."""
    if num_rows < PROBED_FROM:
        return 0.0
    return _search_seconds(num_features) * num_rows * min(num_rows, MAX_EXACT)


@functools.lru_cache(maxsize=16)
def _search_seconds(num_features: int) -> float:
    """Seconds of one row sought for among one row."""
    points = np.random.default_rng(0).random((QUERY_ROWS, num_features), dtype=np.float32)
    rows = np.arange(PROBED_ROWS)
    nearest_neighbors(points, rows[:1])
    began = time.perf_counter()
    nearest_neighbors(points, rows)
    return (time.perf_counter() - began) / (len(points) * len(rows))


def _reduce(embeddings: NDArray[np.floating]) -> Callable[[Any], NDArray[np.float32]]:
    """Return what gives the rows of a slice, or by their numbers, in at most ``MAX_COMPONENTS`` directions."""
    if embeddings.ndim != 2:
        raise AuditFailedError(f"embeddings are {embeddings.shape}; a map needs (N, D).")
    for rows in _blocks(len(embeddings)):
        is_finite = np.isfinite(embeddings[rows]).all(axis=1)
        if not is_finite.all():
            row = rows.start + int(np.argmin(is_finite))
            raise AuditFailedError(
                f"embedding of sample {row} is not finite; the engine's training diverged."
            )
    size = min(MAX_COMPONENTS, *embeddings.shape)
    if len(embeddings) < 2 or embeddings.shape[1] < 2:
        return lambda rows: np.asarray(embeddings[rows], dtype=np.float32)
    from sklearn.decomposition import PCA  # takes most of a second to import: only where it is used

    fitted = PCA(size, svd_solver="auto", random_state=0)
    if len(embeddings) <= MAX_PCA:
        reduced: NDArray[np.float32] = fitted.fit_transform(np.asarray(embeddings, dtype=np.float32))
        return lambda rows: reduced[rows]
    # Its directions are as good from so many rows, and the others pass by a part at a time.
    drawn = np.sort(np.random.default_rng(0).choice(len(embeddings), MAX_PCA, replace=False))
    fitted.fit(np.asarray(embeddings[drawn], dtype=np.float32))
    return lambda rows: fitted.transform(np.asarray(embeddings[rows], dtype=np.float32))


def _blocks(num_rows: int) -> Iterator[slice]:
    for start in range(0, num_rows, ROWS_A_BLOCK):
        yield slice(start, min(num_rows, start + ROWS_A_BLOCK))


def _umap(points: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    from sklearn.neighbors import NearestNeighbors
    from umap import UMAP  # takes seconds to import, so only a process that draws a map pays

    _keep_compiled()
    # Exact neighbours: below MAX_FIT they cost seconds, UMAP's own search half a minute of compilation.
    search = NearestNeighbors(n_neighbors=NUM_NEIGHBORS).fit(points)
    distance, near = search.kneighbors(points)
    # UMAP's compiler sets OpenMP to every core it sees, also for engines that train after it in this process, and
    # threads that wait for each other on a busy machine cost many times the work. The limit puts back what was.
    with threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="precomputed_knn\\[2\\]")  # only needed to place new points
        mapper = UMAP(
            n_neighbors=NUM_NEIGHBORS,
            n_epochs=NUM_EPOCHS,
            init="pca",
            random_state=seed,
            n_jobs=1,
            precomputed_knn=(near, distance.astype(np.float32)),
        )
        return np.asarray(mapper.fit_transform(points), dtype=np.float32)


def _keep_compiled() -> None:
    """Let UMAP's compiled functions be kept on disk: compiling takes 8 to 13 s, reading them back .2 s.

    They lie where Python keeps its own compiled files, or in the user's cache folder (``NUMBA_CACHE_DIR``).
    """
    from numba.core.dispatcher import Dispatcher
    from umap import distances, layouts, spectral, umap_, utils

    for module in (distances, layouts, spectral, umap_, utils):
        for function in vars(module).values():
            if isinstance(function, Dispatcher):
                with suppress(RuntimeError):  # no folder may be written to: compiled anew then
                    function.enable_caching()


def _pad(reduced: Callable[[Any], NDArray[np.float32]], num: int) -> NDArray[np.float32]:
    """First two columns, zeros where there are fewer."""
    positions = np.zeros((num, 2), dtype=np.float32)
    for rows in _blocks(num):
        part = reduced(rows)
        positions[rows, : min(2, part.shape[1])] = part[:, :2]
    return positions


def _unit_rows(embeddings: NDArray[np.floating]) -> NDArray[np.float32]:
    points = np.array(embeddings, dtype=np.float32)
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
    return points
