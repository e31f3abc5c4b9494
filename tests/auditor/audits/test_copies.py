"""Near copies that features propose and pixels confirm, on pieces of real photographs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_sample_image

from auditor.audits import copies
from auditor.catalog import datasets
from auditor.catalog.db import session
from tests.auditor.catalogs import add_dataset, change_sample

SIDE = 64


@pytest.fixture(scope="module")
def pieces() -> NDArray[np.uint8]:
    """(108, 3, 64, 64): two photographs cut into squares that touch."""
    found = []
    for name in ("china.jpg", "flower.jpg"):
        photo = np.asarray(load_sample_image(name)).transpose(2, 0, 1)
        found += [
            photo[:, top : top + SIDE, left : left + SIDE]
            for top in range(0, photo.shape[1] - SIDE, SIDE)
            for left in range(0, photo.shape[2] - SIDE, SIDE)
        ]
    return np.stack(found)


def all_pairs(num: int) -> NDArray[np.int64]:
    return np.stack(np.triu_indices(num, 1), axis=1)


def piece(top: int, left: int) -> NDArray[np.uint8]:
    """One more square of the first photograph."""
    photo = np.asarray(load_sample_image("china.jpg")).transpose(2, 0, 1)
    return photo[:, top : top + SIDE, left : left + SIDE]


def test_agreeing__pieces_that_only_look_alike_do_not(pieces: NDArray[np.uint8]) -> None:
    assert len(copies.agreeing(pieces, all_pairs(len(pieces)))) == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda image: image[..., ::-1],
        lambda _: piece(3 * SIDE + 4, 4 * SIDE - 2),  # the same place, moved
        lambda _: piece(3 * SIDE + 2, 4 * SIDE + 2)[..., ::-1],
        lambda image: (image * 0.9 + 12).astype(np.uint8),
    ],
    ids=["mirrored", "moved", "moved and mirrored", "flatter"],
)
def test_agreeing__a_changed_copy_does(pieces: NDArray[np.uint8], change: object) -> None:
    original = 3 * 9 + 4
    np.testing.assert_array_equal(pieces[original], piece(3 * SIDE, 4 * SIDE))
    images = np.concatenate([pieces, change(pieces[original])[None]])  # type: ignore[operator]
    found = copies.agreeing(images, all_pairs(len(images)))
    assert found.tolist() == [[original, len(pieces)]]


def test_agreeing__sets_too_large_to_keep_find_the_same(
    pieces: NDArray[np.uint8], monkeypatch: pytest.MonkeyPatch
) -> None:
    images = np.concatenate([pieces, pieces[31:32, ..., ::-1]])
    monkeypatch.setattr(copies, "MOST_KEPT", 0)
    assert copies.agreeing(images, all_pairs(len(images))).tolist() == [[31, len(pieces)]]


def test_agreeing__grey_pictures_are_judged_strictly_and_not_mirrored(pieces: NDArray[np.uint8]) -> None:
    grey, original = pieces[:, :1], pieces[31:32, :1]
    noise = np.random.default_rng(0).normal(scale=0.5 * original.std(), size=original.shape)
    noisy = (original + noise).clip(0, 255).astype(np.uint8)
    images = np.concatenate([grey, original[..., ::-1], noisy, (original * 0.97).astype(np.uint8)])
    assert copies.agreeing(images, all_pairs(len(images))).tolist() == [[31, len(images) - 1]]


def test_agreeing__a_set_whose_pictures_all_look_alike_is_judged_strictly() -> None:
    # A shape that is drawn again and again, as in digits: close to each other, and yet each its own.
    generator = np.random.default_rng(0)
    shape = np.zeros((3, 28, 28))
    shape[:, 6:22, 12:16] = 200
    images = (shape + 18 * generator.normal(size=(40, 3, 28, 28))).clip(0, 255).astype(np.uint8)
    images = np.concatenate([images, images[7:8] // 2 + images[7:8] // 2])
    differences = copies.least_difference(*(images[[0, 1], :].astype(np.float32) for _ in range(2)))
    assert (differences < copies.LOOSE).all()
    assert copies.agreeing(images, all_pairs(41)).tolist() == [[7, 40]]


def test_least_difference__without_contrast_nothing_is_told() -> None:
    flat = np.full((2, 3, 32, 32), 7.0, dtype=np.float32)
    assert np.isinf(copies.least_difference(flat, flat)).all()


def test_candidates__are_each_listed_once() -> None:
    assert copies.candidates(np.array([[1, 2], [0, 2], [1, 0]])).tolist() == [[0, 1], [0, 2], [1, 2]]


def test_joined__the_lowest_number_stays_and_new_ones_follow() -> None:
    group = np.array([-1, 0, 0, 1, 1, -1, -1, -1, 5, 5])
    pairs = np.array([[6, 7], [0, 3], [4, 8]])
    assert copies.joined(group, pairs).tolist() == [1, 0, 0, 1, 1, -1, 6, 6, 1, 1]
    np.testing.assert_array_equal(copies.joined(group, pairs[:0]), group)


def test_add__new_members_say_how_they_were_found(home: Path) -> None:
    add_dataset(num=6)
    for sample in (1, 2):
        change_sample(sample, duplicate_group=0, duplicate_kind="exact")
    with session() as open_session:
        dataset = datasets.get(open_session, "few")
    pairs = np.array([[1, 4], [0, 5]])
    assert copies.add(dataset, pairs) == 3
    assert copies.add(dataset, pairs) == 0
    with session() as open_session:
        found = datasets.duplicates(open_session, dataset.id)
    rows = found[["sample_id", "duplicate_group", "duplicate_kind"]].to_numpy().tolist()
    assert rows == [
        [1, 0, "exact"],
        [2, 0, "exact"],
        [4, 0, "features"],
        [0, 1, "features"],
        [5, 1, "features"],
    ]
