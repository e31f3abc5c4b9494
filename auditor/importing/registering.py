"""The last step of an import: compare the pictures, write the rows, then show the dataset in one transaction."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.exc import IntegrityError

from auditor.catalog import datasets, db, records
from auditor.catalog.records import NewDataset
from auditor.ground.errors import ImportRefusedError
from auditor.ground.names import Names, normal
from auditor.ground.progress import OnProgress, Ticker
from auditor.ground.settings import settings
from auditor.ground.vocabulary import CLASSIFICATION, RELABEL
from auditor.ground.wording import plural
from auditor.importing import journal, staging
from auditor.importing.building import FEW_ROWS, REVIEW, Built, Parsed, in_steps
from auditor.importing.duplicates import Duplicates, find_duplicates, has_label
from auditor.pictures.cache import ANSWERS, TRUE_LABELS, cache_name
from auditor.pictures.sources import (
    Problem,
    Source,
    columns_taken,
    printable,
    remarks,
    review_time,
    several_labels,
)
from auditor.review import decisions

UNLABELED = -1
MOST_LISTED = 1_000
"""Conflicts and problems that a report spells out; all are counted."""
DECISIONS_AT_ONCE = 500
"""Written in one transaction: each takes some ten statements."""


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
    """groups, exact_samples, near_samples, conflicting_groups, conflicting_samples, and certain_conflicts (sets of
    samples with the same pixels and different labels)"""
    conflicts: list[list[int]]
    """sample_ids of each group of copies and near copies with different given labels (the first thousand)."""
    seconds: float
    channels: int
    image_size: int
    notes: list[str] = field(default_factory=list)
    num_reviews: int = 0
    """Decisions that an exported table brought along; they are in the log again."""
    levels: tuple[float, float] | None = None
    """The grey values that became black and white, where images have more than 8 bits."""
    task: str = CLASSIFICATION
    """One of ``vocabulary.TASKS``."""
    encoding: str | None = None
    """Of the table that was imported, where the user named it: it is read once more for an export."""
    masks_on: str | None = None
    """What boxes of turned pictures were drawn on, where the user said it; for the same reason."""

    @property
    def num_conflicts(self) -> int:
        """Groups of copies and near copies with different given labels."""
        return self.duplicates["conflicting_groups"]

    def stored(self) -> dict[str, Any]:
        """Return what the catalog keeps of it."""
        kept = asdict(self)
        for name in ("dataset_id", "name"):
            kept.pop(name)
        return kept


@dataclass
class Registration:
    """Everything is ready but the rows; one transaction makes them visible."""

    source_name: str
    name: str
    source: Source
    parsed: Parsed
    built: Built
    place: staging.Workplace
    on_progress: OnProgress | None

    def run(self, start: float) -> ImportReport:
        """Compare, insert the rows in parts, then move the folder to its place and commit the name."""
        kept = self.built.kept
        labels = self.parsed.labels[kept]
        Ticker(self.on_progress, "comparing", len(labels))
        found = self._duplicates(labels)
        if self.source.info.true_label_column is not None:
            parsed = self.parsed
            is_numeric = self.source.info.is_numeric
            kind = np.float64 if is_numeric else np.int64
            truth = np.lib.format.open_memmap(self.place.folder / TRUE_LABELS, "w+", kind, (len(labels),))
            done = 0
            for step in in_steps(len(kept)):
                part = parsed.true_labels[step][kept[step]]
                truth[done : done + len(part)] = part
                done += len(part)
            truth.flush()
            del truth
        if self.parsed.answers is not None:
            rows = self.parsed.answers[0]
            places = np.cumsum(kept, dtype=np.int32) - 1
            answers = np.stack([places[rows], *self.parsed.answers[1:]])[:, kept[rows]]
            np.save(self.place.folder / ANSWERS, answers)
        report = ImportReport(
            dataset_id=0,
            name=self.name,
            num_samples=len(labels),
            num_classes=len(self.class_names),
            num_unlabeled=0 if self.source.info.masks else int((~has_label(labels)).sum()),
            num_trusted=int(self.parsed.trusted[kept].sum()),
            skipped=self.parsed.problems.listed,
            num_skipped=self.parsed.problems.count,
            duplicates=found.summary(),
            conflicts=found.conflicts[:MOST_LISTED],
            seconds=round(time.monotonic() - start, 3),
            channels=self.built.channels,
            image_size=self.built.size,
            notes=self._notes(),
            levels=self.built.levels,
            task=self.source.info.task,
            encoding=self.source.info.encoding,
            masks_on=self.source.info.masks_on,
        )
        rows = Rows(self.parsed, self.built, found, labels, is_numeric=self.source.info.is_numeric)
        dataset_id = self._insert(report, rows)
        seconds = round(time.monotonic() - start, 3)
        return replace(report, dataset_id=dataset_id, num_reviews=rows.num_reviews, seconds=seconds)

    @property
    def class_names(self) -> list[str]:
        """Of the dataset; of numbers one: what they are of."""
        info = self.source.info
        return [info.label_column or "number"] if info.is_numeric else self.parsed.class_names

    def _duplicates(self, labels: np.ndarray) -> Duplicates:
        size = self.built.size
        path = self.place.folder / cache_name(channels=self.built.channels, height=size, width=size)
        images = np.load(path, mmap_mode="r", allow_pickle=False)
        scratch = self.place.folder.parent
        return find_duplicates(self.built.content_hash, self.built.perceptual_hash, images, labels, scratch)

    def _notes(self) -> list[str]:
        notes = [taken] if (taken := columns_taken(self.source.info)) else []
        if self.source.info.read_as:
            notes.append(f"Read as: {'; '.join(self.source.info.read_as)}.")
        notes += remarks(self.source)
        if self.built.num_continued:
            images = plural(self.built.num_continued, "image")
            notes.append(f"{images} had been decoded by the same import before, which was stopped.")
        if self.built.levels is not None:
            low, high = self.built.levels
            notes.append(
                f"Images of more than 8 bits: grey {low:g} to {high:g} is shown as black to white, in all of them "
                "alike (--range sets it)."
            )
        if self.built.num_animated:
            notes.append(f"{plural(self.built.num_animated, 'animated image')}: the first frame is used.")
        if self.source.ignored:
            names = ", ".join(printable(name, 40) for name in self.source.ignored[:3])
            notes.append(
                f"Skipped: {plural(len(self.source.ignored), 'file')} of another kind than images ({names})."
            )
        if self.source.info.is_numeric:
            return notes
        return notes + self.parsed.notes

    def _insert(self, report: ImportReport, rows: Rows) -> int:
        """The dataset, its samples and their decisions where nobody sees them, then everything at once.

        In many transactions: others can write in between, however many rows there are.
        """
        ticker, num = Ticker(self.on_progress, "registering", report.num_samples), 0
        table, batch = self._table(report), records.new_uuid()
        try:
            with db.session() as session:
                if datasets.exists(session, self.name):
                    raise name_taken(self.name)
                dataset_id = datasets.begin(session, table)
            for part in datasets.batched(rows):
                db.ask(datasets.add_samples, dataset_id, part)
                num += len(part)
                ticker.at(num)
            for some in datasets.batched(rows.reviews(), DECISIONS_AT_ONCE):
                db.ask(decisions.apply_rows, dataset_id, some, source="import", batch=batch)
        except IntegrityError as error:
            raise ImportRefusedError(staging.TAKEN) from error
        self._publish(dataset_id, table)
        return dataset_id

    def _publish(self, dataset_id: int, table: NewDataset) -> None:
        """One transaction: the dataset's name and, just before the commit, its folder's final one."""
        published: Path | None = None
        try:
            with db.session() as session:
                datasets.finish(session, dataset_id)
                root = Path(table.root)
                work = self.place.folder
                if root.is_relative_to(work):
                    final = settings().dataset_folder(dataset_id)
                    datasets.change(session, dataset_id, root=str(final / root.relative_to(work)))
                self.parsed.rows.path.unlink()
                journal.forget(self.place.folder)
                published = self.place.publish(session, dataset_id)
        except IntegrityError as error:
            raise name_taken(self.name) from error
        finally:
            if published is not None:
                self.place.withdraw(published)

    def _table(self, report: ImportReport) -> NewDataset:
        info = self.source.info
        return NewDataset(
            name=self.name,
            uuid=self.place.uuid,
            source=self.source_name,
            source_kind=info.kind,
            root=info.root,
            num_samples=report.num_samples,
            channels=self.built.channels,
            height=self.built.size,
            width=self.built.size,
            class_names=self.class_names,
            user_columns=list(info.user_columns),
            path_column=info.path_column,
            label_column=info.label_column,
            annotators=self.parsed.annotators,
            has_true_labels=info.true_label_column is not None,
            import_report=report.stored(),
            task=info.task,
            masks=None if info.masks is None else info.masks.as_dict(),
        )


class Rows:
    """The samples as rows of the catalog, and the decisions on them, streamed from the row file."""

    def __init__(
        self,
        parsed: Parsed,
        built: Built,
        found: Duplicates,
        labels: NDArray[Any],
        *,
        is_numeric: bool,
    ) -> None:
        """Nothing is read before the iteration; ``labels`` (N,) are of the kept rows."""
        self._parsed, self._built, self._found, self._is_numeric = parsed, built, found, is_numeric
        self._labels = labels
        self._is_class = not is_numeric and parsed.sets is None
        self.num_reviews = 0
        """Known after the iteration."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Mappings of ``Sample``'s columns, in sample order."""
        built, found, labels, sets = self._built, self._found, self._labels, self._parsed.sets
        signed = built.perceptual_hash.view(np.int64)
        headers = itertools.chain.from_iterable(
            built.headers[rows][["height", "width"]][built.kept[rows]].tolist()
            for rows in in_steps(len(built.kept), FEW_ROWS)
        )
        for (sample_id, line), (height, width) in zip(self._lines(), headers, strict=True):
            _, filepath, location, trusted, split, extra, review, mask = line
            group, label = int(found.group[sample_id]), labels[sample_id].item()
            number = label if self._is_numeric and not math.isnan(label) else None
            is_none = number is None if self._is_numeric else label < 0
            self.num_reviews += bool(review)
            yield {
                "sample_id": sample_id,
                "filepath": filepath,
                "location": location,
                "given_label": label if self._is_class else UNLABELED if is_none else 0,
                "trusted": trusted,
                "split": split,
                "content_hash": built.content_hash[sample_id].tobytes().hex(),
                "perceptual_hash": int(signed[sample_id]),
                "duplicate_group": None if group < 0 else group,
                "duplicate_kind": None if group < 0 else "exact" if found.is_exact[sample_id] else "near",
                "original_height": height,
                "original_width": width,
                "extra": extra,
                "mask": mask,
                "number": number,
                "labels": None if sets is None or label < 0 else np.flatnonzero(sets[label]).tolist(),
            }

    def reviews(self) -> Iterator[dict[str, Any]]:
        """For ``decisions.apply_rows``, after the iteration."""
        lines = self._lines() if self.num_reviews else ()
        return (self._review(sample_id, line[REVIEW]) for sample_id, line in lines if line[REVIEW])

    def _lines(self) -> Iterator[tuple[int, list[Any]]]:
        return enumerate(itertools.compress(self._parsed.rows, self._built.kept))

    def _review(self, sample_id: int, review: dict[str, str]) -> dict[str, Any]:
        names = Names(self._parsed.class_names)

        def number(name: str) -> int | None:
            return names.number(self._parsed.called.get(normal(name), name) or "")

        cleaned, several = review["cleaned_label"], several_labels(review)
        kept = dict[str, Any]()  # a blind verdict without its draw is a review like any other
        is_corrected = review["review_decision"] == RELABEL
        if self._is_numeric:
            kept["number"] = float(cleaned) if is_corrected else None
        members = self._parsed.members
        if members is not None:
            kept["labels"] = members.get(normal(cleaned)) if is_corrected else None
        return kept | {
            "sample_id": sample_id,
            "decision": review["review_decision"],
            "label": number(cleaned) if is_corrected and self._is_class else None,
            "labels": kept.get("labels", [number(name) for name in several] or None),
            "reviewer": review["reviewer"],
            "created_at": review_time(review),
        }


def name_taken(name: str) -> ImportRefusedError:
    """The error for a name that is in use."""
    return ImportRefusedError(f"a dataset named {name!r} exists already; choose another name.", field="name")
