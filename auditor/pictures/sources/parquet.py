"""The layout of Hugging Face ``datasets``: encoded images in a column, labels as class numbers; Parquet or Arrow.

A table of paths works too. Several files of one set (``train-00000-of-00004.parquet``) are one source. Bytes
are read in small batches and never held all together.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from auditor import columns as exported
from auditor.ground.errors import ImportRefusedError
from auditor.ground.names import Names, first_twice
from auditor.ground.vocabulary import MULTILABEL
from auditor.pictures.sources.arrow_files import SPLITS_OF, STATE, ArrowFile, copy_descriptions
from auditor.pictures.sources.columns import (
    GIVEN,
    LABEL_NAMES,
    SPLIT_NAMES,
    choose_column,
    find_column,
    is_label_name,
    is_trusted,
    split_in,
)
from auditor.pictures.sources.exports import is_own_export, review_of
from auditor.pictures.sources.folder import has_broken_text
from auditor.pictures.sources.layout import SPLITS
from auditor.pictures.sources.parquet_files import (
    declared_classes,
    image_column,
    is_text_like,
    layout_of,
    open_columns,
    split_location,
)
from auditor.pictures.sources.refused import Refusals
from auditor.pictures.sources.roots import images_at
from auditor.pictures.sources.rows import (
    Outcomes,
    PathBook,
    Payload,
    Problem,
    SourceInfo,
    SourceOptions,
    SourceRow,
    numbered,
    printable,
)
from auditor.pictures.sources.sets import set_text, sign_of, valued_like, written_like
from auditor.pictures.sources.trees import MissingError, PathError

ROWS_A_BATCH = 2_000
IMAGES_A_BATCH = 128


class ParquetSource:
    """Rows of one or several Parquet files with the same columns.

    Locations are ``#ROW`` for one file and ``FILE#ROW`` for several, with 0-based rows a file, and end in
    ``:COLUMN`` where the user named it; where a column holds paths, they are paths below the folder.
    """

    def __init__(
        self, files: list[Path], root: Path, options: SourceOptions, *, kind: str = "parquet"
    ) -> None:
        """Read the schema. ``root`` is the file itself, or the folder of all files.

        Raises:
            ImportRefusedError: damaged, no image or label column, class names that do not fit.
        """
        self.ignored: list[str] = []
        self._files, self._are_sets = files, options.task == MULTILABEL
        self._root, self._one = root, root == files[0]
        schema = self._open(files[0]).schema_arrow
        self._refuse_other_schemas(schema)
        name, columns = files[0].name, schema.names
        twice = first_twice(columns)
        if twice is not None:
            raise ImportRefusedError(f"{name} has the column {printable(twice, 40)!r} twice; rename one.")
        said = tuple(choose_column(name, columns, "annotator", one, ()) for one in options.annotators)
        several = [c for c in columns if is_label_name(c) and c != options.true_label_column]
        is_clear = said or options.label_column or is_own_export(columns)
        if len(several) > 1 and not is_clear and find_column(columns, GIVEN) is None:
            raise ImportRefusedError(
                f"{name} has several columns that may be the labels ({printable(', '.join(several), 100)}); "
                "name the right one.",
                field="label_column",
            )
        label = None if said else choose_column(name, columns, "label", options.label_column, LABEL_NAMES)
        if label is not None and not self._is_read(schema.field(label).type):
            kind = printable(str(schema.field(label).type), 60)
            raise ImportRefusedError(
                f"{name}: the column {printable(label, 40)!r} holds {kind}; a label is one number or text, or "
                "a list of them with the task multilabel.",
                field="label_column",
            )
        true = options.true_label_column
        if true is not None:
            true = choose_column(name, columns, "true-label", true, ())
        path = image_column(name, schema, options.path_column)
        self._layout = layout_of(schema, path)
        if self._layout == "struct" and _has_no_bytes(self._open(files[0]), path):
            self._layout = "struct of paths"
        # Every location names a column that would not be found by itself.
        self._column_mark = f":{path}" if options.path_column is not None else ""
        self.tree = images_at(options.root, str(files[0].parent)) if "path" in self._layout else None
        own = is_own_export(columns)
        self._names = {c: declared_classes(name, schema, c) for c in (label, true, *said) if c}
        self._refuse_other_classes()
        self._numbers = {c: Names(declared) for c, declared in self._names.items() if declared}
        of_labels = {self._names[c] for c in said or (label,) if c}
        if len(of_labels) > 1:
            raise ImportRefusedError(
                f"{name}: the annotators' columns declare other classes; write them alike."
            )
        self._split = find_column([one for one in columns if one not in (path, label, true)], SPLIT_NAMES)
        believed = options.label_column is not None
        self._refusals = Refusals(() if own or said else columns, label, is_believed=believed, is_kept=True)
        self.info = SourceInfo(
            kind=kind,
            root=self.tree.root if self.tree else str(root),
            table_file=name,
            class_names=of_labels.pop(),
            user_columns=tuple(
                c
                for c in columns
                if is_text_like(schema.field(c).type) and not (own and c in exported.names())
            ),
            columns=tuple(columns),
            path_column=path,
            label_column=label,
            true_label_column=true,
            annotators=said,
            is_own_export=own,
        )

    def _is_read(self, kind: pa.DataType) -> bool:
        """Return whether a column of that type can be labels."""
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        return not pa.types.is_nested(kind) or (self._are_sets and is_list)

    def _open(self, file: Path) -> pq.ParquetFile | ArrowFile:
        return open_columns(file, None if self._one else self._root)

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``. Rows are 0-based a file."""
        book = PathBook()
        for file in self._files:
            row = 0
            for batch in self._batches(file, self._text_columns(), ROWS_A_BATCH):
                try:
                    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
                except UnicodeDecodeError as error:
                    raise ImportRefusedError(
                        f"{file.name}, rows {row} to {row + batch.num_rows - 1}: text that is not UTF-8; "
                        "write the file again."
                    ) from error
                for place in range(batch.num_rows):
                    yield self._row(
                        file, row, {name: values[place] for name, values in columns.items()}, book
                    )
                    row += 1

    def _called(self, file: Path) -> str:
        """The file in a location: empty where there is one, else its path below the folder."""
        return "" if self._one else file.relative_to(self._root).as_posix()

    def _text_columns(self) -> list[str]:
        path = self.info.path_column
        inner = {
            "struct": [f"{path}.path"],
            "struct of paths": [f"{path}.path"],
            "binary": [],
            "path": [str(path)],
        }[self._layout]
        others = [self.info.label_column, self.info.true_label_column, *self.info.annotators]
        schema = self._open(self._files[0]).schema_arrow
        if self._layout == "struct" and "path" not in [f.name for f in schema.field(path).type]:
            inner = []
        ours = [c for c in exported.names() if self.info.is_own_export and c in schema.names]
        return list(dict.fromkeys([*inner, *self.info.user_columns, *[c for c in others if c], *ours]))

    def _row(self, file: Path, row: int, cells: dict[str, Any], book: PathBook) -> SourceRow | Problem:
        image = cells.get(str(self.info.path_column))
        place = f"{self._called(file)}#{row}{self._column_mark}"
        text = image.get("path") if isinstance(image, dict) else image if self._layout == "path" else None
        by_row = f"{self._called(file) or file.name}#{row}"
        location, path = place, str(text or by_row)
        if has_broken_text(path):
            return Problem(file.name, row, "has a path that is not valid text; correct it")
        if self.tree is not None:
            try:
                location = self.tree.locate(path if text else "")
            except PathError as error:
                is_missing = isinstance(error, MissingError)
                return Problem(file.name, row, f"{printable(path)} {error}", is_missing)
        try:
            self._refusals.is_refused(row, cells)
            label, true = (
                None if column is None else self._class_of(column, cells[column])
                for column in (self.info.label_column, self.info.true_label_column)
            )
            answers = dict(self._answers(cells)) or None
            trusted = is_trusted(cells.get("trusted"))
            review = review_of({c: _text(v) for c, v in cells.items()}) if self.info.is_own_export else None
        except ValueError as error:
            return Problem(file.name, row, str(error))
        split = split_in(cells, self._split) or split_of(file)
        # Files of different splits may name their images alike; paths that lead to one file may not.
        key = location if self.tree is not None else f"{split or ''}/{path}"
        again = book.again(file.name, path, key, row, label) if text else None
        if again is not None and self.tree is not None:
            return again
        if (
            again is not None
        ):  # cat/0.png and dog/0.png, of which Hugging Face keeps the last part beside the bytes
            path = by_row
        return SourceRow(
            row=row,
            filepath=path,
            location=location,
            label=label,
            answers=answers,
            true_label=true,
            trusted=trusted and label is not None,
            split=split or None,
            extra={column: _text(cells[column]) for column in self.info.user_columns},
            review=review,
        )

    def _answers(self, cells: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Annotator and class; of a column of lists the annotators are its places."""
        for column in self.info.annotators:
            value = cells[column]
            each = (
                {f"{column} {place}": one for place, one in enumerate(value, start=1)}
                if isinstance(value, list)
                else {column: value}
            )
            for who, one in each.items():
                if (said := self._class_of(column, one)) is not None:
                    yield who, said

    def _class_of(self, column: str, value: Any) -> str | None:
        if value is None:
            return None
        if isinstance(value, list):
            return set_text(name for one in value if (name := self._class_of(column, one)) is not None)
        names = self._names[column]
        if isinstance(value, float) and value != value:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if not math.isfinite(value) or value != int(value):
                raise ValueError(f"{column} is {value}, not a whole number; give a class number or name")
            number = int(value)
            if names is None:
                return str(number)
            if number == -1:
                return None
            if not 0 <= number < len(names):
                raise ValueError(
                    f"{column} is {number}, outside 0..{len(names) - 1}; correct it or set it to -1"
                )
            return names[number]
        label = _text(value).strip() or None
        if label is None or names is None:
            return label
        place = self._numbers[column].number(label)
        if place is None:
            raise ValueError(
                f"{column} is {printable(label, 60)!r}, which is not a declared class; correct it"
            )
        return names[place]

    def remarks(self) -> list[str]:
        """Return which labels are kept, though a column refuses them."""
        return list(self._refusals.remarks())

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """See ``Source``: the bytes, streamed in row order; paths where the column holds paths."""
        if self.tree is not None:
            yield from locations
            return
        wanted = iter(locations)
        location = next(wanted, None)
        for file in self._files:
            start = 0
            prefix = self._called(file)
            for batch in self._batches(file, [self._bytes_column()], IMAGES_A_BATCH):
                images = _bytes_of(batch.column(0))
                while location is not None:
                    name, row, _ = split_location(location)
                    if name != prefix or row >= start + batch.num_rows:
                        break
                    yield images[row - start].as_py() or b""
                    location = next(wanted, None)
                start += batch.num_rows

    def write_again(self, out: Path, outcomes: Outcomes, class_names: Sequence[str]) -> None:
        """See ``sources.Rewritable``: the same files, columns, types and splits."""
        decided, counts = iter(outcomes), Counter[Path]()
        for file in self._files:
            target = out if self._one else out / file.relative_to(self._root).as_posix()
            target.parent.mkdir(parents=True, exist_ok=True)
            schema = self._open(file).schema_arrow
            with _writer(target, schema) as writer:
                for batch in self._batches(file, schema.names, IMAGES_A_BATCH):
                    said = list(itertools.islice(decided, batch.num_rows))
                    kept = self._relabelled(batch, said, class_names)
                    counts[file.parent] += kept.num_rows
                    writer.write_batch(kept)
        for folder, count in counts.items():
            if (folder / STATE).is_file():
                copy_descriptions(folder, out / folder.relative_to(self._root), count)
        if not self._one and (self._root / SPLITS_OF).is_file():
            (out / SPLITS_OF).write_bytes((self._root / SPLITS_OF).read_bytes())

    def _relabelled(
        self, batch: pa.RecordBatch, said: Sequence[str | None], class_names: Sequence[str]
    ) -> pa.RecordBatch:
        column = str(self.info.label_column)
        place = batch.schema.get_field_index(column)
        kind = batch.schema.field(place).type
        labels = batch.column(place).to_pylist()
        sign = self._sign() if self._are_sets and any(said) else None
        for row, label in enumerate(said):
            if label and self._are_sets:
                labels[row] = self._changed_set(labels[row], json.loads(label), sign)
            elif label:
                is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
                labels[row] = int(numbered(label, class_names)) if is_number else label
        changed = batch.set_column(place, batch.schema.field(place), pa.array(labels, kind))
        return changed.filter(pa.array([label is not None for label in said], pa.bool_()))

    def _sign(self) -> str | None:
        """Return what parts the names in a column of texts."""
        column = str(self.info.label_column)
        batches = (batch for file in self._files for batch in self._batches(file, [column], ROWS_A_BATCH))
        return sign_of(
            {one for batch in batches for one in batch.column(0).to_pylist() if isinstance(one, str)}
        )

    def _changed_set(self, before: Any, names: list[str], sign: str | None) -> Any:
        if not isinstance(before, list):
            return written_like(_text(before), names, sign)
        declared = self._names[str(self.info.label_column)]
        if declared is not None:
            return [declared.index(name) for name in names]
        return valued_like(before, names)

    def _bytes_column(self) -> str:
        return f"{self.info.path_column}.bytes" if self._layout == "struct" else str(self.info.path_column)

    def _batches(self, file: Path, columns: list[str], size: int) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._open(file).iter_batches(batch_size=size, columns=columns)
        except (pa.ArrowException, OSError) as error:
            raise ImportRefusedError(
                f"{file} is damaged ({printable(str(error), 100)}); download or copy it again."
            ) from error

    def _refuse_other_classes(self) -> None:
        for file in self._files[1:]:
            schema = self._open(file).schema_arrow
            for column, names in self._names.items():
                if declared_classes(file.name, schema, column) != names:
                    raise ImportRefusedError(
                        f"{file} declares other classes in {column!r} than {self._files[0].name}; import the files "
                        "one by one."
                    )

    def _refuse_other_schemas(self, schema: pa.Schema) -> None:
        for file in self._files[1:]:
            if not self._open(file).schema_arrow.equals(schema):
                raise ImportRefusedError(
                    f"{file} has other columns than {self._files[0].name}; import the files one by one."
                )


def _has_no_bytes(opened: pq.ParquetFile | ArrowFile, column: str) -> bool:
    """Return whether a column of Hugging Face's images holds paths alone, as the file's statistics tell."""
    if isinstance(opened, ArrowFile):
        return opened.has_no_bytes(column)
    metadata = opened.metadata
    places = [
        place
        for place in range(metadata.num_columns)
        if metadata.schema.column(place).path == f"{column}.bytes"
    ]
    if not places or not metadata.num_rows:
        return False
    parts = [metadata.row_group(group).column(places[0]) for group in range(metadata.num_row_groups)]
    return all(
        part.statistics is not None and part.statistics.null_count == part.num_values for part in parts
    )


@contextmanager
def _writer(target: Path, schema: pa.Schema) -> Iterator[Any]:
    """A new file of the kind that its name says, for batches of that schema."""
    if target.suffix == ".arrow":
        with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_stream(sink, schema) as stream:
            yield stream
        return
    with pq.ParquetWriter(target, schema) as writer:
        yield writer


def split_of(file: Path) -> str | None:
    """The split that Hugging Face's names of files or folders tell, as in ``train-00000-of-00004.parquet``."""
    names = [file.stem.partition("-")[0].lower(), file.parent.name.lower()]
    return next((name for name in names if name in SPLITS), None)


def _bytes_of(column: pa.Array) -> pa.Array:
    return column.field("bytes") if pa.types.is_struct(column.type) else column


def _text(value: Any) -> str:
    return "" if value is None else str(value)
