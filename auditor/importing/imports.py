"""Import a labelled image set: check it, decode it once, find duplicates, register it; all of it or nothing.

    report = import_dataset("photos/", name="photos")

Nothing is changed at the source, and nothing is copied from it but the decoded cache (and, when another program
asks for files, the images that lie in no file of their own: ``cache.extracted_path``).
"""

from __future__ import annotations

import itertools
import math
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from auditor.catalog import datasets, db
from auditor.ground.apart import DiedError, Readers
from auditor.ground.errors import AuditFailedError, ImportRefusedError
from auditor.ground.names import Spellings, normal
from auditor.ground.processes import usable_cores
from auditor.ground.progress import OnProgress, Progress
from auditor.ground.vocabulary import TASKS
from auditor.ground.wording import plural
from auditor.importing import class_names as names_of_classes
from auditor.importing import journal, mask_cache, sets, staging
from auditor.importing.building import (
    LOCATION,
    Builder,
    Built,
    Parsed,
    Problems,
    default_size,
    read_rows,
)
from auditor.importing.pool import FEW_IMAGES, FULL_DISK, chunks, pool, probe_chunk, run_in_order
from auditor.importing.registering import ImportReport, Registration, name_taken
from auditor.pictures.sources import (
    Problem,
    Source,
    SourceInfo,
    SourceOptions,
    SourceRow,
    columns_taken,
    is_remote,
    local_file,
    open_source,
    ordered_class_names,
    printable,
    remarks,
    tree_lines,
)
from auditor.work import ExecutorChoice, RayPool, open_pool

__all__ = [
    "BadRowsError",
    "ImportReport",
    "Preview",
    "Problem",
    "Progress",
    "import_dataset",
    "preview_source",
]

IMAGE_SIZES = range(8, 1025)
MOST_LETTERS = 1_000
"""Of the name of a class."""
MAX_CLASSES = 30_000
MANY_CLASSES = 1_000
PREVIEW_ROWS = 20
PREVIEW_IMAGES = 200


class BadRowsError(ImportRefusedError):
    """Some rows cannot be imported; ``problems`` lists them (the first thousand), ``count`` counts them."""

    def __init__(self, text: str, problems: list[Problem], count: int, *, field: str | None = None) -> None:
        """``text`` is the one line for a person."""
        super().__init__(text, field=field)
        self.problems = problems
        self.count = count


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
    image_size: int | None
    """The side that would be chosen by default, from these first images."""
    ignored: list[str]
    notes: list[str]
    """What was made of the class names, and doubts about them."""
    question: str | None = None
    """What has to be answered before an import."""
    splits: dict[str, dict[str, int]] = field(default_factory=dict)
    """Samples by split and class: the empty name is no split, or no label."""
    left_out: list[str] = field(default_factory=list)
    """A sentence for each folder that means nothing."""
    because: str = ""
    """What the reading rests on."""
    is_sure: bool = True
    """Whether folders leave nothing else that they may mean."""

    def tree(self) -> list[str]:
        """The reading, a line a split with its classes and counts, then what is left out and how sure that is."""
        found = {
            split or None: {name or None: count for name, count in one.items()}
            for split, one in self.splits.items()
        }
        sure = f"{'Sure' if self.is_sure else 'Not sure'}: {self.because}"
        return [*tree_lines(found), *self.left_out, *([sure] if self.because else [])]


