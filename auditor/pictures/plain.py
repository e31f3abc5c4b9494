"""How light and how sharp each picture is, whatever it shows.

Light is the mean grey level. Sharp is the variance of the Laplacian (Pech-Pacheco et al., 2000) over that of the
grey levels, so that a sharp picture of little contrast is not taken for a blurred one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.catalog.records import Dataset
from auditor.ground.files import load_array, written_whole
from auditor.pictures import cache

FILE = "light_and_sharp.npy"
LEAST_VARIANCE = 1.0
"""Of grey levels; where they vary less the picture is plain."""


def light_and_sharp(dataset: Dataset) -> NDArray[np.float32]:
    """(N, 2) of each sample, kept beside the cache; about a millisecond a picture where nobody asked before."""
    path = cache.folder(dataset) / FILE
    if not path.exists():
        found = np.array([of_picture(one) for one in cache.image_cache(dataset)], np.float32).reshape(-1, 2)
        with written_whole(path) as beside, beside.open("wb") as stream:
            np.save(stream, found)
    return load_array(path, remedy=f"delete {path}; it is made again", mapped=False)


def of_picture(pixels: NDArray[np.uint8]) -> tuple[float, float]:
    """Light (0 to 255) and sharpness of one picture (C, H, W); the black around an oblong one is left out."""
    grey = pixels.mean(axis=0, dtype=np.float32)
    rows, columns = (np.flatnonzero(grey.any(axis=axis)) for axis in (1, 0))
    if not len(rows):
        return 0.0, 0.0
    seen = grey[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    if min(seen.shape) < 3:
        return float(seen.mean()), 0.0
    around = seen[:-2, 1:-1] + seen[2:, 1:-1] + seen[1:-1, :-2] + seen[1:-1, 2:]
    laplacian = 4 * seen[1:-1, 1:-1] - around
    return float(seen.mean()), float(laplacian.var() / max(LEAST_VARIANCE, seen.var()))
