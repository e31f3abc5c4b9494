"""The real image sets that benchmarks run on, read from Parquet files in the layout of Hugging Face ``datasets``.

The folder is ``AUDITOR_SHARED_DATA`` (default: ``../shared/data`` beside the checkout) and holds
``mnist-train.parquet`` and ``cifar10-train.parquet`` with the columns ``image`` {bytes, path} and ``label``;
for CIFAR-10 also ``label_aggre`` and ``label_random1``, what human annotators gave (CIFAR-10N).
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

DEFAULT = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


def folder() -> Path:
    """Where the Parquet files lie.

    Raises:
        FileNotFoundError: they are not there; the text names the variable to set.
    """
    place = Path(os.environ.get("AUDITOR_SHARED_DATA", DEFAULT))
    if not (place / "mnist-train.parquet").exists():
        raise FileNotFoundError(f"{place} has no mnist-train.parquet; set AUDITOR_SHARED_DATA to its folder.")
    return place


def load(name: str, *, rows: int | None = None, seed: int = 0) -> tuple[NDArray[np.uint8], pd.DataFrame]:
    """Images (N, C, H, W) uint8 and the label columns of ``mnist-train``, ``cifar10-test``, ...

    ``rows``: a random subset of that size, drawn with ``seed`` and kept in the file's order.
    """
    table = pd.read_parquet(folder() / f"{name}.parquet")
    if rows is not None and rows < len(table):
        chosen = np.sort(np.random.default_rng(seed).choice(len(table), rows, replace=False))
        table = table.iloc[chosen].reset_index(drop=True)
    arrays = [np.asarray(Image.open(io.BytesIO(image["bytes"]))) for image in table["image"]]
    stacked = np.stack(arrays)
    images = stacked[:, None] if stacked.ndim == 3 else stacked.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(images, dtype=np.uint8), table.drop(columns="image")
