"""Every table of the catalog. ``sample_id`` is the sample's 0-based place in its source.

A sample is known by (dataset_id, sample_id) everywhere: it is the row of the image cache, of every array that
an audit writes and of the exported CSV. The log of decisions (``ReviewTable``) is append-only; ``DecisionTable``
holds what counts now and can be made again from it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Column, DateTime, Index, text
from sqlalchemy.types import TypeDecorator
from sqlmodel import Field, SQLModel

from auditor.catalog.records import AuditPlan, AuditSummary, names_of, new_uuid, now
from auditor.ground.vocabulary import CLASSIFICATION, RATE, SUSPECT


class UtcDateTime(TypeDecorator[datetime]):
    """A time with its zone, in SQLite too (which forgets zones)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:  # noqa: ARG002
        """Write as UTC, whatever the zone: SQLite would keep the digits alone."""
        return _in_utc(value)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:  # noqa: ARG002
        """Read back as UTC."""
        return _in_utc(value)


class Typed(TypeDecorator[Any]):
    """A frozen record as JSON: the one place where it is written and read."""

    impl = JSON
    cache_ok = True

    def __init__(self, record: type[AuditPlan] | type[AuditSummary]) -> None:
        """Of that record."""
        super().__init__()
        self.record = record

    def process_bind_param(self, value: Any, dialect: Any) -> dict[str, Any]:  # noqa: ARG002
        """Write what it says, as plain values."""
        found: dict[str, Any] = value.as_json()
        return found

    def process_result_value(self, value: Any, dialect: Any) -> AuditPlan | AuditSummary:  # noqa: ARG002
        """Read it back, without what earlier versions said and nobody asks for any more."""
        return self.record(**{name: one for name, one in value.items() if name in names_of(self.record)})


def _in_utc(value: datetime | None) -> datetime | None:
    """The same moment in UTC; a time without a zone is one of UTC."""
    if value is None:
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _utc() -> Any:
    return Column(UtcDateTime, nullable=False, default=now)


IMPORTING, READY, REMOVING = "importing", "ready", "removing"
"""What a dataset's row is: its rows are being written, it is there for everybody, or its rows are being deleted."""
IS_READY = text("status = 'ready'")


class DatasetTable(SQLModel, table=True):
    """One imported image set; nobody sees it but while its status is ``READY``."""

    __tablename__ = "dataset"
    __table_args__ = (
        # What is imported or removed may have the name of another one.
        Index("dataset_by_name", "name", unique=True, sqlite_where=IS_READY, postgresql_where=IS_READY),
    )

    id: int | None = Field(default=None, primary_key=True)
    name: str
    status: str = READY
    """``IMPORTING``, ``READY`` or ``REMOVING``."""
    created_at: datetime = Field(default_factory=now, sa_column=_utc())
    source: str
    """What the user named: a path or ``fiftyone:NAME``."""
    source_kind: str
    """``folder``, ``table``, ``parquet``, ``zip``, ``fiftyone`` or ``torchvision``."""
    root: str
    """Absolute folder or file that sample locations are relative to; may be moved."""
    num_samples: int
    channels: int
    height: int
    width: int
    """Size of the decoded image cache."""
    class_names: list[str] = Field(sa_column=Column(JSON, nullable=False))
    user_columns: list[str] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    """The user's own columns in their order; values are in ``SampleTable.extra``."""
    path_column: str | None = None
    label_column: str | None = None
    annotators: list[str] | None = Field(default=None, sa_column=Column(JSON, nullable=True))
    """Who gave the answers that lie beside the image cache; None: one label a sample."""
    class_changes: list[dict[str, Any]] | None = Field(default=None, sa_column=Column(JSON, nullable=True))
    """The log of renamed, merged and split classes (``results.class_changes``), which only grows."""
    has_true_labels: bool = False
    """Known truth was supplied; it lies beside the image cache and is never trained on."""
    task: str = CLASSIFICATION
    """One of ``vocabulary.TASKS``: what its labels are."""
    masks: dict[str, Any] | None = Field(default=None, sa_column=Column(JSON, nullable=True))
    """How its mask files are written (``pictures.masks.MaskCode``); None where it has none."""
    uuid: str = Field(default_factory=new_uuid)
    """What the manifest in its folder repeats (``folders``)."""
    import_report: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))


class LastIdTable(SQLModel, table=True):
    """The largest number ever given to the rows of a table (``ids``); empty on PostgreSQL."""

    __tablename__ = "last_id"

    name: str = Field(primary_key=True)
    last_id: int


