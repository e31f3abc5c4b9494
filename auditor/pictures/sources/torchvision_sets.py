"""A torchvision dataset by name, read from a local folder; nothing is ever downloaded.

Only sets from the table below are read. CIFAR's files are pickles: torchvision compares their MD5 sums with the
published ones before it opens them, so nothing but the published files is ever unpickled.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from auditor.ground.errors import ImportRefusedError
from auditor.pictures.sources.rows import Payload, Problem, SourceInfo, SourceOptions, SourceRow

BY_TRAIN_FLAG = ("MNIST", "FashionMNIST", "KMNIST", "USPS", "CIFAR10", "CIFAR100")
BY_SPLIT = {
    "SVHN": ("train", "test", "extra"),
    "STL10": ("train", "test", "unlabeled", "train+unlabeled"),
    "Flowers102": ("train", "val", "test"),
    "Food101": ("train", "test"),
    "OxfordIIITPet": ("trainval", "test"),
    "GTSRB": ("train", "test"),
    "DTD": ("train", "val", "test"),
}
SPLITS = dict.fromkeys(BY_TRAIN_FLAG, ("train", "test")) | BY_SPLIT
LABELS = ("targets", "labels", "_labels")


class TorchvisionSource:
    """All samples of one split in their order."""

    def __init__(self, name: str, split: str, folder: Path) -> None:
        """Load the set.

        Raises:
            ImportRefusedError: its files are not in ``folder``.
        """
        self.ignored: list[str] = []
        self._split = split
        root = f"torchvision:{name}/{split}@{folder}"
        self._set = _load(root)
        classes = getattr(self._set, "classes", None)
        self._classes = tuple(str(one) for one in classes) if classes is not None else None
        self.info = SourceInfo("torchvision", root, f"torchvision:{name}", self._classes)

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``."""
        found = next((getattr(self._set, name) for name in LABELS if hasattr(self._set, name)), None)
        for number in range(len(self._set)):
            label = int(found[number] if found is not None else self._set[number][1])
            name = None if label < 0 else self._classes[label] if self._classes else str(label)
            path = f"{self._split}/{number:06d}"
            yield SourceRow(row=number, filepath=path, location=str(number), label=name, split=self._split)

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """See ``Source``: the pixels as PNG."""
        for location in locations:
            yield _png(self._set, location)


def open_torchvision(named: str, options: SourceOptions) -> TorchvisionSource:
    """``NAME`` or ``NAME/SPLIT`` from the folder ``options.root``.

    Raises:
        ImportRefusedError: an unknown name or split, no folder, or files that are missing or damaged.
    """
    name, _, split = named.partition("/")
    if name not in SPLITS:
        raise ImportRefusedError(
            f"torchvision:{name} is not known here; use one of {', '.join(sorted(SPLITS))}."
        )
    split = split or SPLITS[name][0]
    if split not in SPLITS[name]:
        raise ImportRefusedError(f"torchvision:{name} has no split {split!r}; use {', '.join(SPLITS[name])}.")
    if options.root is None:
        raise ImportRefusedError(f"name the folder that holds the files of torchvision:{name}.", field="root")
    return TorchvisionSource(name, split, Path(options.root).expanduser().absolute())


def read_item(root: str, location: str) -> bytes:
    """One image of a set as PNG; ``root`` is ``torchvision:NAME/SPLIT@FOLDER``.

    Raises:
        ImportRefusedError: the files are gone, or there is no such number.
    """
    found = _load(root)
    if not re.fullmatch(r"[0-9]{1,18}", location) or int(location) >= len(found):
        raise ImportRefusedError(f"{root} has no image {location}; put the same files back.")
    return _png(found, location)


@functools.lru_cache(maxsize=2)
def _load(root: str) -> Any:
    from torchvision import datasets  # loads torch

    named, _, folder = root.removeprefix("torchvision:").partition("@")
    name, _, split = named.partition("/")
    choice = {"train": split == "train"} if name in BY_TRAIN_FLAG else {"split": split}
    try:
        return getattr(datasets, name)(folder, download=False, **choice)
    except (RuntimeError, OSError, ValueError, EOFError) as error:
        raise ImportRefusedError(
            f"the files of torchvision:{name} are not complete in {folder}; download them once with "
            f"torchvision.datasets.{name}({folder!r}, download=True) on a machine with internet access."
        ) from error


def _png(found: Any, location: str) -> bytes:
    image = found[int(location)][0]
    assert isinstance(image, Image.Image)
    stream = io.BytesIO()
    image.save(stream, "PNG", compress_level=1)
    return stream.getvalue()
