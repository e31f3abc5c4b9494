"""Both forms of rows: what a batch, a random view, the test-time views and the statistics are."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engines.contract import EngineInputError, TrainingData
from engines.shared.loader import ImageStore, standardize
from engines.shared.rows import FEATURES_SCORED, FeatureRows, Rows, open_rows
from tests.engines.helpers import digits, features_of

INDEX = torch.tensor([4, 0, 4, 2])


@pytest.fixture
def features() -> NDArray[np.float16]:
    """(7, 3, 5) float16, every value another one."""
    return np.arange(7 * 3 * 5, dtype=np.float16).reshape(7, 3, 5)


def first_view(rows: Rows) -> torch.Tensor:
    return next(iter(rows.views(torch.arange(len(rows)), 6, None)))


@pytest.mark.parametrize("form", ["images", "features"])
def test_open_rows__both_forms_keep_the_protocol(form: str) -> None:
    images, _ = digits(9)
    inputs = images if form == "images" else features_of(images)
    rows = open_rows(inputs, "cpu")
    assert isinstance(rows, ImageStore if form == "images" else FeatureRows)
    assert len(rows) == rows.num_samples == 9
    assert rows.shape == ((1, 8, 8) if form == "images" else (64,))
    batch = rows.batch(INDEX)
    assert batch.shape == (4, *rows.shape)
    assert batch.dtype == torch.float32
    torch.testing.assert_close(batch, first_view(rows)[INDEX], rtol=0, atol=0)
    mean_std = rows.mean_std()
    (scaled,) = rows.views(INDEX, 1, mean_std)
    torch.testing.assert_close(scaled, standardize(batch, *mean_std))
    still = rows.moved(INDEX, "none", torch.Generator())
    torch.testing.assert_close(still, batch, rtol=0, atol=0)
    assert all(view.shape == batch.shape for view in rows.views(INDEX, 3, mean_std))
    assert len(list(rows.views(INDEX, 3, mean_std))) == 3


def test_batch__is_the_first_view(features: NDArray[np.float16]) -> None:
    batch = FeatureRows(features, "cpu").batch(INDEX)
    np.testing.assert_array_equal(batch.numpy(), features[[4, 0, 4, 2], 0].astype(np.float32))


def test_batch__writing_to_it_leaves_the_features_alone(features: NDArray[np.float16]) -> None:
    values = features.astype(np.float32)
    rows = FeatureRows(values, "cpu")
    rows.batch(INDEX).zero_()
    np.testing.assert_array_equal(values, features)


def test_views__all_where_fewer_are_there_than_asked_for(features: NDArray[np.float16]) -> None:
    rows = FeatureRows(features, "cpu")
    found = [view.numpy() for view in rows.views(INDEX, 6, None)]
    np.testing.assert_array_equal(found, features[[4, 0, 4, 2]].transpose(1, 0, 2).astype(np.float32))
    assert len(list(rows.views(INDEX, 2, None))) == 2


def test_moved__draws_a_view_for_each_sample(features: NDArray[np.float16]) -> None:
    rows = FeatureRows(features, "cpu")
    index = torch.zeros(300, dtype=torch.int64)
    index[150:] = 6
    moved = rows.moved(index, "view", torch.Generator().manual_seed(1)).numpy()
    for sample, part in ((0, moved[:150]), (6, moved[150:])):
        drawn = (part[:, None] == features[sample].astype(np.float32)).all(axis=2)
        assert (drawn.sum(axis=1) == 1).all()  # one whole view of this very sample
        assert (drawn.mean(axis=0) > 0.2).all()  # each of the three in its turn
    again = rows.moved(index, "view", torch.Generator().manual_seed(1)).numpy()
    np.testing.assert_array_equal(moved, again)


def test_resolve_augment__a_random_view_only_where_there_are_several(features: NDArray[np.float16]) -> None:
    assert FeatureRows(features, "cpu").resolve_augment("auto") == "view"
    assert FeatureRows(features, "cpu").resolve_augment("none") == "none"
    assert FeatureRows(features[:, :1], "cpu").resolve_augment("auto") == "none"
    with pytest.raises(EngineInputError, match="'crop_flip' moves the pixels of images"):
        FeatureRows(features, "cpu").resolve_augment("crop_flip")


def test_mean_std__over_samples_and_views() -> None:
    features = np.random.default_rng(0).normal(3, 2, (500, 2, 4)).astype(np.float32)
    mean, std = FeatureRows(features, "cpu").mean_std()
    np.testing.assert_allclose(mean.numpy(), features.mean(axis=(0, 1)), rtol=1e-5)
    spread = (features - features.mean(axis=(0, 1))).std()
    np.testing.assert_allclose(std.numpy(), np.full(4, spread), rtol=1e-5)


def test_mean_std__constant_and_nearly_constant_values_stay_small() -> None:
    features = np.random.default_rng(0).normal(0, 1, (400, 1, 3)).astype(np.float32)
    features[:, :, 1] = 5.0
    features[:, :, 2] = 0.0
    features[7, :, 2] = 0.01
    rows = FeatureRows(features, "cpu")
    (scaled,) = rows.views(torch.arange(400), 1, rows.mean_std())
    assert (scaled[:, 1] == 0).all()
    assert float(scaled[:, 2].abs().max()) < 5
    constant = FeatureRows(np.full((4, 2, 3), 2.0, dtype=np.float32), "cpu")
    (scaled,) = constant.views(torch.arange(4), 1, constant.mean_std())
    assert (scaled == 0).all()


def test_feature_rows__a_memory_map_is_never_read_as_a_whole(tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.zeros((200_000, 1, 128), dtype=np.float16))
    labels = np.arange(200_000) % 3
    tracemalloc.start()
    features = np.load(tmp_path / "features.npy", mmap_mode="r")
    data = TrainingData(None, labels, 3, np.zeros(200_000, dtype=bool), features=features)
    rows = open_rows(data.inputs, "cpu")
    rows.mean_std()
    rows.batch(torch.arange(FEATURES_SCORED))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not rows.is_resident  # type: ignore[attr-defined]
    assert peak < features.nbytes / 2


def test_feature_rows__resident_reads_the_map_once(tmp_path: Path, features: NDArray[np.float16]) -> None:
    np.save(tmp_path / "features.npy", features)
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    streamed, resident = FeatureRows(mapped, "cpu"), FeatureRows(mapped, "cpu", resident="yes")
    assert (streamed.is_resident, resident.is_resident) == (False, True)
    torch.testing.assert_close(streamed.batch(INDEX), resident.batch(INDEX), rtol=0, atol=0)


def test_open_rows__features_stay_where_they_are_told_to() -> None:
    features = np.zeros((6, 2, 3), dtype=np.float16)
    kept = [open_rows(features, "cpu", resident=resident) for resident in ("yes", "no")]
    assert [isinstance(one, FeatureRows) and one.is_resident for one in kept] == [True, False]
