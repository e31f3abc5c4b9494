"""What comes out: one row a sample in the input's order, the user's own columns first, ours after them.

Written to a temporary file and renamed, so that a file is whole or absent; never over an existing one without
``force``. Text that a spreadsheet would run as a formula is quoted, and reading our file back undoes it.
"""

from __future__ import annotations

import csv
import errno
import functools
import itertools
import os
import shlex
import shutil
import stat
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, TextIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from auditor import columns
from auditor.bridges import engine_bridge
from auditor.catalog import datasets, folders, reading, scores
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset, Review, Sample
from auditor.ground.errors import ExportRefusedError, NotFoundError
from auditor.ground.files import folder_written_whole, is_part_of, open_below, written_whole
from auditor.ground.names import Names, likeness, normal
from auditor.ground.progress import OnProgress, Ticker
from auditor.ground.tables import quoted
from auditor.ground.vocabulary import ACTIONS, DISPUTED, EXCLUDE, EXCLUDING, KEEP, MULTILABEL, RELABEL
from auditor.ground.wording import plural
from auditor.importing import meaning_of_names
from auditor.outputs import found_again
from auditor.pictures import cache
from auditor.pictures.sources import NO_PLACE, Rewritable, SourceOptions, open_source, printable
from auditor.results import arrays, statements
from auditor.review.decisions import outcomes
from auditor.statistics.annotators import Answers

POLICIES = ("reviewed", "auto")
FLAGS_ALONE = (
    "{} may be flagged at this rate, but too often the suggestion is another class than the right one."
)
MOST_NAMED = 5
"""Labels in conflict with the source that are named; the others are counted."""
TABLES = (".csv", ".tsv", ".parquet")
SOURCE_ALONE = (
    *(".json", ".jsonl", ".ndjson", ".manifest", ".xml", ".txt", ".npz"),
    *(".tar", ".gz", ".tgz", ".bz2", ".xz"),
)
"""Files that are only written where the dataset was imported from one of that kind."""
ARROW = {"integer": pa.int64(), "boolean": pa.bool_(), "number": pa.float32()}
"""By kind of a column its type in Parquet, where that is no text."""
SCORE_COLUMNS = ["is_label_issue", "trust_score", "suggested_label", "suggested_probability"]
SOURCE_PREFIX = "source_"
"""Put before a column of the user that is named like one of ours."""
BATCH_ROWS = 20_000
LINKS_REFUSED = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP)
"""Why a hard link cannot be made and a copy can: another disk, none on this file system, too many already."""


@dataclass(frozen=True)
class ExportSummary:
    """What an export says about every sample, counted."""

    num_rows: int
    num_keep: int
    num_relabel: int
    num_exclude: int
    num_by_people: int
    """Changes that a person decided on."""
    num_automatic: int
    """Changes that only the promise of ``--policy auto`` carries."""
    num_disputed: int
    """Labels on which people differ; they stay as they are."""
    pairs: list[tuple[str, str, int]]
    """(given, cleaned, count) of the relabels, the most frequent first."""
    automatic_pairs: list[tuple[str, str, int]]
    """Those of ``pairs`` that only the promise of ``--policy auto`` carries."""
    sentence: str


@dataclass(frozen=True)
class _Sources:
    """Everything that a row is put together from, loaded once."""

    dataset: Dataset
    user_columns: dict[str, str]
    """The user's own columns in their order, by the name that each has in the export."""
    audit: Audit | None
    scores: pd.DataFrame | None
    decisions: dict[int, Review]
    signals: dict[str, NDArray[np.float32]]
    imported_names: list[str]
    """The dataset's classes as the source calls them."""
    automatic: NDArray[np.bool_]
    """(N,) bool: ``--policy auto`` takes the suggestion here; nowhere where a person has decided."""
    progress: OnProgress | None
    """Is told of each row that is read."""
    answers: Answers | None = None
    """Of annotators whose answers stand in no column of the user's."""