def preview_source(source: str | Path, **options: Any) -> Preview:
    """Read a source's rows and its first images' headers; nothing is registered.

    Takes the options of ``import_dataset`` that concern the source (``SourceOptions``).

    Raises:
        ImportRefusedError: the source cannot be read at all.
    """
    wanted = SourceOptions(**options)
    with staging.preview_folder() as folder:
        opened = open_source(source, wanted, folder / "files")
        splits: dict[str, dict[str, int]] = {}
        first: list[SourceRow] = []
        problems, num_rows, spelt = Problems(), 0, Spellings("Splits")
        for item in opened.rows():
            if isinstance(item, Problem):
                problems.add(item)
                continue
            num_rows += 1
            found = splits.setdefault(spelt.first(item.split) or "", {})
            for said in [item.label] if not item.answers else item.answers.values():
                name = normal(said or "")
                found[name] = found.get(name, 0) + 1
            if len(first) < PREVIEW_IMAGES:
                first.append(item)
        problems = problems.folded(opened.info, num_rows)
        sizes, bad = _first_sizes(opened, first)
    counts: dict[str, int] = dict.fromkeys(opened.info.class_names or (), 0)
    for name, count in itertools.chain.from_iterable(one.items() for one in splits.values()):
        counts[name] = counts.get(name, 0) + count
    unlabeled = counts.pop("", 0)
    if opened.info.is_set:
        said_by = sets.read_sets(opened.info, counts, merge=wanted.merge_classes)
        splits = {split: {"": one.pop("", 0)} | said_by.counts(one) for split, one in splits.items()}
        counts = said_by.counts(counts)
        meant = names_of_classes.Meaning(notes=said_by.notes, question=said_by.question)
    else:
        meant = names_of_classes.meaning_of_names(
            opened.info, counts, merge=wanted.merge_classes, joined=wanted.joined_classes
        )
    for name, parts in meant.several.items():
        for _ in range(counts[name]):
            problems.add(Problem(opened.info.table_file, None, names_of_classes.refusal(name, parts)))
    counts = _renamed(counts, meant)
    counts[""] = counts.pop("", 0) + unlabeled
    names = [name for name in counts if name]
    names = names if opened.info.class_names else ordered_class_names(names)
    heights, widths = np.array(sizes, np.int32).reshape(-1, 2).T
    question = None if meant.question is None else str(meant.question)
    occurring = [(name, count) for name, count in counts.items() if name and count]
    if question is None and opened.info.masks is None and len(occurring) == 1:
        question = _one_class(opened.info.table_file, *occurring[0])
    return Preview(
        kind=opened.info.kind,
        num_rows=num_rows,
        class_names=names,
        counts=counts,
        columns=list(opened.info.columns),
        label_column=opened.info.label_column,
        path_column=opened.info.path_column,
        first_rows=first[:PREVIEW_ROWS],
        problems=problems.listed + bad,
        num_problems=problems.count + len(bad),
        image_size=default_size(heights, widths) if sizes else None,
        ignored=opened.ignored,
        notes=remarks(opened)
        + (["The counts are of answers: each picture has several."] if opened.info.annotators else [])
        + meant.notes
        + spelt.remarks(),
        question=question,
        splits={split: _renamed(one, meant) for split, one in splits.items()},
        left_out=list(opened.info.left_out),
        because="; ".join(filter(None, [opened.info.because, columns_taken(opened.info).removesuffix(".")])),
        is_sure=opened.info.is_sure,
    )


def _renamed(counts: dict[str, int], meant: names_of_classes.Meaning) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, count in counts.items():
        if name not in meant.several:
            called = meant.called.get(name, name) or ""
            found[called] = found.get(called, 0) + count
    return found


