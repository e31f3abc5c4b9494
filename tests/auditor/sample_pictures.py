"""Real pictures (scikit-learn's digits) written the ways in which users keep them."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from sklearn.datasets import load_digits

SIDE = 16


def digits(count: int) -> tuple[np.ndarray, list[str]]:
    """(count, 16, 16) uint8 handwritten digits and their labels as text."""
    bunch = load_digits()
    images = np.kron(bunch.images[:count] / 16 * 255, np.ones((2, 2))).astype(np.uint8)
    return images, [str(label) for label in bunch.target[:count]]


def encoded(pixels: np.ndarray, kind: str = "PNG", **options: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind, **options)
    return stream.getvalue()


def photo(seed: int, height: int = 60, width: int = 40) -> np.ndarray:
    """(height, width, 3) uint8 smooth random colours: a picture with a hash of its own."""
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 5, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


def write_folder(root: Path, count: int = 30) -> Path:
    for number, (image, label) in enumerate(zip(*digits(count), strict=True)):
        (root / label).mkdir(parents=True, exist_ok=True)
        (root / label / f"{number:04d}.png").write_bytes(encoded(image))
    return root


def write_images(root: Path, count: int = 30) -> list[tuple[str, str]]:
    """All images in one folder; returns (path, label)."""
    (root / "images").mkdir(parents=True)
    rows = []
    for number, (image, label) in enumerate(zip(*digits(count), strict=True)):
        (root / "images" / f"{number:04d}.png").write_bytes(encoded(image))
        rows.append((f"images/{number:04d}.png", label))
    return rows


def write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[str]], separator: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=separator).writerows([header, *rows])
    return path


def write_parquet(
    path: Path, count: int = 30, *, names: list[str] | None = None, hugging_face: bool = False, **columns: Any
) -> Path:
    images, labels = digits(count)
    table = {
        "image": [
            {"bytes": encoded(image), "path": f"train/{number}.png"} for number, image in enumerate(images)
        ],
        "label": [int(label) for label in labels],
        **columns,
    }
    metadata = {}
    if names is not None and hugging_face:
        features = {"label": {"names": names, "_type": "ClassLabel"}, "image": {"_type": "Image"}}
        metadata[b"huggingface"] = json.dumps({"info": {"features": features}}).encode()
    elif names is not None:
        metadata[b"classes"] = ",".join(names).encode()
    pq.write_table(pa.table(table).replace_schema_metadata(metadata), path, row_group_size=7)
    return path


def zip_folder(folder: Path, archive: Path, wrap: str = "") -> Path:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                packed.write(path, wrap + str(path.relative_to(folder)))
    return archive
