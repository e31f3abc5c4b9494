"""A backbone of the user's own images, as a file of features that an audit takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from auditor.bridges import backbone_bridge
from auditor.catalog import reading
from auditor.ground.errors import AuditFailedError
from auditor.ground.files import written_whole
from auditor.ground.progress import OnProgress, Ticker
from auditor.pictures import cache


def learn(
    dataset_name: str,
    out: Path,
    *,
    minutes: float,
    seed: int = 0,
    device: str = "auto",
    force: bool = False,
    progress: OnProgress | None = None,
) -> tuple[int, int, int]:
    """Learn features from a dataset's own images alone, without labels, and write them to ``out`` (``.npy``).

    Returns:
        (N, V, D), the shape of what was written, float32; `audit --features` takes it.

    Raises:
        NotFoundError: no such dataset, or its image cache is gone.
        AuditFailedError: ``out`` is no ``.npy`` or exists and ``force`` is not set; too few images; no time.
    """
    if out.suffix.lower() != ".npy":
        raise AuditFailedError(f"{out}: features are written as .npy; call it {out.stem or 'features'}.npy.")
    if out.exists() and not force:
        raise AuditFailedError(f"{out} exists; choose another name, or overwrite it.", field="force")
    images = cache.image_cache(reading.dataset(dataset_name))
    ticker = Ticker(progress, "learning without labels", 100)
    found = backbone_bridge.learn_features(
        images,
        seconds=60 * minutes,
        seed=seed,
        device=device,
        on_share=lambda share: ticker.at(int(100 * share)),
    )
    with written_whole(out) as beside, beside.open("wb") as file:
        np.save(file, found)
    return found.shape
