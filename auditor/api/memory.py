"""Datasets from what is in memory: arrays, a torch dataset, a Hugging Face dataset, a DataFrame.

The images are kept once, as PNG in a Parquet file below the home, and imported like any other source; removing the
dataset removes that file.
"""

from __future__ import annotations

import io
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from auditor.api.dataset import Dataset
from auditor.api.watching import watching
from auditor.ground.errors import ImportRefusedError
from auditor.ground.processes import usable_cores
from auditor.ground.progress import OnProgress
from auditor.ground.settings import settings
from auditor.importing import import_dataset
from auditor.pictures.decoding import plain_pixels
from auditor.pictures.sources import SPLITS

BATCH = 500
"""Images that are held as PNG at once."""


def import_in_memory(
    keep: Callable[..., None], *arguments: Any, name: str, progress: bool | OnProgress, **options: Any
) -> Dataset:
    """Let one of the functions below import what is in memory, and return the dataset's handle."""
    with watching(progress) as heard:
        keep(*arguments, name=name, progress=heard, **options)
    return Dataset(name)


def from_arrays(
    images: Iterable[Any],
    labels: Sequence[Any],
    *,
    name: str,
    class_names: Sequence[str] | None = None,
    splits: Sequence[str] | None = None,
    **options: Any,
) -> None:
    """Import ``images`` with ``labels`` under ``name``.

    Args:
        images: N images, each (H, W), (H, W, C) or (C, H, W), uint8 in 0..255 or floats in [0, 1]; or PIL images.
        labels: N class names, or whole numbers, also as (N, 1); None, NaN and -1 are unlabeled.
        name: of the dataset.
        class_names: what the numbers mean; default: the numbers themselves.
        splits: N names such as ``train`` and ``test``.
        options: ``image_size``, ``workers``, ``progress`` as in an import.

    Raises:
        ImportRefusedError: numbers of images and labels differ, or an image or label cannot be used.
    """
    for what, values in (("images", images), ("labels", labels)):
        if np.ndim(values) == 0 if isinstance(values, np.ndarray) else not isinstance(values, Iterable):
            raise ImportRefusedError(f"{what} is {type(values).__name__} without entries; give one each.")
    if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.shape[1] == 1:  # as MedMNIST has them
        labels = labels[:, 0]
    names = [_label(label, row, class_names) for row, label in enumerate(labels)]
    if splits is not None and len(splits) != len(names):
        raise ImportRefusedError(f"splits has {len(splits)} entries and labels {len(names)}; give one each.")
    own = {} if splits is None else {"split": [str(split) for split in splits]}
    _import_pictures(images, names, own, name=name, **options)


def from_torch(dataset: Any, *, name: str, class_names: Sequence[str] | None = None, **options: Any) -> None:
    """Import a map-style torch dataset whose items start with (image, class).

    ``class_names`` default to the dataset's ``classes``. Leave normalisation and random transforms out of it.

    Raises:
        ImportRefusedError: an item is no image with a class.
    """
    names = class_names if class_names is not None else getattr(dataset, "classes", None)
    labels: list[Any] = []

    def pictures() -> Iterator[Any]:
        for row in range(len(dataset)):
            item = dataset[row]
            if not isinstance(item, tuple | list) or len(item) < 2:
                raise ImportRefusedError(f"dataset[{row}] is no pair of image and class.")
            labels.append(_label(item[1], row, names))
            yield item[0]

    _import_pictures(pictures(), labels, {}, name=name, **options)


def from_huggingface(
    dataset: Any, *, name: str, image_column: str = "image", label_column: str = "label", **options: Any
) -> None:
    """Import a Hugging Face ``Dataset``, or a ``DatasetDict`` with its splits.

    Class names are those of a ``ClassLabel``. Where ``image_column`` is an ``Image``, the whole dataset is kept, so
    that an export in its own form has all of its columns.

    Raises:
        ImportRefusedError: no such column, or an image cannot be used.
    """
    parts = dict(dataset) if isinstance(dataset, Mapping) else {"": dataset}
    strange = next((part for part in parts.values() if not hasattr(part, "column_names")), None)
    if strange is not None:
        raise ImportRefusedError(f"The dataset is {type(strange).__name__}; give a Dataset or a DatasetDict.")
    labels: list[str] = []
    splits: list[str] = []
    for part in parts.values():
        for column in (image_column, label_column):
            if column not in part.column_names:
                raise ImportRefusedError(
                    f"The dataset has no column {column!r}, it has {', '.join(part.column_names)}; name it by "
                    "image_column or label_column."
                )
    if _can_be_saved(parts, image_column):
        _import_saved(dataset, name=name, path_column=image_column, label_column=label_column, **options)
        return
    for split, part in parts.items():
        names = getattr(part.features[label_column], "names", None)
        labels += [_label(value, row, names) for row, value in enumerate(part[label_column])]
        splits += [split] * len(part)

    def pictures() -> Iterator[Any]:
        for part in parts.values():
            for row in part.select_columns([image_column]):
                yield row[image_column]

    _import_pictures(pictures(), labels, {"split": splits} if any(splits) else {}, name=name, **options)


