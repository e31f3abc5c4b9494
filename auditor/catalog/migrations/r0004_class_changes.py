"""Classes that people rename, merge and split."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the log of these changes."""
    op.add_column("dataset", sa.Column("class_changes", sa.JSON))
