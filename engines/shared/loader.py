"""Images on the device, batches in a reproducible order, augmentation of whole batches at once.

Small image sets live on the device as one uint8 tensor and a batch is one indexing step; large ones stay
in their memory map and a batch is read when it is asked for. Both give the same numbers.

Indices live on the device too, and so do the generators of what a step draws: a step on images that lie on a card
copies nothing to it. The order of an epoch is drawn on the CPU, the same for every device, and moved once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from engines.contract import EngineInputError
from engines.shared.strong import strong_views

STATISTICS_SAMPLE = 4096
"""Images that the channel means are taken from at most (evenly spaced, so always the same ones)."""

RESIDENT_SHARE = 0.5
"""``resident="auto"`` keeps the images on a CUDA device where they need at most this share of free memory."""

KEPT_BYTES = 2**30
"""Reduced images are kept in memory where all of them need at most this: reducing 224 px to 112 takes a quarter as
long as the plain engine's step on the result, and each image is asked for again in every epoch."""

MIN_STD = 1e-2
"""Smallest standard deviation to divide by, so that constant images stay finite."""


MeanStd = tuple[Tensor, Tensor]
"""Mean and standard deviation of each channel of images, or of each value of features."""

SCORING_BATCH = {"cpu": 128, "cuda": 512}
"""Images of up to 64 px scored at once, by device: on a CPU their maps should stay in its cache (512 take a third
longer)."""
FEWEST_SCORED = 16


LEAST_AREA, LARGEST_RATIO = 0.3, 4 / 3
"""Of ``turn_crop_flip``: the smallest share of an image that is shown, the largest ratio of that part's sides."""