def _can_be_saved(parts: Mapping[str, Any], image_column: str) -> bool:
    """Return whether ``save_to_disk`` keeps the images, and its folders tell the splits."""
    are_images = all(type(part.features[image_column]).__name__ == "Image" for part in parts.values())
    return are_images and all(not split or split in SPLITS for split in parts)


def _import_saved(dataset: Any, *, name: str, **options: Any) -> None:
    folder = _new_folder()
    try:
        dataset.save_to_disk(folder / "dataset")
        import_dataset(folder / "dataset", name=name, **options)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def from_dataframe(
    frame: pd.DataFrame,
    *,
    name: str,
    path_column: str | None = None,
    label_column: str | None = None,
    root: str | Path | None = None,
    **options: Any,
) -> None:
    """Import a table of image paths and labels; all its columns are kept.

    ``root``: what the paths are relative to, default the current folder. Columns that are not named are found.

    Raises:
        ImportRefusedError: no path or label column, or a row that cannot be used.
    """
    folder = _new_folder()
    try:
        with _utf8("a cell of the table"):
            frame.to_csv(folder / "table.csv", index=False)
        import_dataset(
            folder / "table.csv",
            name=name,
            path_column=path_column,
            label_column=label_column,
            root=root or Path.cwd(),
            **options,
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _import_pictures(
    images: Iterable[Any], labels: list[str], own: dict[str, list[str]], *, name: str, **options: Any
) -> None:
    """``labels`` may grow while ``images`` are read."""
    folder = _new_folder()
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    schema = pa.schema([("image", kind), ("label", pa.string()), *((column, pa.string()) for column in own)])
    try:
        count = 0
        with (
            pq.ParquetWriter(folder / "images.parquet", schema) as writer,
            ThreadPoolExecutor(usable_cores()) as threads,
        ):
            for part in _batches(enumerate(images)):
                rows = [{"bytes": one, "path": None} for one in threads.map(_png, part)]
                end = count + len(rows)
                if end > len(labels):
                    break
                columns: dict[str, Any] = {"image": rows, "label": labels[count:end]}
                columns |= {column: values[count:end] for column, values in own.items()}
                with _utf8("a label or a split"):
                    table = pa.table(columns, schema=schema)
                writer.write_table(table)
                count = end
        if count != len(labels) or count == 0:
            raise ImportRefusedError(
                f"images and labels differ in number ({len(labels)} labels); give one each."
            )
        import_dataset(folder / "images.parquet", name=name, label_column="label", **options)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def _utf8(what: str) -> Iterator[None]:
    """Text with half of a pair of surrogates, as Python makes it of file names, can be stored nowhere."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise ImportRefusedError(
            f"{what} cannot be stored as UTF-8 ({error.object[error.start : error.end]!a}); give it another name."
        ) from error


def _batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    part: list[Any] = []
    for item in items:
        part.append(item)
        if len(part) == BATCH:
            yield part
            part = []
    if part:
        yield part


def _new_folder() -> Path:
    folder = settings().uploads / uuid.uuid4().hex
    folder.mkdir(parents=True)
    return folder


def _label(value: Any, row: int, class_names: Sequence[str] | None) -> str:
    """A class name; empty for unlabeled."""
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    if isinstance(value, str):
        return value
    try:
        number = int(value)
        is_whole = number == value
    except (TypeError, ValueError):
        is_whole = False
    if not is_whole:
        raise ImportRefusedError(f"labels[{row}] is {value!r}; give class names or whole numbers.")
    if number == -1:
        return ""
    if class_names is None:
        return str(number)
    if not 0 <= number < len(class_names):
        raise ImportRefusedError(f"labels[{row}] is {number}, outside the {len(class_names)} class_names.")
    return str(class_names[number])


def _png(numbered: tuple[int, Any]) -> bytes:
    (row, image), stream = numbered, io.BytesIO()
    if not isinstance(image, Image.Image):
        try:
            image = Image.fromarray(plain_pixels(np.asarray(image)))
        except ValueError as error:
            raise ImportRefusedError(f"images[{row}] {error}.") from error
    image.save(stream, "PNG", compress_level=1)  # a third of the time, files hardly larger
    return stream.getvalue()