def _first_sizes(source: Source, rows: list[SourceRow]) -> tuple[list[tuple[int, int]], list[Problem]]:
    sizes, bad, first = [], [], 0
    tasks = ((source.info.root, chunk) for chunk in chunks(source.payloads(row.location for row in rows)))
    for found in run_in_order(None, probe_chunk, tasks, 1):
        texts = dict(found.problems)
        for place, size in enumerate(zip(found.heights, found.widths, strict=True)):
            if place not in texts:
                sizes.append(size)
                continue
            row, text = rows[first + place], texts[place]
            file = row.filepath if row.row is None else source.info.table_file
            bad.append(Problem(file, row.row, text if row.row is None else f"{row.filepath} {text}"))
        first += len(found.heights)
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
    class_names: str | Path | None = None,
    boxes: bool = False,
    task: str | None = None,
    masks: str | Path | None = None,
    ignore_index: int | None = None,
    encoding: str | None = None,
    merge_classes: bool | None = None,
    joined_classes: bool = False,
    layout: str | None = None,
    annotators: Sequence[str] = (),
    annotator_column: str | None = None,
    masks_on: str | None = None,
    levels: tuple[float, float] | None = None,
    skip_bad: bool = False,
    workers: int | None = None,
    on: str | None = None,
    progress: OnProgress | None = None,
) -> ImportReport:
    """Import ``source`` under ``name``; see ``sources`` for the kinds of sources.

    ``image_size`` is the side of the square cache (default: the median of the longer sides, at most 224).
    ``skip_bad`` leaves out rows that cannot be used instead of refusing the whole import.
    ``class_names`` is a file with one class name a line, for a source whose labels are numbers.
    ``boxes`` makes every box of a COCO file a sample of its own: the part of the image inside it.
    ``task`` ``segmentation`` takes masks in place of classes, which lie in the folder ``masks`` or where a known
    layout has them (``sources.segmentation``); ``ignore_index`` is the value of pixels without a class.
    ``task`` ``regression`` takes labels as numbers; ``multilabel`` as sets of classes, several a picture or none: a
    column a class, lists, names with a sign between, or class folders that share pictures.
    ``encoding`` is that of a table that is not UTF-8. ``merge_classes`` says whether names of classes that look
    alike (``Cat``, ``cat``) are one class; ``joined_classes`` that a name such as ``cat|dog`` is one.
    ``layout`` says of a folder or archive that can be read in two ways whether its first folders are the
    ``classes``, or ``splits`` with the classes below them.
    ``annotators`` are columns with one annotator's answers each, or with lists of answers (Parquet); of Label
    Studio's and Labelbox's files those whose answers are read, ``("all",)`` everybody's. ``annotator_column``,
    beside the column of labels, says who answered in a table with one row an answer. The label is the consensus.
    ``masks_on`` says whether masks or boxes of pictures that EXIF turns were drawn on the ``stored`` pixels or on
    what is ``seen``, where their sizes do not tell.
    ``levels`` are the grey values that become black and white, where images have more than 8 bits; default: the
    range of the set but for a thousandth of its values at either end, which the import says.
    ``true_label_column`` is known truth for benchmarks: stored beside the cache, never trained on.
    ``workers`` defaults to the number of processors.
    ``on`` is where a large set is decoded: ``processes``, or a Ray cluster as for an audit
    (``executors.ExecutorChoice``); default: ``AUDITOR_EXECUTOR``.

    An import that was killed leaves what it had done for a day; the same call goes on from there, with images whose
    files were written since decoded anew (images at an address are taken for unchanged).

    Raises:
        ImportRefusedError: nothing was registered, nothing is left behind; ``BadRowsError`` lists the rows.
    """
    start = time.monotonic()
    _check_request(name, image_size)
    options = SourceOptions(
        label_column,
        path_column,
        true_label_column,
        str(root) if root is not None else None,
        str(class_names) if class_names is not None else None,
        boxes,
        task,
        str(masks) if masks is not None else None,
        ignore_index,
        encoding,
        merge_classes,
        joined_classes,
        layout,
        tuple(annotators),
        annotator_column,
        masks_on,
    )
    if levels is not None and not -math.inf < levels[0] < levels[1] < math.inf:
        raise ImportRefusedError(
            f"The range {levels[0]:g} to {levels[1]:g} is none; name the darker value first."
        )
    if task is not None and task not in TASKS:
        raise ImportRefusedError(f"There is no task {task!r}; use one of {', '.join(TASKS)}.", field="task")
    workers = workers or usable_cores()
    cluster = _cluster(on)
    request = journal.fingerprint(
        _absolute(str(source)), name, image_size, asdict(options) | {"levels": levels}
    )
    readers = Readers(workers)
    readers.begin(1)  # before there is a thread that draws progress
    try:
        with staging.workplace(name, request) as place:
            folder = place.folder
            shutil.rmtree(folder / "files", ignore_errors=True)  # of an attempt before
            opened = open_source(source, options, folder / "files")
            parsed = read_rows(
                opened, folder / "rows.jsonl", progress, merge=merge_classes, joined=joined_classes
            )
            refuse_labels(opened.info, parsed, skip_bad=skip_bad)
            _go_on(opened, parsed, place, Path(source))
            built = _build(
                opened,
                parsed,
                folder,
                image_size=image_size,
                skip_bad=skip_bad,
                workers=workers,
                readers=readers,
                cluster=cluster,
                progress=progress,
                levels=levels,
            )
            if opened.info.masks is not None:
                mask_cache.write(opened.info, parsed, built, folder, readers, progress)
            return Registration(str(source), name, opened, parsed, built, place, progress).run(start)
    except OSError as error:
        if error.errno in FULL_DISK:
            raise _disk_full() from error
        raise
    except DiedError as error:
        raise ImportRefusedError(
            f"what is imported {error}; nothing was imported. Try again with fewer workers.", field="workers"
        ) from error
    finally:
        readers.close()


def _absolute(source: str) -> str:
    return source if is_remote(source) or ":" in source else os.path.abspath(os.path.expanduser(source))


def _go_on(source: Source, parsed: Parsed, place: staging.Workplace, named: Path) -> None:
    """Note which rows these are, and forget what a killed import had done with others."""

    def written(line: list[Any]) -> int:
        file = local_file(source.info.root, line[LOCATION])
        if file is None:  # at an address, or in memory
            return 0
        # What was unpacked here is as old as what it came out of.
        file = named if file.is_relative_to(place.folder) else file
        try:
            return file.stat().st_mtime_ns
        except OSError:
            return sys.maxsize

    journal.forget_what_changed(place.folder, parsed.rows.path, iter(parsed.rows), written)


def _cluster(on: str | None) -> ExecutorChoice | None:
    try:
        choice = ExecutorChoice.of(on)
    except AuditFailedError as error:
        raise ImportRefusedError(str(error), field="on") from error
    return choice if choice.is_ray else None


def _disk_full() -> ImportRefusedError:
    return ImportRefusedError(
        "the disk is full; nothing was imported. Free some space, point AUDITOR_HOME to another disk or "
        "choose a smaller image size.",
        field="image_size",
    )


