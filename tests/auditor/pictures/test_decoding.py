"""Every kind of image becomes the same uint8 layout; what cannot be read says why."""

from __future__ import annotations

import io
import struct
import zlib
from contextlib import suppress

import numpy as np
import pytest
from PIL import Image

from auditor.pictures import decoding
from auditor.pictures.decoding import (
    STRIP_PIXELS,
    ImageError,
    decode,
    fit,
    levels_of,
    probe,
    sampled_grey,
    upright,
)
from tests.auditor.sample_pictures import encoded, photo

GRADIENT = np.linspace(0, 255, 256).astype(np.uint8).reshape(16, 16)


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def png_declaring(width: int, height: int) -> bytes:
    """A PNG of a few bytes that claims to be large: a decompression bomb."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0"))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    ("mode", "kind", "channels"),
    [
        ("1", "PNG", 1),
        ("L", "PNG", 1),
        ("LA", "PNG", 1),
        ("RGB", "PNG", 3),
        ("RGBA", "PNG", 3),
        ("P", "PNG", 3),
        ("CMYK", "JPEG", 3),
        ("L", "JPEG", 1),
        ("RGB", "WEBP", 3),
        ("RGB", "BMP", 3),
        ("RGB", "TIFF", 3),
        ("CMYK", "TIFF", 3),
        ("RGB", "GIF", 3),
    ],
)
def test_decode__every_mode_gives_the_same_layout(mode: str, kind: str, channels: int) -> None:
    data = saved(Image.fromarray(photo(1)).convert(mode), kind)
    assert probe(data).channels == channels
    for wanted in (1, 3):
        found = decode(data, size=24, channels=wanted)
        assert found.pixels.shape == (wanted, 24, 24)
        assert found.pixels.dtype == np.uint8
        assert (found.height, found.width) == (60, 40)
        assert len(found.content_hash) == 32


def test_decode__grey_pixels_come_through_unchanged() -> None:
    assert np.array_equal(decode(encoded(GRADIENT), size=16, channels=1).pixels[0], GRADIENT)


def test_decode__sixteen_bit_keeps_black_white_and_order() -> None:
    values = np.array([[0, 257, 32_896, 65_535]], np.uint16)
    found = decode(saved(Image.fromarray(values), "PNG"), size=4, channels=1).pixels
    assert found.min() == 0
    assert found.max() == 255
    assert np.asarray(upright(saved(Image.fromarray(values), "PNG"))).tolist() == [[0, 1, 128, 255]]


def test_decode__float_tiff_in_unit_range_is_scaled() -> None:
    data = saved(Image.fromarray(np.array([[0.0, 0.5, 1.0]], np.float32)), "TIFF")
    assert np.asarray(upright(data)).tolist() == [[0, 128, 255]]


def test_decode__float_tiff_has_one_scale_from_top_to_bottom() -> None:
    values = np.full((STRIP_PIXELS // 2048 + 1, 2048), 0.5, np.float32)
    values[-1] = 200
    found = np.asarray(upright(saved(Image.fromarray(values), "TIFF")))
    assert (found[0].max(), found[-1].min()) == (0, 200)


def test_decode__transparent_parts_are_white() -> None:
    pixels = np.zeros((8, 8, 4), np.uint8)
    pixels[:4, :, 3] = 255
    found = decode(encoded(pixels), size=8, channels=3).pixels
    assert found[:, :4].max() == 0
    assert found[:, 4:].min() == 255


def test_decode__transparent_palette_colour_is_white() -> None:
    image = Image.new("P", (4, 4), 0)
    image.putpalette([200, 0, 0, 0, 0, 0])
    assert decode(saved(image, "PNG", transparency=0), size=4, channels=3).pixels.min() == 255


def test_probe__palette_of_greys_is_grey() -> None:
    image = Image.new("P", (4, 4), 1)
    image.putpalette([0, 0, 0, 90, 90, 90])
    assert probe(saved(image, "PNG")).channels == 1


@pytest.mark.parametrize("orientation", range(1, 9))
def test_decode__exif_orientation_is_undone(orientation: int) -> None:
    upright_pixels = np.zeros((20, 30, 3), np.uint8)
    upright_pixels[:10, :15] = 255  # the bright corner belongs to the top left
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    image = Image.fromarray(upright_pixels)
    stored = image.transpose(undo[orientation]) if orientation > 1 else image
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = saved(stored, "PNG", exif=exif)
    assert (probe(data).height, probe(data).width) == (20, 30)
    assert np.array_equal(np.asarray(upright(data)), upright_pixels)


def test_decode__one_pixel() -> None:
    found = decode(encoded(np.full((1, 1), 77, np.uint8)), size=8, channels=1)
    assert (found.pixels == 77).all()
    assert (found.height, found.width) == (1, 1)


def test_decode__eight_thousand_pixels() -> None:
    data = saved(Image.new("L", (8_000, 8_000), 50), "PNG", compress_level=1)
    found = decode(data, size=32, channels=1)
    assert (found.height, found.width) == (8_000, 8_000)
    assert (found.pixels == 50).all()


def test_decode__animation_gives_its_first_frame() -> None:
    frames = [Image.new("L", (8, 8), shade) for shade in (10, 200)]
    data = saved(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert probe(data).is_animated
    assert (decode(data, size=8, channels=1).pixels == 10).all()


def test_fit__keeps_the_whole_image_and_its_proportions() -> None:
    wide = Image.fromarray(np.full((10, 40, 3), (0, 100, 200), np.uint8))
    found = np.asarray(fit(wide, 20))
    assert found.shape == (20, 20, 3)
    assert np.array_equal(found, np.full((20, 20, 3), (0, 100, 200), np.uint8))
    half_white = np.zeros((10, 40), np.uint8)
    half_white[:, 20:] = 255
    inner = np.asarray(fit(Image.fromarray(half_white), 20))[8:12]
    assert inner[:, :8].max() < 30
    assert inner[:, 12:].min() > 225


def test_decode__equal_pixels_hash_equally_in_any_lossless_format() -> None:
    hashes = {
        decode(saved(Image.fromarray(photo(3)), kind), size=8, channels=3).content_hash
        for kind in ("PNG", "BMP", "TIFF")
    }
    assert len(hashes) == 1
    other = decode(encoded(photo(4)), size=8, channels=3).content_hash
    assert other not in hashes


BROKEN = {
    "empty": (b"", r"is empty \(0 bytes\)"),
    "text": (b"not an image, honestly\n", "holds text, not an image"),
    "noise": (bytes(range(256)) * 4, "is not an image in a known format"),
    "postscript": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "holds text"),
    "bomb": (png_declaring(20_000, 20_000), r"decompression bomb"),
    "many rows": (png_declaring(1, 89_000_000), r"declares 1 x 89,000,000 pixels, which take 763 MB"),
    "small bomb": (png_declaring(9_500, 9_500), r"declares 9,500 x 9,500 pixels"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_probe__broken_data_is_explained(case: str) -> None:
    data, text = BROKEN[case]
    with pytest.raises(ImageError, match=text):
        probe(data)
    with pytest.raises(ImageError, match=text):
        decode(data, size=8, channels=1)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_decode__cut_off_file_is_refused(kind: str, share: float) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    data = encoded(noise, kind)
    with pytest.raises(ImageError, match=r"cut off or damaged|is damaged|is not an image"):
        decode(data[: int(len(data) * share)], size=16, channels=3)


def test_decode__any_damage_is_an_image_error_or_a_picture() -> None:
    data = bytearray(encoded(photo(5), "JPEG"))
    rng = np.random.default_rng(1)
    for _ in range(200):
        damaged = bytearray(data)
        for place in rng.integers(0, len(data), 8):
            damaged[place] = rng.integers(0, 256)
        with suppress(ImageError):
            assert decode(bytes(damaged), size=16, channels=3).pixels.shape == (3, 16, 16)


def test_probe__file_above_the_byte_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MAX_FILE_BYTES", 100)
    with pytest.raises(ImageError, match="is larger than 0 MB"):
        probe(encoded(photo(1)))


def jpeg(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(values).save(buffer, "JPEG", quality=100, subsampling=0)
    return buffer.getvalue()


def test_decode__what_is_decoded_at_a_smaller_scale_is_known_by_its_file() -> None:
    """A texture that the smaller scale averages away is no proof of equal pictures."""
    checks = (np.indices((512, 512)).sum(axis=0) % 2 * 200).astype(np.uint8)
    first, second = jpeg(checks), jpeg(200 - checks)
    small = [decode(data, size=32, channels=1) for data in (first, second, first)]
    np.testing.assert_array_equal(small[0].pixels, small[1].pixels)
    assert small[0].content_hash != small[1].content_hash
    assert small[0].content_hash == small[2].content_hash


def test_decode__sixteen_bits_that_look_alike_are_not_the_same() -> None:
    hashes = set()
    for value in (25_700, 25_701):
        buffer = io.BytesIO()
        Image.fromarray(np.full((16, 16), value, dtype=np.uint16)).save(buffer, "PNG")
        found = decode(buffer.getvalue(), size=16, channels=1)
        assert found.pixels.max() == found.pixels.min() == 100
        hashes.add(found.content_hash)
    assert len(hashes) == 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["PNG", "GIF", "TIFF", "BMP"])
def test_probe__a_palette_image_cut_anywhere_is_one_kind_of_error(kind: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (24, 24, 3), dtype=np.uint8)
    image = Image.fromarray(noise).convert("P", palette=Image.Palette.ADAPTIVE)
    file = io.BytesIO()
    image.save(file, kind)
    content, refused = file.getvalue(), 0
    for end in range(1, len(content), 5):
        for look in (probe, lambda data: decode(data, size=16, channels=3)):
            try:
                look(content[:end])
            except ImageError:
                refused += 1
    assert refused > len(content) // 10


def _grey_values(kind: str) -> np.ndarray:
    """100 values in a row, as each kind of deep picture has them."""
    steps = np.linspace(0, 1, 100)[None]
    return {
        "10 bits": (steps * 1023).astype(np.uint16),
        "12 bits": (steps * 4095).astype(np.uint16),
        "16 bits": (steps * 65_535).astype(np.uint16),
        "hounsfield": (steps * 3_000 - 1_000).astype(np.int32),
        "-1 to 1": (steps * 2 - 1).astype(np.float32),
        "0 to 1.0001": (steps * 1.0001).astype(np.float32),
    }[kind]


@pytest.mark.parametrize("kind", ["10 bits", "12 bits", "16 bits", "hounsfield", "-1 to 1", "0 to 1.0001"])
def test_levels_of__one_scale_keeps_the_grey_levels_of_deep_pictures(kind: str) -> None:
    values = _grey_values(kind)
    data = saved(Image.fromarray(values), "TIFF")
    levels = levels_of(sampled_grey(data))
    grey = np.asarray(upright(data, levels=levels))
    assert levels == (values.min(), values.max())
    assert (grey.min(), grey.max()) == (0, 255)
    assert len(np.unique(grey)) == 100
    darker = saved(Image.fromarray(values[:, :50]), "TIFF")
    assert np.array_equal(np.asarray(upright(darker, levels=levels)), grey[:, :50])  # not each its own scale


def test_levels_of__a_hot_pixel_is_not_white() -> None:
    values = np.tile(_grey_values("12 bits"), (20, 1))
    values[0, 0] = 65_535
    assert levels_of(values.ravel().astype(np.float64)) == (0, 4095)


def test_levels_of__one_value_or_none_has_a_range() -> None:
    assert levels_of(np.full(5, 7.0)) == (7, 8)
    assert levels_of(np.empty(0)) == (0, 1)
