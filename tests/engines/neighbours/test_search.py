"""The nearest rows: exact against brute force, cells against the exact ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

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


def test_nearest__few_rows_are_all_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, few in {"EXACT_UP_TO": 500, "CELL": 8, "SEARCHED": 8}.items():
        monkeypatch.setattr(search, name, few)
    rows = unit_rows(np.random.default_rng(0).normal(size=(501, 40)).astype(np.float32))
    cosine = rows[:500] @ rows[:500].T
    np.fill_diagonal(cosine, -np.inf)
    assert np.array_equal(nearest(rows[:500], 7)[0], np.argsort(-cosine, axis=1)[:, :7])
    np.fill_diagonal(cosine := rows @ rows.T, -np.inf)
    assert not np.array_equal(nearest(rows, 7)[0], np.argsort(-cosine, axis=1)[:, :7])


@pytest.mark.parametrize(
    ("cell", "searched", "k"), [(64, 700, 15), (700, 700, 15), (20, 300, 15), (64, 1, 60)]
)
def test_nearest__cells_find_what_all_pairs_find_and_the_same_each_time(
    monkeypatch: pytest.MonkeyPatch, cell: int, searched: int, k: int
) -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(20, 24))
    rows = unit_rows((centres[rng.integers(0, 20, 2_000)] + rng.normal(size=(2_000, 24))).astype(np.float32))
    exact, _ = nearest(rows, k)
    monkeypatch.setattr(search, "EXACT_UP_TO", 100)
    monkeypatch.setattr(search, "CELL", cell)
    monkeypatch.setattr(search, "SEARCHED", searched)
    found, similar = nearest(rows, k)
    recall = np.mean([len(set(a) & set(b)) / k for a, b in zip(found, exact, strict=True)])
    assert recall > 0.95
    assert (found.dtype, similar.dtype) == (np.int64, np.float32)
    assert not (found == np.arange(len(rows))[:, None]).any()
    assert all(len(set(row)) == k for row in found.tolist())
    assert (np.diff(similar, axis=1) <= 0).all()
    np.testing.assert_allclose(similar, np.einsum("nd,nkd->nk", rows, rows[found]), atol=1e-5)
    again, _ = nearest(3 * rows.astype(np.float64), k, scale=True)
    assert np.mean(found == again) > 0.999  # rounded otherwise: two nearly equal ones may change places
    monkeypatch.setattr(search, "MANY", 1_000)
    small, _ = nearest(rows, k)
    assert small.dtype == np.int32
    assert np.array_equal(found, small)


def test_nearest__by_cells_has_the_same_bits_with_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = unit_rows(np.random.default_rng(0).normal(size=(3_000, 40)).astype(np.float32))
    monkeypatch.setattr(search, "EXACT_UP_TO", 100)
    monkeypatch.setattr(search, "ROWS_AT_ONCE", 700)
    threads, answers = torch.get_num_threads(), []
    try:
        for number in (1, 3):
            torch.set_num_threads(number)
            answers.append(nearest(rows, 9))
            with ThreadPoolExecutor(1) as pool:  # a thread that begins later has as many as before
                assert pool.submit(torch.get_num_threads).result() == torch.get_num_threads() == number
    finally:
        torch.set_num_threads(threads)
    for one, other in zip(*answers, strict=True):
        assert np.array_equal(one, other)


def test_nearest__many_rows_in_one_place_do_not_make_a_large_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.zeros((3_000, 4), dtype=np.float32)
    rows[:, 0] = 1
    rows[-30:] = np.eye(4)[1]  # few rows far from all others
    monkeypatch.setattr(search, "EXACT_UP_TO", 100)
    monkeypatch.setattr(search, "SEARCHED", 300)
    monkeypatch.setattr(search, "CELL", 16)
    compared: list[int] = []
    greatest = search._greatest
    monkeypatch.setattr(
        search, "_greatest", lambda values, k: (compared.append(values.numel()), greatest(values, k))[1]
    )
    found, similar = nearest(rows, 20)
    assert sum(compared) < len(rows) * 400
    assert similar.min() > 0.999
    assert ((found >= 2_970) == (np.arange(3_000) >= 2_970)[:, None]).all()


@pytest.mark.parametrize("columns", [50, 160, 1_003])
def test_greatest__equals_a_sort(columns: int) -> None:
    values = torch.rand(7, columns, generator=torch.Generator().manual_seed(0))
    found, places = search._greatest(values, 9)
    expected = values.sort(dim=1, descending=True)
    assert torch.equal(found, expected.values[:, :9])
    assert torch.equal(places, expected.indices[:, :9])


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
