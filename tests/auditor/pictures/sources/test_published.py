"""Clothing1M and ISIC 2019: miniatures of their published layout, imported and written again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.catalog.records import Dataset, Sample
from auditor.ground.errors import ImportRefusedError
from auditor.importing.imports import import_dataset, preview
from auditor.outputs import export
from auditor.pictures import cache
from auditor.review import decisions

CLOTHES = ("T-Shirt", "Shirt", "Knitwear")


def write_images(paths: list[Path]) -> None:
    for seed, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(seed).integers(0, 255, (12, 12, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)


@pytest.fixture
def clothing(tmp_path: Path) -> Path:
    """Five images: 0 and 1 noisy alone, 2 noisy and clean (test), 3 and 4 clean alone (val)."""
    folder = tmp_path / "clothing1m"
    names = [f"images/{n}/{n}{n},{n}.jpg" for n in range(5)]
    write_images([folder / name for name in names])
    (folder / "category_names_eng.txt").write_text("\n".join(CLOTHES) + "\n")
    (folder / "noisy_label_kv.txt").write_text(f"{names[0]} 0\n{names[1]} 2\n{names[2]} 1\n")
    (folder / "clean_label_kv.txt").write_text(f"{names[2]} 0\n{names[3]} 2\n{names[4]} 1\n")
    (folder / "noisy_train_key_list.txt").write_text("\n".join(names[:2]))
    (folder / "clean_val_key_list.txt").write_text("\n".join(names[3:]))
    (folder / "clean_test_key_list.txt").write_text(names[2])
    return folder


@pytest.fixture
def isic(tmp_path: Path) -> Path:
    """Three images with one class each."""
    folder = tmp_path / "isic"
    names = ["ISIC_0000000", "ISIC_0000001", "ISIC_0000002_downsampled"]
    write_images([folder / "ISIC_2019_Training_Input" / f"{name}.jpg" for name in names])
    table = ["image,MEL,NV,UNK", *(f"{name},{cells}" for name, cells in zip(names, ROWS, strict=True))]
    (folder / "ISIC_2019_Training_GroundTruth.csv").write_text("\n".join(table) + "\n")
    about = "image,age_approx,sex\nISIC_0000001,55.0,female\n"
    (folder / "ISIC_2019_Training_Metadata.csv").write_text(about)
    return folder


ROWS = ("0.0,1.0,0.0", "1.0,0.0,0.0", "0.0,0.0,1.0")


def imported(source: Path) -> tuple[Dataset, list[Sample], list[int]]:
    found = import_dataset(source, name="mini", workers=1)
    with session() as open_session:
        dataset = datasets.by_id(open_session, found.dataset_id)
        truth = cache.true_labels(dataset)
        samples = list(datasets.iterate_samples(open_session, dataset.id))
    return dataset, samples, [] if truth is None else truth.tolist()


def test_import__clothing1m_has_noisy_labels_clean_truth_and_trusted_rows(home: Path, clothing: Path) -> None:
    dataset, samples, truth = imported(clothing)
    assert tuple(dataset.class_names) == CLOTHES
    assert [one.given_label for one in samples] == [0, 2, 1, 2, 1]
    assert truth == [-1, -1, 0, 2, 1]
    assert [one.trusted for one in samples] == [False, False, False, True, True]
    assert [one.split for one in samples] == ["train", "train", "test", "val", "val"]

    decisions.decide(dataset.id, 1, "relabel", label=0, reviewer="ann")
    decisions.decide(dataset.id, 0, "exclude", reviewer="ann")
    export.export("mini", home / "again", as_source=True)
    noisy = (home / "again" / "noisy_label_kv.txt").read_text()
    assert noisy == f"{samples[1].filepath} 0\n{samples[2].filepath} 1\n"


def test_import__isic2019_has_a_class_an_image_and_its_metadata(home: Path, isic: Path) -> None:
    dataset, samples, _ = imported(isic)
    assert [dataset.class_names[one.given_label] for one in samples] == ["NV", "MEL", "UNK"]
    assert [one.extra for one in samples][:2] == [
        {"age_approx": "", "sex": ""},
        {"age_approx": "55.0", "sex": "female"},
    ]
    decisions.decide(dataset.id, 2, "relabel", label=0, reviewer="ann")
    export.export("mini", home / "again", as_source=True)
    table = (home / "again" / "ISIC_2019_Training_GroundTruth.csv").read_text().splitlines()
    assert [line.partition(",")[2] for line in table[1:]] == [*ROWS[:2], "1.0,0.0,0.0"]


def test_import__a_damaged_layout_is_named_with_its_row(clothing: Path, isic: Path) -> None:
    (clothing / "noisy_label_kv.txt").write_text("images/0/00,0.jpg 7\n")
    (wrong, *_) = preview(clothing).problems
    assert (wrong.file, wrong.row) == ("noisy_label_kv.txt", 1)
    assert "'7', which is no line of category_names_eng.txt" in wrong.text
    labels = isic / "ISIC_2019_Training_GroundTruth.csv"
    labels.write_text(labels.read_text().replace(ROWS[1], "1.0,1.0,0.0"))
    (wrong,) = preview(isic).problems
    assert (wrong.file, wrong.row) == (labels.name, 3)
    assert "several classes (MEL, NV)" in wrong.text
    (clothing / "category_names_eng.txt").unlink()
    with pytest.raises(ImportRefusedError, match="category_names_eng.txt cannot be read"):
        preview(clothing)