def export_table(
    dataset_name: str,
    out: Path,
    *,
    policy: str = "reviewed",
    max_fdr: float | None = None,
    audit_id: int | None = None,
    force: bool = False,
    as_source: bool = False,
    progress: OnProgress | None = None,
) -> ExportSummary:
    """Write the cleaned table to ``out`` (``.csv``, ``.tsv`` or ``.parquet``).

    With ``as_source``, and for what is no table, the source itself is written once more with cleaned labels and
    everything else in it unchanged: its file, or its folder of Parquet, shards or records.

    ``policy="reviewed"`` changes only what a person decided, on a suspect or in a verified sample; ``"auto"`` also
    accepts suggestions, as many as let the share of wrong ones among them stay at or below ``max_fdr`` on average.
    Scores and suggestions are those of the newest finished audit, or of ``audit_id``.

    Raises:
        ExportRefusedError: the file exists, its kind is unknown, or ``auto`` has nothing that it can promise.
        NotFoundError: no such dataset, or ``audit_id`` is no finished audit of it.
    """
    suffix = out.suffix.lower()
    if suffix not in (*TABLES, *SOURCE_ALONE) and not (as_source and not suffix):
        raise ExportRefusedError(f"{out}: the file's kind is unknown; use .csv, .tsv or .parquet.")
    if out.exists() and not force:
        raise ExportRefusedError(f"{out} exists; choose another name, or overwrite it.", field="force")
    sources = _load(dataset_name, policy, max_fdr, audit_id, progress)
    if is_part_of(out, sources.dataset.source):
        raise ExportRefusedError(
            f"{out} belongs to what {dataset_name} was imported from; choose another name."
        )
    if as_source and sources.dataset.source_kind == "folder":
        return export_tree(dataset_name, out, policy=policy, max_fdr=max_fdr, audit_id=audit_id)
    if as_source or suffix in SOURCE_ALONE:
        return _write_source(sources, out)
    with written_whole(out) as beside:
        if suffix == ".parquet":
            summary = _write_parquet(sources, beside)
        else:
            with beside.open("w", encoding="utf-8", newline="") as file:
                summary = _write_csv(sources, file, "\t" if suffix == ".tsv" else ",")
    return summary


def preview_export(
    dataset_name: str,
    *,
    policy: str = "reviewed",
    max_fdr: float | None = None,
    audit_id: int | None = None,
    rows: int = 20,
) -> tuple[ExportSummary, pd.DataFrame]:
    """Return what an export would say: the summary and the first rows that change."""
    sources = _load(dataset_name, policy, max_fdr, audit_id, with_scores=False)
    # Nothing else can change; to go through a million samples for a few rows takes a minute.
    touched = sorted(
        {*sources.decisions, *np.flatnonzero(sources.automatic).tolist(), *_in_changed_classes(sources)}
    )
    samples = ask(datasets.samples, sources.dataset.id, touched)
    audit = sources.audit
    found = {} if audit is None else ask(scores.of_samples, audit.id, touched)
    changed: list[dict[str, Any]] = []
    counts = _Counts(sources.automatic)
    counts.add_kept(sources.dataset.num_samples - len(samples))
    for sample in samples:
        score = found.get(sample.sample_id)
        scored = None if score is None else {name: getattr(score, name) for name in SCORE_COLUMNS}
        row = _row(sources, scored, sample)
        counts.add(row)
        if row["action"] != KEEP and len(changed) < rows:
            changed.append(row)
    return counts.summary(sources), pd.DataFrame(changed)


def _in_changed_classes(sources: _Sources) -> list[int]:
    """The samples whose class was renamed or has another one merged into it."""
    dataset, names = sources.dataset, sources.dataset.class_names
    changed = [one for one, name in enumerate(names) if name != sources.imported_names[one]]
    if not (changed or dataset.merged):
        return []
    changed += dataset.merged.values()
    return np.flatnonzero(np.isin(ask(datasets.given_labels, dataset.id), changed)).tolist()


def export_tree(
    dataset_name: str,
    out: Path,
    *,
    policy: str = "reviewed",
    max_fdr: float | None = None,
    audit_id: int | None = None,
    links: bool = False,
    progress: OnProgress | None = None,
) -> ExportSummary:
    """Write the cleaned set as a folder with a sub-folder a class, of copies of the images.

    With ``links`` they are hard links where the disk allows it: no space is taken, and whoever edits such a file in
    place changes the original.

    Where the source named splits, each has its folder with the classes below it: what was apart stays apart.

    Raises:
        ExportRefusedError: the folder exists, a class or split cannot be a folder's name, or only some samples
            are of a split.
    """
    if out.exists():
        raise ExportRefusedError(f"{out} exists; choose a new folder.")
    sources = _load(dataset_name, policy, max_fdr, audit_id, progress)
    counts = _Counts(sources.automatic)

    def placed() -> Iterator[tuple[Sample, list[str]]]:
        for row, sample in _rows_with_samples(sources):
            counts.add(row)
            yield sample, [row["cleaned_label"]] if row["cleaned_label"] else []

    write_tree(sources.dataset, out, placed(), links=links)
    return counts.summary(sources)


