"""The map is repeatable and keeps neighbourhoods; neighbours are exact."""

import numpy as np
import pytest

from auditor.ground.errors import AuditFailedError
from auditor.work import embedding
from auditor.work.embedding import map_2d, nearest_neighbors, neighbor_table
from engines.neighbours import search


def blobs(num_samples=120, num_blobs=3, size=12, seed=0):
    rng = np.random.default_rng(seed)
    blob = np.arange(num_samples) % num_blobs
    centres = 10 * rng.normal(size=(num_blobs, size))
    return (centres[blob] + rng.normal(size=(num_samples, size))).astype(np.float32), blob


def test_map_2d__umap_is_repeatable_and_keeps_blobs_together():
    points, blob = blobs()
    first, again = map_2d(points), map_2d(points)
    assert (first.shape, first.dtype) == ((120, 2), np.float32)
    np.testing.assert_array_equal(first, again)
    distances = np.linalg.norm(first[:, None] - first[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (blob[distances.argmin(axis=1)] == blob).mean() > 0.98


def test_map_2d__what_was_compiled_is_kept_for_the_next_process():
    map_2d(blobs()[0])
    from umap import layouts, umap_

    for function in (umap_.smooth_knn_dist, umap_.compute_membership_strengths, layouts.rdist):
        assert function.stats.cache_path is not None


def test_map_2d__large_sets_are_placed_between_drawn_ones(monkeypatch):
    points, blob = blobs(150)
    monkeypatch.setattr(embedding, "UMAP_ROWS", 90)
    positions = map_2d(points)
    assert np.isfinite(positions).all()
    distances = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (blob[distances.argmin(axis=1)] == blob).mean() > 0.95


def test_map_2d__quick_is_the_first_two_directions():
    points, _ = blobs(200)
    quick = map_2d(points, quick=True)
    centred = points - points.mean(axis=0)
    singular = np.linalg.svd(centred, compute_uv=False)
    np.testing.assert_allclose(np.linalg.norm(quick, axis=0), singular[:2], rtol=1e-4)


@pytest.mark.parametrize("shape", [(1, 5), (2, 1), (5, 1), (7, 3)])
def test_map_2d__a_handful_of_samples(shape):
    positions = map_2d(np.random.default_rng(0).normal(size=shape))
    assert positions.shape == (shape[0], 2)
    assert np.isfinite(positions).all()


def test_map_2d__refuses_a_diverged_engine():
    points = np.zeros((50, 4))
    points[7, 1] = np.nan
    with pytest.raises(AuditFailedError, match="embedding of sample 7 is not finite"):
        map_2d(points)
    with pytest.raises(AuditFailedError, match=r"\(3,\); a map needs"):
        map_2d(np.zeros(3))


def test_nearest_neighbors__agrees_with_all_pairs():
    points, _ = blobs(60)
    ids = np.array([5, 0, 59])
    near, distance = nearest_neighbors(points, ids, num_neighbors=4)
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    cosine = 1 - unit[ids] @ unit.T
    cosine[np.arange(3), ids] = np.inf
    np.testing.assert_array_equal(near, np.argsort(cosine, axis=1)[:, :4])
    np.testing.assert_allclose(distance, np.sort(cosine, axis=1)[:, :4], atol=1e-5)


def test_nearest_neighbors__duplicates_never_return_the_sample_itself():
    points = np.ones((6, 3))
    near, distance = nearest_neighbors(points, np.arange(6), num_neighbors=3)
    assert (near != np.arange(6)[:, None]).all()
    np.testing.assert_allclose(distance, 0, atol=1e-6)


def test_nearest_neighbors__fewer_samples_than_asked_for():
    assert nearest_neighbors(np.eye(3), np.array([1]), num_neighbors=10)[0].shape == (1, 2)
    assert nearest_neighbors(np.eye(1), np.array([0]))[0].shape == (1, 0)


def test_neighbor_table__of_a_small_set_is_exact():
    points, _ = blobs(60)
    table = neighbor_table(points, num_neighbors=8)
    assert (table.shape, table.dtype) == ((60, 8), np.int32)
    np.testing.assert_array_equal(table, nearest_neighbors(points, np.arange(60), num_neighbors=8)[0])
    assert neighbor_table(np.eye(3), num_neighbors=8).shape == (3, 2)


def test_neighbor_table__of_a_large_set_misses_few(monkeypatch):
    points, _ = blobs(3_000, num_blobs=5)
    exact = neighbor_table(points, num_neighbors=8)
    monkeypatch.setattr(embedding, "MAX_EXACT", 1_000)
    monkeypatch.setattr(search, "EXACT_UP_TO", 1_000)
    table = neighbor_table(points, num_neighbors=8)
    np.testing.assert_array_equal(table, neighbor_table(points, num_neighbors=8))
    assert np.mean([len(set(a) & set(b)) / 8 for a, b in zip(table, exact, strict=True)]) > 0.95
    assert all(i not in row and len(set(row)) == 8 for i, row in enumerate(table.tolist()))


def test_neighbor_table__a_large_set_of_the_same_picture(monkeypatch):
    monkeypatch.setattr(embedding, "MAX_EXACT", 100)
    monkeypatch.setattr(search, "EXACT_UP_TO", 100)
    table = neighbor_table(np.ones((400, 3)), num_neighbors=8)
    assert table.min() >= 0
    assert all(i not in row and len(set(row)) == 8 for i, row in enumerate(table.tolist()))


@pytest.mark.parametrize("limit", [1_000, 100])
def test_map_and_neighbours__of_a_file_in_float16_are_those_of_its_numbers(limit, monkeypatch, tmp_path):
    points, _ = blobs(400)
    for module, name in (
        *((embedding, name) for name in ("MAX_EXACT", "MAX_PCA", "UMAP_ROWS")),
        (search, "EXACT_UP_TO"),
    ):
        monkeypatch.setattr(module, name, limit)
    np.save(tmp_path / "points.npy", points.astype(np.float16)[:, None])
    on_disk = np.load(tmp_path / "points.npy", mmap_mode="r")[:, 0]
    numbers = np.array(on_disk, dtype=np.float32)
    np.testing.assert_array_equal(map_2d(on_disk), map_2d(numbers))
    np.testing.assert_array_equal(
        neighbor_table(on_disk, num_neighbors=8), neighbor_table(numbers, num_neighbors=8)
    )


def test_neighbor_table__refuses_what_is_no_table():
    with pytest.raises(AuditFailedError, match=r"\(3,\); neighbours need"):
        neighbor_table(np.zeros(3))


@pytest.mark.parametrize("quick", [True, False])
def test_map_2d__a_memory_map_is_read_in_blocks(monkeypatch, tmp_path, quick):
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(3, 12))[rng.integers(0, 3, 900)] * 6 + rng.normal(size=(900, 12))).astype(
        np.float32
    )
    monkeypatch.setattr(embedding, "UMAP_ROWS", 200)
    whole = embedding.map_2d(rows, quick=quick)
    np.save(tmp_path / "rows.npy", rows)
    monkeypatch.setattr(embedding, "MAX_PCA", 899)
    monkeypatch.setattr(embedding, "ROWS_A_BLOCK", 70)
    in_blocks = embedding.map_2d(np.load(tmp_path / "rows.npy", mmap_mode="r"), quick=quick)
    if quick:  # the same directions but for a hair: one row was not fitted on
        np.testing.assert_allclose(np.abs(in_blocks), np.abs(whole), atol=0.2)
    assert in_blocks.shape == whole.shape == (900, 2)
    assert np.isfinite(in_blocks).all()
    rows[871, 3] = np.nan
    with pytest.raises(AuditFailedError, match="sample 871 is not finite"):
        embedding.map_2d(rows)
