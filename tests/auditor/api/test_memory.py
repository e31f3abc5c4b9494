"""Datasets from what is in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits

import auditor
from auditor.api import remove
from auditor.ground.errors import ImportRefusedError
from auditor.ground.settings import settings
from auditor.pictures import cache

pytestmark = pytest.mark.usefixtures("home")
SMALL: dict[str, Any] = {"image_size": 8, "workers": 1}
GREY = (load_digits().images[:12] * 15).astype(np.uint8)
LABELS = load_digits().target[:12]


def cached(dataset: auditor.Dataset) -> Any:
    return np.asarray(cache.image_cache(dataset.table))


@pytest.mark.parametrize(
    "images",
    [GREY, GREY[..., None], GREY[:, None], GREY / 255.0, [Image.fromarray(one) for one in GREY]],
    ids=["nhw", "nhwc", "nchw", "floats", "pillow"],
)
def test_from_arrays__every_layout_is_the_same_image(images: Any) -> None:
    dataset = auditor.from_arrays(images, LABELS, name="digits", **SMALL)
    assert dataset.class_names == [str(i) for i in range(10)]
    assert dataset.samples().given_label.tolist() == [str(label) for label in LABELS]
    np.testing.assert_array_equal(cached(dataset)[:, 0], GREY)


def test_from_arrays__names_unlabeled_and_splits() -> None:
    names = [f"digit {i}" for i in range(10)]
    labels = [None, -1, float("nan"), *LABELS[3:]]
    splits = ["train"] * 8 + ["test"] * 4
    dataset = auditor.from_arrays(GREY, labels, name="d", class_names=names, splits=splits, **SMALL)
    table = dataset.samples()
    assert table.given_label.isna().tolist() == [True] * 3 + [False] * 9
    assert table.given_label[3] == "digit 3"
    assert table.split.tolist() == splits


@pytest.mark.parametrize(
    ("images", "labels", "text"),
    [
        (GREY, LABELS[:5], "differ in number"),
        (GREY[:5], LABELS, "differ in number"),
        (GREY / 255.0 - 0.5, LABELS, r"images\[0\] has values from -0.5 to .* before normalisation"),
        (np.zeros((12, 5)), LABELS, r"images\[0\] has the shape \(5,\)"),
        (GREY, [*LABELS[:11], 1.5], r"labels\[11\] is 1.5; give class names or whole numbers"),
    ],
)
def test_from_arrays__refuses_in_one_line_and_leaves_nothing(images: Any, labels: Any, text: str) -> None:
    with pytest.raises(ImportRefusedError, match=text):
        auditor.from_arrays(images, labels, name="d", **SMALL)
    assert auditor.datasets().empty
    assert not list(settings().uploads.glob("*"))


def test_from_arrays__class_outside_the_names() -> None:
    with pytest.raises(ImportRefusedError, match=r"labels\[2\] is 2, outside the 2 class_names"):
        auditor.from_arrays(GREY, LABELS, name="d", class_names=["a", "b"], **SMALL)


def test_remove__takes_the_kept_images_along() -> None:
    auditor.from_arrays(GREY, LABELS, name="d", **SMALL)
    assert len(list(settings().uploads.glob("*"))) == 1
    remove("d")
    assert not list(settings().uploads.glob("*"))


def test_from_torch__a_dataset_with_classes() -> None:
    torch = pytest.importorskip("torch")
    images = torch.from_numpy(GREY)[:, None].float() / 255
    tensors = torch.utils.data.TensorDataset(images, torch.from_numpy(LABELS))
    tensors.classes = [f"digit {i}" for i in range(10)]
    dataset = auditor.from_torch(tensors, name="t", **SMALL)
    assert dataset.samples().given_label.tolist() == [f"digit {label}" for label in LABELS]
    np.testing.assert_array_equal(cached(dataset)[:, 0], GREY)


def test_from_huggingface__splits_and_class_label(tmp_path: Path) -> None:
    hub = pytest.importorskip("datasets")
    features = hub.Features(
        {
            "image": hub.Image(),
            "label": hub.ClassLabel(names=[f"d{i}" for i in range(10)]),
            "boxes": hub.List(hub.Value("float32")),
        }
    )

    def part(rows: slice) -> Any:
        columns = {"image": [Image.fromarray(one) for one in GREY[rows]], "label": LABELS[rows].tolist()}
        columns["boxes"] = [[float(label)] for label in LABELS[rows]]
        return hub.Dataset.from_dict(columns, features=features)

    both = hub.DatasetDict({"train": part(slice(0, 8)), "test": part(slice(8, 12))})
    dataset = auditor.from_huggingface(both, name="h", **SMALL)
    table = dataset.samples()
    assert table.given_label.tolist() == [f"d{label}" for label in LABELS]
    assert table.split.tolist() == ["train"] * 8 + ["test"] * 4
    np.testing.assert_array_equal(cached(dataset)[:, 0], GREY)
    dataset.review(9, "relabel", "d0", reviewer="ada")
    dataset.review(1, "exclude", reviewer="ada")
    dataset.export(tmp_path / "cleaned", as_source=True)
    read = hub.load_from_disk(tmp_path / "cleaned")
    assert read["train"].features == features
    assert read["train"]["boxes"][:] == [[float(label)] for i, label in enumerate(LABELS[:8]) if i != 1]
    assert read["test"]["label"][:] == [LABELS[8], 0, *LABELS[10:]]
    with pytest.raises(ImportRefusedError, match="no column 'img', it has image, label"):
        auditor.from_huggingface(both, name="x", image_column="img")


def test_from_dataframe__keeps_the_columns(tmp_path: Path) -> None:
    for i, one in enumerate(GREY):
        Image.fromarray(one).save(tmp_path / f"{i}.png")
    frame = pd.DataFrame({"file": [f"{i}.png" for i in range(12)], "what": LABELS, "camera": ["a", "b"] * 6})
    dataset = auditor.from_dataframe(
        frame, name="f", path_column="file", label_column="what", root=tmp_path, **SMALL
    )
    assert dataset.samples().camera.tolist() == ["a", "b"] * 6
    np.testing.assert_array_equal(cached(dataset)[:, 0], GREY)
