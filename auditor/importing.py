"""Import a labelled image set: check it, decode it once, find duplicates, register it; all of it or nothing.

    report = import_dataset("photos/", name="photos")

Nothing is copied from or changed at the source, except that images which lie in no file of their own are copied
into the home when another program asks for files (``images.extracted_path``).
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy.exc import IntegrityError

from auditor import staging
from auditor.building import Builder, Built, OnProgress, Parsed, Progress, Ticker, default_size, read_rows
from auditor.catalog import datasets, db
from auditor.catalog.models import DatasetTable
from auditor.decoding import ImageError, probe
from auditor.duplicates import Duplicates, find_duplicates
from auditor.errors import ImportRefusedError
from auditor.images import TRUE_LABELS, cache_name
from auditor.settings import settings
from auditor.sources import (
    Problem,
    Source,
    SourceInfo,
    SourceOptions,
    SourceRow,
    open_source,
    ordered_class_names,
)
from auditor.sources.reading import UnreadableError, read_bytes
from auditor.sources.rows import printable
from auditor.workers import FULL_DISK, pool

__all__ = ["BadRowsError", "ImportReport", "Preview", "Problem", "Progress", "import_dataset", "preview"]

IMAGE_SIZES = range(8, 1025)
MAX_CLASSES = 30_000
MANY_CLASSES = 1_000
PREVIEW_ROWS = 20
PREVIEW_IMAGES = 200
MOST_LISTED = 1_000


class BadRowsError(ImportRefusedError):
    """Some rows cannot be imported; ``problems`` lists them (the first thousand), ``count`` counts them."""

    def __init__(self, text: str, problems: list[Problem], count: int) -> None:
        """``text`` is the one line for a person."""
        super().__init__(text)
        self.problems = problems
        self.count = count


@dataclass(frozen=True)
class ReviewRow:
    """A decision that stands in an exported CSV of ours."""

    sample_id: int
    decision: str
    label: int | None
    """Index of ``cleaned_label``; None where it is empty."""
    reviewer: str
    reviewed_at: str
    """As the file has it (ISO 8601)."""


@dataclass(frozen=True)
class ImportReport:
    """What was imported."""

    dataset_id: int
    name: str
    num_samples: int
    num_classes: int
    num_unlabeled: int
    num_trusted: int
    skipped: list[Problem]
    """The first thousand; ``num_skipped`` counts all."""
    num_skipped: int
    duplicates: dict[str, int]
    """groups, exact_samples, near_samples, conflicting_groups, conflicting_samples"""
    conflicts: list[list[int]]
    """sample_ids of each group of equal pictures with different given labels (the first thousand groups)."""
    seconds: float
    channels: int
    image_size: int
    notes: list[str] = field(default_factory=list)
    review_rows: list[ReviewRow] = field(default_factory=list)
    """Decisions found in an exported CSV, to be applied by whoever records reviews."""

    def stored(self) -> dict[str, Any]:
        """What the catalog keeps of it."""
        kept = asdict(self)
        for name in ("dataset_id", "name", "review_rows"):
            kept.pop(name)
        return kept


@dataclass(frozen=True)
class Preview:
    """What a source holds, before anything is registered."""

    kind: str
    num_rows: int
    class_names: list[str]
    counts: dict[str, int]
    """Samples by class name; unlabeled ones under the empty name."""
    columns: list[str]
    label_column: str | None
    path_column: str | None
    first_rows: list[SourceRow]
    problems: list[Problem]
    num_problems: int
    image_sizes: list[tuple[int, int]]
    """(height, width) of the first images."""
    image_size: int | None
    """The side that would be chosen by default, from these first images."""
    ignored: list[str]


def preview(source: str | Path, **options: Any) -> Preview:
    """Read a source's rows and its first images' headers; nothing is registered.

    Takes the options of ``import_dataset`` that concern the source (label_column, path_column,
    true_label_column, root).

    Raises:
        ImportRefusedError: the source cannot be read at all.
    """
    with staging.work_folder() as folder:
        opened = open_source(source, SourceOptions(**options), folder / "files")
        counts: dict[str, int] = dict.fromkeys(opened.info.class_names or (), 0)
        first: list[SourceRow] = []
        problems: list[Problem] = []
        num_rows = num_problems = 0
        for item in opened.rows():
            if isinstance(item, Problem):
                num_problems += 1
                if len(problems) < MOST_LISTED:
                    problems.append(item)
                continue
            num_rows += 1
            counts[item.label or ""] = counts.get(item.label or "", 0) + 1
            if len(first) < PREVIEW_IMAGES:
                first.append(item)
        sizes, bad = _first_sizes(opened, first)
    names = [name for name in counts if name]
    names = names if opened.info.class_names else ordered_class_names(names)
    heights, widths = np.array(sizes, np.int32).reshape(-1, 2).T
    return Preview(
        kind=opened.info.kind,
        num_rows=num_rows,
        class_names=names,
        counts=counts,
        columns=list(opened.info.columns),
        label_column=opened.info.label_column,
        path_column=opened.info.path_column,
        first_rows=first[:PREVIEW_ROWS],
        problems=problems + bad,
        num_problems=num_problems + len(bad),
        image_sizes=sizes,
        image_size=default_size(heights, widths) if sizes else None,
        ignored=opened.ignored,
    )


def _first_sizes(source: Source, rows: list[SourceRow]) -> tuple[list[tuple[int, int]], list[Problem]]:
    sizes, bad = [], []
    payloads = source.payloads(row.location for row in rows)
    for row, payload in zip(rows, payloads, strict=True):
        try:
            data = payload if isinstance(payload, bytes) else read_bytes(source.info.root, payload)
            found = probe(data)
            sizes.append((found.height, found.width))
        except (ImageError, UnreadableError) as error:
            file = row.filepath if row.row is None else source.info.table_file
            text = str(error) if row.row is None else f"{row.filepath} {error}"
            bad.append(Problem(file, row.row, text))
    return sizes, bad


def import_dataset(
    source: str | Path,
    *,
    name: str,
    image_size: int | None = None,
    label_column: str | None = None,
    path_column: str | None = None,
    true_label_column: str | None = None,
    root: str | Path | None = None,
    skip_bad: bool = False,
    workers: int | None = None,
    progress: OnProgress | None = None,
) -> ImportReport:
    """Import ``source`` under ``name``: see DESIGN section 5 for the kinds of sources.

    ``image_size`` is the side of the square cache (default: the median of the longer sides, at most 224).
    ``skip_bad`` leaves out rows that cannot be used instead of refusing the whole import. ``true_label_column``
    is known truth for benchmarks: stored beside the cache, never trained on. ``workers`` defaults to the
    number of processors.

    Raises:
        ImportRefusedError: nothing was registered and nothing is left behind; ``BadRowsError`` lists the rows.
    """
    start = time.monotonic()
    _check_request(name, image_size)
    options = SourceOptions(
        label_column, path_column, true_label_column, str(root) if root is not None else None
    )
    workers = workers or len(os.sched_getaffinity(0))
    try:
        with staging.work_folder() as folder:
            opened = open_source(source, options, folder / "files")
            parsed = read_rows(opened, folder / "rows.jsonl", progress)
            _refuse_labels(opened.info, parsed)
            built = _build(
                opened,
                parsed,
                folder,
                image_size=image_size,
                skip_bad=skip_bad,
                workers=workers,
                progress=progress,
            )
            return _Registration(str(source), name, opened, parsed, built, folder, progress).run(start)
    except OSError as error:
        if error.errno in FULL_DISK:
            raise _disk_full() from error
        raise
    except BrokenProcessPool as error:
        raise ImportRefusedError(
            "a decoding process was ended from outside, probably for lack of memory; nothing was imported. "
            "Try again with fewer --workers."
        ) from error


def _disk_full() -> ImportRefusedError:
    return ImportRefusedError(
        "the disk is full; nothing was imported. Free some space, point AUDITOR_HOME to another disk or choose a "
        "smaller --image-size."
    )


def _check_request(name: str, image_size: int | None) -> None:
    if not name.strip() or name != name.strip() or len(name) > 100 or printable(name) != name or "/" in name:
        raise ImportRefusedError(
            f"the name {printable(name, 60)!r} cannot be used; use 1 to 100 letters, digits, spaces or signs other than '/'."
        )
    if image_size is not None and image_size not in IMAGE_SIZES:
        raise ImportRefusedError(f"--image-size is {image_size}; choose 8 to 1024 pixels.")
    with db.session() as session:
        if datasets.exists(session, name):
            raise _name_taken(name)


def _name_taken(name: str) -> ImportRefusedError:
    return ImportRefusedError(f"a dataset named {name!r} exists already; choose another --name.")


def _refuse_labels(info: SourceInfo, parsed: Parsed) -> None:
    total, num_classes = len(parsed.labels), len(parsed.class_names)
    file = info.table_file
    if total == 0 and parsed.problems.count == 0:
        raise ImportRefusedError(f"{file} lists no image; check that it is the right file.")
    if total and num_classes == 0:
        column = f"its column {info.label_column!r} is empty" if info.label_column else "no class is named"
        raise ImportRefusedError(
            f"{file} has no label at all ({column}); name the right one with --label-column."
        )
    if num_classes > MAX_CLASSES or (num_classes > MANY_CLASSES and 2 * num_classes > total):
        raise ImportRefusedError(
            f"{file} has {num_classes:,} different labels in {total:,} rows; name the label column with "
            "--label-column."
        )


def _build(
    source: Source,
    parsed: Parsed,
    folder: Path,
    *,
    image_size: int | None,
    skip_bad: bool,
    workers: int,
    progress: OnProgress | None,
) -> Built:
    with pool(workers, len(parsed.labels)) as executor:
        builder = Builder(source, parsed, folder, executor, workers, progress)
        kept, probed = builder.check()
        _refuse_problems(parsed, skip_bad=skip_bad, num_kept=int(kept.sum()))
        built = builder.decode(kept, probed, image_size)
    _refuse_problems(parsed, skip_bad=skip_bad, num_kept=int(built.kept.sum()))
    return built


def _refuse_problems(parsed: Parsed, *, skip_bad: bool, num_kept: int) -> None:
    problems = parsed.problems
    if not problems.count or (skip_bad and num_kept):
        return
    first = str(problems.listed[0])
    more = f" (and {problems.count - 1:,} more)" if problems.count > 1 else ""
    remedy = "Mend them, or import without them: --skip-bad." if num_kept else "No image is left to import."
    raise BadRowsError(f"{first}{more}. {remedy}", problems.listed, problems.count)


@dataclass
class _Registration:
    """The last step: everything is ready, one transaction makes it visible."""

    source_name: str
    name: str
    source: Source
    parsed: Parsed
    built: Built
    folder: Path
    on_progress: OnProgress | None

    def run(self, start: float) -> ImportReport:
        """Compare, move the folder to its place, insert the rows, commit."""
        kept = self.built.kept
        labels = self.parsed.labels[kept]
        Ticker(self.on_progress, "comparing", len(labels))
        found = self._duplicates(labels)
        if self.source.info.true_label_column is not None:
            np.save(self.folder / TRUE_LABELS, self.parsed.true_labels[kept])
        Ticker(self.on_progress, "registering", len(labels))
        report = ImportReport(
            dataset_id=0,
            name=self.name,
            num_samples=len(labels),
            num_classes=len(self.parsed.class_names),
            num_unlabeled=int((labels < 0).sum()),
            num_trusted=int(self.parsed.trusted[kept].sum()),
            skipped=self.parsed.problems.listed,
            num_skipped=self.parsed.problems.count,
            duplicates=found.summary(),
            conflicts=found.conflicts[:MOST_LISTED],
            seconds=round(time.monotonic() - start, 3),
            channels=self.built.channels,
            image_size=self.built.size,
            notes=self._notes(),
        )
        rows = Rows(self.parsed, self.built, found)
        dataset_id = self._insert(report, rows)
        seconds = round(time.monotonic() - start, 3)
        return replace(report, dataset_id=dataset_id, review_rows=rows.reviews, seconds=seconds)

    def _duplicates(self, labels: np.ndarray) -> Duplicates:
        size = self.built.size
        path = self.folder / cache_name(channels=self.built.channels, height=size, width=size)
        images = np.load(path, mmap_mode="r", allow_pickle=False)
        return find_duplicates(self.built.content_hash, self.built.perceptual_hash, images, labels)

    def _notes(self) -> list[str]:
        notes = []
        if self.built.num_animated:
            notes.append(f"{self.built.num_animated:,} animated images: the first frame is used.")
        if self.source.ignored:
            names = ", ".join(printable(name, 40) for name in self.source.ignored[:3])
            notes.append(f"{len(self.source.ignored):,} files that are no images were passed over ({names}).")
        if len(self.parsed.class_names) == 1:
            notes.append("There is only one class: no other label can be suggested.")
        return notes

    def _insert(self, report: ImportReport, rows: Rows) -> int:
        """One transaction: the dataset, its samples and, just before the commit, the folder's final name."""
        published: Path | None = None
        try:
            with db.session() as session:
                table = self._table(report)
                dataset_id = datasets.create(session, table, rows)
                root = Path(table.root)
                if root.is_relative_to(self.folder):
                    final = settings().dataset_folder(dataset_id)
                    table.root = str(final / root.relative_to(self.folder))
                    session.add(table)
                self.parsed.rows.path.unlink()
                published = staging.publish(self.folder, dataset_id)
        except IntegrityError as error:
            raise _name_taken(self.name) from error
        finally:
            if published is not None:
                staging.withdraw(published)
        assert published is not None
        staging.confirm(published)
        return dataset_id

    def _table(self, report: ImportReport) -> DatasetTable:
        info = self.source.info
        return DatasetTable(
            name=self.name,
            source=self.source_name,
            source_kind=info.kind,
            root=info.root,
            num_samples=report.num_samples,
            channels=self.built.channels,
            height=self.built.size,
            width=self.built.size,
            class_names=self.parsed.class_names,
            user_columns=list(info.user_columns),
            path_column=info.path_column,
            label_column=info.label_column,
            has_true_labels=info.true_label_column is not None,
            import_report=report.stored(),
        )