class SampleTable(SQLModel, table=True):
    """One image with its given label."""

    __tablename__ = "sample"
    __table_args__ = (Index("sample_by_given_label", "dataset_id", "given_label"),)

    dataset_id: int = Field(foreign_key="dataset.id", primary_key=True)
    sample_id: int = Field(primary_key=True)
    filepath: str
    """As the user gave it (relative to the root where it lies below it)."""
    location: str
    """How to read it again: a path below the root, a zip member or a Parquet row."""
    given_label: int
    """Index into ``class_names`` as it was imported; -1 = unlabeled."""
    trusted: bool = False
    """The source itself marked this label as confirmed."""
    split: str | None = None
    """Part of the data set that the source put it into: ``train``, ``test``."""
    content_hash: str = ""
    """SHA-256 of the decoded pixels, hex."""
    perceptual_hash: int | None = Field(default=None, sa_column=Column(BigInteger, nullable=True))
    duplicate_group: int | None = Field(default=None, index=True)
    """Samples with the same number show the same picture."""
    duplicate_kind: str | None = None
    """``exact`` or ``near``."""
    original_height: int = 0
    original_width: int = 0
    extra: dict[str, str] | None = Field(default=None, sa_column=Column(JSON, nullable=True))
    """The user's own columns as text, untouched."""
    mask: str | None = None
    """How to read its mask again, below the same root."""
    number: float | None = None
    """The given number; None where labels are no numbers, or this one is missing."""
    labels: list[int] | None = Field(default=None, sa_column=Column(JSON, nullable=True))
    """The given classes, rising; None where labels are no sets of classes, or this one is missing."""


class AuditTable(SQLModel, table=True):
    """One audit of a dataset: some engines, one consensus."""

    __tablename__ = "audit"

    id: int | None = Field(default=None, primary_key=True)
    dataset_id: int = Field(foreign_key="dataset.id", index=True)
    created_at: datetime = Field(default_factory=now, sa_column=_utc())
    status: str = "queued"
    """``queued``, ``running``, ``finished``, ``failed`` or ``cancelled`` (``dead``: ``audits.state``)."""
    preset: str
    device: str
    seed: int
    engines: list[str] = Field(sa_column=Column(JSON, nullable=False))
    options: AuditPlan = Field(default=AuditPlan(), sa_column=Column(Typed(AuditPlan), nullable=False))
    started_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    finished_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    error: str | None = None
    summary: AuditSummary = Field(
        default=AuditSummary(), sa_column=Column(Typed(AuditSummary), nullable=False)
    )
    uuid: str = Field(default_factory=new_uuid)
    """What the manifest in its folder repeats (``folders``)."""
    generation: int = 0
    """Of its rows in ``ScoreTable``: those that are read. Later ones are written under the next number."""


class JobTable(SQLModel, table=True):
    """Work that runs in a process of its own: who asked for what, how far it is, and what came of it."""

    __tablename__ = "job"

    id: int | None = Field(default=None, primary_key=True)
    kind: str
    """``audit``, ``import``, ``compare``, ``export``, ``push`` or ``pull``."""
    name: str
    """Of the dataset that it is about, which an import has yet to make."""
    dataset_id: int | None = Field(default=None, foreign_key="dataset.id", index=True)
    audit_id: int | None = Field(default=None, foreign_key="audit.id", unique=True)
    """The audit that it works on: there every attempt has the same job."""
    arguments: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    who: str | None = None
    status: str = "waiting"
    """``waiting``, ``running``, ``finished``, ``failed`` or ``cancelled`` (``dead``: ``jobs.state``)."""
    pid: int | None = None
    host: str | None = None
    """Where ``pid`` is a process (``jobs.this_host``): nobody else can see whether it lives."""
    process_started: float | None = None
    """Start time of ``pid`` as the system tells it: a pid alone may have been given away again."""
    heartbeat_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    cancel_requested: bool = False
    stage: str = ""
    done: float = 0.0
    total: float | None = None
    """``done`` of ``total`` of the stage; None while the amount is not known."""
    seconds_left: float | None = None
    """For the stage, as the work estimates it; None while nothing tells."""
    created_at: datetime = Field(default_factory=now, sa_column=_utc())
    started_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    """Of the attempt under way, or the last one."""
    finished_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    error: str | None = None
    """One line with the remedy."""
    result: dict[str, Any] | None = Field(default=None, sa_column=Column(JSON, nullable=True))


class LeaseTable(SQLModel, table=True):
    """Somebody imports into a folder of the home, or removes; the row is gone when that is done (``leases``)."""

    __tablename__ = "lease"

    name: str = Field(primary_key=True)
    """Of the folder below ``home/datasets``, or of a removal (``removal``)."""
    uuid: str
    """Of the dataset that it becomes, or that goes."""
    pid: int
    host: str
    """Where ``pid`` is a process (``jobs.this_host``)."""
    process_started: float
    heartbeat_at: datetime = Field(default_factory=now, sa_column=_utc())


class EngineRunTable(SQLModel, table=True):
    """One engine within an audit."""

    __tablename__ = "engine_run"

    audit_id: int = Field(foreign_key="audit.id", primary_key=True)
    engine: str = Field(primary_key=True)
    position: int = 0
    status: str = "queued"
    progress: float = 0.0
    """Share of the engine's work that is done, 0 to 1."""
    seconds: float = 0.0
    """Training time so far, over all attempts."""
    stage: str = ""
    config: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    provenance: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    error: str | None = None


