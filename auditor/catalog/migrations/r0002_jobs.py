"""Jobs: what says whether an audit's process lives moves to the job of the audit; finished audits have none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TIME = sa.DateTime(timezone=True)
MOVED = ("pid", "host", "process_started", "heartbeat_at", "cancel_requested")


def upgrade() -> None:
    """Create the table, give every unfinished audit its job, and drop the columns that moved."""
    connection = op.get_bind()
    op.create_table(
        "job",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("dataset.id"), index=True),
        sa.Column("audit_id", sa.Integer, sa.ForeignKey("audit.id"), unique=True),
        sa.Column("arguments", sa.JSON, nullable=False),
        sa.Column("who", sa.String),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("pid", sa.Integer),
        sa.Column("host", sa.String),
        sa.Column("process_started", sa.Float),
        sa.Column("heartbeat_at", TIME),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("stage", sa.String, nullable=False),
        sa.Column("done", sa.Float, nullable=False),
        sa.Column("total", sa.Float),
        sa.Column("seconds_left", sa.Float),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME),
        sa.Column("finished_at", TIME),
        sa.Column("error", sa.String),
        sa.Column("result", sa.JSON),
    )
    connection.execute(
        sa.text(
            "INSERT INTO job (kind, name, dataset_id, audit_id, arguments, status, pid, host, process_started, "
            "heartbeat_at, cancel_requested, stage, done, created_at, started_at, error) "
            "SELECT 'audit', dataset.name, dataset.id, audit.id, '{}', "
            "CASE audit.status WHEN 'queued' THEN 'waiting' ELSE audit.status END, audit.pid, audit.host, "
            "audit.process_started, audit.heartbeat_at, audit.cancel_requested, '', 0, audit.created_at, "
            "audit.started_at, audit.error FROM audit JOIN dataset ON dataset.id = audit.dataset_id "
            "WHERE audit.status <> 'finished' ORDER BY audit.id"
        )
    )
    for column in MOVED:
        connection.execute(sa.text(f"ALTER TABLE audit DROP COLUMN {column}"))
    if connection.dialect.name == "sqlite":
        count = "INSERT INTO last_id (name, last_id) SELECT 'job', coalesce(max(id), 0) FROM job"
        connection.execute(sa.text(count))
