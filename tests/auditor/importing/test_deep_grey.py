"""Pictures of more than 8 bits: one scale for a set, which stays with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from auditor.catalog import reading
from auditor.ground.errors import ImportRefusedError
from auditor.importing.imports import import_dataset
from auditor.pictures import cache


def _write(folder: Path) -> Path:
    """Two classes of 12-bit ramps, those of b twice as bright."""
    for name, share in (("a", 0.5), ("b", 1.0)):
        (folder / name).mkdir(parents=True)
        for number in range(2):
            ramp = np.linspace(number, 4095 * share, 64 * 16).reshape(16, 64)
            Image.fromarray(ramp.astype(np.uint16)).save(folder / name / f"{number}.png")
    return folder


def test_import__deep_grey_has_one_scale_that_is_said_and_kept(home: Path, tmp_path: Path) -> None:
    report = import_dataset(_write(tmp_path / "set"), name="deep", image_size=64, workers=1)
    assert report.levels is not None
    low, high = report.levels
    assert 0 <= low < 50
    assert 4050 < high <= 4095
    assert f"grey {low:g} to {high:g} is shown as black to white" in " ".join(report.notes)
    dataset = reading.dataset("deep")
    images = cache.image_cache(dataset)[:, 0, 24:40]  # the ramps without what fills up their squares
    assert images[:2].max() in range(124, 132)  # half as bright is shown half as bright
    assert images[2:].max() >= 254
    assert min(len(np.unique(image)) for image in images) > 60
    for sample in reading.samples(dataset.id):  # a picture that is decoded again is found to be the same
        assert cache.original_bytes(dataset, sample)
        shown = cache.picture_of(dataset.root, sample.location, 64, cache.levels_of(dataset))
        (tmp_path / "shown.png").write_bytes(shown)
        ours = np.asarray(Image.open(tmp_path / "shown.png")).astype(int)
        assert np.abs(ours - images[sample.sample_id]).max() <= 1


def test_import__a_range_that_is_said_is_used(home: Path, tmp_path: Path) -> None:
    import_dataset(_write(tmp_path / "set"), name="deep", levels=(0, 65_535), workers=1)
    dataset = reading.dataset("deep")
    assert cache.levels_of(dataset) == (0, 65_535)
    assert cache.image_cache(dataset).max() == 16
    with pytest.raises(ImportRefusedError, match="The range 5 to 5 is none"):
        import_dataset(tmp_path / "set", name="none", levels=(5, 5))


def test_import__eight_bits_have_no_scale(home: Path, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        Image.fromarray(np.full((8, 8), ord(name), np.uint8)).save(tmp_path / name / "1.png")
    report = import_dataset(tmp_path, name="plain", workers=1)
    assert report.levels is None
    assert cache.image_cache(reading.dataset("plain")).max() == ord("b")


def test_import__a_set_of_several_scales_is_named(home: Path, tmp_path: Path) -> None:
    source = _write(tmp_path / "set")
    for number in range(2):
        shares = np.linspace(-1, 1, 256, dtype=np.float32).reshape(16, 16)
        Image.fromarray(shares).save(source / "a" / f"share{number}.tif")
    report = import_dataset(source, name="mixed", workers=1)
    assert "2 of 6 images looked at keep fewer than 16 grey levels" in " ".join(report.notes)
    plain = import_dataset(_write(tmp_path / "one"), name="one", workers=1)
    assert "looked at keep" not in " ".join(plain.notes)
