"""Labels may be numbers: of a sample, of a decision, and how far a drawn one may be off before it is wrong."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the columns; no dataset of earlier versions has numbers."""
    op.add_column("sample", sa.Column("number", sa.Float, nullable=True))
    op.add_column("review", sa.Column("number", sa.Float, nullable=True))
    op.add_column("draw", sa.Column("tolerance", sa.Float, nullable=True))
