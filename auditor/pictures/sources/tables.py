"""A CSV or TSV with a path column and a label column, of the user or of our own export; also inside a zip."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from auditor import columns as exported
from auditor.ground import spreadsheets
from auditor.ground.delimited import Delimited, Record
from auditor.ground.errors import ImportRefusedError
from auditor.ground.names import first_twice
from auditor.ground.tables import quoted, unquoted
from auditor.ground.vocabulary import MULTILABEL
from auditor.pictures.sources.answers import OneRowAnAnswer
from auditor.pictures.sources.columns import (
    ANNOTATOR_NAMES,
    DATA_AS_HEADER,
    GIVEN,
    ID_NAMES,
    LABEL_NAMES,
    PATH_NAMES,
    SPLIT_NAMES,
    choose_column,
    find_column,
    is_label_name,
    is_of_model,
    is_trusted,
    listed,
    looks_like_data,
    path_on_disk,
    split_in,
)
from auditor.pictures.sources.exports import is_own_export, review_of
from auditor.pictures.sources.folder import has_broken_text
from auditor.pictures.sources.layout import is_split
from auditor.pictures.sources.refused import Refusals
from auditor.pictures.sources.row_a_label import OneRowALabel
from auditor.pictures.sources.rows import (
    Outcomes,
    PathBook,
    Payload,
    Problem,
    SourceInfo,
    SourceOptions,
    SourceRow,
    is_whole,
    numbered,
    printable,
)
from auditor.pictures.sources.sets import ONE_CLASS, read_set, set_text, sign_of, written_like
from auditor.pictures.sources.trees import Images, MissingError, PathError, ZipTree

INDEX = "Unnamed: 0"
"""The column without a name that pandas writes before the others."""
ONES, ZEROS = ("1", "1.0", "true", "yes"), ("", "0", "0.0", "-1", "-1.0", "false", "no")
NO_CLASS = ("trusted", "fold", "is_valid", "id", "index", *SPLIT_NAMES)
"""Columns that stand for no class, whatever they hold."""
NO_LABEL = (  # with NO_LABEL_ENDING: columns that are no labels, though there is no other one beside the paths
    *(
        "fold",
        "is_valid",
        "caption",
        "text",
        "description",
        "width",
        "height",
        "count",
        "size",
        "date",
        "time",
    ),
    *("score", "scores", "confidence", "probability", "prob", "loss", "weight"),
    *("timestamp", "md5", "hash", "sha256", "license", "source", "author", *SPLIT_NAMES),
)
NO_LABEL_ENDING = re.compile(
    r".*(?:md5|sha1|sha256|hash|checksum|md5sum|sha256sum|uuid|guid|url|uri)"
    r"|(?:patient|user|subject|session|sample|case|study|series|lesion|group|camera|frame|video|scene|site|slide|worker|"
    r"hit|task|row|image|img|file|picture|photo|upload|dataset|batch)[ _-]?(?:id|no|nr|num|number|idx|index)"
)
BOXES = (
    {"xmin", "ymin", "xmax", "ymax"},
    {"x1", "y1", "x2", "y2"},
    {"left", "top", "right", "bottom"},
    {"left", "top", "width", "height"},
    {"x", "y", "width", "height"},
    {"x", "y", "w", "h"},
    {"xcenter", "ycenter", "width", "height"},
    {"bboxx", "bboxy", "bboxwidth", "bboxheight"},
    {"bbox"},
    {"boundingbox"},
    {"regionshapeattributes"},
)
"""Columns that say where in the image something is, without the signs in their names."""


class TableSource:
    """Rows of a delimited text file; paths are relative to its folder or to the root."""

    def __init__(self, name: str, stream: IO[bytes], tree: Images, options: SourceOptions) -> None:
        """Read the header. ``stream`` is seekable and stays open; ``tree`` holds the images.

        Raises:
            ImportRefusedError: wrong encoding, no header, a column is missing.
        """
        self.tree = tree
        self.ignored: list[str] = []
        self._name = name
        self._are_sets = options.task == MULTILABEL
        self._table: Delimited | OneRowAnAnswer | OneRowALabel = Delimited(
            name, stream, encoding=options.encoding, refused=ImportRefusedError
        )
        header = self._table.columns
        _refuse_doubled(name, header)
        annotators = tuple(options.annotators)
        if options.annotator_column is not None:
            if options.label_column is None or annotators:
                raise ImportRefusedError(
                    f"{name} has one row an answer: name its columns of annotators and of labels, and no other.",
                    field="label_column",
                )
            picture = choose_column(name, header, "path", options.path_column, PATH_NAMES + ID_NAMES)
            self._table = OneRowAnAnswer(self._table, picture, options.label_column, options.annotator_column)
            header, annotators = self._table.columns, self._table.annotators
        own = is_own_export(header)
        header = [unquoted(column) for column in header] if own else header
        path = choose_column(name, header, "path", self._path(header, options), PATH_NAMES + ID_NAMES)
        self._header_cells = header
        self._at = {column: place for place, column in enumerate(header)}
        self._twins: dict[str, dict[str, str]] = {}
        """By other column that says the same: what it says for each label."""
        for one in annotators:
            choose_column(name, header, "annotator", one, ())
        label, self._one_hot = (None, ()) if annotators else self._labels(path, options)
        true = options.true_label_column
        if true is not None:
            true = choose_column(name, header, "true-label", true, ())
        people = None if options.annotator_column else find_column(header, ANNOTATOR_NAMES)
        self._remedy = f", or read everybody's answers (--annotator-column {people})" if people else ""
        self._split = find_column([one for one in header if one not in (path, label, true)], SPLIT_NAMES)
        if self._are_sets and label is not None and isinstance(self._table, Delimited):
            # As the file has them: those of an own export are quoted.
            at_path, at_label = (self._table.columns[header.index(one)] for one in (path, label))
            if OneRowALabel.reads(self._table, at_path, at_label):
                self._table = OneRowALabel(self._table, at_path, at_label, self._split)
        self._is_there = self._says_what_is_there(path)
        self._refusals = Refusals(() if own else header, label, is_believed=options.label_column is not None)
        self.info = SourceInfo(
            kind="zip" if isinstance(getattr(tree, "tree", tree), ZipTree) else "table",
            root=tree.root,
            table_file=name,
            class_names=self._one_hot or None,
            user_columns=tuple(c for c in header if not (own and c in exported.names())),
            columns=tuple(header),
            path_column=path,
            label_column=label,
            true_label_column=true,
            annotators=annotators,
            is_own_export=own,
            encoding=options.encoding,
        )

    def _path(self, header: Sequence[str], options: SourceOptions) -> str | None:
        """The column of paths that is named, or pandas' index where its cells name pictures."""
        if options.path_column is not None or find_column(header, PATH_NAMES + ID_NAMES) is not None:
            return options.path_column
        first = next(iter(self._table.records()), None)
        is_index = header[0] == INDEX and first is not None and looks_like_data(first.cells[:1])
        return INDEX if is_index else None

    def _labels(self, path: str, options: SourceOptions) -> tuple[str | None, tuple[str, ...]]:
        """(the column of labels, ()), or (None, the columns of ones and zeros that stand for a class each)."""
        header = self._header_cells
        rest = [one for one in header if one != path and not one.startswith("Unnamed: ")]
        usual = find_column(rest, LABEL_NAMES)
        signs = {re.sub(r"[^a-z0-9]", "", one.lower()): one for one in rest}
        box = next((box for box in BOXES if box <= signs.keys()), None)
        if options.label_column is None and options.task is None and box is not None:
            shown = ", ".join(column for sign, column in signs.items() if sign in box)
            raise ImportRefusedError(
                f"{self._name} has a box in each row ({shown}); write boxes as COCO and import that "
                f"file with boxes, or name the column of labels where they are labels of the whole image. "
                f"{listed(header)}",
                field="label_column",
            )
        several = [one for one in rest if is_label_name(one) and one != options.true_label_column]
        is_clear = is_own_export(header) or (usual or "").lower() in GIVEN
        if options.label_column is None and len(several) > 1 and not is_clear:
            return self._one_of(several), ()
        if options.label_column is not None or usual is not None:
            return choose_column(self._name, header, "label", options.label_column or usual, LABEL_NAMES), ()
        binary = self._binary(rest)
        if len(binary) > 1:
            return None, tuple(binary)
        if len(rest) == 1 and not looks_like_data(header) and not _is_no_label(rest[0]):
            return rest[0], ()
        return choose_column(self._name, header, "label", None, LABEL_NAMES), ()

    def _one_of(self, columns: list[str]) -> str:
        """The column of labels where several are called so and say the same: names rather than numbers.

        Raises:
            ImportRefusedError: they do not say the same; a person has to choose.
        """
        pairs: dict[str, dict[str, str]] = {column: {} for column in columns}
        back: dict[str, dict[str, str]] = {column: {} for column in columns}
        for record in self._table.records():
            if len(record.cells) != len(self._header_cells) or not any(record.cells):
                continue
            first, *others = (record.cells[self._at[column]].strip() for column in columns)
            for column, other in zip(columns[1:], others, strict=True):
                if (
                    pairs[column].setdefault(first, other) != other
                    or back[column].setdefault(other, first) != first
                ):
                    raise ImportRefusedError(
                        f"{self._name} has several columns that may be the labels, and they differ in row "
                        f"{record.row} ({columns[0]}: {printable(first, 40)}, {column}: {printable(other, 40)}); "
                        "name the right one.",
                        field="label_column",
                    )
        firsts = next(iter(pairs[column] for column in columns[1:]))
        pairs[columns[0]] = {first: first for first in firsts}
        named = [
            one
            for one in columns
            if not all(is_whole(cell.removesuffix(".0")) for cell in pairs[one].values())
        ]
        label = (named or columns)[0]
        for column in columns:
            if column != label:
                self._twins[column] = {pairs[label][first]: pairs[column][first] for first in firsts}
        return label

    def _binary(self, columns: list[str]) -> list[str]:
        """Those of the columns that hold ones and zeros alone, and both."""
        seen: dict[str, set[str]] = {column: set() for column in columns if not _is_no_class(column)}
        for record in self._table.records():
            if len(record.cells) == len(self._header_cells):
                for column in list(seen):
                    cell = record.cells[self._at[column]].strip().lower()
                    seen[column].add(cell)
                    if cell not in ONES + ZEROS:
                        del seen[column]
        found = [column for column, cells in seen.items() if not cells.isdisjoint((*ONES, *ZEROS[1:]))]
        rows = (one.cells for one in self._table.records() if len(one.cells) == len(self._header_cells))
        named = Counter(any(cells[self._at[one]].strip().lower() in ONES for one in found) for cells in rows)
        return found if named[True] >= named[False] else []  # else they are flags

    def _says_what_is_there(self, path: str) -> str | None:
        """The column ``confidence`` where it holds ones and zeros alone, as that of Open Images does."""
        column = find_column([one for one in self._header_cells if one != path], ("confidence",))
        if column is None:
            return None
        place, wanted = self._at[column], len(self._header_cells)
        cells = (record.cells for record in self._table.records())
        said = {one[place].strip() for one in cells if len(one) == wanted}
        return column if said == {"0", "1"} else None

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``.

        Raises:
            ImportRefusedError: the text breaks off (encoding, quotes); the text names the row.
        """
        book = PathBook()
        for record in self._table.records():
            row, cells = record.row, record.cells
            if not any(cells):
                continue
            if len(cells) != len(self._header_cells):
                count, wanted = len(cells), len(self._header_cells)
                text = f"has {count} cells instead of {wanted}; check the quotes and separators"
                yield Problem(self._name, row, text)
                continue
            found = self._row(row, cells)
            if isinstance(found, SourceRow):
                again = book.again(self._name, found.filepath, found.location, row, found.label)
                found = found if again is None else replace(again, text=again.text + self._remedy)
            yield found

    def _row(self, row: int, cells: list[str]) -> SourceRow | Problem:
        own = self.info.is_own_export
        cell = {column: unquoted(cells[place]) if own else cells[place] for column, place in self._at.items()}
        assert self.info.path_column is not None
        path = cell[self.info.path_column].strip()
        if has_broken_text(path):
            return Problem(self._name, row, "has a path that is not valid text; correct it")
        try:
            location = self.tree.locate(path_on_disk(path))
        except PathError as error:
            text = f"{printable(path)} {error}" if path else str(error)
            return Problem(self._name, row, text, isinstance(error, MissingError))
        try:
            trusted = is_trusted(cell.get("trusted"))
            review = review_of(cell) if own else None
        except ValueError as error:
            return Problem(self._name, row, str(error))
        if self._is_there is not None and cell[self._is_there].strip() == "0":
            text = f"has the {self._is_there} 0: its label is not in the image; remove such rows, or leave them out"
            return Problem(self._name, row, text)
        try:
            label = None if self._refusals.is_refused(row, cell) else self._label_of(cell)
        except ValueError as error:
            return Problem(self._name, row, str(error))
        true_column = self.info.true_label_column
        return SourceRow(
            row=row,
            filepath=path,
            location=location,
            label=label,
            answers={one: said for one in self.info.annotators if (said := cell[one].strip())} or None,
            true_label=(cell[true_column].strip() or None) if true_column else None,
            trusted=trusted and label is not None,
            split=split_in(cell, self._split),
            extra={column: cell[column] for column in self.info.user_columns},
            review=review,
        )

    def remarks(self) -> list[str]:
        """Return which labels are refused."""
        return list(self._refusals.remarks())

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """See ``Source``: workers read the files themselves."""
        yield from locations

    def _label_of(self, cell: dict[str, str]) -> str | None:
        if self.info.label_column is None:
            chosen = [column for column in self._one_hot if cell[column].strip().lower() in ONES]
            if self._are_sets:
                return set_text(chosen)
            if len(chosen) > 1:
                raise ValueError(f"has several labels ({', '.join(chosen)}); {ONE_CLASS}")
            return chosen[0] if chosen else None
        label = cell[self.info.label_column].strip() or None
        if label is not None and label.startswith('{"choices"'):  # of Label Studio
            if self._are_sets:
                return set_text(json.loads(label)["choices"])
            raise ValueError(f"has several choices; {ONE_CLASS}")
        return label

    def _sign(self) -> str | None:
        """Return what parts the names in the column of labels."""
        if self.info.label_column is None:
            return None
        place, wanted = self._at[self.info.label_column], len(self._header_cells)
        return sign_of({one.cells[place] for one in self._table.records() if len(one.cells) == wanted})

    def _changed_set(self, cells: list[str], names: list[str], sign: str | None) -> dict[int, str]:
        """The cells of a row that say its set of classes."""
        if self.info.label_column is not None:
            place = self._at[self.info.label_column]
            if cells[place].startswith('{"choices"'):
                return {place: json.dumps({"choices": names}, ensure_ascii=False)}
            return {place: written_like(cells[place], names, sign)}
        before = {one: cells[self._at[one]] for one in self._one_hot}
        said = {cell.strip().lower() in ONES: cell for cell in before.values()}
        written = {True: said.get(True, "1"), False: said.get(False, "0")}
        return {
            self._at[one]: written[one in names]
            for one, cell in before.items()
            if (cell.strip().lower() in ONES) != (one in names)
        }

    def write_again(self, out: Path, outcomes: Outcomes, class_names: Sequence[str]) -> None:
        """See ``sources.Rewritable``: the same text, but for the cells of the labels that changed."""
        file_out = out / Path(self._name).name if out.is_dir() else out
        if isinstance(self._table, OneRowALabel):
            assert self.info.label_column is not None
            place = self._at[self.info.label_column]
            sets = (
                None if one is None else read_set(one or record.cells[place], None)
                for one, record in zip(outcomes, self._table.records(), strict=True)
            )
            with file_out.open("wb") as file:
                self._table.write_again(file, list(sets))
            return
        assert isinstance(self._table, Delimited)
        decided, sign = iter(outcomes), self._sign() if self._are_sets else None

        def changed(record: Record) -> list[dict[int, str]]:
            cells = record.cells
            label = next(decided) if any(cells) else ""
            if label is None or not label or len(cells) != len(self._header_cells):
                return [] if label is None else [{}]
            if self._are_sets:
                return [self._changed_set(cells, json.loads(label), sign)]
            return [self._relabeled(cells, label, class_names)]

        with file_out.open("wb") as file:
            self._table.write_again(file, changed)

    def _relabeled(self, cells: list[str], label: str, class_names: Sequence[str]) -> dict[int, str]:
        """The cells by their places that say that a row has that label."""
        if self.info.label_column is None:
            said = {column: cells[self._at[column]] for column in self._one_hot}
            one = next((column for column, cell in said.items() if cell.strip().lower() in ONES), None)
            yes = "1" if one is None else said[one]
            no = next((cell for cell in said.values() if cell.strip().lower() in ZEROS), "0")
            return {
                self._at[column]: yes if column == label else no for column in said if column in (one, label)
            }
        place = self._at[self.info.label_column]
        before = cells[place].strip()
        if is_whole(before.removesuffix(".0")):
            number = numbered(label, class_names)
            found = {place: f"{number}.0" if before.endswith(".0") and is_whole(number) else number}
        else:
            found = {place: quoted(label) if self.info.is_own_export else label}
            found |= {self._at[column]: said.get(label, "") for column, said in self._twins.items()}
        column = self._refusals.column
        if column is not None and cells[self._at[column]].strip():
            found[self._at[column]] = self._refusals.accepted
        return found


def _is_no_label(column: str) -> bool:
    """Return whether a column is no label, though there is no other one beside the paths."""
    plain = column.strip().lower()
    return plain in NO_LABEL or NO_LABEL_ENDING.fullmatch(plain) is not None or is_of_model(column)


def _is_no_class(column: str) -> bool:
    """Return whether a column of ones and zeros is called as a split or the like."""
    plain = column.strip().lower()
    return plain in NO_CLASS or is_split(plain.removeprefix("is_"))


def _refuse_doubled(name: str, header: Sequence[str]) -> None:
    twice = first_twice(header)
    if twice is not None:
        remedy = DATA_AS_HEADER if looks_like_data(header) else "give every column its own name"
        raise ImportRefusedError(f"{name}, row 1: has the column {printable(twice, 40)!r} twice; {remedy}.")


def open_table(path: Path, tree: Images, options: SourceOptions) -> TableSource:
    """The table in a plain file, or in a sheet of Excel."""
    is_sheet = path.suffix.lower() == spreadsheets.SUFFIX
    read = replace(options, encoding=None) if is_sheet else options
    return TableSource(path.name, spreadsheets.open_delimited(path), tree, read)
