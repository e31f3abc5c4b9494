"""DICOM as a viewer first shows it: in the window that the file names, with white where it says that white is.

Rows and columns are shown as they are stored, as viewers do. Of several frames the first is taken. A file without a
window keeps its own numbers (Hounsfield units, where it names a slope): their scale is that of the set. PS3.3,
C.7.6.3.1.2 (photometric interpretation) and C.11.2 (window).
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

MARK, MARK_AT = b"DICM", 128
GREY = ("MONOCHROME1", "MONOCHROME2")


def is_dicom(data: bytes) -> bool:
    """Return whether the bytes begin a file of DICOM."""
    return data[MARK_AT : MARK_AT + len(MARK)] == MARK


def picture(data: bytes, most_pixels: int) -> Image.Image:
    """The first frame: L or RGB, or grey in more bits where no window brings it to 8.

    Raises:
        ImportError: pydicom is missing.
        ValueError: no picture, a larger one than ``most_pixels``, or a coding that nothing here decodes.
    """
    from pydicom import dcmread  # of the extra "dicom"
    from pydicom.pixels import apply_color_lut, pixel_array

    held: Any = dcmread(io.BytesIO(data))
    if "PixelData" not in held:
        raise ValueError("holds no picture")
    if held.Rows * held.Columns > most_pixels:
        raise ValueError(f"declares {held.Columns:,} x {held.Rows:,} pixels, more than {most_pixels:,}")
    _check_decoder(held)
    values: NDArray[Any] = pixel_array(held, index=0)
    kind = held.PhotometricInterpretation
    if kind == "PALETTE COLOR":
        values = apply_color_lut(values, held)
        values = values >> 8 if values.dtype.itemsize > 1 else values
    if kind not in GREY:
        return Image.fromarray(values.astype(np.uint8))
    return _grey(held, values)


def _check_decoder(held: Any) -> None:
    """Raise ValueError where nothing here decodes the coding of the pixels."""
    from pydicom.pixels import get_decoder

    coding = held.file_meta.get("TransferSyntaxUID")
    if coding is None:
        raise ValueError("does not say how its pixels are coded")
    try:
        decoder = get_decoder(coding)
    except NotImplementedError:  # pydicom's word for a coding that it has no decoder of
        raise ValueError(f"is coded as {coding.name}, which nothing here decodes") from None
    if not decoder.is_available:
        raise ValueError(
            f"is coded as {coding.name}; install one of: {'; '.join(decoder.missing_dependencies)}"
        )


def _grey(held: Any, values: NDArray[Any]) -> Image.Image:
    from pydicom.pixels import apply_modality_lut, apply_voi_lut

    is_white_low = held.PhotometricInterpretation == "MONOCHROME1"
    if "VOILUTSequence" in held:
        table = held.VOILUTSequence[0].LUTDescriptor
        shades = apply_voi_lut(apply_modality_lut(values, held), held, prefer_lut=True) / (
            2.0 ** table[2] - 1
        )
        return _of_shares(shades, is_white_low=is_white_low)
    numbers = apply_modality_lut(values, held)
    if "WindowCenter" in held and "WindowWidth" in held:
        return _of_shares(_windowed(held, numbers.astype(np.float64)), is_white_low=is_white_low)
    if is_white_low:
        numbers = (
            numbers.max() + numbers.min() - numbers if "RescaleSlope" in held else _flipped(held, values)
        )
    if numbers.dtype in (np.uint8, np.uint16):
        return Image.fromarray(numbers)
    is_whole = numbers.dtype.kind in "iu" or bool((numbers == np.rint(numbers)).all())
    return Image.fromarray(numbers.astype(np.int32 if is_whole else np.float32))


def _flipped(held: Any, values: NDArray[Any]) -> NDArray[Any]:
    """White for black, in the whole range of the stored bits."""
    high = 2 ** int(held.BitsStored) - 1
    return ((high if not held.PixelRepresentation else -1) - values.astype(np.int64)).astype(values.dtype)


def _windowed(held: Any, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of white by the file's first window."""
    centre, width = (
        float(one[0] if hasattr(one, "__len__") and not isinstance(one, str) else one)
        for one in (held.WindowCenter, held.WindowWidth)
    )
    shape = str(held.get("VOILUTFunction", "LINEAR"))
    if shape == "SIGMOID":
        return 1 / (1 + np.exp(np.clip(-4 * (numbers - centre) / max(width, 1e-9), -700, 700)))
    if shape == "LINEAR_EXACT":
        return (numbers - centre) / max(width, 1e-9) + 0.5
    return (numbers - (centre - 0.5)) / max(width - 1, 1e-9) + 0.5


def _of_shares(shades: NDArray[np.float64], *, is_white_low: bool) -> Image.Image:
    white = np.rint(np.clip(shades, 0, 1) * 255).astype(np.uint8)
    return Image.fromarray(255 - white if is_white_low else white)
