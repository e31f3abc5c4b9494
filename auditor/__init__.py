"""Find the wrong labels in an image set, settle them fast, and hand back a clean CSV.

``import auditor`` is cheap; everything loads what it needs when it is called.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from auditor.api import Dataset
    from auditor.api.estimator import LabelAuditor

__all__ = [
    "Dataset",
    "LabelAuditor",
    "__version__",
    "datasets",
    "from_arrays",
    "from_dataframe",
    "from_huggingface",
    "from_torch",
    "import_dataset",
    "open",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        try:
            return importlib.metadata.version("label-auditor")
        except importlib.metadata.PackageNotFoundError:
            return "0+unknown"  # from a checkout that nobody installed
    if name == "Dataset":
        from auditor.api import Dataset

        return Dataset
    if name == "LabelAuditor":
        from auditor.api.estimator import LabelAuditor

        return LabelAuditor
    raise AttributeError(f"module 'auditor' has no attribute {name!r}")


def datasets() -> pd.DataFrame:
    """All imported datasets: name, num_samples, num_classes, source, created_at."""
    from auditor.api import list_datasets

    return list_datasets()


def open(name: str) -> Dataset:
    """The imported dataset of that name.

    Raises:
        NotFoundError: there is none.
    """
    from auditor.api import open_dataset

    return open_dataset(name)


def import_dataset(source: Any, *, name: str, **options: Any) -> Dataset:
    """Import a folder, table, Parquet or zip of labeled images and return its handle."""
    from auditor import api

    return api.import_dataset(source, name=name, **options)


def from_arrays(
    images: Any, labels: Sequence[Any], *, name: str, class_names: Sequence[str] | None = None, **options: Any
) -> Dataset:
    """A dataset from images in memory; see ``memory.from_arrays``."""
    from auditor import api
    from auditor.api import memory

    memory.from_arrays(images, labels, name=name, class_names=class_names, **options)
    return api.open_dataset(name)


def from_torch(
    dataset: Any, *, name: str, class_names: Sequence[str] | None = None, **options: Any
) -> Dataset:
    """A dataset from a ``torch.utils.data.Dataset`` of (image, class); see ``memory.from_torch``."""
    from auditor import api
    from auditor.api import memory

    memory.from_torch(dataset, name=name, class_names=class_names, **options)
    return api.open_dataset(name)


def from_huggingface(dataset: Any, *, name: str, **options: Any) -> Dataset:
    """A dataset from a Hugging Face ``Dataset`` or ``DatasetDict``; see ``memory.from_huggingface``."""
    from auditor import api
    from auditor.api import memory

    memory.from_huggingface(dataset, name=name, **options)
    return api.open_dataset(name)


def from_dataframe(frame: pd.DataFrame, *, name: str, **options: Any) -> Dataset:
    """A dataset from a table of paths and labels; see ``memory.from_dataframe``."""
    from auditor import api
    from auditor.api import memory

    memory.from_dataframe(frame, name=name, **options)
    return api.open_dataset(name)
