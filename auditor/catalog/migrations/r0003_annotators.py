"""Several answers a sample."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the names of those who answered."""
    op.add_column("dataset", sa.Column("annotators", sa.JSON))