class Rows:
    """The samples as rows of the catalog, streamed from the row file; collects the decisions on the way."""

    def __init__(self, parsed: Parsed, built: Built, found: Duplicates) -> None:
        """Nothing is read before the iteration."""
        self._parsed, self._built, self._found = parsed, built, found
        self.reviews: list[ReviewRow] = []

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Mappings of ``SampleTable``'s columns, in sample order."""
        built, found = self._built, self._found
        labels = self._parsed.labels[built.kept]
        signed = built.perceptual_hash.view(np.int64)
        for sample_id, line in enumerate(itertools.compress(self._parsed.rows, built.kept)):
            _, filepath, location, trusted, split, extra, review = line
            group = int(found.group[sample_id])
            if review and review.get("review_decision"):
                self.reviews.append(self._review(sample_id, review))
            yield {
                "sample_id": sample_id,
                "filepath": filepath,
                "location": location,
                "given_label": int(labels[sample_id]),
                "trusted": trusted,
                "split": split,
                "content_hash": built.content_hash[sample_id].tobytes().hex(),
                "perceptual_hash": int(signed[sample_id]),
                "duplicate_group": None if group < 0 else group,
                "duplicate_kind": None if group < 0 else "exact" if found.is_exact[sample_id] else "near",
                "original_height": int(built.heights[sample_id]),
                "original_width": int(built.widths[sample_id]),
                "extra": extra,
            }

    def _review(self, sample_id: int, review: dict[str, str]) -> ReviewRow:
        cleaned = review.get("cleaned_label", "")
        return ReviewRow(
            sample_id=sample_id,
            decision=review["review_decision"],
            label=self._parsed.class_names.index(cleaned) if cleaned else None,
            reviewer=review.get("reviewer", ""),
            reviewed_at=review.get("reviewed_at", ""),
        )
