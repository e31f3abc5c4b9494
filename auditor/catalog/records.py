"""What the catalog hands out: frozen values with plain numbers. They live on when the session is closed.

A ``New...`` is what a caller writes; what is read back has its number too. The fields are the columns of the tables
of the same name.
"""

from __future__ import annotations

import dataclasses
import functools
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.ground.vocabulary import CLASSIFICATION, RATE, SUSPECT

T = TypeVar("T")


def now() -> datetime:
    """The current time in UTC."""
    return datetime.now(tz=UTC)


def new_uuid() -> str:
    """A name that nothing else has, on no machine."""
    return uuid.uuid4().hex


@dataclass(frozen=True, kw_only=True)
class NewDataset:
    """An imported image set, before it has a number."""

    name: str
    created_at: datetime = field(default_factory=now)
    source: str
    """What the user named: a path or ``fiftyone:NAME``."""
    source_kind: str
    """``folder``, ``table``, ``parquet``, ``zip``, ``fiftyone`` or ``torchvision``."""
    root: str
    """Absolute folder or file that sample locations are relative to."""
    num_samples: int
    channels: int
    height: int
    width: int
    """Size of the decoded image cache."""
    class_names: list[str]
    user_columns: list[str] = field(default_factory=list)
    """The user's own columns in their order."""
    path_column: str | None = None
    label_column: str | None = None
    annotators: list[str] | None = None
    """Who gave the answers of ``pictures.cache.answers``; None: one label a sample."""
    class_changes: list[dict[str, Any]] | None = None
    """The log of renamed, merged and split classes (``results.class_changes``)."""
    has_true_labels: bool = False
    import_report: dict[str, Any] = field(default_factory=dict)
    task: str = CLASSIFICATION
    """One of ``vocabulary.TASKS``: what its labels are."""
    masks: dict[str, Any] | None = None
    """How its mask files are written; None where it has none."""
    uuid: str = field(default_factory=new_uuid)
    """What the manifest in its folder repeats."""


