"""Samples whose label is a set of classes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the classes that are given to a sample."""
    op.add_column("sample", sa.Column("labels", sa.JSON))
