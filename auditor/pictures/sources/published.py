"""Folders in the layout in which two data sets of the L2B paper are published: Clothing1M and ISIC 2019.

==============  ==============================================================================================
Clothing1M      ``noisy_label_kv.txt`` and ``clean_label_kv.txt`` (a path and a class number a line),
                ``category_names_eng.txt``, lists of the clean splits (``clean_val_key_list.txt`` and so on)
ISIC 2019       ``ISIC_2019_Training_GroundTruth.csv`` (``image`` and a column of 0 and 1 a class), the folder
                ``ISIC_2019_Training_Input``, and ``ISIC_2019_Training_Metadata.csv`` where it is there
==============  ==============================================================================================
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from auditor.ground.errors import ImportRefusedError
from auditor.pictures.sources.annotations import Entry, Format, ListedFolder, Outcome
from auditor.pictures.sources.rows import SourceOptions, is_whole, printable

NOISY, CLEAN, NAMES = "noisy_label_kv.txt", "clean_label_kv.txt", "category_names_eng.txt"
CLEAN_SPLITS = ("train", "val", "test")
ISIC_LABELS, ISIC_IMAGES = "ISIC_2019_Training_GroundTruth.csv", "ISIC_2019_Training_Input"
ISIC_METADATA = "ISIC_2019_Training_Metadata.csv"


def open_published(folder: Path, options: SourceOptions) -> ListedFolder | None:
    """The data set that is published in the layout of ``folder``; None where it is neither.

    Raises:
        ImportRefusedError: a file of the layout is missing or cannot be read.
    """
    if (folder / NOISY).is_file():
        return ListedFolder(Clothing1M(folder), folder / NOISY, options)
    if (folder / ISIC_LABELS).is_file():
        return ListedFolder(Isic2019(folder), folder / ISIC_LABELS, options)
    return None


class Clothing1M(Format):
    """Every image with a noisy label has that label; the clean one of some is their known truth.

    Images that have a clean label alone are trusted. The clean lists name the splits; all others are ``train``.
    """

    kind = "clothing1m"

    def __init__(self, folder: Path) -> None:
        """Read the classes, the clean labels and the clean splits (72,000 of the million lines)."""
        self._folder = folder
        self._names = tuple(line for _, line in _lines(folder / NAMES))
        if not self._names:
            raise ImportRefusedError(f"{folder / NAMES} is empty; it has one class name a line.")
        self._clean: dict[str, tuple[int, str]] = {}
        if (folder / CLEAN).is_file():
            self._clean = {path: (row, number) for row, path, number in _pairs(folder / CLEAN)}
            self.true_label_column = CLEAN
        self._splits: dict[str, str] = {}
        for split in CLEAN_SPLITS:
            listed = folder / f"clean_{split}_key_list.txt"
            if listed.is_file():
                self._splits |= {path: split for _, path in _lines(listed)}

    def classes(self) -> tuple[str, ...]:
        """See ``Format``."""
        return self._names

    def entries(self) -> Iterator[Entry]:
        """See ``Format``: the noisy labels in their order, then what has a clean one alone."""
        both = set()
        for row, path, number in _pairs(self._folder / NOISY):
            truth = self._clean.get(path)
            if truth is not None:
                both.add(path)
            yield self._entry(row, path, number, None if truth is None else truth[1])
        for path, (row, number) in self._clean.items():
            if path not in both:
                yield replace(self._entry(row, path, number, number), trusted=True, file=CLEAN)

    def _entry(self, row: int, path: str, number: str, truth: str | None) -> Entry:
        split = self._splits.get(path, "train")
        for one in (number, truth):
            if one is not None and not (is_whole(one) and 0 <= int(one) < len(self._names)):
                problem = f"has the class {printable(one, 40)!r}, which is no line of {NAMES}; correct it"
                return Entry(row, path, None, split, problem=problem)
        true_label = None if truth is None else self._names[int(truth)]
        return Entry(row, path, self._names[int(number)], split, true_label=true_label)

    def rewritten(self, outcome: Outcome) -> str:
        """See ``Format``: the noisy labels."""
        kept = []
        for _, path, number in _pairs(self._folder / NOISY):
            label = outcome(path)
            if label is not None:
                kept.append(f"{path} {self._names.index(label) if label else number}\n")
        return "".join(kept)


class Isic2019(Format):
    """One column a class, 1 in that of the image; age, site and sex are columns of the user's own."""

    kind = "isic2019"

    def __init__(self, folder: Path) -> None:
        """Read both tables (25,331 rows as published)."""
        header, self._rows = _table(folder / ISIC_LABELS)
        self._names = tuple(header[1:])
        if header[:1] != ["image"] or not self._names:
            raise ImportRefusedError(f"{folder / ISIC_LABELS} has no columns image, MEL, ...; get it again.")
        self._about: dict[str, dict[str, str]] = {}
        if (folder / ISIC_METADATA).is_file():
            columns, rows = _table(folder / ISIC_METADATA)
            self.columns = tuple(columns[1:])
            self._about = {cells[0]: dict(zip(self.columns, cells[1:], strict=False)) for _, cells in rows}

    def classes(self) -> tuple[str, ...]:
        """See ``Format``."""
        return self._names

    def entries(self) -> Iterator[Entry]:
        """See ``Format``; rows as a spreadsheet counts them."""
        for row, cells in self._rows:
            path, label, problem = f"{ISIC_IMAGES}/{cells[0]}.jpg", None, None
            try:
                chosen = [name for name, cell in zip(self._names, cells[1:], strict=True) if float(cell) == 1]
                label = chosen[0] if chosen else None
                if len(chosen) > 1:
                    problem = f"has several classes ({', '.join(chosen)}); one class per image can be audited"
            except ValueError:
                problem = "does not have 0 or 1 for every class; correct it"
            extra = {column: self._about.get(cells[0], {}).get(column, "") for column in self.columns}
            yield Entry(row, path, label, extra=extra, problem=problem)

    def rewritten(self, outcome: Outcome) -> str:
        """See ``Format``."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["image", *self._names])
        for _, cells in self._rows:
            label = outcome(f"{ISIC_IMAGES}/{cells[0]}.jpg")
            if label is not None:
                said = [f"{float(name == label)}" for name in self._names] if label else cells[1:]
                writer.writerow([cells[0], *said])
        return text.getvalue()


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Number and text of every line that is not empty."""
    try:
        with file.open(encoding="utf-8-sig") as lines:
            for row, line in enumerate(lines, start=1):
                if line.strip():
                    yield row, line.strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ImportRefusedError(f"{file} cannot be read ({error}); put it there as published.") from error


def _pairs(file: Path) -> Iterator[tuple[int, str, str]]:
    """Row, path and class number of every line."""
    for row, line in _lines(file):
        path, _, number = line.rpartition(" ")
        yield row, path.strip(), number


def _table(file: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and every row with its number."""
    rows = [(row, next(csv.reader([line]))) for row, line in _lines(file)]
    if not rows:
        raise ImportRefusedError(f"{file} is empty; get it again.")
    return rows[0][1], rows[1:]
