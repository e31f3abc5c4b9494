"""Small images of shapes with their masks, drawn from a seed: what tests of masks import."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

NAMES = ("ground", "disc", "bar")


@dataclass(frozen=True)
class Shapes:
    """N images of S x S pixels."""

    images: NDArray[np.uint8]
    """(N, 3, S, S)"""
    masks: NDArray[np.uint8]
    """(N, S, S) the right class of each pixel, place in ``NAMES``."""


def draw_shapes(num: int, *, size: int = 32, seed: int = 0) -> Shapes:
    """A bright disc and a dark bar on noisy ground in each image."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[:size, :size]
    images = np.empty((num, 3, size, size), np.uint8)
    masks = np.zeros((num, size, size), np.uint8)
    for number in range(num):
        y, x = random.integers(size // 4, 3 * size // 4, 2)
        radius = random.integers(size // 6, size // 4 + 1)
        left = random.integers(0, size - size // 6)
        masks[number][(columns >= left) & (columns < left + size // 6)] = 2
        masks[number][(rows - y) ** 2 + (columns - x) ** 2 <= radius**2] = 1
        colours = np.array([[110, 120, 110], [220, 210, 120], [40, 40, 130]], np.int64)
        pixels = colours[masks[number]] + random.integers(-20, 21, (size, size, 3))
        images[number] = pixels.clip(0, 255).astype(np.uint8).transpose(2, 0, 1)
    return Shapes(images, masks)


def write_pairs(folder: Path, shapes: Shapes, masks: NDArray[np.uint8] | None = None) -> Path:
    """``folder/images/NUMBER.png`` and ``folder/masks/NUMBER.png``, and ``folder/classes.txt``."""
    given = shapes.masks if masks is None else masks
    for name in ("images", "masks"):
        (folder / name).mkdir(parents=True)
    for number, image in enumerate(shapes.images):
        Image.fromarray(image.transpose(1, 2, 0)).save(folder / "images" / f"{number:03d}.png")
        Image.fromarray(given[number]).save(folder / "masks" / f"{number:03d}.png")
    (folder / "classes.txt").write_text("\n".join(NAMES))
    return folder
