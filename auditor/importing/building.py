"""From a source to a finished work folder: read the rows, look at the headers, decode into the cache, hash.

Every step streams. What is known of each of N samples lies on disk; in memory there are a few bytes each.
"""

from __future__ import annotations

import itertools
import math
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from auditor.ground.errors import AuditFailedError, ImportRefusedError
from auditor.ground.files import GrowingArray, array_on_disk, reserve
from auditor.ground.names import Spellings, normal
from auditor.ground.progress import OnProgress, Ticker
from auditor.ground.wording import plural
from auditor.importing import class_names, journal, sets
from auditor.importing.journal import Journal
from auditor.importing.pool import (
    CHUNK,
    CacheFile,
    Hashed,
    Probed,
    chunks,
    decode_away,
    decode_chunk,
    grey_chunk,
    probe_chunk,
    run_in_order,
    with_bytes,
    write_pixels,
)
from auditor.importing.staging import RowFile
from auditor.pictures.cache import cache_name
from auditor.pictures.decoding import Levels, levels_of
from auditor.pictures.sources import (
    Payload,
    Problem,
    Source,
    SourceInfo,
    SourceRow,
    classes_named,
    is_remote,
    ordered_class_names,
    printable,
)
from auditor.statistics.annotators import Answers, consensus
from auditor.work import RayPool

LARGEST_DEFAULT_SIZE = 224
SMALLEST_SIZE = 8
MASK, REVIEW, LOCATION, FILEPATH, ROW = 7, 6, 2, 1, 0
"""Places in a line of the row file."""
CHUNK_AWAY, BYTES_AWAY = 2_048, 2**26
"""Images that a machine of a cluster reads and decodes at once, and of how many bytes when they are decoded."""
ROWS_A_STEP, FEW_ROWS = 262_144, 4_096
"""Rows of which numbers are computed at once; and whose pixels are moved, or that are objects of Python."""
MOST_COUNTED = 1_000
"""Pixels: where the middle images have sides of so many, ``LARGEST_DEFAULT_SIZE`` is chosen, however many."""
MOST_SAMPLED = 512
"""Images whose grey values tell the range of a set."""
FEWEST_LEVELS = 16
"""An image whose values span less than that part of the set's range is named."""
MAX_LISTED = 1_000
"""Problems that are kept word for word; all are counted."""


@dataclass
class Problems:
    """What cannot be imported: the first thousand in words, all of them counted."""

    listed: list[Problem] = field(default_factory=list)
    count: int = 0
    num_missing: int = 0
    """Images that are not below the root."""

    def add(self, problem: Problem) -> None:
        """Count it, and list it where there is room."""
        self.count += 1
        self.num_missing += problem.is_missing
        if len(self.listed) < MAX_LISTED:
            self.listed.append(problem)

    def folded(self, info: SourceInfo, num_rows: int) -> Problems:
        """One problem instead of as many as there are images where not one of them is there: the root is wrong."""
        if num_rows or self.num_missing < 2 or self.num_missing != self.count:
            return self
        hint = self.listed[0].text.rpartition("; ")[2]
        several = f" ({hint} for the first)" if hint.endswith(("is there", "are there")) else ""
        text = (
            f"none of its {self.count:,} images exists below {printable(info.root)}{several}; set the folder that "
            "their paths start from, the root"
        )
        path, outside, _ = self.listed[0].text.partition(" is outside ")
        if outside:
            text = (
                f"none of its {self.count:,} images lies below {printable(info.root)}: its paths are whole ones "
                f"({path}); set the root to a folder that holds all of them"
            )
        return Problems([Problem(info.table_file, None, text, is_missing=True)], 1, 1)


@dataclass
class Parsed:
    """The rows of a source, staged on disk, with their labels as numbers."""

    rows: RowFile
    class_names: list[str]
    labels: NDArray[np.int32] | NDArray[np.float64]
    """(M,) classes, -1 = unlabeled; or numbers, NaN = none; a map, as the next two"""
    true_labels: NDArray[np.int32] | NDArray[np.float64]
    """(M,) in the same way"""
    trusted: NDArray[np.bool_]
    """(M,) the source marks the label as confirmed"""
    left_out: NDArray[np.bool_]
    """(M,) rows that a problem was found in when all of them were known"""
    problems: Problems
    notes: list[str]
    called: dict[str, str | None]
    """Names of classes in the source that mean another class, or none"""
    annotators: list[str] | None = None
    """Who answered, where several did"""
    answers: NDArray[np.int32] | None = None
    """(3, A) row, annotator and class of each answer; the labels are then their consensus"""
    sets: NDArray[np.bool_] | None = None
    """(S, K) the sets of classes that occur, where labels are such: they are then numbers of these"""
    members: dict[str, list[int]] | None = None
    """What a cell of such a source says, and its classes"""


