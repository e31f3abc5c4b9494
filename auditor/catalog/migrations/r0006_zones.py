"""Draws know what they are for, whose ranking they looked at, and the zones that they took their rows from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the columns; draws of earlier versions were uniform and have no zones."""
    op.add_column("draw", sa.Column("purpose", sa.String, nullable=False, server_default="rate"))
    op.add_column("draw", sa.Column("audit_id", sa.Integer, nullable=True))
    op.add_column("draw", sa.Column("zones", sa.JSON, nullable=False, server_default="[]"))