def _check_request(name: str, image_size: int | None) -> None:
    if not name.strip() or name != name.strip() or len(name) > 100 or printable(name) != name or "/" in name:
        raise ImportRefusedError(
            f"the name {printable(name, 60)!r} cannot be used; use 1 to 100 characters on one "
            "line without '/'."
        )
    if image_size is not None and image_size not in IMAGE_SIZES:
        raise ImportRefusedError(
            f"The image size is {image_size}; choose 8 to 1024 pixels.", field="image_size"
        )
    if db.ask(datasets.exists, name):
        raise name_taken(name)


def _one_class(file: str, name: str, count: int) -> str:
    return (
        f"{file} has one class only, {printable(name, 60)!r} ({plural(count, 'image')}): no label can be told from "
        "another; import two classes or more together."
    )


def refuse_labels(info: SourceInfo, parsed: Parsed, *, skip_bad: bool) -> None:
    """Refuse what nothing can be audited in: no label, one class, or as many classes as images.

    Raises:
        ImportRefusedError: it is so; the text names the remedy.
    """
    if parsed.problems.count and not skip_bad:
        return  # they are refused, whatever the labels are
    total, num_classes = len(parsed.labels), len(parsed.class_names)
    file = info.table_file
    if total == 0 and parsed.problems.count == 0:
        raise ImportRefusedError(f"{file} lists no image; check that it is the right file.")
    numbered = parsed.labels if parsed.labels.dtype == np.int32 else None
    occur = np.unique(numbered[numbered >= 0]) if numbered is not None and info.masks is None else None
    if total and parsed.sets is not None and occur is not None and len(occur) == 1:
        raise ImportRefusedError(
            f"{file} gives every picture the same labels: no label can be told from another.",
            field="label_column" if info.label_column else None,
        )
    if total and num_classes and occur is not None and len(occur) == 1:
        raise ImportRefusedError(
            _one_class(file, parsed.class_names[occur[0]], int((parsed.labels >= 0).sum())),
            field="label_column" if info.label_column else None,
        )
    if total and (num_classes == 0 or (occur is not None and not len(occur))):
        column = f"its column {info.label_column!r} is empty" if info.label_column else "no class is named"
        raise ImportRefusedError(
            f"{file} has no label at all ({column}); name the column of labels.", field="label_column"
        )
    long = next((name for name in parsed.class_names if len(name) > MOST_LETTERS), None)
    if long is not None:
        raise ImportRefusedError(
            f"{file} has a label of {len(long):,} letters ({printable(long, 40)}), and a class has at most "
            f"{MOST_LETTERS:,}; name the column of labels.",
            field="label_column" if info.label_column else None,
        )
    is_many = num_classes > MAX_CLASSES or (num_classes > MANY_CLASSES and 2 * num_classes > total)
    if is_many and not info.is_numeric:
        raise ImportRefusedError(
            f"{file} has {num_classes:,} different labels in {plural(total, 'row')}; "
            + (
                "name the column of labels, or the task regression where they are numbers."
                if info.label_column
                else "check the class folders."
            ),
            field="label_column" if info.label_column else None,
        )


def _build(
    source: Source,
    parsed: Parsed,
    folder: Path,
    *,
    image_size: int | None,
    skip_bad: bool,
    workers: int,
    readers: Readers,
    cluster: ExecutorChoice | None,
    progress: OnProgress | None,
    levels: tuple[float, float] | None,
) -> Built:
    num = len(parsed.labels)
    with ExitStack() as stack:
        # The cluster first: it brings threads, with which this process may not be forked any more.
        away = None if cluster is None or num < FEW_IMAGES else stack.enter_context(_away(cluster))
        executor = stack.enter_context(pool(readers, workers, num))
        builder = Builder(source, parsed, folder, executor, workers, progress, levels, away)
        kept, headers = builder.check()
        _refuse_problems(parsed, skip_bad=skip_bad, num_kept=int(kept.sum()))
        built = builder.decode(kept, headers, image_size)
    _refuse_problems(parsed, skip_bad=skip_bad, num_kept=int(built.kept.sum()))
    return built


@contextmanager
def _away(cluster: ExecutorChoice) -> Iterator[RayPool]:
    """The cluster; its own errors are the import's."""
    try:
        with open_pool(cluster.address) as away:
            yield away
    except AuditFailedError as error:
        raise ImportRefusedError(f"{error} Nothing was imported.", field="on") from error


def _refuse_problems(parsed: Parsed, *, skip_bad: bool, num_kept: int) -> None:
    problems = parsed.problems
    if not problems.count or (skip_bad and num_kept):
        return
    first = str(problems.listed[0])
    more = f" (and {problems.count - 1:,} more)" if problems.count > 1 else ""
    remedy = "Correct them, or leave those rows out." if num_kept else "No image is left to import."
    field = "skip_bad" if num_kept else None
    raise BadRowsError(f"{first}{more}. {remedy}", problems.listed, problems.count, field=field)