@dataclass
class Built:
    """A finished cache and what was learned about each sample. N counts the samples that were kept."""

    kept: NDArray[np.bool_]
    """(M,) which staged rows became samples"""
    channels: int
    size: int
    headers: NDArray[Any]
    """(M,) ``journal.HEADER`` of each staged row; a map, as the next two"""
    content_hash: NDArray[np.uint8]
    """(N, 32)"""
    perceptual_hash: NDArray[np.uint64]
    num_animated: int
    levels: Levels | None = None
    """The grey values that became black and white, where any image has more than 8 bits."""
    num_continued: int = 0
    """Images that were decoded already, by an import that was killed."""


def read_rows(
    source: Source,
    file: Path,
    on_progress: OnProgress | None,
    *,
    merge: bool | None = None,
    joined: bool = False,
) -> Parsed:
    """Stage all rows of a source; labels become indices into the sorted or declared class names.

    Raises:
        ImportRefusedError: names of classes look alike, and ``merge`` says neither yes nor no.
    """
    rows, problems = RowFile(file), Problems()
    numbers: dict[str, int] = {normal(name): i for i, name in enumerate(source.info.class_names or ())}
    number = _any_number if source.info.is_numeric else _number
    codes = "ddb" if source.info.is_numeric else "iib"
    labels, true_labels, trusted = (GrowingArray(code, _scratch(file.parent)) for code in codes)
    num_rows, contradicted = 0, set[str]()
    people: dict[str, int] = {}
    told = GrowingArray("i", _scratch(file.parent))
    ticker = Ticker(on_progress, "reading", None)
    splits = Spellings("Splits")
    for item in source.rows():
        if isinstance(item, Problem):
            problems.add(item)
            contradicted |= {item.contradicted} - {""}
            continue
        item.split = splits.first(item.split)
        labels.append(number(numbers, item.label))
        true_labels.append(number(numbers, item.true_label))
        for name in classes_named(item.review):
            number(numbers, name)
        for who, said in (item.answers or {}).items():
            for value in (num_rows, people.setdefault(who, len(people)), int(number(numbers, said))):
                told.append(value)
        trusted.append(item.trusted)
        rows.append(_line(item))
        num_rows += 1
        ticker.at(num_rows)
    rows.close()
    given, known = labels.whole(), true_labels.whole()
    answers = told.whole().reshape(-1, 3).T
    counted = _counts(numbers, np.concatenate([given, answers[2]]) if people else given)
    if source.info.is_set:
        meant = sets.read_sets(source.info, counted, merge=merge)
        if meant.question is not None:
            raise meant.question
        which, table = meant.distinct(list(numbers))
        return Parsed(
            rows=rows,
            class_names=meant.class_names,
            labels=_renumbered(given, which),
            true_labels=known,
            trusted=trusted.whole().view(np.bool_),
            left_out=_contradicted(source.info, rows, contradicted, len(given), problems),
            problems=problems.folded(source.info, num_rows),
            notes=[*meant.notes, *splits.remarks()],
            called={},
            sets=table,
            members=meant.members,
        )
    found = class_names.meaning_of_names(source.info, counted, merge=merge, joined=joined)
    if found.question is not None:
        raise found.question
    left_out = _several(source.info, given, numbers, found.several, rows, problems)
    left_out |= _contradicted(source.info, rows, contradicted, len(given), problems)
    called = [None if name in found.several else found.called.get(name, name) for name in numbers]
    own = list(dict.fromkeys(name for name in called if name is not None))
    names = own if source.info.class_names else ordered_class_names(own)
    place: dict[str | None, int] = {name: i for i, name in enumerate(names)}
    # The last entry serves index -1: unlabeled stays unlabeled.
    final = np.array([*(place.get(name, -1) for name in called), -1], np.int32)
    given = _renumbered(given, final)
    if people:
        answers[2] = final[answers[2]]
        answers = _agreed(source.info, given, answers, len(people), len(names), found.notes)
    return Parsed(
        rows=rows,
        class_names=names,
        annotators=list(people) or None,
        answers=answers if people else None,
        labels=given,
        true_labels=_renumbered(known, final),
        trusted=trusted.whole().view(np.bool_),
        left_out=left_out,
        problems=problems.folded(source.info, num_rows),
        notes=[*found.notes, *splits.remarks()],
        called=found.called,
    )


