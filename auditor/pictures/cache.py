"""Pictures of a registered dataset: the decoded cache, the originals, thumbnails and real files on disk."""

from __future__ import annotations

import io
import os
import shlex
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from auditor.catalog import datasets, db, folders
from auditor.catalog.records import Dataset, Sample
from auditor.ground import apart
from auditor.ground.apart import DiedError
from auditor.ground.errors import NotFoundError
from auditor.ground.files import load_array, read_npy
from auditor.ground.settings import settings
from auditor.pictures.decoding import ImageError, Levels, decode, placed, upright
from auditor.pictures.sources import Payload, UnreadableError, read_bytes
from auditor.statistics.annotators import Answers

TRUE_LABELS = "true_labels.npy"
ANSWERS = "answers.npy"
MOST_ROUNDED = 2
"""Grey levels by which the same picture may differ, decoded by two versions of a library."""
FILES = "files"
"""Folder below a dataset's own, for images that lie in a zip, in Parquet or in memory at their source."""
SMALL = 64
"""Pixels a side up to which a picture is sent as it is: every pixel counts, and the bytes are few."""
QUALITY, CLOSE_QUALITY = 85, 92
"""Of the JPEG that larger ones are sent as: of a photo a sixth of a PNG in bytes, a twentieth in time."""
CLOSE = 1024
"""From this size on a person looks at details: in the better quality, colours at full resolution."""
SUFFIX_OF_FORMAT = {
    "PNG": ".png",
    "JPEG": ".jpg",
    "MPO": ".jpg",
    "GIF": ".gif",
    "WEBP": ".webp",
    "TIFF": ".tif",
}


class MovedError(NotFoundError):
    """Another picture lies where a sample's was when it was imported."""


def cache_name(*, channels: int, height: int, width: int) -> str:
    """File name of the decoded cache."""
    return f"images_{height}x{width}x{channels}.npy"


def folder(dataset: Dataset) -> Path:
    """The dataset's folder in the home.

    Raises:
        MisplacedError: it belongs to another dataset.
    """
    path = settings().dataset_folder(dataset.id)
    return folders.checked(path, dataset.uuid, f"dataset {dataset.name}")


def image_cache_path(dataset: Dataset) -> Path:
    """Return where ``image_cache`` lies."""
    name = cache_name(channels=dataset.channels, height=dataset.height, width=dataset.width)
    return folder(dataset) / name


def image_cache(dataset: Dataset) -> np.memmap:
    """(N, C, H, W) uint8, read-only, mapped from disk: row i is sample i.

    Raises:
        NotFoundError: the cache file is gone or has another shape; the text says how to get it back.
    """
    path = image_cache_path(dataset)
    remedy = f"import {dataset.name!r} again under another name"
    try:
        images = read_npy(path)
    except (OSError, ValueError) as error:
        raise NotFoundError(f"The image cache {path} cannot be read ({error}); {remedy}.") from error
    wanted = (dataset.num_samples, dataset.channels, dataset.height, dataset.width)
    if not isinstance(images, np.memmap) or images.shape != wanted or images.dtype != np.uint8:
        raise NotFoundError(
            f"The image cache {path} holds {images.shape} {images.dtype}, not {wanted}; {remedy}."
        )
    return images


def true_labels(dataset: Dataset) -> NDArray[np.int64] | None:
    """(N,) known truth supplied at the import (-1 = unknown), or None. For benchmarks only."""
    path = folder(dataset) / TRUE_LABELS
    remedy = f"put it back from a backup, or import {dataset.name!r} again under another name"
    return load_array(path, remedy=remedy, mapped=False) if path.exists() else None


def answers(dataset: Dataset) -> Answers | None:
    """Return what the dataset's annotators answered; None where each sample has one label."""
    if dataset.annotators is None:
        return None
    path = folder(dataset) / ANSWERS
    remedy = f"put it back from a backup, or import {dataset.name!r} again under another name"
    rows, annotators, labels = load_array(path, remedy=remedy, mapped=False).astype(np.int64)
    sizes = dataset.num_samples, len(dataset.annotators), len(dataset.class_names)
    return Answers(rows, annotators, labels, *sizes)


def original_bytes(dataset: Dataset, sample: Sample) -> bytes:
    """The encoded image as the user has it: the picture that was imported, whatever lies at its place by now.

    Raises:
        NotFoundError: the source was moved, changed or deleted; ``MovedError``: another picture is there.
    """
    try:
        data = read_bytes(dataset.root, sample.location)
    except UnreadableError as error:
        raise NotFoundError(
            f"{sample.filepath} of {dataset.name!r} {error} (root: {dataset.root}); "
            f"if the images were moved, put them back there{_say_where(dataset.name)}."
        ) from error
    if not shows(dataset, sample, data):
        raise MovedError(
            f"{sample.filepath} of {dataset.name!r} is another picture than the one that was imported (root: "
            f"{dataset.root}); put the source back as it was, or import it again under another name."
        )
    return data


def shows(dataset: Dataset, sample: Sample, data: bytes) -> bool:
    """Return whether an encoded image is the picture that was imported as this sample."""
    try:
        return content_hash(dataset, data, like=sample) == sample.content_hash
    except ImageError:
        return not sample.content_hash


