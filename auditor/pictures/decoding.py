"""One way to look at every picture: any file that Pillow reads becomes the same uint8 layout.

- Turned as its EXIF orientation says. The first frame of an animation. Transparent parts on white, as a viewer
  shows them.
- More than 8 bits of grey (16-bit, 32-bit, floats) become 8 by one scale for all images of a set: ``levels``, what
  is black and what is white. Without one, 16 bits are divided by 257, and floats in [0, 1] are shares of white.
- Copies are made in strips. What the largest image taken (9,459 px square) needs is then up to its decoder.
- Scaled so that the whole image fits a square of the chosen side; what is left beside a non-square image is
  filled with the mean colour of its own edges. Nothing is cropped and nothing is stretched.

Only decoders that run in Pillow itself, in pillow-heif and in pydicom are allowed (no external program).
"""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import imagehash
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from auditor.pictures import dicom

try:
    from pillow_heif import register_heif_opener  # of the extra "heic"; it turns pictures upright itself
except ImportError:
    HEIF: tuple[str, ...] = ()
else:
    register_heif_opener()
    HEIF = ("HEIF",)

Image.init()
FORMATS = tuple(
    name
    for name in ("PNG", "JPEG", "GIF", "BMP", "DIB", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF", *HEIF)
    if name in Image.OPEN
)
"""As far as this build of Pillow has them. (MPO, a camera's JPEG with several frames, opens as JPEG.)"""
MAX_PIXELS = 89_478_485
"""Pillow's own warning level: 9,459 px square. What declares more is taken for a decompression bomb."""
MOST_DECODED, ROW_BYTES = 400 * 2**20, 8
"""Bytes of the pixels in Pillow's memory, which has a pointer for each row."""
STRIP_PIXELS = 2**22
"""Of what is copied at a time."""
MAX_FILE_BYTES = 256 * 2**20
GREY_MODES = frozenset(["1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L", "I;16N", "F"])
CHANNELS = (1, 3, 4)
"""How many an array of an image may have."""
HEIF_MARKS = tuple(b"ftyp" + kind for kind in (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1"))
ORIENTATION = 0x0112
TURNS = {2: (0, True), 3: (2, False), 4: (2, True), 5: (3, True), 6: (3, False), 7: (1, True), 8: (1, False)}
"""By EXIF orientation: quarter turns to the left that make stored pixels upright, and whether they are mirrored."""


Levels: TypeAlias = tuple[float, float]
"""The grey values that become black and white."""
SHARE = 0.001
"""Of the values of a set at either end: a hot pixel is no white."""
MOST_GREY = 4_096


class ImageError(ValueError):
    """An image that cannot be read; the text says why and what to do."""


@dataclass(frozen=True)
class Probe:
    """What an image's header says."""

    height: int
    width: int
    """As seen: after the EXIF orientation."""
    channels: int
    """1 where the image can hold no colour, else 3."""
    is_animated: bool
    is_deep: bool = False
    """Whether its grey has more than 8 bits."""
    orientation: int = 1
    """1 to 8, as EXIF says how the stored pixels are turned."""

    @property
    def stored(self) -> tuple[int, int]:
        """(height, width) of the pixels as they are stored."""
        return (self.width, self.height) if self.orientation >= 5 else (self.height, self.width)


@dataclass(frozen=True)
class Decoded:
    """One image in the cache's layout, with its fingerprints."""

    pixels: NDArray[np.uint8]
    """(C, S, S)"""
    height: int
    width: int
    content_hash: bytes
    """SHA-256 of the decoded pixels and their size: equal for equal pictures, whatever the file format.

    What was not decoded in full (a large JPEG at a smaller scale, more than 8 bits a channel) is known by the bytes
    of its file instead: equal pixels would not prove that the pictures are.
    """
    perceptual_hash: int
    """64-bit pHash (DCT signs, imagehash) as an unsigned integer."""


def probe(data: bytes) -> Probe:
    """Read the header only.

    Raises:
        ImageError: empty, no image, too large.
    """
    image = open_image(data)
    try:
        width, height = image.size
        if _orientation(image) >= 5:
            width, height = height, width
        animated = image.format != "MPO" and bool(getattr(image, "is_animated", False))
        return Probe(
            height, width, 1 if _is_grey(image) else 3, animated, _is_deep(image), _orientation(image)
        )
    except (KeyboardInterrupt, SystemExit):
        raise
    except MemoryError as error:
        raise ImageError("does not fit into memory; make the image smaller") from error
    except Exception as error:  # a palette or an animation that is cut off is read only now
        raise ImageError(f"is cut off or damaged ({_reason(error)}); save or download it again") from error


def decode(data: bytes, *, size: int, channels: int, levels: Levels | None = None) -> Decoded:
    """The image as (channels, size, size) uint8 with hashes; see the module for every rule.

    Raises:
        ImageError: empty, cut off, damaged, no image, too large.
    """
    image = upright(data, at_least=2 * size, levels=levels)
    width, height = image.size
    mode = "L" if channels == 1 else "RGB"
    digest = _digest_of_pixels(image) if _is_decoded_in_full(data, image) else hashlib.sha256(data).digest()
    bits = imagehash.phash(image).hash.ravel()
    return Decoded(
        pixels=np.ascontiguousarray(
            channels_first(fit(image if image.mode == mode else image.convert(mode), size))
        ),
        height=height,
        width=width,
        content_hash=digest,
        perceptual_hash=int.from_bytes(np.packbits(bits).tobytes(), "big"),
    )


def upright(
    data: bytes, *, at_least: int | None = None, levels: Levels | None = None, is_plain: bool = True
) -> Image.Image:
    """The decoded image, upright, in mode L or RGB; with ``is_plain`` False in its own mode where it is deep.

    ``at_least`` lets a large JPEG be decoded at a smaller scale, as long as no side falls below it. ``levels`` are
    the deep grey values that become black and white.

    Raises:
        ImageError: as ``decode``.
    """
    image = open_image(data)
    try:
        if at_least is not None:
            # draft() picks the smallest scale of 1/1 .. 1/8 at which both sides still hold `at_least`.
            image.draft(None, (at_least, at_least))
        image.load()
        turned = ImageOps.exif_transpose(image) if _orientation(image) > 1 else image
        return turned if _is_deep(turned) and not is_plain else _plain(turned, levels)
    except (KeyboardInterrupt, SystemExit):
        raise
    except MemoryError as error:
        raise ImageError("does not fit into memory; make the image smaller") from error
    except Exception as error:
        raise ImageError(f"is cut off or damaged ({_reason(error)}); save or download it again") from error


def _digest_of_pixels(image: Image.Image) -> bytes:
    digest = hashlib.sha256(f"{image.mode}{image.width}x{image.height}:".encode())
    for strip in _strips(image):
        digest.update(strip.tobytes())
    return digest.digest()


def _is_decoded_in_full(data: bytes, image: Image.Image) -> bool:
    """Return whether ``image`` still holds every pixel of the file and all of its bits."""
    header = open_image(data)
    return not _is_deep(header) and header.width * header.height == image.width * image.height


def _strips(image: Image.Image) -> Iterator[Image.Image]:
    """The image in pieces of at most ``STRIP_PIXELS``, from top to bottom: row after row, the same bytes."""
    height = max(1, STRIP_PIXELS // image.width)
    for top in range(0, image.height, height):
        yield image.crop((0, top, image.width, min(image.height, top + height)))


def _in_strips(image: Image.Image, mode: str, convert: Callable[[Image.Image], Image.Image]) -> Image.Image:
    """``convert`` of the image to ``mode``, one strip after the other."""
    if image.width * image.height <= STRIP_PIXELS:
        return convert(image)
    whole, top = Image.new(mode, image.size), 0
    for strip in _strips(image):
        whole.paste(convert(strip), (0, top))
        top += strip.height
    return whole


def channels_first(image: Image.Image) -> NDArray[np.uint8]:
    """An image of mode L or RGB as (C, H, W) uint8."""
    values = np.asarray(image)
    return values[None] if values.ndim == 2 else values.transpose(2, 0, 1)


def plain_pixels(array: NDArray[Any]) -> NDArray[np.uint8]:
    """An array that somebody has for an image as (H, W) or (H, W, C) uint8.

    Raises:
        ValueError: neither its shape nor its values are an image's; the text says which are.
    """
    if array.ndim == 3 and array.shape[0] in CHANNELS and array.shape[2] not in CHANNELS:
        array = array.transpose(1, 2, 0)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in CHANNELS) or 0 in array.shape:
        raise ValueError(f"has the shape {array.shape}; give (H, W), (H, W, C) or (C, H, W)")
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    if array.dtype == bool:
        return array.astype(np.uint8) * 255
    low, high = float(array.min()), float(array.max())
    if np.issubdtype(array.dtype, np.floating) and low >= 0 and high <= 1:
        return np.rint(array * 255).astype(np.uint8)
    if np.issubdtype(array.dtype, np.integer) and low >= 0 and high <= 255:
        return array.astype(np.uint8)
    raise ValueError(
        f"has values from {low:g} to {high:g}; give whole numbers in 0..255 or floats in [0, 1] (images before "
        "normalisation)"
    )


def fit(image: Image.Image, size: int) -> Image.Image:
    """The whole image centred in a ``size`` square, in proportion, filled up with its edges' mean colour."""
    width, height = image.size
    if width == height == size:
        return image
    left, top, *sides = placed(width, height, size)
    inner = (sides[0], sides[1])
    scaled = image.resize(inner, Image.Resampling.BICUBIC, reducing_gap=3.0)
    if inner == (size, size):
        return scaled
    values = np.asarray(scaled)
    edges = values[:, [0, -1]] if inner[0] < size else values[[0, -1]]
    mean = np.rint(edges.reshape(-1, *values.shape[2:]).mean(axis=0)).astype(int)
    colour = int(mean) if image.mode == "L" else tuple(int(value) for value in mean)
    canvas = Image.new(image.mode, (size, size), colour)
    canvas.paste(scaled, (left, top))
    return canvas


def placed(width: int, height: int, size: int) -> tuple[int, int, int, int]:
    """(left, top, width, height) of an image of that width and height in a square of ``size`` pixels."""
    scale = size / max(width, height)
    inner = (max(1, round(width * scale)), max(1, round(height * scale)))
    return (size - inner[0]) // 2, (size - inner[1]) // 2, *inner


def open_image(data: bytes) -> Image.Image:
    """The image with its header read and its pixels not yet.

    Raises:
        ImageError: empty, no image, too large.
    """
    if not data:
        raise ImageError("is empty (0 bytes); save or download it again")
    if len(data) > MAX_FILE_BYTES:
        raise ImageError(f"is larger than {MAX_FILE_BYTES >> 20} MB; make the image smaller")
    if dicom.is_dicom(data):
        return _dicom(data)
    try:
        with warnings.catch_warnings():
            # Our own limit below takes the place of Pillow's warning.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data), formats=FORMATS)
    except Image.DecompressionBombError as error:
        raise ImageError(_too_large()) from error
    except UnidentifiedImageError as error:
        if data[4:12] in HEIF_MARKS and not HEIF:
            raise ImageError(f"is HEIC, {_extra('pillow-heif', 'heic')}, or save it as JPEG") from error
        what = "holds text, not an image" if _is_text(data) else "is not an image in a known format"
        raise ImageError(f"{what}; use PNG, JPEG, WebP, TIFF, BMP or GIF") from error
    except Exception as error:
        raise ImageError(f"is damaged ({_reason(error)}); save or download it again") from error
    if image.width * image.height > MAX_PIXELS:
        raise ImageError(_too_large(image.size))
    decoded = image.height * (ROW_BYTES + image.width * (1 if image.mode in ("1", "L", "P") else 4))
    if decoded > MOST_DECODED:
        raise ImageError(
            f"declares {image.width:,} x {image.height:,} pixels, which take {decoded >> 20:,} MB of memory, "
            f"more than {MOST_DECODED >> 20:,} MB (a decompression bomb?); make the image smaller"
        )
    return image


def _dicom(data: bytes) -> Image.Image:
    try:
        return dicom.picture(data, MAX_PIXELS)
    except ImportError as error:
        raise ImageError(f"is DICOM, {_extra('pydicom', 'dicom')}") from error
    except MemoryError:
        raise
    except Exception as error:
        raise ImageError(
            f"is DICOM that cannot be shown ({_reason(error)}); save it again, or as PNG"
        ) from error


def _extra(package: str, extra: str) -> str:
    return f"which needs the package {package}: pip install 'label-auditor[{extra}]'"


def looks_like_image(head: bytes) -> bool:
    """Return whether bytes of at least 132 begin an image in a format that can be read, whatever its name."""
    if dicom.is_dicom(head) or head[4:12] in HEIF_MARKS:
        return True
    accepts = (Image.OPEN[name][1] for name in FORMATS if name not in ("PPM", "DIB"))
    return any(accept is not None and accept(head) is True for accept in accepts)


def _too_large(size: tuple[int, int] | None = None) -> str:
    named = f"declares {size[0]:,} x {size[1]:,} pixels" if size else "claims to have very many pixels"
    return f"{named}, more than {MAX_PIXELS:,} (a decompression bomb?); make the image smaller"


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())[:120]
    return text or type(error).__name__


def _is_text(data: bytes) -> bool:
    head = data[:512]
    return all(byte >= 32 or byte in (9, 10, 13) for byte in head)


def _orientation(image: Image.Image) -> int:
    if not image.info.get("exif") and image.format not in ("TIFF", "MPO"):
        return 1
    try:
        value = image.getexif().get(ORIENTATION, 1)
    except Exception:
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _is_grey(image: Image.Image) -> bool:
    if image.mode == "P" and image.palette is not None:
        colours = np.array(image.getpalette("RGB") or [], np.uint8)
        triples = colours[: len(colours) // 3 * 3].reshape(-1, 3)
        return bool((triples == triples[:, :1]).all())
    return image.mode in GREY_MODES


def _is_deep(image: Image.Image) -> bool:
    return image.mode.startswith("I") or image.mode == "F"


def sampled_grey(data: bytes) -> NDArray[np.float64]:
    """Some finite grey values of a deep image in its own numbers, about ``MOST_GREY``, evenly spaced in it.

    Raises:
        ImageError: as ``decode``.
    """
    values = np.asarray(upright(data, is_plain=False), np.float64).ravel()
    values = values[:: max(1, len(values) // MOST_GREY)]
    return values[np.isfinite(values)]


def levels_of(values: NDArray[np.float64]) -> Levels:
    """The range that becomes black to white: of the values, but for a share of ``SHARE`` at either end."""
    if not len(values):
        return 0.0, 1.0
    low, high = np.quantile(values, [SHARE, 1 - SHARE], method="closest_observation")
    return (float(low), float(high)) if low < high else (float(low), float(low) + 1)


def _scaled(image: Image.Image, levels: Levels) -> Image.Image:
    low, high = levels
    values = (np.asarray(image).astype(np.float64) - low) * (255 / (high - low))
    return Image.fromarray(np.rint(np.nan_to_num(values, nan=0.0).clip(0, 255)).astype(np.uint8))


def _plain(image: Image.Image, levels: Levels | None) -> Image.Image:
    """Any mode as L or RGB."""
    if levels is not None and _is_deep(image):
        return _in_strips(image, "L", lambda strip: _scaled(strip, levels))
    if image.mode.startswith("I"):
        return _in_strips(image, "L", _from_deep)
    if image.mode == "F":
        scale = _white(image)
        return _in_strips(image, "L", lambda strip: _from_float(strip, scale))
    if image.mode in ("LA", "La") or (image.mode in ("1", "L") and "transparency" in image.info):
        return _in_strips(
            image, "L", lambda strip: _on_white(strip.convert("LA").convert("RGBA")).convert("L")
        )
    if image.mode in ("RGBA", "RGBa", "PA") or "transparency" in image.info:
        return _in_strips(image, "RGB", lambda strip: _on_white(strip.convert("RGBA")))
    if image.mode == "P":
        return image.convert("L" if _is_grey(image) else "RGB")
    mode = "L" if image.mode in GREY_MODES else "RGB"
    return image if image.mode == mode else image.convert(mode)


def _from_deep(image: Image.Image) -> Image.Image:
    """More than 8 bits of grey as 8: divided by 257."""
    values = np.asarray(image).astype(np.int64).clip(0, 65535)
    return Image.fromarray(((values + 128) // 257).astype(np.uint8))


def _on_white(image: Image.Image) -> Image.Image:
    white = Image.new("RGBA", image.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, image).convert("RGB")


def _finite(image: Image.Image) -> NDArray[np.float32]:
    return np.nan_to_num(np.asarray(image), nan=0.0, posinf=255.0, neginf=0.0)


def _white(image: Image.Image) -> float:
    """Return what makes grey values of floats: those in [0, 1] are shares of white, others are grey values
    already.
    """
    is_share = all(values.min() >= 0 and values.max() <= 1 for values in map(_finite, _strips(image)))
    return 255.0 if is_share else 1.0


def _from_float(image: Image.Image, scale: float) -> Image.Image:
    """Floats as grey values that are cut to 0..255."""
    return Image.fromarray(np.rint((_finite(image) * scale).clip(0, 255)).astype(np.uint8))