def write_tree(
    dataset: Dataset, out: Path, placed: Iterable[tuple[Sample, Sequence[str]]], *, links: bool = False
) -> None:
    """Write a new folder with each sample's picture in the folder of each of its classes, below that of its split.

    Raises:
        ExportRefusedError: a class or split cannot be a folder's name, or only some samples are of a split.
    """
    _check_folders(dataset)
    moved = dict[int, str]()
    with folder_written_whole(out) as building:
        for sample, classes in placed:
            for name in classes:
                original = _original(dataset, sample, moved)
                with _opened(dataset.root, original) as stream:
                    _put(stream, original, building / (sample.split or "") / name, sample, links=links)


def export_zip(dataset_name: str, out: Path, **chosen: Any) -> ExportSummary:
    """Write what ``export_tree`` writes, with the same arguments, as one zip; the pictures are not packed again.

    Raises:
        ExportRefusedError: as ``export_tree``, but an archive in that place is replaced.
    """
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".packing-") as beside:
        tree = Path(beside) / "tree"
        summary = export_tree(dataset_name, tree, links=True, **chosen)
        with written_whole(out) as path, zipfile.ZipFile(path, "w", strict_timestamps=False) as packed:
            for file in sorted(tree.rglob("*")):
                packed.write(file, file.relative_to(tree))
    return summary


@folders.checked_once()
def _load(
    dataset_name: str,
    policy: str,
    max_fdr: float | None,
    audit_id: int | None,
    progress: OnProgress | None = None,
    *,
    with_scores: bool = True,
) -> _Sources:
    if policy not in POLICIES:
        raise ExportRefusedError(
            f"There is no policy {policy!r}; use one of {', '.join(POLICIES)}.", field="policy"
        )
    if policy != "auto" and max_fdr is not None:
        raise ExportRefusedError(
            "A false-discovery rate bounds the changes that the policy 'auto' makes; choose that policy, or leave "
            "the rate out.",
            field="policy",
        )
    dataset, audit = reading.newest_audited(dataset_name, audit_id)
    table = ask(scores.table, audit.id) if with_scores and audit is not None else None
    automatic = np.zeros(dataset.num_samples, dtype=bool)
    if policy == "auto":
        if audit is None:
            raise ExportRefusedError(
                f"The policy 'auto' needs an audit; run `auditor audit {shlex.quote(dataset_name)}` first."
            )
        if max_fdr is None:
            raise ExportRefusedError(
                "The policy 'auto' needs a bound on the false-discovery rate, for example 0.05.",
                field="max_fdr",
            )
        standing = statements.load(audit.id)
        promise = statements.promise_changes(standing, max_fdr)
        if not promise.flags.any():
            flagged = statements.promises(standing, levels=(max_fdr,))[max_fdr]
            beside = f" {FLAGS_ALONE.format(plural(flagged.num_flags, 'label'))}" if flagged.is_kept else ""
            raise ExportRefusedError(f"{promise.sentence}{beside} Nothing was written.")
        automatic = promise.flags
    return _Sources(
        dataset,
        _named_apart(dataset),
        audit,
        table,
        outcomes(dataset.id),
        _signals(audit),
        dataset.imported_names,
        automatic,
        progress,
        None if set(dataset.annotators or ()) <= set(dataset.user_columns) else cache.answers(dataset),
    )


def _signals(audit: Audit | None) -> dict[str, NDArray[np.float32]]:
    found: dict[str, NDArray[np.float32]] = {}
    if audit is None:
        return found
    heard = {*audit.engines, *arrays.runs_that_speak(audit.id)}
    trusts = {column: (engine, "") for column, engine in engine_bridge.trust_columns().items()}
    for column, (engine, name) in (engine_bridge.signal_columns() | trusts).items():
        if engine not in heard:
            continue  # its cells stay empty
        try:
            found[column] = arrays.signal(audit.id, engine, name) if name else arrays.trust(audit.id, engine)
        except NotFoundError:
            continue  # it did not finish, or has no such signal
    return found


