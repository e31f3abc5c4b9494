"""The layout of the first version."""

from __future__ import annotations

from functools import partial

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TIME = sa.DateTime(timezone=True)
needed = partial(sa.Column, nullable=False)


def upgrade() -> None:
    """Create every table."""
    op.create_table(
        "dataset",
        needed("id", sa.Integer),
        needed("name", sa.String),
        needed("status", sa.String),
        needed("created_at", TIME),
        needed("source", sa.String),
        needed("source_kind", sa.String),
        needed("root", sa.String),
        needed("num_samples", sa.Integer),
        needed("channels", sa.Integer),
        needed("height", sa.Integer),
        needed("width", sa.Integer),
        needed("class_names", sa.JSON),
        needed("user_columns", sa.JSON),
        sa.Column("path_column", sa.String),
        sa.Column("label_column", sa.String),
        needed("has_true_labels", sa.Boolean),
        needed("task", sa.String),
        sa.Column("masks", sa.JSON),
        needed("uuid", sa.String),
        needed("import_report", sa.JSON),
        sa.PrimaryKeyConstraint("id"),
    )
    is_ready = sa.text("status = 'ready'")
    op.create_index(
        "dataset_by_name", "dataset", ["name"], unique=True, sqlite_where=is_ready, postgresql_where=is_ready
    )
    op.create_table(
        "last_id",
        needed("name", sa.String),
        needed("last_id", sa.Integer),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "lease",
        needed("name", sa.String),
        needed("uuid", sa.String),
        needed("pid", sa.Integer),
        needed("host", sa.String),
        needed("process_started", sa.Float),
        needed("heartbeat_at", TIME),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "score",
        needed("audit_id", sa.Integer),
        needed("generation", sa.Integer),
        needed("sample_id", sa.Integer),
        needed("rank", sa.Integer),
        needed("given_label", sa.Integer),
        sa.Column("trust_score", sa.Float),
        sa.Column("error_probability", sa.Float),
        needed("is_label_issue", sa.Boolean),
        needed("suggested_label", sa.Integer),
        needed("suggested_probability", sa.Float),
        needed("agreement", sa.Integer),
        needed("disagreement", sa.Float),
        sa.PrimaryKeyConstraint("audit_id", "generation", "sample_id"),
    )
    op.create_index(
        "score_by_pair",
        "score",
        ["audit_id", "generation", "given_label", "suggested_label", "rank", "is_label_issue"],
    )
    op.create_index("score_by_rank", "score", ["audit_id", "generation", "rank", "error_probability"])
    op.create_table(
        "audit",
        needed("id", sa.Integer),
        needed("dataset_id", sa.Integer),
        needed("created_at", TIME),
        needed("status", sa.String),
        needed("preset", sa.String),
        needed("device", sa.String),
        needed("seed", sa.Integer),
        needed("engines", sa.JSON),
        needed("options", sa.JSON),
        sa.Column("started_at", TIME),
        sa.Column("finished_at", TIME),
        sa.Column("error", sa.String),
        needed("summary", sa.JSON),
        needed("uuid", sa.String),
        needed("generation", sa.Integer),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["dataset.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_audit_dataset_id"), "audit", ["dataset_id"])
    op.create_table(
        "claim",
        needed("dataset_id", sa.Integer),
        needed("sample_id", sa.Integer),
        needed("reviewer", sa.String),
        needed("until", TIME),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["dataset.id"],
        ),
        sa.PrimaryKeyConstraint("dataset_id", "sample_id"),
    )
    op.create_table(
        "draw",
        needed("id", sa.Integer),
        needed("dataset_id", sa.Integer),
        needed("created_at", TIME),
        needed("seed", sa.Integer),
        needed("size", sa.Integer),
        needed("sample_ids", sa.JSON),
        needed("purpose", sa.String),
        sa.Column("audit_id", sa.Integer),
        needed("zones", sa.JSON),
        sa.Column("tolerance", sa.Float),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["dataset.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_draw_dataset_id"), "draw", ["dataset_id"])
    op.create_table(
        "sample",
        needed("dataset_id", sa.Integer),
        needed("sample_id", sa.Integer),
        needed("filepath", sa.String),
        needed("location", sa.String),
        needed("given_label", sa.Integer),
        needed("trusted", sa.Boolean),
        sa.Column("split", sa.String),
        needed("content_hash", sa.String),
        sa.Column("perceptual_hash", sa.BigInteger),
        sa.Column("duplicate_group", sa.Integer),
        sa.Column("duplicate_kind", sa.String),
        needed("original_height", sa.Integer),
        needed("original_width", sa.Integer),
        sa.Column("extra", sa.JSON),
        sa.Column("mask", sa.String),
        sa.Column("number", sa.Float),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["dataset.id"],
        ),
        sa.PrimaryKeyConstraint("dataset_id", "sample_id"),
    )
    op.create_index(op.f("ix_sample_duplicate_group"), "sample", ["duplicate_group"])
    op.create_index("sample_by_given_label", "sample", ["dataset_id", "given_label"])
    op.create_table(
        "engine_run",
        needed("audit_id", sa.Integer),
        needed("engine", sa.String),
        needed("position", sa.Integer),
        needed("status", sa.String),
        needed("progress", sa.Float),
        needed("seconds", sa.Float),
        needed("stage", sa.String),
        needed("config", sa.JSON),
        needed("provenance", sa.JSON),
        sa.Column("error", sa.String),
        sa.ForeignKeyConstraint(
            ["audit_id"],
            ["audit.id"],
        ),
        sa.PrimaryKeyConstraint("audit_id", "engine"),
    )
    op.create_table(
        "epoch",
        needed("audit_id", sa.Integer),
        needed("engine", sa.String),
        needed("stage", sa.String),
        needed("epoch", sa.Integer),
        needed("num_epochs", sa.Integer),
        needed("progress", sa.Float),
        needed("seconds", sa.Float),
        needed("losses", sa.JSON),
        needed("metrics", sa.JSON),
        sa.ForeignKeyConstraint(
            ["audit_id"],
            ["audit.id"],
        ),
        sa.PrimaryKeyConstraint("audit_id", "engine", "stage", "epoch"),
    )
    op.create_table(
        "job",
        needed("id", sa.Integer),
        needed("kind", sa.String),
        needed("name", sa.String),
        sa.Column("dataset_id", sa.Integer),
        sa.Column("audit_id", sa.Integer),
        needed("arguments", sa.JSON),
        sa.Column("who", sa.String),
        needed("status", sa.String),
        sa.Column("pid", sa.Integer),
        sa.Column("host", sa.String),
        sa.Column("process_started", sa.Float),
        sa.Column("heartbeat_at", TIME),
        needed("cancel_requested", sa.Boolean),
        needed("stage", sa.String),
        needed("done", sa.Float),
        sa.Column("total", sa.Float),
        sa.Column("seconds_left", sa.Float),
        needed("created_at", TIME),
        sa.Column("started_at", TIME),
        sa.Column("finished_at", TIME),
        sa.Column("error", sa.String),
        sa.Column("result", sa.JSON),
        sa.ForeignKeyConstraint(
            ["audit_id"],
            ["audit.id"],
        ),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["dataset.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("audit_id"),
    )
    op.create_index(op.f("ix_job_dataset_id"), "job", ["dataset_id"])
    op.create_table(
        "review",
        needed("id", sa.Integer),
        needed("dataset_id", sa.Integer),
        needed("sample_id", sa.Integer),
        needed("decision", sa.String),
        sa.Column("label", sa.Integer),
        sa.Column("number", sa.Float),
        sa.Column("labels", sa.JSON),
        needed("reviewer", sa.String),
        needed("created_at", TIME),
        needed("source", sa.String),
        sa.Column("batch", sa.String),
        sa.Column("audit_id", sa.Integer),
        sa.Column("reverts", sa.Integer),
        sa.Column("note", sa.String),
        needed("kind", sa.String),
        sa.Column("draw_id", sa.Integer),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["dataset.id"],
        ),
        sa.ForeignKeyConstraint(
            ["draw_id"],
            ["draw.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_review_batch"), "review", ["batch"])
    op.create_index("review_by_kind", "review", ["dataset_id", "kind"])
    op.create_index("review_by_sample", "review", ["dataset_id", "sample_id", "id"])
    op.create_table(
        "decision",
        needed("dataset_id", sa.Integer),
        needed("sample_id", sa.Integer),
        needed("review_id", sa.Integer),
        needed("is_disputed", sa.Boolean),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["dataset.id"],
        ),
        sa.ForeignKeyConstraint(
            ["review_id"],
            ["review.id"],
        ),
        sa.PrimaryKeyConstraint("dataset_id", "sample_id"),
    )