class EpochTable(SQLModel, table=True):
    """One epoch of one engine run: what the curves are drawn from."""

    __tablename__ = "epoch"

    audit_id: int = Field(foreign_key="audit.id", primary_key=True)
    engine: str = Field(primary_key=True)
    stage: str = Field(primary_key=True)
    epoch: int = Field(primary_key=True)
    num_epochs: int
    progress: float
    seconds: float
    losses: dict[str, float | None] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    metrics: dict[str, float | None] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    """As ``losses``; None where there was no number (a mean over no sample)."""


class ScoreTable(SQLModel, table=True):
    """The consensus on one sample in one audit, ready to be paged through."""

    __tablename__ = "score"
    __table_args__ = (
        # Carries the probability too: the sum over a million samples then reads the index alone.
        Index("score_by_rank", "audit_id", "generation", "rank", "error_probability"),
        Index(
            "score_by_pair",
            *("audit_id", "generation", "given_label", "suggested_label", "rank", "is_label_issue"),
        ),
    )

    audit_id: int = Field(primary_key=True)
    generation: int = Field(primary_key=True)
    """Rows of another one than the audit's are read by nobody yet, or by nobody any more."""
    sample_id: int = Field(primary_key=True)
    rank: int
    """0 = most suspicious. Unlabeled samples come last."""
    given_label: int
    """As it was when the audit ran."""
    trust_score: float | None
    """1 = the given label looks right, 0 = it looks wrong; None where unlabeled."""
    error_probability: float | None
    is_label_issue: bool
    suggested_label: int
    suggested_probability: float
    agreement: int
    """How many engines predict another label than the given one."""
    disagreement: float
    """Spread of the engines' trust ranks, 0 to 1."""


class ReviewTable(SQLModel, table=True):
    """The append-only log of what people decided. Nothing in it is ever changed or removed."""

    __tablename__ = "review"
    __table_args__ = (
        Index("review_by_sample", "dataset_id", "sample_id", "id"),
        Index("review_by_kind", "dataset_id", "kind"),
    )

    id: int | None = Field(default=None, primary_key=True)
    dataset_id: int = Field(foreign_key="dataset.id")
    sample_id: int
    decision: str
    """One of ``vocabulary.DECISIONS``, or ``vocabulary.UNDO``."""
    label: int | None = None
    """The corrected label of ``relabel``."""
    number: float | None = None
    """The number that a person put in place of the given one, or saw instead of it."""
    labels: list[int] | None = Field(default=None, sa_column=Column(JSON, nullable=True))
    """The classes of ``multiple``."""
    reviewer: str
    created_at: datetime = Field(default_factory=now, sa_column=_utc())
    source: str = "app"
    """``app``, ``bulk``, ``ruling``, ``csv``, ``fiftyone``, ``import``, ``verify``."""
    batch: str | None = Field(default=None, index=True)
    """Decisions taken in one step share a batch and can be undone in one."""
    audit_id: int | None = None
    reverts: int | None = None
    """The row that an ``undo`` takes back."""
    note: str | None = None
    kind: str = SUSPECT
    """One of ``vocabulary.KINDS``."""
    draw_id: int | None = Field(default=None, foreign_key="draw.id")
    """The random draw that a blind verdict belongs to."""


class DecisionTable(SQLModel, table=True):
    """Which row of the log counts now for a sample; samples without one have no row here."""

    __tablename__ = "decision"

    dataset_id: int = Field(foreign_key="dataset.id", primary_key=True)
    sample_id: int = Field(primary_key=True)
    review_id: int = Field(foreign_key="review.id")
    is_disputed: bool = False
    """A later blind verdict of somebody else says something else: nothing counts until somebody looks once more."""


class ClaimTable(SQLModel, table=True):
    """Who is looking at a sample, and until when nobody else is asked about it."""

    __tablename__ = "claim"

    dataset_id: int = Field(foreign_key="dataset.id", primary_key=True)
    sample_id: int = Field(primary_key=True)
    reviewer: str
    until: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class DrawTable(SQLModel, table=True):
    """A random sample drawn to be verified blind; its size was fixed before anybody looked."""

    __tablename__ = "draw"

    id: int | None = Field(default=None, primary_key=True)
    dataset_id: int = Field(foreign_key="dataset.id", index=True)
    created_at: datetime = Field(default_factory=now, sa_column=_utc())
    seed: int
    size: int
    sample_ids: list[int] = Field(sa_column=Column(JSON, nullable=False))
    """In drawing order; rows at even places calibrate, rows at odd places may be trusted."""
    purpose: str = RATE
    """One of ``vocabulary.PURPOSES``."""
    audit_id: int | None = None
    """The audit whose ranking the zones are of; None for a draw before any audit."""
    zones: list[dict[str, Any]] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    """What each zone is and how likely its samples were drawn (``records.NewDraw``)."""
    tolerance: float | None = None
    """Of numbers: a given one is wrong where it is farther than this from what the person says."""
