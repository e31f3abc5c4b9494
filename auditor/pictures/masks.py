"""Masks: a class for each pixel of an image, as files say it and as the cache holds it.

A class of a mask is its place in ``class_names``; ``IGNORED`` is every pixel that has none. What a file holds in
place of a class (a grey value, an index into a palette, a colour) says its ``MaskCode``. A mask is written again by
changing some pixels of the file that came in: all others keep their value, also those that no class stands for.
"""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from auditor.pictures.decoding import TURNS, ImageError, open_image, placed

IGNORED = 255
"""In a mask of ours: the pixel has no class, and nobody judges it."""
MOST_CLASSES = 254
LOSSY = ("JPEG", "MPO", "WEBP", "AVIF", "JPEG2000")
"""Formats that blur the borders between values."""


@dataclass(frozen=True)
class MaskCode:
    """How the masks of a dataset are written."""

    layout: str
    """``pair``, ``voc``, ``cityscapes`` or ``coco``."""
    values: tuple[int, ...]
    """By class, its value in a file: a grey value, an index into the palette, or 0xRRGGBB; any other value is
    ignored."""
    colours: tuple[str, ...]
    """By class, #rrggbb for screens."""
    is_colour: bool = False
    """``values`` are colours."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the catalog."""
        return asdict(self) | {"values": list(self.values), "colours": list(self.colours)}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> MaskCode:
        """The inverse of ``as_dict``."""
        return cls(stored["layout"], tuple(stored["values"]), tuple(stored["colours"]), stored["is_colour"])


def cache_name(size: int) -> str:
    """File name of a dataset's masks as its cache holds them: (N, size, size) uint8."""
    return f"masks_{size}x{size}.npy"


def raw_values(data: bytes, *, is_colour: bool = False) -> NDArray[np.int64]:
    """(H, W) what the file holds for each pixel: grey values or palette indices, or 0xRRGGBB.

    Raises:
        ImageError: no image, damaged, or of a format that blurs values.
    """
    image = _loaded(data)
    if is_colour or holds_colours(image):
        rgb = np.asarray(image.convert("RGB")).astype(np.int64)
        return (rgb[..., 0] << 16) | (rgb[..., 1] << 8) | rgb[..., 2]
    if image.mode in ("LA", "La"):
        image = image.convert("L")
    return np.asarray(image).astype(np.int64)


def holds_colours(image: Image.Image) -> bool:
    """Return whether pixels of the mask are colours, not numbers. A palette's are numbers."""
    return image.mode not in ("1", "L", "LA", "La", "P", "PA", "I", "I;16", "I;16B", "I;16L", "I;16N")


def palette(data: bytes) -> NDArray[np.uint8] | None:
    """(C, 3) the colours of a palette mask; None of another one."""
    image = open_image(data)
    if image.mode != "P":
        return None
    return np.array(image.getpalette("RGB") or [], np.uint8).reshape(-1, 3)


def size_of(data: bytes) -> tuple[int, int]:
    """(height, width) by the header.

    Raises:
        ImageError: no image, or of a format that blurs values.
    """
    image = open_image(data)
    _refuse_lossy(image)
    return image.height, image.width


def decode(data: bytes, code: MaskCode) -> NDArray[np.uint8]:
    """(H, W) the class of each pixel, ``IGNORED`` where there is none.

    Raises:
        ImageError: as ``raw_values``.
    """
    return as_classes(raw_values(data, is_colour=code.is_colour), code)


def as_classes(raw: NDArray[np.int64], code: MaskCode) -> NDArray[np.uint8]:
    """(H, W) of a file's values -> (H, W) of classes."""
    mask = np.full(raw.shape, IGNORED, np.uint8)
    for number, value in enumerate(code.values):
        mask[raw == value] = number
    return mask


def upright(mask: NDArray[Any], orientation: int) -> NDArray[Any]:
    """(H, W) drawn on the pixels of an image as they are stored -> as the image is seen."""
    turns, is_mirrored = TURNS.get(orientation, (0, False))
    turned = np.rot90(mask, turns)
    return np.ascontiguousarray(turned[:, ::-1] if is_mirrored else turned)


def as_stored(mask: NDArray[Any], orientation: int) -> NDArray[Any]:
    """The inverse of ``upright``."""
    turns, is_mirrored = TURNS.get(orientation, (0, False))
    return np.ascontiguousarray(np.rot90(mask[:, ::-1] if is_mirrored else mask, -turns))


def fit(mask: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """(H, W) -> (size, size), placed as ``decoding.fit`` places the image; what is left beside it is ignored."""
    left, top, width, height = placed(mask.shape[1], mask.shape[0], size)
    small = Image.fromarray(mask).resize((width, height), Image.Resampling.NEAREST)
    canvas = np.full((size, size), IGNORED, np.uint8)
    canvas[top : top + height, left : left + width] = np.asarray(small)
    return canvas


def enlarged(region: NDArray[np.bool_], width: int, height: int) -> NDArray[np.bool_]:
    """(S, S) bool of the cache -> (height, width) bool of the original, its border smoothed."""
    left, top, inner_width, inner_height = placed(width, height, len(region))
    part = region[top : top + inner_height, left : left + inner_width]
    scaled = Image.fromarray(part.astype(np.uint8) * 255).resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(scaled) > 127


def rewritten(data: bytes, code: MaskCode, changes: NDArray[np.uint8]) -> bytes:
    """The file with other classes at some pixels, in its own format, mode and palette.

    ``changes`` is (H, W): a class, or ``IGNORED`` where the pixel stays as it is.

    Raises:
        ImageError: as ``raw_values``.
    """
    image = _loaded(data)
    kind = image.format
    by_colour = code.is_colour
    if by_colour and not holds_colours(image):
        image = image.convert("RGB")
    pixels = np.array(image)
    for number in np.unique(changes[changes != IGNORED]):
        there, value = changes == number, code.values[number]
        if by_colour:
            pixels[there, :3] = [value >> 16, value >> 8 & 255, value & 255]
        elif pixels.ndim == 3:  # grey with transparency
            pixels[there, 0] = value
        else:
            pixels[there] = value
    written = Image.fromarray(pixels, image.mode) if image.mode in ("P", "LA") else Image.fromarray(pixels)
    if image.mode == "P":
        colours = image.getpalette("RGB") or []
        written.putpalette(colours + [0] * (768 - len(colours)))  # a class may lie behind a short palette
    stream = io.BytesIO()
    written.save(stream, kind)
    return stream.getvalue()


def _loaded(data: bytes) -> Image.Image:
    image = open_image(data)
    _refuse_lossy(image)
    try:
        image.load()
    except (KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:
        raise ImageError(f"is cut off or damaged ({error}); save or download it again") from error
    return image


def _refuse_lossy(image: Image.Image) -> None:
    if image.format in LOSSY:
        raise ImageError(
            f"is a {image.format}, which blurs the values of a mask; save masks as PNG, from where they were drawn"
        )
