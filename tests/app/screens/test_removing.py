"""What a removed dataset takes with it: its upload, and nothing that another one needs."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from PIL import Image

from app.session import allowed
from auditor import api
from auditor.catalog.records import Dataset
from auditor.importing import imports


@pytest.fixture
def upload(home: Path, tmp_path: Path) -> str:
    """A zip of two classes, as a browser sent it."""
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as packed:
        for number in range(4):
            picture = tmp_path / f"{number}.png"
            Image.new("L", (16, 16), 60 * number).save(picture)
            packed.write(picture, f"{'cat' if number % 2 else 'dog'}/{number}.png")
    with (tmp_path / "set.zip").open("rb") as stream:
        return str(allowed.keep_upload("set.zip", stream, (tmp_path / "set.zip").stat().st_size))


def imported(source: str | Path, name: str) -> Dataset:
    imports.import_dataset(source, name=name, workers=1)
    return api.Dataset(name).table


def test_remove__an_upload_goes_with_the_last_dataset_that_was_made_of_it(upload: str, home: Path) -> None:
    imported(upload, "first")
    imported(upload, "second")
    api.remove("first")
    assert Path(upload).exists()
    api.remove("second")
    assert list((home / "uploads").iterdir()) == []


def test_remove__a_source_of_the_users_own_stays(upload: str, home: Path, tmp_path: Path) -> None:
    imported(tmp_path / "set.zip", "own")
    api.remove("own")
    assert (tmp_path / "set.zip").exists()
    assert Path(upload).exists()
