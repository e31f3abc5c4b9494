"""The nearest rows: exact against brute force, the index against the exact ones."""

from __future__ import annotations

import numpy as np
import pytest

from engines.neighbours import search
from engines.neighbours.search import nearest, unit_rows


def test_nearest__equals_brute_force() -> None:
    rows = unit_rows(np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32))
    found, similar = nearest(rows, 7)
    cosine = rows @ rows.T
    np.fill_diagonal(cosine, -np.inf)
    expected = np.argsort(-cosine, axis=1, kind="stable")[:, :7]
    assert np.array_equal(found, expected)
    np.testing.assert_allclose(similar, np.take_along_axis(cosine, expected, axis=1), atol=1e-6)


@pytest.mark.parametrize(("cell", "probed"), [(700, 3), (5_000, 5), (100, 8), (20, 40)])
def test_nearest__the_index_finds_what_all_pairs_find_and_the_same_each_time(
    monkeypatch: pytest.MonkeyPatch, cell: int, probed: int
) -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(20, 24))
    rows = unit_rows((centres[rng.integers(0, 20, 2_000)] + rng.normal(size=(2_000, 24))).astype(np.float32))
    exact, _ = nearest(rows, 15)
    monkeypatch.setattr(search, "EXACT_UP_TO", 100)
    monkeypatch.setattr(search, "CELL", cell)
    monkeypatch.setattr(search, "PROBED", probed)
    lonely: list[int] = []
    among_all = search._among_all
    monkeypatch.setattr(
        search, "_among_all", lambda read, num, own, k: (lonely.extend(own), among_all(read, num, own, k))[1]
    )
    found, similar = nearest(rows, 15)
    assert len(lonely) < 20  # what cells cannot answer is rare
    recall = np.mean([len(set(a) & set(b)) / 15 for a, b in zip(found, exact, strict=True)])
    assert recall > 0.97
    assert (found.dtype, similar.dtype) == (np.int64, np.float32)
    assert not (found == np.arange(len(rows))[:, None]).any()
    assert (np.diff(similar, axis=1) <= 0).all()
    again, _ = nearest(3 * rows.astype(np.float64), 15, scale=True)
    assert np.array_equal(found, again)
    monkeypatch.setattr(search, "MANY", 1_000)
    small, _ = nearest(rows, 15)
    assert small.dtype == np.int32
    assert np.array_equal(found, small)


def test_nearest__rows_whose_cells_are_too_small_are_compared_with_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    apart = np.repeat(np.eye(8)[:3], [396, 400, 4], axis=0) * 20  # four rows that lie far from all others
    rows = unit_rows((apart + rng.normal(size=(800, 8))).astype(np.float32))
    exact, values = nearest(rows, 15)
    monkeypatch.setattr(search, "EXACT_UP_TO", 100)
    monkeypatch.setattr(search, "CELL", 80)
    monkeypatch.setattr(search, "PROBED", 1)
    monkeypatch.setattr(search, "ROWS_AT_ONCE", 200)
    found, similar = nearest(rows, 15)
    assert np.array_equal(found[-4:], exact[-4:])
    np.testing.assert_allclose(similar[-4:], values[-4:], atol=1e-6)
    assert (found >= 0).all()


def test_unit_rows__a_row_without_length_stays_finite() -> None:
    rows = np.zeros((4, 3), dtype=np.float16)
    assert np.array_equal(unit_rows(rows), np.zeros((4, 3), dtype=np.float32))


def test_unit_rows__are_the_centred_means_over_views_whatever_the_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    features = np.random.default_rng(0).normal(3, 2, size=(50, 3, 6)).astype(np.float16)
    centred = features.astype(np.float64).mean(axis=1)
    centred -= centred.mean(axis=0)
    wanted = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    monkeypatch.setattr(search, "ROWS_AT_ONCE", 16)
    assert np.allclose(unit_rows(features), wanted, atol=1e-5)
    assert np.allclose(unit_rows(features[:, :1]), unit_rows(features[:, 0]), atol=1e-6)
