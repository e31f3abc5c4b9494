"""Features kept beside the image cache: resumed, told apart by what made them, and a user's own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import timm
import torch

from auditor.backbones import features
from auditor.ground.errors import AuditFailedError, ImportRefusedError, NotFoundError

NAME = "timm:mobilenetv3_small_050"
DATASET = 3


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(features, "CHUNK", 8)
    return tmp_path / "home"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    path = tmp_path / "images.npy"
    np.save(path, np.random.default_rng(0).integers(0, 256, (30, 3, 20, 24), dtype=np.uint8))
    return path


def make_weights(folder: Path, seed: int = 0) -> Path:
    torch.manual_seed(seed)
    path = folder / f"weights{seed}.safetensors"
    safetensors.torch.save_file(timm.create_model(NAME.removeprefix("timm:")).state_dict(), path)
    return path


class KilledError(Exception):
    pass


def test_embed__goes_on_where_it_was_stopped(tmp_path: Path, images: Path) -> None:
    source = features.of_backbone(NAME, make_weights(tmp_path), side=32, views=2)
    seen: list[int] = []

    def stop(done: int, num_rows: int) -> None:
        assert num_rows == 30
        seen.append(done)
        if len(seen) == 2:
            raise KilledError

    with pytest.raises(KilledError):
        features.embed(DATASET, images, source, device="cpu", workers=1, on_rows=stop)
    assert seen == [8, 16]
    assert not features.is_complete(DATASET, source)
    with pytest.raises(NotFoundError, match="not complete"):
        features.load(DATASET, source)
    half = np.load(features.folder(DATASET, source) / "features.npy")
    assert half[:16].any(axis=(1, 2)).all()
    assert not half[16:].any()
    # What is done is not computed again: it would overwrite this mark.
    marked = np.load(features.folder(DATASET, source) / "features.npy", mmap_mode="r+")
    marked[3] = 7.0
    marked.flush()
    again: list[int] = []
    found = features.embed(
        DATASET, images, source, device="cpu", workers=1, on_rows=lambda done, _: again.append(done)
    )
    assert again == [24, 30]
    assert (found[3] == 7.0).all()
    assert np.array_equal(found[:3], half[:3])
    assert found[16:].any(axis=(1, 2)).all()
    assert features.is_complete(DATASET, source)


def test_embed__two_threads_find_what_one_finds_and_leave_what_is_done_alone(
    tmp_path: Path, images: Path
) -> None:
    source = features.of_backbone(NAME, make_weights(tmp_path), side=32, views=2)
    expected = np.array(features.embed(DATASET, images, source, device="cpu", workers=1))
    place = features.folder(DATASET, source)
    np.save(place / "done.npy", np.array([True, False, False, True]))
    kept = np.load(place / "features.npy", mmap_mode="r+")
    kept[:] = 0
    kept.flush()
    seen: list[int] = []
    found = features.embed(
        DATASET, images, source, device="cpu", workers=2, on_rows=lambda done, _: seen.append(done)
    )
    assert seen == [22, 30]
    np.testing.assert_array_equal(found[8:24], expected[8:24])
    assert not found[:8].any()
    assert not found[24:].any()


def test_embed__every_cause_has_its_own_folder(tmp_path: Path, images: Path) -> None:
    first, second = make_weights(tmp_path, 0), make_weights(tmp_path, 1)
    sources = [
        features.of_backbone(NAME, first, side=32, views=1),
        features.of_backbone(NAME, second, side=32, views=1),
        features.of_backbone(NAME, first, side=64, views=1),
        features.of_backbone(NAME, first, side=32, views=2),
    ]
    assert len({source.key for source in sources}) == 4
    found = [features.embed(DATASET, images, source, device="cpu", workers=1) for source in sources[:2]]
    assert not np.array_equal(found[0], found[1])


def test_embed__refuses_weights_that_changed_since(tmp_path: Path, images: Path) -> None:
    path = make_weights(tmp_path)
    source = features.of_backbone(NAME, path, side=32)
    path.write_bytes(make_weights(tmp_path, 1).read_bytes())
    with pytest.raises(NotFoundError, match="is not the file"):
        features.embed(DATASET, images, source, device="cpu", workers=1)


def test_of_backbone__refuses_what_there_is_not(tmp_path: Path) -> None:
    path = make_weights(tmp_path)
    with pytest.raises(AuditFailedError, match="1 to 6"):
        features.of_backbone(NAME, path, views=9)
    with pytest.raises(AuditFailedError, match=r"none\.pth"):
        features.of_backbone(NAME, tmp_path / "none.pth")


@pytest.mark.parametrize("damage", [b"", b"x" * 40])
def test_load__a_damaged_file_is_named(tmp_path: Path, images: Path, damage: bytes) -> None:
    source = features.of_backbone(NAME, make_weights(tmp_path), side=32, views=1)
    features.embed(DATASET, images, source, device="cpu", workers=1)
    (features.folder(DATASET, source) / "features.npy").write_bytes(damage)
    with pytest.raises(NotFoundError, match=r"features\.npy"):
        features.load(DATASET, source)
    (features.folder(DATASET, source) / "done.npy").write_bytes(damage)
    assert not features.is_complete(DATASET, source)


def test_add_own__array_and_file(tmp_path: Path) -> None:
    array = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    source = features.add_own(DATASET, 30, array, name="mine")
    np.testing.assert_array_equal(features.load(DATASET, source)[:, 0], array)
    np.save(tmp_path / "f.npy", array[:, None].astype(np.float16))
    other = features.add_own(DATASET, 30, tmp_path / "f.npy", name="mine")
    assert features.load(DATASET, other).dtype == np.float16
    assert features.load(DATASET, features.add_own(DATASET, 30, array, name="mine")).shape == (30, 1, 5)
    assert not list(features.folder(DATASET, source).parent.glob(".own*"))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((29, 5)), "30 samples"),
        (np.zeros(30), "30 samples"),
        (np.zeros((30, 0)), "30 samples"),
        (np.full((30, 2), "a"), "numbers"),
        (np.where(np.arange(60).reshape(30, 2) == 9, np.nan, 0.0), "row 4"),
        (np.full((30, 2), 1e300), "row 0"),
    ],
)
def test_add_own__refuses_with_the_row(array: np.ndarray, message: str) -> None:
    with pytest.raises(ImportRefusedError, match=message), np.errstate(over="ignore"):
        features.add_own(DATASET, 30, array, name="mine")


def test_add_own__a_file_that_is_no_array(tmp_path: Path) -> None:
    path = tmp_path / "f.npy"
    path.write_bytes(b"no array")
    with pytest.raises(ImportRefusedError, match=r"f\.npy"):
        features.add_own(DATASET, 30, path, name="mine")


def test_several__stand_side_by_side_on_one_scale(
    tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [
        features.of_backbone(NAME, make_weights(tmp_path, seed), side=side, views=2)
        for seed, side in ((0, 32), (1, 40))
    ]
    found = iter(parts)
    monkeypatch.setattr(features, "choose", lambda *_, **__: next(found))
    both = features._side_by_side("timm:a, timm:b", None, None, 2)
    assert features.FeatureSource.of_dict(json.loads(json.dumps(both.as_dict()))) == both
    tables = [features.embed(DATASET, images, part, device="cpu", workers=1) for part in both.each]
    monkeypatch.setattr(features, "JOINED", 7)
    features.join(DATASET, both)
    joined = features.load(DATASET, both).astype(np.float64)
    expected = np.concatenate([table / table.std(dtype=np.float64) for table in tables], axis=2)
    np.testing.assert_allclose(joined, expected, atol=2e-3)
    assert features.embedding_seconds(DATASET, 30, (3, 20, 24), both, "cpu") == (0.0, joined.shape[2])
    features.check_weights(both)
    Path(str(parts[1].weights)).write_bytes(b"")
    with pytest.raises(NotFoundError, match="weights1.safetensors is not the file"):
        features.check_weights(both)


@pytest.mark.parametrize(
    ("names", "file", "text"),
    [("timm:a,none", None, "stands alone"), ("timm:a,timm:b", Path("w"), "cannot serve")],
)
def test_several__are_named_and_have_weights_of_their_own(names: str, file: Path | None, text: str) -> None:
    with pytest.raises(AuditFailedError, match=text):
        features.choose(names, file)