def _rows(sources: _Sources) -> Iterator[dict[str, Any]]:
    for row, _ in _rows_with_samples(sources):
        yield row


def _rows_with_samples(sources: _Sources) -> Iterator[tuple[dict[str, Any], Sample]]:
    is_audited = sources.scores is not None
    scored = itertools.repeat(None) if sources.scores is None else _scored(sources.scores)
    ticker = Ticker(sources.progress, "writing", sources.dataset.num_samples)
    # Without an audit the empty scores have no end; with one there is a score for every sample.
    for sample, score in zip(reading.samples(sources.dataset.id), scored, strict=is_audited):
        yield _row(sources, score, sample), sample
        ticker.at(sample.sample_id + 1)


def _scored(table: pd.DataFrame) -> Iterator[dict[Any, Any]]:
    """Yield what an export says of each sample's score, in sample order.

    Batch by batch: a million rows as Python objects take some 300 MB beside the table itself.
    """
    for start in range(0, len(table), BATCH_ROWS):
        yield from table[start : start + BATCH_ROWS][SCORE_COLUMNS].to_dict("records")


def _row(sources: _Sources, scored: dict[Any, Any] | None, sample: Sample) -> dict[str, Any]:
    decided, score = sources.decisions.get(sample.sample_id), scored or {}
    action, cleaned = outcome(
        decided,
        sample.given_label,
        score.get("suggested_label", -1),
        bool(sources.automatic[sample.sample_id]),
    )
    extra = sample.extra or {}
    if sources.answers is not None:
        people, names = sources.dataset.annotators or [], sources.imported_names
        said = sources.answers.of_row(sample.sample_id)
        extra = extra | dict.fromkeys(people, "") | {people[who]: names[label] for who, label in said}
    own = {name: extra[column] for column, name in sources.user_columns.items() if column in extra}
    names, before = sources.dataset.class_names, sources.imported_names
    if action == KEEP and cleaned >= 0 and names[cleaned] != before[sample.imported_label]:
        action = RELABEL  # its class was renamed or merged
    row = columns.Row(sample, names, before, action, cleaned, score, decided, sources.signals)
    return own | {column.name: column.value(row) for column in columns.in_export()}


def outcome(
    decided: Review | None, given: int, suggested: int = -1, automatic: bool = False
) -> tuple[str, int]:
    """(action, cleaned label); a person's decision always goes before an automatic one."""
    if decided is not None and decided.decision in EXCLUDING:
        return EXCLUDE, -1
    if decided is not None and decided.decision == RELABEL and decided.label is not None:
        return RELABEL, decided.label
    if decided is None and automatic and suggested >= 0 and suggested != given:
        return RELABEL, suggested
    return KEEP, given


def _columns(sources: _Sources) -> list[str]:
    return [*sources.user_columns.values(), *columns.names()]


def _named_apart(dataset: Dataset) -> dict[str, str]:
    """The user's columns and their names in the export: ``action`` becomes ``source_action``, beside ours.

    The columns that were imported as path, split and label are ours by another road where they have our name.
    """
    said_by_ours = {("filepath", dataset.path_column), ("given_label", dataset.label_column)}
    said_by_ours |= {("split", "split")} - {("split", dataset.label_column)}
    own = [name for name in dataset.user_columns if (name, name) not in said_by_ours]
    own += [name for name in dataset.annotators or () if name not in dataset.user_columns]
    ours = columns.names()
    taken = {*ours, *own}
    found = {}
    for column in own:
        name = column
        while column in ours and name in taken:
            name = SOURCE_PREFIX + name
        taken.add(name)
        found[column] = name
    return found


def _write_csv(sources: _Sources, file: TextIO, separator: str) -> ExportSummary:
    writer = csv.DictWriter(file, _columns(sources), delimiter=separator, extrasaction="ignore")
    writer.writerow({name: quoted(name) for name in writer.fieldnames})
    counts = _Counts(sources.automatic)
    for row in _rows(sources):
        counts.add(row)
        writer.writerow(
            {key: quoted(value) if isinstance(value, str) else value for key, value in row.items()}
        )
    return counts.summary(sources)


