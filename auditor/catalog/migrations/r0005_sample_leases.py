"""Leases: who is looking at a sample, so that two people are not asked about the same one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "sample_lease",
        sa.Column("dataset_id", sa.Integer, sa.ForeignKey("dataset.id"), primary_key=True),
        sa.Column("sample_id", sa.Integer, primary_key=True),
        sa.Column("reviewer", sa.String, nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
    )
