"""A dataset knows which share of the looks on Verify are planted controls."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column; nobody chose a share in earlier versions."""
    op.add_column("dataset", sa.Column("control_rate", sa.Float, nullable=True))
