"""Pictures of a registered dataset: cache, originals, thumbnails, files."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image

from auditor.catalog import datasets, db
from auditor.catalog.records import Dataset, Sample
from auditor.ground.errors import NotFoundError
from auditor.importing.imports import import_dataset
from auditor.pictures import cache as images
from tests.auditor.sample_pictures import digits, encoded, write_folder, write_parquet, zip_folder

pytestmark = pytest.mark.usefixtures("home")


def imported(source: Path) -> tuple[Dataset, list[Sample]]:
    import_dataset(source, name="a")
    with db.session() as session:
        dataset = datasets.get(session, "a")
        return dataset, list(datasets.iterate_samples(session, dataset.id))


def pixels_of(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)))


def test_image_cache__is_read_only_and_mapped(tmp_path: Path) -> None:
    dataset, _ = imported(write_folder(tmp_path / "set", 10))
    cache = images.image_cache(dataset)
    assert isinstance(cache, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        cache[0] = 0


def test_image_cache__missing_or_wrong_file_is_explained(tmp_path: Path) -> None:
    dataset, _ = imported(write_folder(tmp_path / "set", 10))
    path = next(images.folder(dataset).glob("images_*.npy"))
    np.save(path, np.zeros((3, 1, 16, 16), np.uint8))
    with pytest.raises(NotFoundError, match=r"holds \(3, 1, 16, 16\) uint8.*import 'a' again"):
        images.image_cache(dataset)
    path.unlink()
    with pytest.raises(NotFoundError, match=r"cannot be read .*import 'a' again"):
        images.image_cache(dataset)


def test_image_cache__never_unpickles(tmp_path: Path) -> None:
    dataset, _ = imported(write_folder(tmp_path / "set", 10))
    path = next(images.folder(dataset).glob("images_*.npy"))
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(NotFoundError, match="cannot be read"):
        images.image_cache(dataset)


def test_thumbnail__enlarges_nothing_and_small_ones_keep_every_pixel(tmp_path: Path) -> None:
    dataset, samples = imported(write_folder(tmp_path / "set", 10))
    cache = images.image_cache(dataset)
    found = pixels_of(images.thumbnail(dataset, samples[4], 70))
    assert np.array_equal(found, cache[4, 0])
    assert pixels_of(images.thumbnail(dataset, samples[4], 8)).shape == (8, 8)


@pytest.mark.parametrize(("size", "kind"), [(64, "image/png"), (65, "image/jpeg"), (1024, "image/jpeg")])
def test_encoded__a_photograph_is_small_and_looks_the_same(size: int, kind: str) -> None:
    photo = Image.fromarray(load_sample_image("china.jpg"))
    shown = photo.copy()
    shown.thumbnail((size, size))
    found = images.encoded(photo.copy(), size)
    assert images.media_type(found) == kind
    error = np.abs(pixels_of(found).astype(int) - np.asarray(shown).astype(int))
    assert error.mean() < 5
    assert size <= 64 or len(found) < np.asarray(shown).nbytes / 4


@pytest.mark.parametrize("kind", ["folder", "zip", "parquet"])
def test_extracted_path__is_a_real_file_with_the_users_bytes(tmp_path: Path, kind: str) -> None:
    folder = write_folder(tmp_path / "set", 10)
    source = {
        "folder": lambda: folder,
        "zip": lambda: zip_folder(folder, tmp_path / "s.zip"),
        "parquet": lambda: write_parquet(tmp_path / "p.parquet", 10),
    }[kind]()
    dataset, samples = imported(source)
    for sample in samples:
        path = images.extracted_path(dataset, sample)
        assert path.read_bytes() == encoded(digits(10)[0][int(Path(sample.filepath).stem)])
        assert path.suffix == ".png"
        assert images.extracted_path(dataset, sample) == path
        assert path.is_relative_to(folder if kind == "folder" else images.folder(dataset))
    assert not list(images.folder(dataset).rglob(".writing-*"))


def test_original_bytes__source_that_is_gone_is_explained(tmp_path: Path) -> None:
    dataset, samples = imported(write_folder(tmp_path / "set", 10))
    (tmp_path / "set" / samples[0].location).unlink()
    with pytest.raises(NotFoundError, match=r"0/0000\.png of 'a' cannot be read .*`auditor move a FOLDER`"):
        images.original_bytes(dataset, samples[0])


def test_original_bytes__root_may_be_moved(tmp_path: Path) -> None:
    _, samples = imported(write_folder(tmp_path / "set", 10))
    (tmp_path / "set").rename(tmp_path / "elsewhere")
    moved = images.move_root("a", tmp_path / "elsewhere")
    assert (
        images.original_bytes(moved, samples[3])
        == (tmp_path / "elsewhere" / samples[3].location).read_bytes()
    )
    with pytest.raises(NotFoundError, match=r"does not hold the images of 'a'"):
        images.move_root("a", tmp_path)
    with db.session() as session:
        assert datasets.get(session, "a").root == str(tmp_path / "elsewhere")


def test_original_bytes__a_root_that_is_gone_is_no_damaged_zip(tmp_path: Path) -> None:
    dataset, samples = imported(write_folder(tmp_path / "set", 10))
    (tmp_path / "set").rename(tmp_path / "elsewhere")
    message = r"^0/0000\.png of 'a' cannot be read because its root .+ \(root: .*`auditor move a FOLDER`"
    with pytest.raises(NotFoundError, match=message):
        images.original_bytes(dataset, samples[0])
    images.move_root("a", tmp_path / "elsewhere")
    moved = dataclasses.replace(dataset, root=str(tmp_path / "elsewhere"))
    assert images.original_bytes(moved, samples[0])
