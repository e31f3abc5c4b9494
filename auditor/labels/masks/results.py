"""The masks of a dataset as its cache holds them, and what an audit left about them on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.catalog.records import Audit, Dataset
from auditor.ground.files import load_array
from auditor.pictures import cache
from auditor.pictures.masks import cache_name
from auditor.results import arrays

TOGETHER = "masks"
"""In place of an engine's name: what all engines say together."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What an audit says about every mask; N images of S x S pixels, K classes; memory maps."""

    suggested: NDArray[np.uint8]
    """(N, S, S) the given class where nothing is suggested."""
    doubt: NDArray[np.uint8]
    """(N, S, S) 255 times how likely the pixel's region is wrong."""
    class_trust: NDArray[np.float32]
    """(N, K) NaN where a class does not occur."""


def given_masks(dataset: Dataset) -> NDArray[np.uint8]:
    """(N, S, S) the masks as they came in, mapped from disk.

    Raises:
        NotFoundError: the file is gone or damaged; the text says how to get it back.
    """
    return load_array(masks_file(dataset), remedy=f"import {dataset.name!r} again under another name")


def masks_file(dataset: Dataset) -> Path:
    """Return where ``given_masks`` lie."""
    return cache.folder(dataset) / cache_name(dataset.height)


def mask_verdicts(audit_id: int) -> Verdicts:
    """Return what a finished audit says about every mask.

    Raises:
        NotFoundError: its arrays are gone.
    """
    names = ("suggested", "doubt", "class_trust")
    return Verdicts(**{name: arrays.array(audit_id, TOGETHER, name) for name in names})


def masks_of_engines(audit: Audit) -> list[dict[str, NDArray[Any]]]:
    """By engine its ``predicted`` class, ``predicted_prob`` and ``given_prob``, each (N, S, S), mapped from disk.

    Raises:
        NotFoundError: they are gone.
    """
    names = ("predicted", "predicted_prob", "given_prob")
    return [{name: arrays.array(audit.id, engine, name) for name in names} for engine in audit.engines]