def _write_parquet(sources: _Sources, path: Path) -> ExportSummary:
    header, counts = _columns(sources), _Counts(sources.automatic)
    kinds = {column.name: ARROW[column.kind] for column in columns.in_export() if column.kind in ARROW}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in header])
    with pq.ParquetWriter(path, schema) as writer:
        batch: list[dict[str, Any]] = []
        for row in _rows(sources):
            counts.add(row)
            batch.append({name: _cell(row.get(name, ""), kinds.get(name)) for name in header})
            if len(batch) == BATCH_ROWS:
                writer.write_table(pa.Table.from_pylist(batch, schema=schema))
                batch = []
        writer.write_table(pa.Table.from_pylist(batch, schema=schema))
    return counts.summary(sources)


def _cell(value: Any, kind: pa.DataType | None) -> Any:
    return (None if value == "" else value) if kind is not None else str(value)


def _check_folders(dataset: Dataset) -> None:
    """Refuse names that cannot be folders, and splits beside classes in one folder."""
    splits = ask(datasets.split_counts, dataset.id)
    for kind, names in (("Class", dataset.class_names), ("Split", list(splits))):
        bad = [name for name in names if "/" in name or "\0" in name or name in ("", ".", "..")]
        if bad:
            raise ExportRefusedError(
                f"{kind} {bad[0]!r} cannot be the name of a folder; export a CSV instead."
            )
    without = dataset.num_samples - sum(splits.values())
    if splits and without:
        raise ExportRefusedError(
            f"{plural(without, 'sample', 'are')} in no split, but the folders of the export are splits; "
            f"name a split for "
            "every sample, or export a CSV instead."
        )


def _write_source(sources: _Sources, out: Path) -> ExportSummary:
    """Return what the dataset was imported from, with cleaned labels and without excluded images."""
    dataset = sources.dataset
    source = reopened_source(dataset, out)
    samples = list(reading.samples(dataset.id))
    found = found_again.find_again(dataset, source, samples)
    num_lost = dataset.num_samples - len(found.places)
    if num_lost:
        raise ExportRefusedError(
            f"{dataset.source} changed since it was imported: {num_lost:,} of "
            f"{plural(dataset.num_samples, 'sample')} cannot be found in it; put it back, or export a table."
        )
    now = dict(zip(found.samples, found.labels, strict=True))
    counts, outcome, touched = _Counts(sources.automatic), dict[int, str | None](), list[Sample]()
    means = _Meanings(source, sources.imported_names)
    for row, sample in _rows_with_samples(sources):
        i, label = sample.sample_id, now[sample.sample_id]
        is_decided = row["action"] != KEEP or row["review_decision"] == KEEP
        if dataset.annotators is None and is_decided and means.changed(label, sample.imported_label):
            outcome[i] = ""
            if not counts.add_conflict(row, label):
                touched.append(sample)
            continue
        counts.add(row)
        changed = row["cleaned_label"] if row["action"] == RELABEL else ""
        if (
            changed
            and source.info.class_names is not None
            and not source.info.takes_classes
            and Names(source.info.class_names).number(changed) is None
        ):
            raise ExportRefusedError(
                f"{dataset.source} names its classes itself and has no place for {changed!r}, which came "
                "after the import; export a table or a folder of classes instead."
            )
        outcome[i] = None if row["action"] == EXCLUDE else changed
        if outcome[i] != "":
            touched.append(sample)
    if not found.by_picture:
        found_again.check_files(dataset, touched)
    outcomes = ["" if number is None else outcome[number] for number in found.samples]
    writing = written_whole if is_one_file(dataset.source) else folder_written_whole
    with writing(out) as beside:
        source.write_again(beside, outcomes, dataset.class_names)
    return counts.summary(sources)


class _Meanings:
    """Whether a source calls a sample otherwise than when it was imported."""

    def __init__(self, source: Any, names: Sequence[str]) -> None:
        self._source, self._names, self._numbers = source, names, Names(names)
        self._called = functools.cache(self._read)

    def changed(self, label: str | None, given: int) -> bool:
        """Return whether ``label`` is not how the source may write class ``given`` (-1 = none)."""
        called = self._called(label or "")
        if given < 0 or not called:
            return bool(called) == (given < 0)
        number = self._numbers.number(called)
        if number is not None:
            return number != given
        return called != str(given) and likeness(called) != likeness(self._names[given])

    def _read(self, label: str) -> str:
        if not (name := normal(label)):
            return ""
        meant = meaning_of_names(self._source.info, {name: 1}, joined=True)
        return meant.called.get(name, name) or ""


