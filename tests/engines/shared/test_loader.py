"""Images on the device: same numbers resident or streamed, moved within bounds, batches in a stable order."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.contract import EngineInputError
from engines.shared import loader
from engines.shared.device import make_generator
from engines.shared.loader import (
    ImageStore,
    augment,
    batches_per_epoch,
    epoch_batches,
    reduced_size,
    shift_size,
    standardize,
)
from tests.engines.helpers import digits


@pytest.fixture
def images_file(tmp_path: Path) -> Path:
    path = tmp_path / "images.npy"
    np.save(path, np.random.default_rng(0).integers(0, 256, (50, 3, 6, 7), dtype=np.uint8))
    return path


@pytest.mark.parametrize("resident", ["auto", "yes", "no"])
def test_batch__is_the_same_resident_and_streamed(images_file: Path, resident: str) -> None:
    plain = np.load(images_file)
    store = ImageStore(np.load(images_file, mmap_mode="r"), "cpu", resident=resident)
    index = torch.tensor([49, 0, 7, 7])
    expected = torch.from_numpy(plain[[49, 0, 7, 7]]).float() / 255
    assert torch.equal(store.batch(index), expected)
    assert (store.num_samples, store.channels, store.image_size) == (50, 3, (6, 7))
    assert store.is_resident == (resident == "yes")


def test_store__auto_keeps_arrays_and_streams_maps(images_file: Path) -> None:
    assert ImageStore(np.load(images_file), "cpu").is_resident
    assert not ImageStore(np.load(images_file, mmap_mode="r"), "cpu").is_resident


def test_batch__does_not_share_memory_with_the_images() -> None:
    images, _ = digits(4)
    before = images.copy()
    ImageStore(images, "cpu").raw(torch.arange(4)).zero_()
    np.testing.assert_array_equal(images, before)


def test_mean_std__matches_numpy(images_file: Path) -> None:
    store = ImageStore(np.load(images_file, mmap_mode="r"), "cpu")
    scaled = np.load(images_file) / 255.0
    mean, std = store.mean_std()
    np.testing.assert_allclose(mean, scaled.mean(axis=(0, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(std, scaled.std(axis=(0, 2, 3)), rtol=1e-6)


def test_mean_std__constant_images_stay_finite() -> None:
    store = ImageStore(np.full((5, 1, 4, 4), 200, dtype=np.uint8), "cpu")
    mean, std = store.mean_std()
    assert std.item() == pytest.approx(0.01)
    assert torch.isfinite(standardize(store.batch(torch.arange(5)), mean, std)).all()


def test_standardize__by_channel() -> None:
    images = torch.ones(1, 2, 1, 1)
    result = standardize(images, torch.tensor([1.0, 0.5]), torch.tensor([1.0, 0.25]))
    assert result.flatten().tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    ("kind", "channels", "expected"),
    [("auto", 1, "shift"), ("auto", 3, "crop_flip"), ("none", 3, "none"), ("shift_flip", 1, "shift_flip")],
)
def test_resolve_augment__cases(kind: str, channels: int, expected: str) -> None:
    store = ImageStore(np.zeros((2, channels, 28, 28), dtype=np.uint8), "cpu")
    assert store.resolve_augment(kind) == expected


def test_shift_size__in_proportion() -> None:
    assert [shift_size((side, side)) for side in (1, 8, 27, 28, 32, 64, 224)] == [1, 1, 1, 2, 2, 4, 16]


def _shifted(image: torch.Tensor, down: int, right: int) -> torch.Tensor:
    """A slow, separate way to move one (H, W) image with its border repeated."""
    height, width = image.shape
    result = torch.empty_like(image)
    for row in range(height):
        for column in range(width):
            result[row, column] = image[
                min(max(row + down, 0), height - 1), min(max(column + right, 0), width - 1)
            ]
    return result


def test_augment__shift_is_one_of_the_25_moves() -> None:
    images = torch.rand(1, 1, 28, 29).expand(40, -1, -1, -1)
    all_moves = {(y, x): _shifted(images[0, 0], y, x) for y in range(-2, 3) for x in range(-2, 3)}
    seen = set()
    for result in augment(images, "shift", make_generator(0))[:, 0]:
        moves = [move for move, image in all_moves.items() if torch.equal(image, result)]
        assert len(moves) == 1
        seen.add(moves[0])
    assert len(seen) > 10


def test_augment__crop_flip_is_a_crop_of_the_mirrored_border() -> None:
    images = torch.rand(30, 3, 16, 16)
    moved = augment(images, "crop_flip", make_generator(1))
    padded = torch.nn.functional.pad(images, (2, 2, 2, 2), mode="reflect")
    mirrored = 0
    for number, result in enumerate(moved):
        crops = [padded[number, :, y : y + 16, x : x + 16] for y in range(5) for x in range(5)]
        straight = any(torch.equal(crop, result) for crop in crops)
        flipped = any(torch.equal(crop.flip(2), result) for crop in crops)
        assert straight != flipped
        mirrored += flipped
    assert 5 < mirrored < 25


def test_augment__channels_move_together() -> None:
    images = torch.rand(20, 1, 12, 12).expand(-1, 3, -1, -1)
    moved = augment(images, "crop_flip", make_generator(2))
    assert torch.equal(moved[:, 0], moved[:, 2])


def _literal_pixel(image: NDArray[np.float64], x: float, y: float) -> float:
    """Bilinear between the four pixel middles around a place in pixels; black outside."""
    height, width = image.shape
    left, top = math.floor(x - 0.5), math.floor(y - 0.5)
    found = 0.0
    for row in (top, top + 1):
        for column in (left, left + 1):
            if 0 <= row < height and 0 <= column < width:
                found += image[row, column] * (1 - abs(x - 0.5 - column)) * (1 - abs(y - 0.5 - row))
    return found


def test_augment__a_turned_crop_is_read_pixel_by_pixel() -> None:
    num, height, width = 12, 9, 12
    images = torch.rand(num, 2, height, width, generator=make_generator(5))
    draws = torch.rand((6, num), generator=make_generator(1)).double().tolist()
    moved = augment(images, "turn_crop_flip", make_generator(1))
    for at, (flip, turn, share, shape, across, down) in enumerate(zip(*draws, strict=True)):
        angle = math.radians(180 * (2 * turn - 1))
        area, ratio = 0.3 + 0.7 * share, (4 / 3) ** (2 * shape - 1)
        # The part in pixels of the turned image.
        wide, high = (min(1, math.sqrt(area * ratio)) * width, min(1, math.sqrt(area / ratio)) * height)
        left, top = across * (width - wide), down * (height - high)
        for row in range(height):
            for column in range(width):
                x = left + (column + 0.5) / width * wide - width / 2
                y = top + (row + 0.5) / height * high - height / 2
                x, y = math.cos(angle) * x - math.sin(angle) * y, math.sin(angle) * x + math.cos(angle) * y
                if flip < 0.5:
                    x = -x
                for channel in range(2):
                    wanted = _literal_pixel(
                        images[at, channel].double().numpy(), x + width / 2, y + height / 2
                    )
                    assert float(moved[at, channel, row, column]) == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("kind", ["shift", "shift_flip", "crop_flip", "turn_crop_flip"])
def test_augment__same_generator_same_result(kind: str) -> None:
    images = torch.rand(8, 1, 9, 9)
    assert torch.equal(augment(images, kind, make_generator(3)), augment(images, kind, make_generator(3)))
    assert not torch.equal(augment(images, kind, make_generator(3)), augment(images, kind, make_generator(4)))


@pytest.mark.parametrize("size", [(1, 1), (1, 5), (2, 3)])
@pytest.mark.parametrize("kind", ["crop_flip", "turn_crop_flip"])
def test_augment__tiny_images(size: tuple[int, int], kind: str) -> None:
    images = torch.rand(10, 1, *size)
    moved = augment(images, kind, make_generator(0))
    assert moved.shape == images.shape
    assert moved.isfinite().all()


def test_augment__none_and_unknown() -> None:
    images = torch.rand(2, 1, 4, 4)
    assert augment(images, "none", make_generator(0)) is images
    with pytest.raises(EngineInputError, match="there is no augmentation 'auto'; use none, shift"):
        augment(images, "auto", make_generator(0))


@settings(max_examples=50, deadline=None)
@given(num=st.integers(1, 60), batch_size=st.integers(2, 20), drop_last=st.booleans())
def test_epoch_batches__every_row_once_and_no_batch_of_one(
    num: int, batch_size: int, drop_last: bool
) -> None:
    index = torch.arange(100, 100 + num)
    batches = list(epoch_batches(index, batch_size, make_generator(0), drop_last=drop_last))
    rows = torch.cat(batches).tolist()
    assert len(set(rows)) == len(rows)
    if drop_last:
        assert len(rows) == max(num // batch_size * batch_size, min(num, batch_size))
    else:
        assert sorted(rows) == index.tolist()
    assert num == 1 or min(len(batch) for batch in batches) > 1
    assert max(len(batch) for batch in batches) <= batch_size + 1


def test_epoch_batches__order_is_the_generators() -> None:
    index = torch.arange(10)
    orders = [
        torch.cat(list(epoch_batches(index, 4, make_generator(1, epoch)))).tolist() for epoch in (0, 0, 1)
    ]
    assert orders[0] == orders[1] != orders[2]


def test_epoch_batches__nothing() -> None:
    assert sum(len(batch) for batch in epoch_batches(torch.arange(0), 4, make_generator(0))) == 0


@pytest.mark.parametrize("batch_size", [2, 3, 64])
@pytest.mark.parametrize("num_rows", [0, 1, 2, 3, 4, 5, 63, 64, 65, 66, 127, 128, 129])
def test_batches_per_epoch__counts_what_epoch_batches_gives(num_rows: int, batch_size: int) -> None:
    batches = list(epoch_batches(torch.arange(num_rows), batch_size, make_generator(0)))
    assert batches_per_epoch(num_rows, batch_size) == sum(len(batch) > 0 for batch in batches)


# --- Reduced images ---------------------------------------------------------------------------------------


def test_reduced_size__keeps_the_shape_and_never_enlarges() -> None:
    assert reduced_size((224, 224), 112) == (112, 112)
    assert reduced_size((100, 300), 150) == (50, 150)
    assert reduced_size((28, 28), 112) == (28, 28)
    assert reduced_size((1, 500), 100) == (1, 100)
    assert reduced_size((224, 224), None) == (224, 224)


def test_image_store__reduces_an_image_once_where_all_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    images = draw.integers(0, 256, (6, 3, 9, 7), dtype=np.uint8)
    asked = [torch.tensor(rows) for rows in ([4, 1, 4], [0, 4], [5, 5, 2, 3], list(range(6)))]
    kept = ImageStore(images, "cpu", side=4)
    monkeypatch.setattr(loader, "KEPT_BYTES", 6 * 3 * 4 * 3 - 1)
    each_time = ImageStore(images, "cpu", side=4)
    for index in asked:
        assert torch.equal(kept.raw(index), each_time.raw(index))
    images[:] = 0
    assert kept.raw(asked[-1]).any()
    assert not each_time.raw(asked[-1]).any()


@pytest.mark.parametrize("mapped", [False, True])
def test_image_store__reduced_pixels_are_means(tmp_path: Path, mapped: bool) -> None:
    images = np.zeros((3, 1, 4, 4), dtype=np.uint8)
    images[1, 0, :2, :2] = [[10, 20], [30, 41]]
    np.save(tmp_path / "images.npy", images)
    source = np.load(tmp_path / "images.npy", mmap_mode="r") if mapped else images
    store = ImageStore(source, "cpu", side=2)
    assert store.shape == (1, 2, 2)
    assert store.raw(torch.tensor([1])).tolist() == [[[[25, 0], [0, 0]]]]
    mean, _ = store.mean_std()
    assert float(mean) == pytest.approx(25 / 255 / 12)