class ImageStore:
    """N images that batches are taken from by index: the ``Rows`` of images. Never writes to the images.

    Memory: N*C*H*W bytes on the device where resident, one batch where streamed. A memory map on the CPU is
    streamed under ``"auto"``: the operating system keeps in memory what fits. Images that are reduced on a CPU are
    kept when they are first read, as N*C*h*w bytes, where that is at most ``KEPT_BYTES``.

    Args:
        images: (N, C, H, W) uint8; an array or a memory map.
        device: where batches go.
        resident: ``"yes"``, ``"no"`` or ``"auto"``.
        side: longest side in pixels; larger images are reduced to it, each pixel the mean of those that it stands
            for. None: as they are.
    """

    def __init__(
        self,
        images: NDArray[np.uint8],
        device: torch.device | str,
        *,
        resident: str = "auto",
        side: int | None = None,
    ) -> None:
        self.num_samples, self.channels = len(images), images.shape[1]
        height, width = images.shape[2:]
        self.image_size: tuple[int, int] = reduced_size((height, width), side)
        self.shape: tuple[int, ...] = (self.channels, *self.image_size)
        self.device = torch.device(device)
        self.is_resident = resident == "yes" or (resident == "auto" and self._fits(images))
        self._images = images
        self._tensor: Tensor | None = None
        if self.is_resident and self.device.type == "cuda":
            self._tensor = self._to_device_in_chunks(images)
        elif self.is_resident and isinstance(images, np.memmap):
            self._images = np.array(images)
        self._kept: Tensor | None = None
        self._is_kept = np.zeros(0, dtype=bool)
        is_smaller = self.image_size != (height, width) and self._tensor is None
        if is_smaller and self.num_samples * math.prod(self.shape) <= KEPT_BYTES:
            self._kept = torch.empty((self.num_samples, *self.shape), dtype=torch.uint8)
            self._is_kept = np.zeros(self.num_samples, dtype=bool)

    def __len__(self) -> int:
        return self.num_samples

    def _fits(self, images: NDArray[np.uint8]) -> bool:
        if self.device.type != "cuda":
            return not isinstance(images, np.memmap)
        free, _ = torch.cuda.mem_get_info(self.device)
        # What torch holds for later is free to us, though not to the driver.
        free += torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return bool(images.nbytes <= RESIDENT_SHARE * free)

    def _to_device_in_chunks(self, images: NDArray[np.uint8]) -> Tensor:
        """Copy without ever holding a second full copy in main memory."""
        tensor = torch.empty((len(images), *self.shape), dtype=torch.uint8, device=self.device)
        for start in range(0, len(images), STATISTICS_SAMPLE):
            chunk = np.array(images[start : start + STATISTICS_SAMPLE])
            tensor[start : start + len(chunk)] = reduced(
                torch.from_numpy(chunk).to(self.device), self.image_size
            )
        return tensor

    def raw(self, index: Tensor) -> Tensor:
        """Images at ``index`` (B,) int64 as they are: (B, C, H, W) uint8 on the device."""
        if self._tensor is not None:
            return self._tensor[index]
        batch = self._read(index.cpu().numpy())
        if self.device.type == "cuda":
            return batch.pin_memory().to(self.device, non_blocking=True)
        return batch

    def _read(self, rows: NDArray[np.int64]) -> Tensor:
        """Images at ``rows`` on the CPU, reduced."""
        if self._kept is None:
            return reduced(torch.from_numpy(np.ascontiguousarray(self._images[rows])), self.image_size)
        new = rows[~self._is_kept[rows]]
        if len(new):
            images = torch.from_numpy(np.ascontiguousarray(self._images[new]))
            self._kept[torch.from_numpy(new)] = reduced(images, self.image_size)
            self._is_kept[new] = True
        return self._kept[torch.from_numpy(rows)]

    def batch(self, index: Tensor) -> Tensor:
        """Images at ``index`` (B,) int64: (B, C, H, W) float32 in [0, 1] on the device."""
        return self.raw(index).float().div_(255.0)

    def resolve_augment(self, kind: str) -> str:
        """Return what ``"auto"`` means: ``"crop_flip"`` for RGB, ``"shift"`` for grey (digits and scans have
        a side).
        """
        return kind if kind != "auto" else "crop_flip" if self.channels == 3 else "shift"

    def moved(self, index: Tensor, kind: str, generator: torch.Generator) -> Tensor:
        """``batch`` with each image moved by its own random amount."""
        return augment(self.batch(index), kind, generator)

    @property
    def scoring_batch(self) -> int:
        """Images scored at once."""
        return scoring_batch(self.device, self.image_size)

    def views(self, index: Tensor, num_views: int, mean_std: MeanStd | None) -> Iterator[Tensor]:
        """Test-time views of the images at ``index``, standardised; the first is the image as it is."""
        images = self.batch(index)
        if mean_std is not None:
            images = standardize(images, *mean_std)
        for down, right, mirrored in view_moves(
            num_views, channels=self.channels, image_size=self.image_size
        ):
            view = torch.roll(images, (down, right), dims=(2, 3)) if down or right else images
            yield view.flip(3) if mirrored else view

    def mean_std(self) -> tuple[Tensor, Tensor]:
        """Per-channel mean and standard deviation on the [0, 1] scale, (C,) float32 each on the device.

        Taken from at most 4,096 evenly spaced images; the deviation is at least 0.01.
        """
        step = -(-self.num_samples // STATISTICS_SAMPLE)
        count = torch.zeros((), dtype=torch.float64)
        total = torch.zeros(self.channels, dtype=torch.float64)
        squares = torch.zeros(self.channels, dtype=torch.float64)
        for rows in torch.arange(0, self.num_samples, step).split(256):
            # On the CPU in double, so that every device sees the same statistics.
            values = self._read(rows.numpy()).double() / 255.0
            count += values.numel() / self.channels
            total += values.sum(dim=(0, 2, 3))
            squares += values.square().sum(dim=(0, 2, 3))
        mean = total / count
        std = (squares / count - mean.square()).clamp(min=0).sqrt().clamp(min=MIN_STD)
        return mean.float().to(self.device), std.float().to(self.device)


def reduced_size(image_size: tuple[int, int], side: int | None) -> tuple[int, int]:
    """(height, width) with the longer one at most ``side`` and the same shape; never larger than they were."""
    if side is None or max(image_size) <= side:
        return image_size
    scale = side / max(image_size)
    return max(1, round(image_size[0] * scale)), max(1, round(image_size[1] * scale))


def reduced(images: Tensor, image_size: tuple[int, int]) -> Tensor:
    """Images (B, C, H, W) uint8 at the smaller ``image_size``, each pixel the mean of its area."""
    if tuple(images.shape[2:]) == image_size:
        return images
    return F.interpolate(images.float(), size=image_size, mode="area").round_().to(torch.uint8)


def standardize(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """(images - mean) / std by channel: (B, C, H, W), (C,), (C,) -> (B, C, H, W), stored channels last.

    Features likewise, by value: (B, D), (D,), (D,) -> (B, D).
    """
    if images.dim() == 2:
        return (images - mean) / std
    scaled = (images - mean[:, None, None]) / std[:, None, None]
    return scaled.contiguous(memory_format=torch.channels_last)


def shift_size(image_size: tuple[int, int]) -> int:
    """Pixels of a small shift: 2 at 28 to 41 px, in proportion above, at least 1."""
    return max(1, min(image_size) // 14)


def scoring_batch(device: torch.device, image_size: tuple[int, int]) -> int:
    """Images scored at once: ``SCORING_BATCH``, of images above 64 px as many as have as many pixels in all."""
    height, width = image_size
    most = SCORING_BATCH[device.type]
    return max(FEWEST_SCORED, min(most, most * 64 * 64 // (height * width)))


def view_moves(num_views: int, *, channels: int, image_size: tuple[int, int]) -> list[tuple[int, int, bool]]:
    """(shift down, shift right, mirrored) of each view; the first is the image as it is.

    RGB: {identity, mirrored} x circular shifts {0, +s, -s}. Grey: shifts only, because a mirrored digit or
    letter is another thing than what the network saw.
    """
    s = shift_size(image_size)
    if channels == 3:
        views = [(d, d, mirrored) for d in (0, s, -s) for mirrored in (False, True)]
    else:
        views = [(y, x, False) for y, x in ((0, 0), (s, 0), (-s, 0), (0, s), (0, -s), (s, s))]
    return views[:num_views]


def augment(images: Tensor, kind: str, generator: torch.Generator) -> Tensor:
    """Each image moved (and mirrored) by its own random amount: (B, C, H, W) -> (B, C, H, W).

    ``shift``: up to ``shift_size`` pixels on both axes, the border pixel repeated. ``shift_flip``: and
    mirrored left-right with probability 1/2. ``crop_flip``: up to 1/8 of the side (4 px at 32), the border
    mirrored, and flipped. ``turn_crop_flip``: flipped, turned by any angle, and a part of .3 to 1 of the area with
    sides of up to 4:3 at the size of the whole. ``strong``: :func:`strong_views`. ``none``: unchanged. The draws
    come from ``generator``, which lives where the images do, in the same number for the same batch size and kind.
    """
    if kind == "none":
        return images
    if kind == "strong":
        return strong_views(images, generator)
    if kind == "turn_crop_flip":
        return _turned_and_cropped(images, generator)
    if kind not in ("shift", "shift_flip", "crop_flip"):
        raise EngineInputError(
            f"there is no augmentation {kind!r}; use none, shift, shift_flip, crop_flip or turn_crop_flip."
        )
    num, (height, width), place = len(images), images.shape[2:], images.device
    crop = kind == "crop_flip"
    reach_y, reach_x = (
        (max(1, height // 8), max(1, width // 8)) if crop else (shift_size((height, width)),) * 2
    )
    move_y = torch.randint(-reach_y, reach_y + 1, (num, 1), generator=generator, device=place)
    move_x = torch.randint(-reach_x, reach_x + 1, (num, 1), generator=generator, device=place)
    rows = _inside(torch.arange(height, device=place) + move_y, height, mirror=crop)  # (B, H)
    columns = _inside(torch.arange(width, device=place) + move_x, width, mirror=crop)  # (B, W)
    if kind != "shift":
        flip = torch.rand((num, 1), generator=generator, device=place) < 0.5
        columns = torch.where(flip, width - 1 - columns, columns)
    source = (rows[:, :, None] * width + columns[:, None, :]).reshape(num, 1, -1)
    flat = images.reshape(num, images.shape[1], -1)
    return flat.gather(2, source.expand(-1, images.shape[1], -1)).reshape(images.shape)


def _turned_and_cropped(images: Tensor, generator: torch.Generator) -> Tensor:
    """Each image flipped with probability 1/2, turned, and a part of it at the size of the whole, by one reading.

    The part lies inside the turned image; a side that its shape would make longer than the image's is the image's.
    """
    height, width = images.shape[2:]
    draws = torch.rand((6, len(images)), generator=generator, device=images.device)
    flip, turn, share, shape, across, down = draws
    angle = math.pi * (2 * turn - 1)
    area = LEAST_AREA + (1 - LEAST_AREA) * share
    stretch = torch.exp(math.log(LARGEST_RATIO) * (2 * shape - 1))
    wide = (area * stretch).sqrt().clamp(max=1)  # of the image's width
    high = (area / stretch).sqrt().clamp(max=1)
    x, y = (2 * across - 1) * (1 - wide), (2 * down - 1) * (1 - high)  # the part's middle, of half the sides
    sign = torch.where(flip < 0.5, -1.0, 1.0)
    cos, sin, ratio = angle.cos(), angle.sin(), height / width
    matrix = torch.stack(
        [
            sign * torch.stack([cos * wide, -sin * ratio * high, cos * x - sin * ratio * y]),
            torch.stack([sin / ratio * wide, cos * high, sin / ratio * x + cos * y]),
        ]
    ).movedim(2, 0)
    places = F.affine_grid(matrix, list(images.shape), align_corners=False)
    return F.grid_sample(images, places, align_corners=False)


def _inside(position: Tensor, size: int, *, mirror: bool) -> Tensor:
    """Positions brought back into 0..size-1: mirrored at the border, or held at it."""
    if mirror and size > 1:
        position = position.abs()
        position = (size - 1) - ((size - 1) - position).abs()
    return position.clamp(0, size - 1)


def batches_per_epoch(num_rows: int, batch_size: int) -> int:
    """Return how many batches :func:`epoch_batches` gives (without ``drop_last``): a remainder of one adds none."""
    full, rest = divmod(num_rows, batch_size)
    return full + (rest > 1 or (rest == 1 and full == 0))


def epoch_batches(
    index: Tensor, batch_size: int, generator: torch.Generator, *, drop_last: bool = False
) -> Iterator[Tensor]:
    """``index`` (M,) in a random order, cut into batches of ``batch_size`` int64 rows.

    A remainder of one joins the batch before it, because batch norm cannot train on a single sample; with
    ``drop_last`` an incomplete batch is left out (unless it is the only one). Batches live where ``index`` does.
    Give a generator (of the CPU) that is made from (seed, epoch), and a resumed run sees the batches of an
    uninterrupted one.
    """
    order = index[torch.randperm(len(index), generator=generator).to(index.device)]
    batches = list(order.split(batch_size))
    if len(batches) > 1 and drop_last and len(batches[-1]) < batch_size:
        batches.pop()
    if len(batches) > 1 and len(batches[-1]) == 1:
        last = batches.pop()
        batches[-1] = torch.cat([batches[-1], last])
    yield from batches


def moved_together(batches: list[Tensor], device: torch.device) -> list[Tensor]:
    """Tensors (B, ...) of one kind, at least one of them, on ``device`` by one copy of all."""
    return list(torch.cat(batches).to(device).split([len(batch) for batch in batches]))