def reopened_source(dataset: Dataset, out: Path) -> Any:
    """Return the source, opened again to be written to ``out``.

    Raises:
        ExportRefusedError: it is of another kind than ``out``, or cannot be written again.
    """
    is_file = is_one_file(dataset.source)
    ends = "".join(Path(dataset.source).suffixes[-2:]).lower() if is_file else ""
    wanted = Path(dataset.source).suffix.lower() if is_file else ""
    refused = ExportRefusedError(
        f"{out.suffix or 'a folder in its own form'} is written where a dataset was imported from such a source, "
        f"and {dataset.name} comes from {dataset.source}; use .csv, .tsv or .parquet."
    )
    if out.suffix.lower() != wanted or (wanted == ".gz" and not str(out).lower().endswith(ends)):
        raise refused
    if dataset.annotators is not None and dataset.source_kind != "label_studio":
        raise ExportRefusedError(f"{dataset.source} {NO_PLACE}")
    source = open_source(dataset.source, _options(dataset))
    if not isinstance(source, Rewritable):
        raise refused
    return source


def _options(dataset: Dataset) -> SourceOptions:
    """Return how the dataset's source is opened again."""
    place = dataset.source if "://" in dataset.source else str(Path(dataset.source).expanduser().absolute())
    return SourceOptions(
        dataset.label_column,
        _named_path_column(dataset),
        root=None if dataset.root == place else dataset.root,
        boxes=dataset.source_kind == "coco_boxes",
        annotators=tuple(dataset.annotators or ()),
        encoding=dataset.import_report.get("encoding"),
        task=MULTILABEL if dataset.task == MULTILABEL else None,
        masks_on=dataset.import_report.get("masks_on"),
    )


def _named_path_column(dataset: Dataset) -> str | None:
    """The column of images where the user named it: the places in Parquet then say so."""
    if dataset.source_kind != "parquet":
        return dataset.path_column
    first = ask(datasets.sample, dataset.id, 0)
    return dataset.path_column if first.location.endswith(f":{dataset.path_column}") else None


def is_one_file(source: str) -> bool:
    """Return whether the source is a file, here or at an address; the others are folders or names."""
    return os.path.isfile(Path(source).expanduser()) or ("://" in source and Path(source).suffix != "")


def _original(dataset: Dataset, sample: Sample, moved: dict[int, str]) -> Path:
    """The sample's picture as a file; where rows have moved, it is looked for once, and ``moved`` says where."""
    try:
        return cache.extracted_path(
            dataset, replace(sample, location=moved.get(sample.sample_id, sample.location))
        )
    except cache.MovedError:
        if moved or dataset.source_kind not in found_again.ROW_SOURCES:
            raise
        samples = list(reading.samples(dataset.id))
        moved |= found_again.find_again(
            dataset, open_source(dataset.source, _options(dataset)), samples
        ).places
        if sample.sample_id not in moved:
            raise
    return _original(dataset, sample, moved)


def _opened(root: str, original: Path) -> IO[bytes]:
    """A picture to copy: below its root, or one that was taken out of its archive into our home."""
    try:
        if original.is_relative_to(root):
            return open_below(root, str(original.relative_to(root)))
        return original.open("rb")
    except OSError as error:
        raise NotFoundError(f"{original} cannot be read ({error.strerror}); put the image back.") from error