def _agreed(
    info: SourceInfo,
    labels: NDArray[Any],
    answers: NDArray[np.int32],
    num_people: int,
    num_classes: int,
    notes: list[str],
) -> NDArray[np.int32]:
    """Give rows without a label the consensus of their answers; returns the (3, A) that name one class."""
    kept = answers[:, answers[2] >= 0]
    if lost := answers.shape[1] - kept.shape[1]:
        notes.append(f"{plural(lost, 'answer')} that name no class or several are left out.")
    try:
        found = consensus(Answers.of(kept[0], kept[1], kept[2], len(labels), num_people, num_classes))
    except AuditFailedError as error:
        raise ImportRefusedError(f"{info.table_file}: {error}", field="annotators") from error
    marked = labels >= 0
    labels[~marked] = found.labels[~marked]
    notes.append(
        f"{plural(kept.shape[1], 'answer')} of {plural(num_people, 'annotator')}: each label is their consensus"
        + (f", but for {marked.sum():,} that are marked as the truth." if marked.any() else ".")
    )
    return kept


def _counts(numbers: dict[str, int], labels: NDArray[Any]) -> dict[str, int]:
    if labels.dtype != np.int32:
        return {}
    counted = np.zeros(len(numbers) + 1, np.int64)
    for rows in in_steps(len(labels)):
        counted += np.bincount(labels[rows] + 1, minlength=len(counted))
    return {name: int(counted[number + 1]) for name, number in numbers.items()}


def _contradicted(
    info: SourceInfo, rows: RowFile, locations: set[str], num_rows: int, problems: Problems
) -> NDArray[np.bool_]:
    """(M,) the rows at ``locations``, which later rows give another label; each is a problem."""
    left_out = np.zeros(num_rows, np.bool_)
    for at, line in enumerate(rows if locations else ()):
        if line[LOCATION] in locations:
            left_out[at] = True
            problems.add(problem_of(info, line, "has another label in a later row; keep the right one"))
    return left_out


def _several(
    info: SourceInfo,
    labels: NDArray[Any],
    numbers: dict[str, int],
    several: dict[str, tuple[str, ...]],
    rows: RowFile,
    problems: Problems,
) -> NDArray[np.bool_]:
    """(M,) the rows whose label is several classes; each is a problem."""
    left_out = np.zeros(len(labels), np.bool_)
    if not several:
        return left_out
    texts = {numbers[name]: class_names.refusal(name, parts) for name, parts in several.items()}
    for row in in_steps(len(labels)):
        left_out[row] = np.isin(labels[row], list(texts))
    for line, label in zip(itertools.compress(rows, left_out), labels[left_out].tolist(), strict=True):
        problems.add(problem_of(info, line, texts[label]))
    return left_out


def problem_of(info: SourceInfo, line: list[Any], text: str) -> Problem:
    """Return what is wrong with a staged row."""
    if line[ROW] is None:
        return Problem(line[FILEPATH], None, text)
    return Problem(info.table_file, line[ROW], f"{printable(line[FILEPATH])} {text}")


def _scratch(folder: Path) -> Path:
    """Return where a file lies that the import maps: beside its work folder, for Windows moves none with an
    open file.
    """
    return folder.parent


def _renumbered(labels: NDArray[Any], final: NDArray[np.int32]) -> NDArray[Any]:
    """The labels (M,), each replaced where it lies; numbers are what they are."""
    for rows in in_steps(len(labels) if labels.dtype == np.int32 else 0):
        labels[rows] = final[labels[rows]]
    return labels


def _number(numbers: dict[str, int], name: str | None) -> int:
    return -1 if name is None else numbers.setdefault(normal(name), len(numbers))


def _any_number(numbers: dict[str, int], text: str | None) -> float:
    """A label that is a number; all of them are one class: as many as there are rows would fill the memory."""
    if text is None:
        return math.nan
    numbers.setdefault("number", 0)
    return float(text)


