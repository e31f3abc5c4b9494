"""Strong random views of images, for losses that compare two views of one image (SimCLR, UniCon)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

SMALLEST_AREA = 0.4
"""A crop keeps this share of the image at least: digits and 32-pixel photographs lose their object below it."""
ASPECT = 4 / 3
COLOUR = 0.4
"""Brightness, contrast and colour change by this share at most (SimCLR)."""
GREY_SHARE = 0.2


def strong_views(images: Tensor, generator: torch.Generator) -> Tensor:
    """Each image cropped, resized and recoloured by its own random amount: (B, C, H, W) in [0, 1] -> the same.

    A crop of 40 to 100 % of the area and a side ratio of 3/4 to 4/3, brought back to the size of the image;
    brightness and contrast times 0.6 to 1.4. RGB besides: colour times 0.6 to 1.4, one in five turned grey, and one
    in two mirrored (digits and scans have a side). Nine numbers an image come from ``generator``, which lives where
    the images do.
    """
    num, channels = images.shape[:2]
    draw = torch.rand((num, 9), generator=generator, device=images.device).to(images.dtype)
    area = SMALLEST_AREA + (1 - SMALLEST_AREA) * draw[:, 0]
    ratio = ((2 * draw[:, 1] - 1) * math.log(ASPECT)).exp().sqrt()
    wide, high = (area.sqrt() * ratio).clamp(max=1), (area.sqrt() / ratio).clamp(max=1)
    mirror = (
        torch.where(draw[:, 8] < 0.5, -1.0, 1.0).to(images.dtype) if channels == 3 else torch.ones_like(wide)
    )
    zero = torch.zeros_like(wide)
    moves = torch.stack(
        [
            torch.stack([wide * mirror, zero, (2 * draw[:, 2] - 1) * (1 - wide)], dim=1),
            torch.stack([zero, high, (2 * draw[:, 3] - 1) * (1 - high)], dim=1),
        ],
        dim=1,
    )
    grid = F.affine_grid(moves, list(images.shape), align_corners=False)
    views = F.grid_sample(images, grid, padding_mode="reflection", align_corners=False)
    bright, contrast, colour = ((1 + COLOUR * (2 * draw[:, k] - 1))[:, None, None, None] for k in (4, 5, 6))
    views = views * bright
    mean = views.mean(dim=(1, 2, 3), keepdim=True)
    views = mean + contrast * (views - mean)
    if channels == 3:
        grey = views.mean(dim=1, keepdim=True)
        colour = torch.where(draw[:, 7, None, None, None] < GREY_SHARE, torch.zeros_like(colour), colour)
        views = grey + colour * (views - grey)
    return views.clamp(0, 1)