def content_hash(dataset: Dataset, data: bytes, *, like: Sample | None) -> str:
    """The hex hash that the picture has among the dataset's; that of ``like`` where it is the same picture.

    Raises:
        ImageError: it cannot be decoded.
    """
    try:
        found = apart.call(
            decode, data, size=dataset.height, channels=dataset.channels, levels=levels_of(dataset)
        )
    except DiedError as error:
        raise ImageError(str(error)) from error
    own = found.content_hash.hex()
    if like is None or like.content_hash == own:
        return own
    if (found.height, found.width) == (like.original_height, like.original_width):
        # Another version of a decoder rounds a grey level elsewhere.
        known = np.asarray(image_cache(dataset)[like.sample_id]).astype(np.int16)
        if not like.content_hash or np.abs(known - found.pixels).max() <= MOST_ROUNDED:
            return like.content_hash
    return own


def _say_where(name: str) -> str:
    return f" or say where they are: `auditor move {shlex.quote(name)} FOLDER`"


def levels_of(dataset: Dataset) -> Levels | None:
    """The grey values that the dataset's import made black and white; None where no image has more than 8 bits."""
    found = dataset.import_report.get("levels")
    return None if found is None else (found[0], found[1])


def picture_of(root: str, payload: Payload, size: int, levels: Levels | None = None) -> bytes:
    """The image (its bytes, or its location below the root) as ``encoded``, read and decoded in a process apart.

    Raises:
        UnreadableError, ImageError: it cannot be.
    """
    try:
        return apart.call(_picture_of, root, payload, size, levels)
    except DiedError as error:
        raise ImageError(str(error)) from error


def _picture_of(root: str, payload: Payload, size: int, levels: Levels | None) -> bytes:
    data = payload if isinstance(payload, bytes) else read_bytes(root, payload)
    return encoded(upright(data, at_least=size, levels=levels), size)


def thumbnail(dataset: Dataset, sample: Sample, size: int) -> bytes:
    """The cached image as ``encoded``, without what fills up its square; nothing is enlarged, who shows it does.

    Read from the cache, so that it is fast and works when the source is away.

    Raises:
        NotFoundError: no cache.
    """
    pixels = np.asarray(image_cache(dataset)[sample.sample_id])
    if sample.original_height and sample.original_width:
        left, top, width, height = placed(sample.original_width, sample.original_height, dataset.height)
        pixels = pixels[:, top : top + height, left : left + width]
    whole = pixels[0] if len(pixels) == 1 else np.ascontiguousarray(pixels.transpose(1, 2, 0))
    return encoded(Image.fromarray(whole), size)


def encoded(image: Image.Image, size: int) -> bytes:
    """An image of mode L or RGB at most ``size`` pixels a side: as PNG up to ``SMALL`` pixels, else as JPEG."""
    image.thumbnail((size, size))
    stream = io.BytesIO()
    if max(image.size) <= SMALL:
        image.save(stream, "PNG")
    elif size < CLOSE:
        image.save(stream, "JPEG", quality=QUALITY)
    else:
        image.save(stream, "JPEG", quality=CLOSE_QUALITY, subsampling=0)
    return stream.getvalue()


def media_type(picture: bytes) -> str:
    """Of what ``encoded`` made."""
    return "image/png" if picture.startswith(b"\x89PNG") else "image/jpeg"


def extracted_path(dataset: Dataset, sample: Sample) -> Path:
    """A real image file on disk: the user's own where there is one, else a copy of its bytes in our home.

    Raises:
        NotFoundError: the source cannot be read, or holds another picture by now.
    """
    if os.path.isdir(dataset.root):
        own = Path(dataset.root) / sample.location
        if own.is_file():
            original_bytes(dataset, sample)
            return own
    target_folder = folder(dataset) / FILES / f"{sample.sample_id // 1000:06d}"
    found = sorted(target_folder.glob(f"{sample.sample_id:09d}.*"))
    if found:
        return found[0]
    data = original_bytes(dataset, sample)
    target_folder.mkdir(parents=True, exist_ok=True)
    target = target_folder / f"{sample.sample_id:09d}{apart.call(_suffix, data, sample.filepath)}"
    # Under another name first: two processes may want the same file, and a kill must leave no half of it.
    descriptor, temporary = tempfile.mkstemp(dir=target_folder, prefix=".writing-")
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
    os.replace(temporary, target)
    return target


def move_root(name: str, root: Path) -> Dataset:
    """Tell a dataset that its images were moved to ``root`` (a folder, or the same zip or Parquet file).

    Raises:
        NotFoundError: the first, middle and last sample are not there with the same content.
    """
    with db.session() as session:
        dataset = datasets.get(session, name)
        try:
            place = str(root.expanduser().absolute())
        except RuntimeError as error:  # ~nouser
            raise NotFoundError(f"{root}: {str(error).rstrip('.')}; name the folder in full.") from error
        few = sorted({0, dataset.num_samples // 2, dataset.num_samples - 1})
        for sample in datasets.samples(session, dataset.id, few):
            try:
                differs = not shows(dataset, sample, read_bytes(place, sample.location))
            except UnreadableError:
                differs = True
            if differs:
                raise NotFoundError(
                    f"{place} does not hold the images of {name!r}: {sample.filepath} is missing or is another "
                    "picture; name the folder that the paths are relative to."
                )
        datasets.change(session, dataset.id, root=place)
        return datasets.by_id(session, dataset.id)


def _suffix(data: bytes, filepath: str) -> str:
    try:
        with Image.open(io.BytesIO(data)) as image:
            return SUFFIX_OF_FORMAT.get(image.format or "", f".{(image.format or 'img').lower()}")
    except OSError:
        return Path(filepath).suffix or ".img"
