"""Embeddings that lie in a field of a FiftyOne dataset, matched to the samples of a dataset of ours."""

from __future__ import annotations

import os
from typing import Any

from auditor.backbones import features, own_features
from auditor.backbones.features import FeatureSource
from auditor.catalog import reading
from auditor.catalog.records import Dataset
from auditor.fiftyone_bridge import fields
from auditor.ground.errors import ImportRefusedError
from auditor.ground.wording import did_you_mean
from auditor.pictures.sources import fiftyone_sets

FIELD = "fiftyone:"
"""``fiftyone:FIELD`` of the FiftyOne dataset that was imported, or ``fiftyone:OTHER/FIELD`` of another one."""


def add_own_features(dataset_name: str, spec: str) -> FeatureSource:
    """Keep the embeddings of a FiftyOne field as features of ``dataset_name``.

    Samples are matched by FiftyOne's own ids where the dataset was imported from there, else by the image's path.
    What is only in FiftyOne is left out.

    Raises:
        NotFoundError: no such dataset.
        FiftyOneError: FiftyOne cannot be used.
        ImportRefusedError: no such FiftyOne dataset or field, or a sample without features; names the first one.
    """
    dataset = reading.dataset(dataset_name)
    other, _, field = spec.removeprefix(FIELD).rpartition("/")
    target = fiftyone_sets.load_fiftyone(other or _imported_from(dataset, field))
    there = target.get_field_schema()
    if field not in there:
        hint = did_you_mean(field, there, f"it has {', '.join(there)}.")
        raise ImportRefusedError(f"{FIELD}{target.name} has no field {field!r}; {hint}")
    values = _matched(dataset, target, field, f"{FIELD}{target.name}/{field}")
    return features.add_own(dataset.id, dataset.num_samples, values, name=field)


def _imported_from(dataset: Dataset, field: str) -> str:
    if dataset.source_kind == "fiftyone":
        return dataset.source.removeprefix(FIELD)
    raise ImportRefusedError(
        f"{dataset.name} was not imported from FiftyOne; name the FiftyOne dataset too: {FIELD}DATASET/{field}."
    )


def _matched(dataset: Dataset, target: Any, field: str, called: str) -> Any:
    """(N, D) float32 in our order."""
    extras = [(one.filepath, one.extra or {}) for one in reading.samples(dataset.id)]
    filepaths = [filepath for filepath, _ in extras]
    by_id = dataset.source == f"{FIELD}{target.name}"
    keys = (
        [extra.get(fiftyone_sets.ID_COLUMN, "") for _, extra in extras]
        if by_id
        else [os.path.realpath(path) for path in fields.image_paths(dataset)]
    )
    place = {key: row for row, key in enumerate(keys)}
    cells: dict[int, Any] = {}
    for own, path, cell in zip(*target.values(["id", "filepath", field]), strict=True):
        row = place.get(own if by_id else os.path.realpath(path))
        if row is not None:
            cells[row] = cell
    rows = sorted(cells)
    names = [f"sample {row} ({filepaths[row]})" for row in rows]
    values = own_features.stacked([cells[row] for row in rows], called, names)
    return own_features.in_order(values, rows, filepaths, called)