@dataclass(frozen=True, kw_only=True)
class Dataset(NewDataset):
    """An imported image set."""

    id: int

    @property
    def changes(self) -> list[dict[str, Any]]:
        """The changes of classes that were not undone, the oldest first."""
        return self._read()[0]

    @property
    def merged(self) -> dict[int, int]:
        """By number of a class that is no more, the class that its labels are in today."""
        standing, found = self._read()
        for one in standing:
            if one["kind"] == "merge":
                gone, into = one["label"], one["into"]
                found = {label: into if there == gone else there for label, there in found.items()}
                found[gone] = into
        return found

    @property
    def joined(self) -> dict[int, int]:
        """By class of a split that was undone, the one that it was split from."""
        return self._read()[1]

    def _read(self) -> tuple[list[dict[str, Any]], dict[int, int]]:
        standing: list[dict[str, Any]] = []
        joined: dict[int, int] = {}
        for one in self.class_changes or ():
            if one["kind"] != "undo":
                standing.append(one)
                joined.pop(one.get("into", -1), None)
            elif (undone := standing.pop())["kind"] == "split":
                joined[undone["into"]] = undone["label"]
        return standing, joined

    @property
    def imported_names(self) -> list[str]:
        """``class_names`` as the source has them."""
        names = list(self.class_names)
        for one in reversed(self.changes):
            if one["kind"] == "rename":
                names[one["label"]] = one["before"]
        return names

    @property
    def classes(self) -> dict[int, str]:
        """By number, the classes that there are today: ``class_names`` without those that were merged."""
        merged = self.merged
        return {label: name for label, name in enumerate(self.class_names) if label not in merged}

    @property
    def names_of_today(self) -> list[str | None]:
        """``class_names`` as screens offer them: None where a class was merged into another one."""
        classes = self.classes
        return [classes.get(label) for label in range(len(self.class_names))]

    def of_today(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """(N,) labels as imported, or as an audit was told, by the classes of today."""
        found = labels.copy()
        for gone, into in self.merged.items():
            found[labels == gone] = into
        return found

    def sums_of_today(self, probs: NDArray[np.float32]) -> NDArray[np.float32]:
        """(N, k) probabilities by the classes of today: a class that was merged adds its own to the other's."""
        merged = self.merged
        if not merged:
            return probs
        found = np.pad(probs, ((0, 0), (0, len(self.class_names) - probs.shape[1])))
        for gone, into in merged.items():
            found[:, into] += found[:, gone]
            found[:, gone] = 0
        return found


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One image with its given label."""

    dataset_id: int
    sample_id: int
    filepath: str
    location: str
    """How to read it again: a path below the root, a zip member or a Parquet row."""
    given_label: int
    """Index into ``class_names``, by the classes of today; -1 = unlabeled."""
    imported_label: int = -1
    """As ``given_label``, whatever classes were merged since."""
    trusted: bool = False
    split: str | None = None
    content_hash: str = ""
    perceptual_hash: int | None = None
    duplicate_group: int | None = None
    duplicate_kind: str | None = None
    original_height: int = 0
    original_width: int = 0
    extra: dict[str, str] | None = None
    """The user's own columns as text, untouched."""
    mask: str | None = None
    """How to read its mask again, below the same root."""
    number: float | None = None
    """The given number, where labels are numbers."""
    labels: list[int] | None = None
    """The given classes, rising, where labels are sets of classes; None = unlabeled."""


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """What an audit does beside the engines that it trains: the column ``options`` of its row."""

    map: str = "umap"
    """How the maps are drawn: ``umap`` or ``pca``."""
    estimate: dict[str, float] = field(default_factory=dict)
    """By engine or stage before the engines: seconds that it should take."""
    threads: dict[str, int] = field(default_factory=dict)
    """By engine: threads that it trains with."""
    devices: dict[str, str] = field(default_factory=dict)
    """By engine: where it trains, if not on the audit's device."""
    budget: dict[str, Any] | None = None
    """``seconds`` that the user gave, and what the audit ``does`` within them; None without a budget."""
    features: dict[str, Any] | None = None
    """What the engines look at, as ``FeatureSource.as_dict``; None: the images."""
    alone: bool = False
    """Whether only its own runs are heard, none of earlier audits."""
    heads: list[str] = field(default_factory=list)
    """The engines that train on what the network of another one sees."""
    further: list[str] = field(default_factory=list)
    """The engines that train the backbone further, on the images."""
    on: str | None = None
    """Where it runs, as ``executors.ExecutorChoice`` reads it; None: where ``AUDITOR_EXECUTOR`` says."""

    def as_json(self) -> dict[str, Any]:
        """Return its fields by name, without those that say nothing."""
        return {name: value for name, value in values_of(self).items() if value not in (None, False, {}, [])}


@dataclass(frozen=True, kw_only=True)
class AuditSummary:
    """What an audit says of all labels together; without ``settled_at`` it said nothing yet.

    What is None does not exist for labels of that kind.
    """

    settled_at: str | None = None
    """ISO time of the last settling."""
    task: str | None = None
    """One of ``vocabulary.TASKS``, for masks and numbers."""
    noise_rate: dict[str, Any] = field(default_factory=dict)
    """The guessed share of wrong labels: the fields of ``NoiseRate``."""
    witnesses: list[str] = field(default_factory=list)
    """Who was heard: engines and the user's own models, in the order of the ranking's votes."""
    weights: dict[str, float] | None = None
    """By witness in the pool: its share of the trust, in [0, 1]; empty where none is pooled."""
    stands_out: bool = True
    """Whether the pool explains the labels better than one for which all are right; else none is flagged."""
    trust_sentence: str = ""
    """How the trust was made, in words."""
    rank_correlations: list[list[float | None]] | None = None
    """(W, W) of every two witnesses, in [-1, 1]."""
    error_probability_is_guess: bool = True
    """Whether no verified rows stand behind the chance that a label is wrong."""
    suggestion_is_calibrated: bool | None = None
    """Whether verified rows stand behind the chance that a suggestion is right."""
    num_label_issues: int | None = None
    """Labels above the suggested cut."""
    num_ranked: int | None = None
    """Labels that have a trust score."""
    half_width: float | None = None
    """Of numbers: half the width of the band in which a number is expected, in their unit."""
    changed_pixels: float | None = None
    """Of masks: share of the labeled pixels that a suggestion changes, in [0, 1]."""
    annotators: dict[str, Any] | None = None
    """What several annotators' answers say (``statistics.annotators.described``)."""
    runs: dict[str, int] = field(default_factory=dict)
    """By witness: the audit whose run spoke."""
    heard: int = 0
    """The newest entry in the log of decisions that the ranking knows."""
    ranked_at: str | None = None
    """ISO time of the last ranking, where verdicts changed it after the settling."""

    @property
    def is_order_alone(self) -> bool:
        """Return whether nobody is pooled and nothing is verified: there is an order then and no cut."""
        return self.weights == {} and self.error_probability_is_guess

    def as_json(self) -> dict[str, Any]:
        """Return its fields by name, without those that do not exist; nothing before it was settled."""
        if self.settled_at is None:
            return {}
        return {name: value for name, value in values_of(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class NewAudit:
    """An audit of a dataset, before it has a number."""

    dataset_id: int
    created_at: datetime = field(default_factory=now)
    status: str = "queued"
    preset: str
    device: str
    seed: int
    engines: list[str]
    options: AuditPlan = AuditPlan()
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: str | None = None
    summary: AuditSummary = AuditSummary()
    uuid: str = field(default_factory=new_uuid)
    """What the manifest in its folder repeats."""


@dataclass(frozen=True, kw_only=True)
class Audit(NewAudit):
    """An audit of a dataset."""

    id: int


@dataclass(frozen=True, kw_only=True)
class NewEngineRun:
    """One engine within an audit that has no number yet."""

    engine: str
    status: str = "queued"
    progress: float = 0.0
    """Share of the engine's work that is done, 0 to 1."""
    seconds: float = 0.0
    """Training time so far, over all attempts."""
    stage: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class EngineRun(NewEngineRun):
    """One engine within an audit."""

    audit_id: int
    position: int


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One epoch of one engine run."""

    audit_id: int
    engine: str
    stage: str
    epoch: int
    num_epochs: int
    progress: float
    seconds: float
    losses: dict[str, float | None] = field(default_factory=dict)
    metrics: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Score:
    """The consensus on one sample in one audit; the fields are explained in ``models.ScoreTable``."""

    audit_id: int
    sample_id: int
    rank: int
    given_label: int
    trust_score: float | None
    error_probability: float | None
    is_label_issue: bool
    suggested_label: int
    suggested_probability: float
    agreement: int
    disagreement: float


@dataclass(frozen=True, kw_only=True)
class NewDraw:
    """A random sample drawn to be judged blind, before it has a number."""

    dataset_id: int
    created_at: datetime = field(default_factory=now)
    seed: int
    size: int
    sample_ids: list[int]
    """In drawing order; rows at even places calibrate, rows at odd places may be trusted."""
    purpose: str = RATE
    """One of ``vocabulary.PURPOSES``."""
    audit_id: int | None = None
    """The audit whose ranking the zones are of; None for a draw before any audit."""
    zones: list[dict[str, Any]] = field(default_factory=list)
    """The head, then the rest: ``name``, ``size``, ``drawn`` and ``probability`` (of each sample to be drawn); the
    head also its ``samples``, the most suspicious first. Of a uniform draw one zone, ``everything``, with the
    samples that the ranking of then thought wrong (``likely_wrong``). The first zone also says which samples people
    had ``decided`` on: none of them could be drawn."""
    tolerance: float | None = None
    """Of numbers: a given one is wrong where it is farther than this from what the person says."""

    @property
    def head(self) -> list[int]:
        """Samples of the head, the most suspicious first; empty for a uniform draw."""
        return [sample for zone in self.zones for sample in zone.get("samples", ())]

    @property
    def likely_wrong(self) -> list[int]:
        """Of a uniform draw: samples that the ranking of then thought wrong; empty before any audit."""
        return [sample for zone in self.zones for sample in zone.get("likely_wrong", ())]

    @property
    def decided(self) -> list[int]:
        """Samples that people had decided on before, which could not be drawn."""
        return [sample for zone in self.zones for sample in zone.get("decided", ())]


@dataclass(frozen=True, kw_only=True)
class Draw(NewDraw):
    """A random sample drawn to be judged blind."""

    id: int


@dataclass(frozen=True, kw_only=True)
class NewReview:
    """A row of the log of decisions, before it has a number."""

    dataset_id: int
    sample_id: int
    kind: str = SUSPECT
    """One of ``vocabulary.KINDS``."""
    decision: str
    """One of ``vocabulary.DECISIONS``, or ``vocabulary.UNDO``."""
    label: int | None = None
    """The corrected label of ``relabel``."""
    number: float | None = None
    """The number that a person put in place of the given one, or saw instead of it."""
    labels: list[int] | None = None
    """The classes of ``multiple``."""
    reviewer: str
    created_at: datetime = field(default_factory=now)
    source: str = "app"
    """Where it came from: ``app``, ``bulk``, ``csv``, ``fiftyone``, ``import``, ``verify``."""
    batch: str | None = None
    audit_id: int | None = None
    draw_id: int | None = None
    """The random draw that a blind verdict belongs to."""
    reverts: int | None = None
    """The row that an ``undo`` takes back."""
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class Review(NewReview):
    """A row of the log of decisions."""

    id: int


@functools.cache
def names_of(record: type[Any]) -> tuple[str, ...]:
    """The names of a record's fields, which are columns."""
    return tuple(one.name for one in dataclasses.fields(record))


def read(record: Callable[..., T], row: Any) -> T:
    """A row of a table as that record."""
    return record(**{name: getattr(row, name) for name in names_of(record)})


def values_of(record: Any) -> dict[str, Any]:
    """The fields of a record by name, as they are."""
    return {name: getattr(record, name) for name in names_of(type(record))}
