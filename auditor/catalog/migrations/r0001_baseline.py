"""The first layout with a number: what catalogs without a version have."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

LAYOUT = sa.MetaData()
TIME = sa.DateTime(timezone=True)

sa.Table(
    "dataset",
    LAYOUT,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String, nullable=False, unique=True, index=True),
    sa.Column("created_at", TIME, nullable=False),
    sa.Column("source", sa.String, nullable=False),
    sa.Column("source_kind", sa.String, nullable=False),
    sa.Column("root", sa.String, nullable=False),
    sa.Column("num_samples", sa.Integer, nullable=False),
    sa.Column("channels", sa.Integer, nullable=False),
    sa.Column("height", sa.Integer, nullable=False),
    sa.Column("width", sa.Integer, nullable=False),
    sa.Column("class_names", sa.JSON, nullable=False),
    sa.Column("user_columns", sa.JSON, nullable=False),
    sa.Column("path_column", sa.String),
    sa.Column("label_column", sa.String),
    sa.Column("has_true_labels", sa.Boolean, nullable=False),
    sa.Column("import_report", sa.JSON, nullable=False),
)
sa.Table(
    "last_id",
    LAYOUT,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("last_id", sa.Integer, nullable=False),
)
sa.Table(
    "sample",
    LAYOUT,
    sa.Column("dataset_id", sa.Integer, sa.ForeignKey("dataset.id"), primary_key=True),
    sa.Column("sample_id", sa.Integer, primary_key=True),
    sa.Column("filepath", sa.String, nullable=False),
    sa.Column("location", sa.String, nullable=False),
    sa.Column("given_label", sa.Integer, nullable=False),
    sa.Column("trusted", sa.Boolean, nullable=False),
    sa.Column("split", sa.String),
    sa.Column("content_hash", sa.String, nullable=False),
    sa.Column("perceptual_hash", sa.BigInteger),
    sa.Column("duplicate_group", sa.Integer, index=True),
    sa.Column("duplicate_kind", sa.String),
    sa.Column("original_height", sa.Integer, nullable=False),
    sa.Column("original_width", sa.Integer, nullable=False),
    sa.Column("extra", sa.JSON),
    sa.Index("sample_by_given_label", "dataset_id", "given_label"),
)
sa.Table(
    "audit",
    LAYOUT,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("dataset_id", sa.Integer, sa.ForeignKey("dataset.id"), nullable=False, index=True),
    sa.Column("created_at", TIME, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("preset", sa.String, nullable=False),
    sa.Column("device", sa.String, nullable=False),
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("engines", sa.JSON, nullable=False),
    sa.Column("options", sa.JSON, nullable=False),
    sa.Column("pid", sa.Integer),
    sa.Column("host", sa.String),
    sa.Column("process_started", sa.Float),
    sa.Column("heartbeat_at", TIME),
    sa.Column("started_at", TIME),
    sa.Column("finished_at", TIME),
    sa.Column("cancel_requested", sa.Boolean, nullable=False),
    sa.Column("error", sa.String),
    sa.Column("summary", sa.JSON, nullable=False),
)
sa.Table(
    "engine_run",
    LAYOUT,
    sa.Column("audit_id", sa.Integer, sa.ForeignKey("audit.id"), primary_key=True),
    sa.Column("engine", sa.String, primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("progress", sa.Float, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("stage", sa.String, nullable=False),
    sa.Column("config", sa.JSON, nullable=False),
    sa.Column("provenance", sa.JSON, nullable=False),
    sa.Column("error", sa.String),
)
sa.Table(
    "epoch",
    LAYOUT,
    sa.Column("audit_id", sa.Integer, sa.ForeignKey("audit.id"), primary_key=True),
    sa.Column("engine", sa.String, primary_key=True),
    sa.Column("stage", sa.String, primary_key=True),
    sa.Column("epoch", sa.Integer, primary_key=True),
    sa.Column("num_epochs", sa.Integer, nullable=False),
    sa.Column("progress", sa.Float, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("losses", sa.JSON, nullable=False),
    sa.Column("metrics", sa.JSON, nullable=False),
)
sa.Table(
    "score",
    LAYOUT,
    sa.Column("audit_id", sa.Integer, sa.ForeignKey("audit.id"), primary_key=True),
    sa.Column("sample_id", sa.Integer, primary_key=True),
    sa.Column("rank", sa.Integer, nullable=False),
    sa.Column("given_label", sa.Integer, nullable=False),
    sa.Column("trust_score", sa.Float),
    sa.Column("error_probability", sa.Float),
    sa.Column("is_label_issue", sa.Boolean, nullable=False),
    sa.Column("suggested_label", sa.Integer, nullable=False),
    sa.Column("suggested_probability", sa.Float, nullable=False),
    sa.Column("agreement", sa.Integer, nullable=False),
    sa.Column("disagreement", sa.Float, nullable=False),
    sa.Index("score_by_rank", "audit_id", "rank", "error_probability"),
    sa.Index("score_by_pair", "audit_id", "given_label", "suggested_label", "rank", "is_label_issue"),
)
sa.Table(
    "review",
    LAYOUT,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("dataset_id", sa.Integer, sa.ForeignKey("dataset.id"), nullable=False),
    sa.Column("sample_id", sa.Integer, nullable=False),
    sa.Column("decision", sa.String, nullable=False),
    sa.Column("label", sa.Integer),
    sa.Column("labels", sa.JSON),
    sa.Column("reviewer", sa.String, nullable=False),
    sa.Column("created_at", TIME, nullable=False),
    sa.Column("source", sa.String, nullable=False),
    sa.Column("batch", sa.String, index=True),
    sa.Column("audit_id", sa.Integer),
    sa.Column("reverts", sa.Integer),
    sa.Column("note", sa.String),
    sa.Index("review_by_sample", "dataset_id", "sample_id", "id"),
)
sa.Table(
    "decision",
    LAYOUT,
    sa.Column("dataset_id", sa.Integer, sa.ForeignKey("dataset.id"), primary_key=True),
    sa.Column("sample_id", sa.Integer, primary_key=True),
    sa.Column("review_id", sa.Integer, sa.ForeignKey("review.id"), nullable=False),
    sa.Column("decision", sa.String, nullable=False),
    sa.Column("label", sa.Integer),
    sa.Column("labels", sa.JSON),
    sa.Column("reviewer", sa.String, nullable=False),
    sa.Column("created_at", TIME, nullable=False),
)
sa.Table(
    "draw",
    LAYOUT,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("dataset_id", sa.Integer, sa.ForeignKey("dataset.id"), nullable=False, index=True),
    sa.Column("created_at", TIME, nullable=False),
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("sample_ids", sa.JSON, nullable=False),
)
sa.Table(
    "verdict",
    LAYOUT,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("dataset_id", sa.Integer, sa.ForeignKey("dataset.id"), nullable=False),
    sa.Column("draw_id", sa.Integer, sa.ForeignKey("draw.id"), nullable=False),
    sa.Column("sample_id", sa.Integer, nullable=False),
    sa.Column("label", sa.Integer),
    sa.Column("decision", sa.String, nullable=False),
    sa.Column("reviewer", sa.String, nullable=False),
    sa.Column("created_at", TIME, nullable=False),
    sa.Index("verdict_by_sample", "dataset_id", "sample_id", "id"),
)


def upgrade() -> None:
    """Create the tables that are not there; in SQLite begin to count the numbers that were given."""
    connection = op.get_bind()
    LAYOUT.create_all(connection)
    if connection.dialect.name != "sqlite":
        return
    for table in ("dataset", "audit", "draw"):
        connection.execute(
            sa.text(
                f"INSERT INTO last_id (name, last_id) "
                f"SELECT '{table}', (SELECT coalesce(max(id), 0) FROM \"{table}\") "
                f"WHERE NOT EXISTS (SELECT 1 FROM last_id WHERE name = '{table}')"
            )
        )


def missing(connection: sa.Connection) -> list[str]:
    """Columns (``table.column``) that the tables there lack; tables that are not there are left to ``upgrade``."""
    there = sa.inspect(connection).get_multi_columns()
    names = {table: {column["name"] for column in columns} for (_, table), columns in there.items()}
    return [
        f"{table.name}.{column.name}"
        for table in LAYOUT.sorted_tables
        if table.name in names
        for column in table.columns
        if column.name not in names[table.name]
    ]
