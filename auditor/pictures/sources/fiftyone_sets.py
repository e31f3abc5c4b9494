"""A FiftyOne dataset as a source: its files, its labels of any kind, its own sample ids kept as a column."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from auditor.bridges import fiftyone_door
from auditor.ground.errors import ImportRefusedError
from auditor.ground.vocabulary import MULTILABEL, REGRESSION
from auditor.ground.wording import did_you_mean
from auditor.pictures.sources.columns import is_of_model
from auditor.pictures.sources.layout import is_split
from auditor.pictures.sources.rows import (
    PathBook,
    Payload,
    Problem,
    SourceInfo,
    SourceOptions,
    SourceRow,
    printable,
)
from auditor.pictures.sources.segmentation import MaskSource, Pair, code_of_targets
from auditor.pictures.sources.sets import ONE_CLASS, set_text
from auditor.pictures.sources.trees import FolderTree, MissingError, PathError

LABEL_FIELD = "ground_truth"
ID_COLUMN = "fiftyone_id"


class FiftyOneSource:
    """The samples of a FiftyOne dataset in its order.

    The given label is a field of ``Classification`` or ``Classifications`` (of one class a sample, or the set of
    them: no label where there is none, a set without classes where the list is empty), of text, or of yes and no;
    of numbers it is a ``Regression`` or a plain number. A tag that is called like a split is one.
    """

    def __init__(self, dataset: Any, options: SourceOptions) -> None:
        """Read paths, labels and ids.

        Raises:
            ImportRefusedError: no images, or no such label field.
        """
        self.ignored: list[str] = []
        self._name = f"fiftyone:{dataset.name}"
        fields = dataset.get_field_schema()
        is_numeric, self._are_sets = options.task == REGRESSION, options.task == MULTILABEL
        what = "number" if is_numeric else "classification"
        parts = {name: _part(str(kind), is_numeric=is_numeric) for name, kind in fields.items()}
        labels = [name for name, part in parts.items() if part is not None and name != "filepath"]
        named = [name for name in labels if "label" in str(parts[name])]
        is_clear = len(named) == 1 and LABEL_FIELD not in labels and not is_of_model(named[0])
        field = options.label_column or (named[0] if is_clear else LABEL_FIELD)
        _refuse_field(self._name, field, labels, what)
        _refuse_no_images(dataset, self._name)
        self._paths: list[str] = dataset.values("filepath")
        found = dataset.values(f"{field}{parts[field]}")
        self._labels: list[Any] = found
        self._tags: list[list[str]] = dataset.values("tags")
        self._ids: list[str] = dataset.values("id")
        root = options.root or os.path.commonpath([os.path.dirname(path) for path in self._paths])
        self._tree = FolderTree(Path(root))
        self.info = SourceInfo(
            kind="fiftyone",
            root=self._tree.root,
            table_file=self._name,
            user_columns=(ID_COLUMN,),
            columns=tuple(fields),
            label_column=field,
        )

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``. Rows are 0-based."""
        book = PathBook()
        of_each = zip(self._paths, self._labels, self._tags, self._ids, strict=True)
        for row, (path, label, tags, own_id) in enumerate(of_each):
            splits = [tag for tag in tags or () if is_split(tag)]
            several = sorted({str(one) for one in label if one}) if isinstance(label, list) else []
            if self._are_sets and (isinstance(label, list) or (label is not None and str(label).strip())):
                label = set_text(several if isinstance(label, list) else [str(label).strip()])
            elif len(several) > 1:
                names = printable(", ".join(several), 60)
                yield Problem(self._name, row, f"has several labels ({names}); {ONE_CLASS}")
                continue
            label = next(iter(several), None) if isinstance(label, list) else label
            try:
                location = self._tree.locate(path)
            except PathError as error:
                is_missing = isinstance(error, MissingError)
                yield Problem(self._name, row, f"{printable(path)} {error}", is_missing)
                continue
            name = ("" if label is None else str(label)).strip() or None
            again = book.again(self._name, path, location, row, name)
            if again is not None:
                yield again
                continue
            yield SourceRow(
                row=row,
                filepath=location,
                location=location,
                label=name,
                split=splits[0] if len(splits) == 1 else None,
                extra={ID_COLUMN: own_id},
            )

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """See ``Source``: workers read the files themselves."""
        yield from locations


