"""HEIC and DICOM as viewers show them; files without a suffix."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from auditor.pictures import decoding
from auditor.pictures.decoding import ImageError, decode, looks_like_image, probe, upright
from auditor.pictures.sources import SourceOptions, SourceRow, open_here

pydicom = pytest.importorskip("pydicom")
heif = pytest.importorskip("pillow_heif")


def dicom(values: NDArray[Any], kind: str = "MONOCHROME2", **tags: Any) -> bytes:
    held = pydicom.Dataset()
    held.file_meta = pydicom.dataset.FileMetaDataset()
    held.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    held.file_meta.MediaStorageSOPClassUID = held.SOPClassUID = pydicom.uid.SecondaryCaptureImageStorage
    held.file_meta.MediaStorageSOPInstanceUID = held.SOPInstanceUID = "1.2.3"
    held.Rows, held.Columns = values.shape[:2]
    held.SamplesPerPixel, held.PhotometricInterpretation = (3 if values.ndim == 3 else 1), kind
    held.PlanarConfiguration = 0
    held.BitsAllocated = held.BitsStored = 8 * values.dtype.itemsize
    held.HighBit, held.PixelRepresentation = held.BitsStored - 1, int(values.dtype.kind == "i")
    held.PixelData = values.tobytes()
    for name, value in tags.items():
        setattr(held, name, value)
    stream = io.BytesIO()
    held.save_as(stream, enforce_file_format=True)
    return stream.getvalue()


RAMP = np.array([[0, 100, 200, 300], [400, 500, 600, 4095]], np.uint16)


def shown(data: bytes) -> list[list[int]]:
    return np.asarray(upright(data)).tolist()


def test_dicom__is_shown_in_its_window() -> None:
    assert shown(dicom(RAMP, WindowCenter=300.5, WindowWidth=401)) == [[0, 0, 64, 128], [191, 255, 255, 255]]
    signed = dicom(
        RAMP.astype(np.int16), WindowCenter=[-500.5, 40], WindowWidth=[1001, 400], RescaleSlope=1,
        RescaleIntercept=-1000,
    )  # fmt: skip
    assert shown(signed)[0] == [0, 26, 51, 77]
    exact = dicom(RAMP, WindowCenter=300, WindowWidth=400, VOILUTFunction="LINEAR_EXACT")
    assert shown(exact)[0] == [0, 0, 64, 128]


def test_dicom__white_is_where_the_file_says_so() -> None:
    data = dicom(RAMP, "MONOCHROME1", WindowCenter=300.5, WindowWidth=401)
    assert shown(data) == [[255, 255, 191, 127], [64, 0, 0, 0]]
    plain = np.array([[0, 10], [20, 255]], np.uint8)
    assert shown(dicom(plain, "MONOCHROME1")) == [[255, 245], [235, 0]]
    assert shown(dicom(plain)) == plain.tolist()


def test_dicom__without_a_window_is_deep_grey_in_its_own_numbers() -> None:
    data = dicom(RAMP.astype(np.int16), RescaleSlope=1, RescaleIntercept=-1024)
    assert probe(data).is_deep
    assert decoding.sampled_grey(data).tolist() == (RAMP.ravel().astype(float) - 1024).tolist()
    assert probe(dicom(RAMP)).is_deep


def test_dicom__of_colours_and_of_frames() -> None:
    colours = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    assert shown(dicom(colours, "RGB")) == colours.tolist()
    frames = np.stack([RAMP.astype(np.uint8), np.zeros((2, 4), np.uint8)])
    data = dicom(frames, NumberOfFrames=2, Rows=2, Columns=4, SamplesPerPixel=1)
    assert shown(data) == frames[0].tolist()
    assert decode(data, size=4, channels=1).height == 2


def test_dicom__that_cannot_be_shown_is_one_line() -> None:
    broken = dicom(RAMP)[:-10]
    with pytest.raises(ImageError, match="is DICOM that cannot be shown"):
        upright(broken)
    with pytest.raises(ImageError, match="more than 89,478,485"):
        upright(dicom(RAMP, Rows=60_000, Columns=60_000))


def heic(turn: int = 1) -> bytes:
    values = np.zeros((32, 64, 3), np.uint8)
    values[:, :32] = 255
    exif = Image.Exif()
    exif[decoding.ORIENTATION] = turn
    stream = io.BytesIO()
    heif.from_pillow(Image.fromarray(values)).save(stream, quality=-1, exif=exif.tobytes())
    return stream.getvalue()


def recoded(coding: str, data: bytes | None = None) -> bytes:
    """A file whose pixels are said to be coded so; with ``data`` they are those bytes, in one frame."""
    held = pydicom.dcmread(io.BytesIO(dicom(RAMP)))
    held.file_meta.TransferSyntaxUID = coding
    if data is not None:
        held.PixelData = pydicom.encaps.encapsulate([data])
    stream = io.BytesIO()
    held.save_as(stream, enforce_file_format=False)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("coding", "told"),
    [
        (pydicom.uid.MPEG2MPML, r"is coded as MPEG2 .*, which nothing here decodes"),
        (pydicom.uid.JPEGLSLossless, r"is coded as JPEG-LS Lossless.*; install one of: gdcm .*pylibjpeg"),
        (pydicom.uid.JPEG2000, r"is DICOM that cannot be shown \((?!is coded)"),
    ],
)
def test_dicom__what_decodes_it_is_named_and_damage_is_not_taken_for_it(coding: str, told: str) -> None:
    with pytest.raises(ImageError, match=told):
        upright(recoded(coding, b"\xff\xd8 none"))


def test_dicom__run_lengths_are_decoded() -> None:
    held = pydicom.dcmread(io.BytesIO(dicom(RAMP, WindowCenter=300.5, WindowWidth=401)))
    held.compress(pydicom.uid.RLELossless)
    stream = io.BytesIO()
    held.save_as(stream, enforce_file_format=True)
    assert shown(stream.getvalue()) == shown(dicom(RAMP, WindowCenter=300.5, WindowWidth=401))


def test_heic__is_upright() -> None:
    image = np.asarray(upright(heic()))
    assert image.shape == (32, 64, 3)
    assert image[:, :30].mean() > 250 > 5 > image[:, 34:].mean()
    turned = np.asarray(upright(heic(6)))
    assert turned.shape == (64, 32, 3)
    assert turned[:30].mean() > 250 > 5 > turned[34:].mean()
    assert (probe(heic(6)).height, probe(heic(6)).width) == (64, 32)


def test_open_source__files_without_a_suffix_are_known_by_their_first_bytes(tmp_path: Path) -> None:
    png = io.BytesIO()
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(png, "PNG")
    for place, data in (
        ("cat/IMG_1", png.getvalue()),
        ("dog/IM0001", dicom(RAMP)),
        ("dog/a.dcm", dicom(RAMP)),
        ("cat/b.HEIC", heic()),
        ("cat/README", b"Pictures of cats"),
    ):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_bytes(data)
    source = open_here(str(tmp_path), SourceOptions())
    assert {row.location for row in source.rows() if isinstance(row, SourceRow)} == {
        "cat/IMG_1", "dog/IM0001", "dog/a.dcm", "cat/b.HEIC",
    }  # fmt: skip
    assert source.ignored == ["cat/README"]
    assert not looks_like_image(b"Pictures of cats" * 10)
