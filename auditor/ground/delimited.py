"""Delimited text as people have it: its encoding, separator and quotes are found out, and stay when it is written.

One reader for every table that is handed in: sources, decisions, verdicts, probabilities and features.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from auditor.ground.errors import AuditorError
from auditor.ground.files import LongLineError, lines_of

MAX_CELL = 1_000_000
SEPARATORS = ",;\t|"
ROWS_LOOKED_AT = 20
BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
PLAIN = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le")
"""Encodings without a mark at the beginning."""
DECLARED = "sep="
"""What Excel may write as the first line: ``sep=;``."""


@dataclass(frozen=True)
class Record:
    """One row, and the text that it was read from."""

    row: int
    """As a spreadsheet counts; the header is row 1 where nothing comes before it."""
    cells: list[str]
    raw: str


class Delimited:
    """A CSV or TSV, also one that a spreadsheet of another country wrote."""

    def __init__(
        self,
        name: str,
        stream: IO[bytes],
        *,
        encoding: str | None = None,
        refused: type[AuditorError] = AuditorError,
    ) -> None:
        """Find out how the text is written. ``stream`` is seekable and stays open; ``refused`` is what is raised.

        Raises:
            AuditorError: it is empty or no text, or ``encoding`` is unknown; the text names the remedy.
        """
        self.name, self._stream, self._refused = name, stream, refused
        self.encoding = self._found_encoding(encoding)
        first = self._first_line()
        self.is_declared = first.lower().startswith(DECLARED) and len(first.strip()) == len(DECLARED) + 1
        self.separator = first.strip()[-1] if self.is_declared else self._found_separator(first)
        header, before = None, list[str]()
        for header in self._records():
            before.append(header.raw)
            if any(cell.strip() for cell in header.cells):
                break
        if header is None or not any(cell.strip() for cell in header.cells):
            raise self._refused(f"{name} is empty; it needs a header with the names of its columns.")
        self.header_row = header.row
        """1 but where empty rows come before it."""
        self.columns = [cell.strip() or f"Unnamed: {at}" for at, cell in enumerate(header.cells)]
        """The header; a column without a name is called as pandas calls it: its index, or a comma too many."""
        self.header = "".join(before)

    def records(self) -> Iterator[Record]:
        """Every row below the header. Empty cells that a row has too many, or too few, are no others.

        Raises:
            AuditorError: the text breaks off (encoding, quotes); the text names the row.
        """
        wanted = len(self.columns)
        for record in self._records():
            if record.row <= self.header_row:
                continue
            cells = record.cells
            while len(cells) > wanted and not cells[-1].strip():
                cells.pop()
            yield record

    def whole_records(self) -> Iterator[Record]:
        """Every row below the header that is not empty.

        Raises:
            AuditorError: as ``records``, or a row has another number of cells than the header.
        """
        for record in self.records():
            if not any(record.cells):
                continue
            if len(record.cells) != len(self.columns):
                raise self._refused(
                    f"{self.name}, row {record.row}: has {len(record.cells)} cells instead of {len(self.columns)}; "
                    "check the quotes and separators."
                )
            yield record

    def _replaced(self, record: Record, new: dict[int, str]) -> str:
        """The record's text with other cells at some places; every other one is written as it was."""
        fields = _fields(record.raw, self.separator)
        for place, text in new.items():
            is_quoted = fields[place].lstrip().startswith('"')
            needs = is_quoted or any(sign in text for sign in (self.separator, '"', "\n", "\r"))
            fields[place] = '"' + text.replace('"', '""') + '"' if needs else text
        end = record.raw[len(record.raw.rstrip("\r\n")) :]
        return self.separator.join(fields) + end

    def write_again(self, out: IO[bytes], changed: Callable[[Record], Sequence[dict[int, str]]]) -> None:
        """Write the table once more: ``changed`` says which cells a row gets, by place, each time it is written.

        Without any the row is left out. Encoding, byte order mark, separators, quotes and line ends stay.
        """
        self._stream.seek(0)
        head = self._stream.read(4)
        mark = next((mark for mark, _ in BOMS if self.encoding not in PLAIN and head.startswith(mark)), b"")
        codec = {codecs.BOM_UTF16_BE: "utf-16-be", codecs.BOM_UTF16_LE: "utf-16-le"}.get(mark, self.encoding)
        codec = {"utf-8-sig": "utf-8", "utf-32": "utf-32-le"}.get(codec, codec)
        out.write(mark)
        out.write(((self._first_line() if self.is_declared else "") + self.header).encode(codec))
        for record in self.records():
            for new in changed(record):
                out.write((self._replaced(record, new) if new else record.raw).encode(codec))

    def text_stream(self) -> io.TextIOWrapper:
        """The decoded text from its beginning."""
        self._stream.seek(0)
        return io.TextIOWrapper(_KeepOpen(self._stream), encoding=self.encoding, newline="")

    def _first_line(self) -> str:
        try:
            return self.text_stream().readline(MAX_CELL)
        except UnicodeError as error:
            raise self._wrong_encoding() from error

    def _records(self) -> Iterator[Record]:
        csv.field_size_limit(MAX_CELL)
        taken: list[str] = []

        def lines() -> Iterator[str]:
            for line in lines_of(self.text_stream(), self.name):
                taken.append(line)
                yield line

        row, reader = 0, csv.reader(lines(), delimiter=self.separator)
        try:
            for row, cells in enumerate(reader, start=1):
                raw = "".join(taken)
                taken.clear()
                if row > 1 or not self.is_declared:
                    yield Record(row, cells, raw)
        except UnicodeError as error:
            raise self._wrong_encoding() from error
        except (csv.Error, LongLineError) as error:
            raise self._refused(
                f"{self.name}, row {row + 1}: cannot be read ({error}); look for an open quote there."
            ) from error

    def _found_encoding(self, wanted: str | None) -> str:
        self._stream.seek(0)
        head = self._stream.read(4096)
        if wanted is not None:
            try:
                return codecs.lookup(wanted).name
            except LookupError as error:
                raise self._refused(
                    f"The encoding {wanted!r} is unknown; use utf-8, cp1252, latin-1, shift_jis or the like.",
                    field="encoding",
                ) from error
        marked = next((name for mark, name in BOMS if head.startswith(mark)), None)
        low, high = head[0:200:2].count(0), head[1:200:2].count(0)
        if marked is None and max(low, high) > len(head[:200]) // 4:  # every other byte of Latin letters
            return "utf-16-le" if high > low else "utf-16-be"
        return marked or "utf-8"

    def _found_separator(self, first: str) -> str:
        """The sign that parts the first rows into equally many cells, the most of them."""
        text = self.text_stream()
        try:
            sample = [
                line for line in (text.readline(MAX_CELL) for _ in range(ROWS_LOOKED_AT)) if line.strip()
            ]
        except UnicodeError:
            sample = [first]
        scored = []
        for sign in SEPARATORS:
            try:
                widths = [len(cells) for cells in csv.reader(sample, delimiter=sign) if any(cells)]
            except csv.Error:
                continue
            alike = sum(width == widths[0] for width in widths) / len(widths) if widths else 0
            if widths and widths[0] > 1:
                scored.append((alike, widths[0], -SEPARATORS.index(sign), sign))
        return max(scored)[-1] if scored else ","

    def _wrong_encoding(self) -> AuditorError:
        self._stream.seek(0)
        remedy = "save the file as 'CSV UTF-8', or name its encoding, such as cp1252"
        if self.encoding in ("utf-8", "utf-8-sig"):
            for row, line in enumerate(_KeepOpen(self._stream), start=1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    byte = line[error.start]
                    return self._refused(
                        f"{self.name}, row {row}: byte 0x{byte:02x} is not UTF-8 text; {remedy}.",
                        field="encoding",
                    )
        return self._refused(f"{self.name}: is not {self.encoding} text; {remedy}.", field="encoding")


def _fields(raw: str, separator: str) -> list[str]:
    """The record's cells as they are written, quotes and all."""
    fields, start, quoted = [], 0, False
    body = raw.rstrip("\r\n")
    for at, sign in enumerate(body):
        if sign == '"':
            quoted = not quoted
        elif sign == separator and not quoted:
            fields.append(body[start:at])
            start = at + 1
    return [*fields, body[start:]]


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