def _part(kind: str, *, is_numeric: bool) -> str | None:
    """Return where the labels of a field of that kind are below it; None: it holds none."""
    if not is_numeric:
        if "Classifications" in kind:
            return ".classifications.label"
        if "Classification" in kind:
            return ".label"
        return "" if kind.startswith(("StringField", "BooleanField")) else None
    if "Regression" in kind:
        return ".value"
    return "" if "FloatField" in kind or "IntField" in kind else None


class FiftyOneMasks(MaskSource):
    """The samples of a FiftyOne dataset with a ``Segmentation`` each, in its order.

    Masks are read from their files (``mask_path``): only there can cleaned ones be written as they came in.
    """

    def __init__(self, dataset: Any, options: SourceOptions) -> None:
        """Read paths, mask targets and ids.

        Raises:
            ImportRefusedError: no images, no such field, or masks that lie in no files.
        """
        name = f"fiftyone:{dataset.name}"
        fields = dataset.get_field_schema()
        field = options.label_column or LABEL_FIELD
        _refuse_field(
            name, field, [one for one, kind in fields.items() if "Segmentation" in str(kind)], "mask"
        )
        _refuse_no_images(dataset, name)
        paths: list[str] = dataset.values("filepath")
        masks: list[str | None] = dataset.values(f"{field}.mask_path")
        own_ids: list[str] = dataset.values("id")
        if not any(masks):
            raise ImportRefusedError(
                f"{name}: the masks of {field} lie in FiftyOne's database; write them to files with "
                "fiftyone.utils.labels.export_segmentations(dataset, field, folder), then import again.",
                field="label_column",
            )
        folders = {os.path.dirname(path) for path in [*paths, *filter(None, masks)]}
        root = options.root or os.path.commonpath(folders)
        pairs = [
            Pair(os.path.relpath(path, root), None if mask is None else os.path.relpath(mask, root))
            for path, mask in zip(paths, masks, strict=True)
        ]
        targets = dataset.mask_targets.get(field) or dataset.default_mask_targets or {}
        code, names = code_of_targets(Path(root), pairs, targets, options.ignore_index)
        super().__init__(root, pairs, code, names, options.masks_on)
        self._ids = own_ids
        self.info = replace(
            self.info,
            kind="fiftyone",
            table_file=name,
            user_columns=(ID_COLUMN,),
            columns=tuple(fields),
            label_column=field,
        )

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``MaskSource``."""
        for own_id, row in zip(self._ids, super().rows(), strict=True):
            yield replace(row, extra={ID_COLUMN: own_id}) if isinstance(row, SourceRow) else row


def open_fiftyone_masks(name: str, options: SourceOptions) -> FiftyOneMasks:
    """The FiftyOne dataset of that name with its masks; ``options.label_column`` names their field.

    Raises:
        FiftyOneError: FiftyOne is missing or its database cannot be reached.
        ImportRefusedError: no such dataset, or nothing in it that can be imported.
    """
    return FiftyOneMasks(load_fiftyone(name), options)


def _refuse_field(name: str, field: str, there: list[str], what: str) -> None:
    if field not in there:
        named = printable(", ".join(there)) or "none"
        raise ImportRefusedError(
            f"{name} has no {what} field {field!r}; name another one. Its {what} fields are: {named}.",
            field="label_column",
        )


def _refuse_no_images(dataset: Any, name: str) -> None:
    if dataset.media_type != "image" or len(dataset) == 0:
        raise ImportRefusedError(f"{name} holds no images; name a dataset of images.")


def open_fiftyone(name: str, options: SourceOptions) -> FiftyOneSource:
    """The FiftyOne dataset of that name; ``options.label_column`` names its field (default ``ground_truth``).

    Raises:
        FiftyOneError: FiftyOne is missing or its database cannot be reached.
        ImportRefusedError: no such dataset, or nothing in it that can be imported.
    """
    return FiftyOneSource(load_fiftyone(name), options)


def load_fiftyone(name: str) -> Any:
    """The user's own ``fiftyone.Dataset`` of that name.

    Raises:
        FiftyOneError: FiftyOne is missing or its database cannot be reached.
        ImportRefusedError: no such dataset.
    """
    fiftyone = fiftyone_door.connect()
    with fiftyone_door.explained():
        names = fiftyone.list_datasets()
    if name not in names:
        hint = did_you_mean(name, names, f"it has {printable(', '.join(names)) or 'none'}.")
        raise ImportRefusedError(
            f"FiftyOne has no dataset {name!r} in {fiftyone_door.place_of(fiftyone)}; {hint} "
            "Set FIFTYONE_DATABASE_URI to look in another database."
        )
    return fiftyone.load_dataset(name)