def _put(original: IO[bytes], source: Path, folder: Path, sample: Sample, *, links: bool) -> None:
    """Put the file into the folder under a name that is free there.

    Nothing is ever written to a file that exists: as a link it shares its bytes with an original.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem, suffix = source.stem, source.suffix
    others = (f"{stem}-{sample.sample_id}-{number}{suffix}" for number in itertools.count(2))
    for name in itertools.chain([source.name, f"{stem}-{sample.sample_id}{suffix}"], others):
        try:
            _link_or_copy(original, source, folder / name, links=links)
            return
        except FileExistsError:
            continue


def _link_or_copy(original: IO[bytes], source: Path, target: Path, *, links: bool) -> None:
    if links:
        try:
            os.link(source, target)
            if os.path.samestat(os.lstat(target), os.fstat(original.fileno())):
                return
            target.unlink()  # a link, or another file by now
        except OSError as error:
            if error.errno not in LINKS_REFUSED:
                raise
    with target.open("xb") as copy:
        shutil.copyfileobj(original, copy)
    found = os.fstat(original.fileno())
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
    target.chmod(stat.S_IMODE(found.st_mode))


class _Counts:
    """Counts what an export says, row by row."""

    def __init__(self, automatic: NDArray[np.bool_]) -> None:
        """``automatic`` as of ``_Sources``."""
        self._automatic = automatic
        self._actions: Counter[str] = Counter()
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._automatic_pairs: Counter[tuple[str, str]] = Counter()
        self._by_people = self._by_classes = self._disputed = 0
        self._conflicts: list[str] = []

    def add(self, row: dict[str, Any]) -> None:
        """Take one row into the counts."""
        self._actions[row["action"]] += 1
        if row["action"] == RELABEL:
            self._pairs[row["given_label"], row["cleaned_label"]] += 1
        self._disputed += row["review_decision"] == DISPUTED
        if row["action"] == EXCLUDE or row["review_decision"] == RELABEL:
            self._by_people += 1
        elif row["action"] == RELABEL and (row["review_decision"] or not self._automatic[row["sample_id"]]):
            self._by_classes += 1
        elif row["action"] == RELABEL:
            self._automatic_pairs[row["given_label"], row["cleaned_label"]] += 1

    def add_conflict(self, row: dict[str, Any], label: str | None) -> bool:
        """Take one row whose label somebody changed at the source after the import; it stays as it is there.

        Returns whether that contradicts the decision here: if not, it was carried out there, on the same picture.
        """
        self._actions[KEEP] += 1
        here, there = row["cleaned_label"] or EXCLUDE, label or "none"
        if there != here:
            self._conflicts.append(f"{row['filepath']} ({row['given_label']}, there {there}, here {here})")
        return there != here

    def add_kept(self, number: int) -> None:
        """Take so many rows that keep their label, which nobody decided on."""
        self._actions[KEEP] += number

    def summary(self, sources: _Sources) -> ExportSummary:
        """The counts in words and numbers."""
        keep, relabel, exclude = (self._actions[name] for name in ACTIONS)
        automatic = relabel + exclude - self._by_people - self._by_classes
        sentence = (
            f"{plural(keep + relabel + exclude, 'row')}: {keep:,} keep, {relabel:,} relabel, {exclude:,} exclude; "
            f"{plural(self._by_people, 'change', 'were')} decided by people, {automatic:,} by the "
            f"audit alone."
        )
        if self._by_classes:
            labels = plural(self._by_classes, "label", "have")
            sentence += f" {labels} another name because classes were renamed or merged."
        if self._disputed:
            labels = plural(self._disputed, "label")
            sentence += f" {labels} on which people differ stay as they are; look once more at each."
        if self._conflicts:
            few = "; ".join(map(printable, self._conflicts[:MOST_NAMED]))
            others = len(self._conflicts) - MOST_NAMED
            more = f"; and {others:,} more" if others > 0 else ""
            labels = plural(len(self._conflicts), "label", "were")
            sentence += (
                f" {labels} changed at the source after the import and decided otherwise here; what the source "
                f"says stays. Look at each: {few}{more}."
            )
        if num_promised := int(sources.automatic.sum()):
            decided = sum(bool(sources.automatic[i]) for i in sources.decisions)
            sentence += (
                f" The promise is about {plural(num_promised, 'change')} as a whole, of which people decided on "
                f"{decided:,}."
            )
        if sources.audit is None:
            sentence += " No audit has finished yet, so scores are empty."
        pairs, alone = (
            [(given, cleaned, count) for (given, cleaned), count in counted.most_common()]
            for counted in (self._pairs, self._automatic_pairs)
        )
        total = keep + relabel + exclude
        people = self._by_people
        return ExportSummary(
            total, keep, relabel, exclude, people, automatic, self._disputed, pairs, alone, sentence
        )
