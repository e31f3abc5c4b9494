"""A CSV or TSV with a path column and a label column, of the user or of our own export; also inside a zip."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from auditor.bridges.engine_bridge import export_columns
from auditor.ground.errors import ImportRefusedError
from auditor.ground.files import LongLineError, lines_of
from auditor.ground.tables import unquoted
from auditor.pictures.sources.columns import (
    DATA_AS_HEADER,
    LABEL_NAMES,
    PATH_NAMES,
    choose_column,
    is_trusted,
    looks_like_data,
    path_on_disk,
)
from auditor.pictures.sources.exports import is_own_export, review_of
from auditor.pictures.sources.folder import has_broken_text
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
from auditor.pictures.sources.trees import Images, MissingError, PathError, ZipTree

MAX_CELL = 1_000_000


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
        self._stream = stream
        self._encoding = self._find_encoding()
        header, self._delimiter = self._header()
        own = is_own_export(header)
        header = [unquoted(column) for column in header] if own else header
        path = choose_column(name, header, "path", options.path_column, PATH_NAMES)
        label = choose_column(name, header, "label", options.label_column, LABEL_NAMES)
        true = options.true_label_column
        if true is not None:
            true = choose_column(name, header, "true-label", true, ())
        self._header_cells = header
        self._at = {column: place for place, column in enumerate(header)}
        self.info = SourceInfo(
            kind="zip" if isinstance(tree, ZipTree) else "table",
            root=tree.root,
            table_file=name,
            user_columns=tuple(c for c in header if not (own and c in export_columns())),
            columns=tuple(header),
            path_column=path,
            label_column=label,
            true_label_column=true,
            is_own_export=own,
        )

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``.

        Raises:
            ImportRefusedError: the text breaks off (encoding, quotes); the text names the row.
        """
        book = PathBook()
        for row, cells in self._cells():
            if not any(cells):
                continue
            if len(cells) != len(self._header_cells):
                count, wanted = len(cells), len(self._header_cells)
                text = f"has {count} cells instead of {wanted}; check the quotes and separators"
                yield Problem(self._name, row, text)
                continue
            found = self._row(row, cells)
            if isinstance(found, SourceRow):
                again = book.again(found.location, row, found.label)
                if again is not None:
                    found = Problem(self._name, row, f"{printable(found.filepath)} {again}")
            yield found

    def _row(self, row: int, cells: list[str]) -> SourceRow | Problem:
        own = self.info.is_own_export
        cell = {column: unquoted(cells[place]) if own else cells[place] for column, place in self._at.items()}
        assert self.info.path_column is not None
        assert self.info.label_column is not None
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
        label = cell[self.info.label_column].strip() or None
        if label is not None and label.startswith('{"choices"'):  # of Label Studio
            return Problem(self._name, row, "has several choices; one class per image can be audited")
        true_column = self.info.true_label_column
        return SourceRow(
            row=row,
            filepath=path,
            location=location,
            label=label,
            true_label=(cell[true_column].strip() or None) if true_column else None,
            trusted=trusted and label is not None,
            split=cell.get("split", "").strip() or None,
            extra={column: cell[column] for column in self.info.user_columns},
            review=review,
        )

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """See ``Source``: workers read the files themselves."""
        yield from locations

    def write_again(self, out: Path, outcomes: Outcomes, class_names: Sequence[str]) -> None:
        """See ``sources.Rewritable``: the same columns, cells and order."""
        decided = iter(outcomes)
        place = self._at[str(self.info.label_column)]
        with out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=self._delimiter, lineterminator="\n")
            writer.writerow(self._header_cells)
            for _, cells in self._cells():
                label = next(decided) if any(cells) else ""
                if label and len(cells) == len(self._header_cells):
                    cells[place] = numbered(label, class_names) if is_whole(cells[place]) else label
                if label is not None:
                    writer.writerow(cells)

    def _text(self) -> io.TextIOWrapper:
        self._stream.seek(0)
        return io.TextIOWrapper(_KeepOpen(self._stream), encoding=self._encoding, newline="")

    def _lines(self) -> Iterator[str]:
        return lines_of(self._text(), self._name)

    def _cells(self) -> Iterator[tuple[int, list[str]]]:
        """(row as a spreadsheet counts, cells), without the header."""
        csv.field_size_limit(MAX_CELL)
        row = 1
        try:
            for row, cells in enumerate(csv.reader(self._lines(), delimiter=self._delimiter), start=1):
                if row > 1:
                    yield row, cells
        except UnicodeDecodeError as error:
            raise self._wrong_encoding() from error
        except (csv.Error, LongLineError) as error:
            raise ImportRefusedError(
                f"{self._name}, row {row + 1}: cannot be read ({error}); look for an open quote there."
            ) from error

    def _header(self) -> tuple[list[str], str]:
        try:
            first = self._text().readline(MAX_CELL)
        except UnicodeDecodeError as error:
            raise self._wrong_encoding() from error
        if not first.strip():
            raise ImportRefusedError(
                f"{self._name} is empty; it needs a header with a path and a label column."
            )
        delimiter = "\t" if "\t" in first else max(",;|", key=first.count)
        try:
            header = next(csv.reader(self._lines(), delimiter=delimiter))
        except (csv.Error, LongLineError) as error:
            raise ImportRefusedError(f"{self._name}, row 1: cannot be read ({error}).") from error
        names = [name.strip() for name in header]
        for name in names:
            if not name or names.count(name) > 1:
                what = f"the column {printable(name, 40)!r} twice" if name else "a column without a name"
                remedy = DATA_AS_HEADER if looks_like_data(names) else "give every column its own name"
                raise ImportRefusedError(f"{self._name}, row 1: has {what}; {remedy}.")
        return names, delimiter

    def _find_encoding(self) -> str:
        self._stream.seek(0)
        head = self._stream.read(4)
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        return "utf-8-sig"

    def _wrong_encoding(self) -> ImportRefusedError:
        self._stream.seek(0)
        remedy = "save the file as 'CSV UTF-8'"
        for row, line in enumerate(_KeepOpen(self._stream), start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return ImportRefusedError(
                    f"{self._name}, row {row}: byte 0x{byte:02x} is not UTF-8 text; {remedy}."
                )
        return ImportRefusedError(f"{self._name}: is not {self._encoding} text; {remedy}.")


class _KeepOpen(io.BufferedReader):
    """The same bytes in a reader of its own, whose end does not close the stream below."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(_Unclosed(stream))


class _Unclosed(io.RawIOBase):
    def __init__(self, stream: IO[bytes]) -> None:
        self._inner = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._inner.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def open_table(path: Path, tree: Images, options: SourceOptions) -> TableSource:
    """The table in a plain file."""
    return TableSource(path.name, open(path, "rb"), tree, options)
