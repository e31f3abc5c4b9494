"""Find the wrong labels in an image set, settle them fast, and hand back a clean CSV.

``import auditor`` is cheap; everything loads what it needs when it is called.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

    from auditor.api import Dataset
    from auditor.api.estimator import LabelAuditor
    from auditor.ground.progress import OnProgress

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


def import_dataset(
    source: str | Path,
    *,
    name: str,
    label_column: str | None = None,
    path_column: str | None = None,
    true_label_column: str | None = None,
    root: str | Path | None = None,
    class_names: str | Path | None = None,
    boxes: bool = False,
    task: Literal["segmentation", "regression", "multilabel"] | None = None,
    masks: str | Path | None = None,
    ignore_index: int | None = None,
    encoding: str | None = None,
    merge_classes: bool | None = None,
    joined_classes: bool = False,
    layout: str | None = None,
    masks_on: Literal["stored", "seen"] | None = None,
    levels: tuple[float, float] | None = None,
    image_size: int | None = None,
    skip_bad: bool = False,
    workers: int | None = None,
    on: str | None = None,
    progress: bool | OnProgress = True,
) -> Dataset:
    """Import any source of ``docs/formats.md`` and return its handle; see ``importing.imports.import_dataset``.

    ``progress``: a bar in a terminal or notebook, ``False`` for silence, or a function that is told.

    Raises:
        ImportRefusedError: nothing was registered, nothing is left behind; ``BadRowsError`` lists the rows.
    """
    from auditor import api

    return api.import_dataset(
        source,
        name=name,
        label_column=label_column,
        path_column=path_column,
        true_label_column=true_label_column,
        root=root,
        class_names=class_names,
        boxes=boxes,
        task=task,
        masks=masks,
        ignore_index=ignore_index,
        encoding=encoding,
        merge_classes=merge_classes,
        joined_classes=joined_classes,
        layout=layout,
        masks_on=masks_on,
        levels=levels,
        image_size=image_size,
        skip_bad=skip_bad,
        workers=workers,
        on=on,
        progress=progress,
    )


def from_arrays(
    images: Any,
    labels: Sequence[Any],
    *,
    name: str,
    class_names: Sequence[str] | None = None,
    splits: Sequence[str] | None = None,
    image_size: int | None = None,
    workers: int | None = None,
    progress: bool | OnProgress = True,
) -> Dataset:
    """A dataset from images in memory; see ``memory.from_arrays``."""
    from auditor import api

    options = {"class_names": class_names, "splits": splits, "image_size": image_size, "workers": workers}
    return api.import_in_memory(api.from_arrays, images, labels, name=name, progress=progress, **options)


def from_torch(
    dataset: Any,
    *,
    name: str,
    class_names: Sequence[str] | None = None,
    image_size: int | None = None,
    workers: int | None = None,
    progress: bool | OnProgress = True,
) -> Dataset:
    """A dataset from a ``torch.utils.data.Dataset`` of (image, class); see ``memory.from_torch``."""
    from auditor import api

    options = {"class_names": class_names, "image_size": image_size, "workers": workers}
    return api.import_in_memory(api.from_torch, dataset, name=name, progress=progress, **options)


def from_huggingface(
    dataset: Any,
    *,
    name: str,
    image_column: str = "image",
    label_column: str = "label",
    image_size: int | None = None,
    workers: int | None = None,
    progress: bool | OnProgress = True,
) -> Dataset:
    """A dataset from a Hugging Face ``Dataset`` or ``DatasetDict``; see ``memory.from_huggingface``."""
    from auditor import api

    columns = {"image_column": image_column, "label_column": label_column}
    options = {"image_size": image_size, "workers": workers, **columns}
    return api.import_in_memory(api.from_huggingface, dataset, name=name, progress=progress, **options)


def from_dataframe(
    frame: pd.DataFrame,
    *,
    name: str,
    path_column: str | None = None,
    label_column: str | None = None,
    true_label_column: str | None = None,
    root: str | Path | None = None,
    image_size: int | None = None,
    skip_bad: bool = False,
    workers: int | None = None,
    progress: bool | OnProgress = True,
) -> Dataset:
    """A dataset from a table of paths and labels; see ``memory.from_dataframe``."""
    from auditor import api

    columns = {
        "path_column": path_column,
        "label_column": label_column,
        "true_label_column": true_label_column,
    }
    options = {"root": root, "image_size": image_size, "skip_bad": skip_bad, "workers": workers, **columns}
    return api.import_in_memory(api.from_dataframe, frame, name=name, progress=progress, **options)