def _line(row: SourceRow) -> list[Any]:
    return [row.row, row.filepath, row.location, row.trusted, row.split, row.extra, row.review, row.mask]


@dataclass
class Builder:
    """Probes and decodes the staged rows of one source into one work folder, or what a kill left of that."""

    source: Source
    parsed: Parsed
    folder: Path
    executor: Executor | None
    workers: int
    on_progress: OnProgress | None
    levels: Levels | None = None
    """Of deep grey, where a person says it."""
    away: RayPool | None = None
    """The machines of a cluster, which need not see a file of this one."""
    _checked: Journal | None = field(default=None, init=False)

    def check(self) -> tuple[NDArray[np.bool_], NDArray[Any]]:
        """Read all headers: (M,) which rows can be used, and (M,) ``journal.HEADER`` of each, a map."""
        total = len(self.parsed.labels)
        kept = np.ones(total, np.bool_)
        written = Journal(self.folder, journal.CHECKED, journal.HEADER)
        before, problems = written.before()
        headers = array_on_disk((total,), journal.HEADER, _scratch(self.folder))
        done, report = written.done, self._report_in_order()
        headers[:done] = before
        bad = [(row, text) for _, row, text in problems]
        report(bad)
        kept[[row for row, _ in bad]] = False
        ticker = Ticker(self.on_progress, "checking", total, already=done)
        on_cluster = self.away is not None and self._is_read_anywhere
        payloads = self._payloads(kept, after=done)
        tasks = (
            (self.source.info.root, chunk)
            for chunk in chunks(payloads, most=CHUNK_AWAY if on_cluster else CHUNK)
        )
        for found in self._run(probe_chunk, tasks, on_cluster=on_cluster):
            records = _records_of_headers(found)
            headers[done : done + len(records)] = records
            bad = [(done + place, text) for place, text in found.problems]
            report(bad)
            kept[[row for row, _ in bad]] = False
            written.add(records, [(row, row, text) for row, text in bad])
            done += len(records)
            ticker.at(done)
        self._checked = written
        return kept & ~self.parsed.left_out, headers

    def decode(self, kept: NDArray[np.bool_], headers: NDArray[Any], image_size: int | None) -> Built:
        """Decode the kept rows into the work folder's cache file; rows that fail are dropped and reported."""
        size = image_size or median_size(_sides(headers, kept))
        channels = 3 if _any_colour(headers, kept) else 1
        total = int(kept.sum())
        levels = self._levels(kept & headers["is_deep"])
        cache, shape = self._allocate(total, channels, size)
        cache = replace(cache, levels=levels)
        name = f"{journal.DECODED}-{channels}-{size}-{total}"
        name += "" if levels is None else f"-{levels[0]:g}-{levels[1]:g}"
        written = Journal(self.folder, name, journal.PICTURE, after=self._checked)
        scratch = _scratch(self.folder)
        content = array_on_disk((total, 32), np.uint8, scratch)
        perceptual = array_on_disk((total,), np.uint64, scratch)
        rows = places_of(kept, scratch)
        good = np.ones(total, np.bool_)
        records, problems = written.before()
        done, report = written.done, self._report_in_order()
        content[:done], perceptual[:done] = records["content"], records["perceptual"]
        good[:done] = records["good"]
        report([(row, text) for _, row, text in problems])
        ticker = Ticker(self.on_progress, "decoding", total, already=done)
        for found in self._decoded(cache, kept, rows, done):
            count = len(found.perceptual)
            if found.pixels is not None:
                write_pixels(cache, done, found)
            content[done : done + count], perceptual[done : done + count] = found.content, found.perceptual
            bad = [(done + place, int(rows[done + place]), text) for place, text in found.problems]
            good[[place for place, _, _ in bad]] = False
            report([(row, text) for _, row, text in bad])
            written.add(_records_of_pictures(found), bad, Path(cache.path))
            done += count
            ticker.at(done)
        if not good.all():
            journal.forget_decoded(self.folder)  # it speaks of rows that move now
            _compact(cache, good, shape)
            kept = kept.copy()
            kept[rows[~good]] = False
        return Built(
            kept=kept,
            channels=channels,
            size=size,
            headers=headers,
            content_hash=_closed_up(content, good),
            perceptual_hash=_closed_up(perceptual, good),
            num_animated=int((headers["is_animated"] & kept).sum()),
            levels=levels,
            num_continued=written.done,
        )

    def _levels(self, deep: NDArray[np.bool_]) -> Levels | None:
        """One scale for all images of more than 8 bits, from a sample of them; None where there is none."""
        if not deep.any() or self.levels is not None:
            return self.levels if deep.any() else None
        rows = np.flatnonzero(deep)
        some = np.zeros(len(deep), np.bool_)
        some[rows[:: max(1, len(rows) // MOST_SAMPLED)]] = True
        tasks = ((self.source.info.root, chunk) for chunk in chunks(self._payloads(some, after=0), CHUNK))
        looked_at = [one for found in self._run(grey_chunk, tasks, on_cluster=False) for one in found]
        low, high = levels_of(np.concatenate([np.empty(0), *looked_at]))
        spans = [top - bottom for bottom, top in map(levels_of, looked_at)]
        num_flat = sum(span * FEWEST_LEVELS < high - low for span in spans)
        if num_flat:
            self.parsed.notes.append(
                f"{num_flat:,} of {plural(len(spans), 'image')} looked at keep fewer than {256 // FEWEST_LEVELS} "
                "grey levels of that scale: if the set has several scales, import each apart."
            )
        return low, high

    def _run(
        self, work: Callable[..., Any], tasks: Iterator[tuple[Any, ...]], *, on_cluster: bool
    ) -> Iterator[Any]:
        if on_cluster and self.away is not None:
            return run_in_order(self.away, work, tasks, 2 * self.away.num_cores)
        return run_in_order(self.executor, work, tasks, 3 * self.workers)

    @property
    def _is_read_anywhere(self) -> bool:
        """Return whether machines that see no file of this one can read the images."""
        return is_remote(self.source.info.root)

    def _payloads(self, kept: NDArray[np.bool_], *, after: int) -> Iterator[Payload]:
        """Of the kept rows from that one on; to other machines go places that they can read, and no bytes."""
        wanted = kept.copy()
        wanted[:after] = False
        locations = (line[LOCATION] for line in itertools.compress(self.parsed.rows, wanted))
        is_told = self.away is not None and self._is_read_anywhere
        return locations if is_told else self.source.payloads(locations)

    def _decoded(
        self, cache: CacheFile, kept: NDArray[np.bool_], rows: NDArray[np.int64], done: int
    ) -> Iterator[Hashed]:
        """Chunks in their order, from the kept row ``done`` on."""
        payloads = self._payloads(kept, after=int(rows[done]) if done < len(rows) else len(kept))
        root = self.source.info.root
        if self.away is None:
            tasks = self._tasks(cache, chunks(payloads), done)
            return self._run(decode_chunk, tasks, on_cluster=False)
        most = max(1, min(CHUNK_AWAY, BYTES_AWAY // cache.image_bytes))
        packed = chunks(payloads, most)
        if not self._is_read_anywhere:
            packed = (with_bytes(root, chunk) for chunk in packed)
        return self._run(decode_away, self._tasks(cache, packed, done), on_cluster=True)

    def _tasks(
        self, cache: CacheFile, packed: Iterator[list[Payload]], first: int
    ) -> Iterator[tuple[Any, ...]]:
        for chunk in packed:
            yield self.source.info.root, cache, first, chunk
            first += len(chunk)

    def _report_in_order(self) -> Callable[[list[tuple[int, str]]], None]:
        """Return what names the file and row of staged rows that failed: for one pass, which meets them in
        their order.

        The row file is read once a pass, however many chunks have failures, and not at all without any.
        """
        lines = enumerate(iter(self.parsed.rows))

        def report(bad: list[tuple[int, str]]) -> None:
            for wanted, text in bad:
                line = next(line for number, line in lines if number == wanted)
                self.parsed.problems.add(problem_of(self.source.info, line, text))

        return report

    def _allocate(self, total: int, channels: int, size: int) -> tuple[CacheFile, tuple[int, ...]]:
        shape = (total, channels, size, size)
        header = _header(shape)
        path = self.folder / cache_name(channels=channels, height=size, width=size)
        needed = len(header) + int(np.prod(shape))
        if path.exists() and path.stat().st_size == needed:  # a kill left it
            return CacheFile(str(path), len(header), channels, size), shape
        for other in self.folder.glob("*.npy"):  # of another size or colour: what it was made of has changed
            other.unlink()
        journal.forget_decoded(self.folder)
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise ImportRefusedError(
                f"the decoded images need {needed / 2**20:,.0f} MB and {free / 2**20:,.0f} MB are free in "
                f"{self.folder.parent}; free some space or choose a smaller image size.",
                field="image_size",
            )
        path.write_bytes(header)
        with path.open("r+b") as stream:
            reserve(stream, needed)
        return CacheFile(str(path), len(header), channels, size), shape


def default_size(heights: NDArray[np.int32], widths: NDArray[np.int32]) -> int:
    """The median of the images' longer sides, between 8 and 224."""
    return median_size([np.maximum(heights, widths)])


def median_size(sides: Iterable[NDArray[np.int32]]) -> int:
    """``default_size`` of the longer sides, which come in parts."""
    counts = np.zeros(MOST_COUNTED + 1, np.int64)
    for part in sides:
        counts += np.bincount(np.minimum(part, MOST_COUNTED), minlength=MOST_COUNTED + 1)
    up_to, num = counts.cumsum(), int(counts.sum())
    middle = [int(np.searchsorted(up_to, place, "right")) for place in ((num - 1) // 2, num // 2)]
    return int(min(LARGEST_DEFAULT_SIZE, max(SMALLEST_SIZE, round(sum(middle) / 2))))


def in_steps(num_rows: int, step: int = ROWS_A_STEP) -> Iterator[slice]:
    """So many rows at a time that what is computed of them is small."""
    return (slice(start, start + step) for start in range(0, num_rows, step))


def _sides(headers: NDArray[Any], kept: NDArray[np.bool_]) -> Iterator[NDArray[np.int32]]:
    """The longer sides of the kept images, in parts."""
    for rows in in_steps(len(kept)):
        part = headers[rows][kept[rows]]
        yield np.maximum(part["height"], part["width"])


def _any_colour(headers: NDArray[Any], kept: NDArray[np.bool_]) -> bool:
    return any((headers["has_colour"][rows] & kept[rows]).any() for rows in in_steps(len(kept)))


def places_of(kept: NDArray[np.bool_], folder: Path | None) -> NDArray[np.int64]:
    """``np.flatnonzero(kept)`` as a map of a file in that folder."""
    places, done = array_on_disk((int(kept.sum()),), np.int64, folder), 0
    for rows in in_steps(len(kept)):
        part = rows.start + np.flatnonzero(kept[rows])
        places[done : done + len(part)] = part
        done += len(part)
    return places


def _records_of_headers(found: Probed) -> NDArray[Any]:
    records = np.empty(len(found.heights), journal.HEADER)
    records["height"], records["width"] = found.heights, found.widths
    records["has_colour"], records["is_animated"] = found.has_colour, found.is_animated
    records["is_deep"], records["good"] = found.is_deep, True
    records["good"][[place for place, _ in found.problems]] = False
    return records


def _records_of_pictures(found: Hashed) -> NDArray[Any]:
    records = np.empty(len(found.perceptual), journal.PICTURE)
    records["content"], records["perceptual"], records["good"] = found.content, found.perceptual, True
    records["good"][[place for place, _ in found.problems]] = False
    return records


def _header(shape: tuple[int, ...]) -> bytes:
    stream = BytesIO()
    npy.write_array_header_1_0(stream, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return stream.getvalue()


def _compact(cache: CacheFile, good: NDArray[np.bool_], shape: tuple[int, ...]) -> None:
    """Close the gaps of rows that failed, in place, and shorten the file."""
    num = int(good.sum())
    # NumPy pads its header for growth, so that a smaller N does not move the data.
    header = _header((num, *shape[1:]))
    assert len(header) == cache.offset
    images = np.memmap(cache.path, np.uint8, "r+", cache.offset, shape)
    _closed_up(images, good)
    images.flush()
    del images
    with open(cache.path, "r+b") as stream:
        stream.write(header)
        stream.truncate(cache.offset + num * cache.image_bytes)


def _closed_up(rows: NDArray[Any], good: NDArray[np.bool_]) -> NDArray[Any]:
    """The good rows, moved to the front of the array itself; what comes after them says nothing any more."""
    done = 0
    for start in range(0, len(good), FEW_ROWS):
        part = start + np.flatnonzero(good[start : start + FEW_ROWS])
        if done < start or len(part) < FEW_ROWS:
            rows[done : done + len(part)] = rows[part]
        done += len(part)
    return rows[:done]
